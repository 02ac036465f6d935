// Every request to the server goes through here.

const BASE = "/api/v1";

/** A refused request: a sentence for people, a code for programs. */
export class ApiError extends Error {
  constructor(status, { code, message, field }) {
    super(message);
    Object.assign(this, { status, code, field });
  }
}

/** Called when the server asks for a token. */
export const onUnauthorized = { call: () => {} };

/** The address of a route, with those parameters that have a value. */
export function address(path, params = {}) {
  const given = Object.entries(params).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const query = new URLSearchParams(given).toString();
  return BASE + path + (query ? "?" + query : "");
}

const BUSY = [429, 503], TRIES = 3;
const pause = (seconds) => new Promise((go) => setTimeout(go, 1000 * seconds));

async function request(method, url, { body, type, signal } = {}, tries = 1) {
  let answer;
  try {
    answer = await fetch(url, { method, body, signal, headers: type ? { "Content-Type": type } : {} });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, {
      code: "no_answer",
      message: "The server does not answer. Check that “harmonium serve” is running, then try again.",
    });
  }
  if (BUSY.includes(answer.status) && tries < TRIES) { // Nothing was done yet, so the request can be repeated.
    await pause(Math.min(5, Number(answer.headers.get("Retry-After")) || 1));
    return request(method, url, { body, type, signal }, tries + 1);
  }
  if (answer.status === 204) return null;
  const content = await answer.json().catch(() => null);
  if (answer.ok) return content;
  if (answer.status === 401) onUnauthorized.call();
  throw new ApiError(answer.status, content?.error ?? {
    code: "unreadable", message: `The server answered ${answer.status} without a message.`,
  });
}

export const get = (path, params, signal) => request("GET", address(path, params), { signal });

export const post = (path, body = {}, signal) =>
  request("POST", address(path), { body: JSON.stringify(body), type: "application/json", signal });

export const put = (path, body, params) => request("PUT", address(path, params), { body: JSON.stringify(body), type: "application/json" });

export const remove = (path, params) => request("DELETE", address(path, params));

/** Upload a file; the server does not keep it. */
export const postFile = (file, signal) =>
  request("POST", address("/files", { name: file.name }), { body: file, type: "application/octet-stream", signal });

export const tagPath = (tag, action = "") => `/tags/${encodeURIComponent(tag)}${action && "/" + action}`;
export const audioAddress = (id) => address(`/tracks/${id}/audio`);
export const coverAddress = (id) => address(`/tracks/${id}/cover`);
export const spectrumAddress = (id) => address(`/tracks/${id}/spectrum`);
