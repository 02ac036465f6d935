// What several parts of the page share, and how they hear of a change.

import { useEffect, useRef, useState } from "./vendor/preact.js";
import { get } from "./api.js";

/** A value that can be listened to. */
export function cell(value) {
  const listeners = new Set();
  return {
    get value() { return value; },
    set(next) {
      value = typeof next === "function" ? next(value) : next;
      for (const listener of [...listeners]) listener(value);
    },
    listen(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/** The value of a cell; the component is drawn again when it changes. */
export function useCell(source) {
  const [value, set] = useState(source.value);
  useEffect(() => {
    set(source.value);
    return source.listen(set);
  }, [source]);
  return value;
}

/** What `load(signal)` promises, again whenever deps change; the old data stays until the new is there. */
export function useLoad(load, deps) {
  const [state, set] = useState({ data: null, error: null, loading: true });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const controller = new AbortController();
    set((old) => ({ ...old, loading: true }));
    load(controller.signal).then(
      (data) => controller.signal.aborted || set({ data, error: null, loading: false }),
      (error) => controller.signal.aborted || set((old) => ({ ...old, error, loading: false })),
    );
    return () => controller.abort();
  }, [...deps, turn]);
  return { ...state, reload: () => setTurn((n) => n + 1), put: (data) => set({ data, error: null, loading: false }) };
}

/** A ref, and how wide the element with it is. */
export function useWidth() {
  const frame = useRef();
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const watch = new ResizeObserver(() => frame.current && setWidth(frame.current.clientWidth));
    watch.observe(frame.current);
    return () => watch.disconnect();
  }, []);
  return [frame, width];
}

/** Call `then` when the value of a cell changes, not at first. */
export function useChange(source, then) {
  const latest = useRef(then);
  latest.current = then;
  useEffect(() => source.listen((value) => latest.current(value)), [source]);
}

/** GET /library, or null before it is known. */
export const library = cell(null);
/** The tags that exist, for completion. */
export const tagList = cell([]);
/** Jobs by id, newest news of each. */
export const jobs = cell({});
/** Counts the changes of the library that this page was told of. */
export const changeCount = cell(0);
/** The sentence that a screen reader speaks next. */
export const spoken = cell("");
/** The messages at the bottom of the page. */
export const toasts = cell([]);
/** Unsaved answers by track, so that going elsewhere on the page loses nothing. */
export const drafts = new Map();

export const announce = (sentence) => {
  spoken.set("");
  setTimeout(() => spoken.set(sentence), 30);
};

let nToasts = 0;
/** Show a message for a while; `action` is {label, run}. */
export function toast(text, action = null, { bad = false } = {}) {
  const id = ++nToasts;
  toasts.set((all) => [...all.slice(-2), { id, text, action, bad }]);
  return id;
}
export const dropToast = (id) => toasts.set((all) => all.filter((one) => one.id !== id));

/** Say what went wrong with something that the user did. */
export const complain = (error) => {
  if (error.name !== "AbortError" && error.status !== 401) toast(error.message, null, { bad: true });
};

export async function refreshLibrary() {
  const news = await get("/library");
  library.set(news);
  jobs.set((old) => ({ ...old, ...Object.fromEntries((news.jobs ?? []).map((job) => [job.id, job])) }));
  return news;
}

export async function refreshTags() {
  tagList.set((await get("/tags")).tags.filter((tag) => !tag.hidden));
}

/** The newest job of a kind, if there is any. */
export const newestJob = (all, kind) =>
  Object.values(all).filter((job) => job.kind === kind).sort((a, b) => (a.started_at < b.started_at ? 1 : -1))[0];
export const isAtWork = (job) => job?.state === "running" || job?.state === "waiting";
