// State that several parts of the page share.

import { useEffect, useRef, useState } from "./vendor/preact.js";
import { get } from "./api.js";

/** A value with listeners. */
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

/** The value of a cell; the component is rendered again when it changes. */
export function useCell(source) {
  const [value, set] = useState(source.value);
  useEffect(() => {
    set(source.value);
    return source.listen(set);
  }, [source]);
  return value;
}

/** The result of `load(signal)`, loaded again when deps change; the old data stays until the new arrives. */
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

/** A ref, and the width of its element. */
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

/** Call `then` whenever the value of a cell changes. */
export function useChange(source, then) {
  const latest = useRef(then);
  latest.current = then;
  useEffect(() => source.listen((value) => latest.current(value)), [source]);
}

/** The answer of GET /library; null until it is loaded. */
export const library = cell(null);
/** All visible tags, for completion. */
export const tagList = cell([]);
/** A tag as the library spells it. */
export const spelt = (tag) => tagList.value.find((one) => one.tag === tag)?.shown ?? tag;
/** Jobs by id, as last reported. */
export const jobs = cell({});
/** The number of changes that the server has reported to this page. */
export const changeCount = cell(0);
/** The next announcement for screen readers. */
export const spoken = cell("");
/** The messages at the bottom of the page. */
export const toasts = cell([]);
/** Unsaved answers by track; they survive visits to other views. */
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

/** Show an error of something that the user did. */
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

/** The newest job of a kind, if any. */
export const newestJob = (all, kind) =>
  Object.values(all).filter((job) => job.kind === kind).sort((a, b) => (a.started_at < b.started_at ? 1 : -1))[0];
export const isAtWork = (job) => job?.state === "running" || job?.state === "waiting";
