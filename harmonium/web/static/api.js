// Every request to the server goes through here.

const BASE = "/api/v1";
const BUSY = [429, 503];
const TRIES = 3;

/** A refused request: a sentence for people, a code for programs. */
class ApiError extends Error {
  constructor(status, { code, message, field }) {
    super(message);
    Object.assign(this, { status, code, field });
  }
}

/** Called when the server asks for a token. */
export const onUnauthorized = { call: () => {} };

const hasValue = ([, value]) => value !== undefined && value !== null && value !== "";

/** Parameters as the query of an address; those without a value are left out. */
export const queryString = (params) =>
  new URLSearchParams(Object.entries(params).filter(hasValue)).toString();

/** The address of a route. */
export function address(path, params = {}) {
  const query = queryString(params);
  return BASE + path + (query ? "?" + query : "");
}

const pause = (seconds) => new Promise((resume) => setTimeout(resume, 1000 * seconds));

async function send(method, url, { body, type, signal }) {
  const headers = type ? { "Content-Type": type } : {};
  try {
    return await fetch(url, { method, body, signal, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, {
      code: "no_answer",
      message:
        "The server does not answer. Check that “harmonium serve” is running, then try again.",
    });
  }
}

async function request(method, url, options = {}, tries = 1) {
  const response = await send(method, url, options);
  if (BUSY.includes(response.status) && tries < TRIES) {
    // The server has done nothing yet, so the request can be repeated.
    await pause(Math.min(5, Number(response.headers.get("Retry-After")) || 1));
    return request(method, url, options, tries + 1);
  }
  if (response.status === 204) return null;
  const content = await response.json().catch(() => null);
  if (response.ok) return content;
  if (response.status === 401) onUnauthorized.call();
  const unreadable = {
    code: "unreadable",
    message: `The server answered ${response.status} without a message.`,
  };
  throw new ApiError(response.status, content?.error ?? unreadable);
}

const json = (body) => ({ body: JSON.stringify(body), type: "application/json" });

export const get = (path, params, signal) => request("GET", address(path, params), { signal });

export const post = (path, body = {}, signal) =>
  request("POST", address(path), { ...json(body), signal });

export const put = (path, body, params) => request("PUT", address(path, params), json(body));

export const remove = (path, params) => request("DELETE", address(path, params));

/** Upload a file; the server does not keep it. */
export const postFile = (file, signal) =>
  request("POST", address("/files", { name: file.name }), {
    body: file,
    type: "application/octet-stream",
    signal,
  });

export const tagPath = (tag, action = "") =>
  `/tags/${encodeURIComponent(tag)}${action && "/" + action}`;
export const audioAddress = (id) => address(`/tracks/${id}/audio`);
export const coverAddress = (id) => address(`/tracks/${id}/cover`);
export const spectrumAddress = (id) => address(`/tracks/${id}/spectrum`);
