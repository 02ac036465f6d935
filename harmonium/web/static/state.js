// State that several parts of the page share.

import { useEffect, useRef, useState } from "./vendor/preact.js";
import { get } from "./api.js";

/** A value with listeners. */
export function cell(value) {
  const listeners = new Set();
  return {
    get value() {
      return value;
    },
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

/**
 * The result of `load(signal)`, loaded again when deps change; the old data stays until the new
 * arrives.
 */
export function useLoad(load, deps) {
  const [state, set] = useState({ data: null, error: null, answers: [] });
  const [turn, setTurn] = useState(0);
  const wanted = [...deps, turn];
  useEffect(() => {
    const controller = new AbortController();
    const { signal } = controller;
    const succeed = (data) => signal.aborted || set({ data, error: null, answers: wanted });
    const fail = (error) => signal.aborted || set((old) => ({ ...old, error, answers: wanted }));
    load(signal).then(succeed, fail);
    return () => controller.abort();
  }, wanted);
  const reload = () => setTurn((n) => n + 1);
  const put = (data) => set({ data, error: null, answers: wanted });
  // From the very render that wants something else, old data must not be taken for its answer.
  const loading = wanted.some((value, i) => value !== state.answers[i]);
  const { data, error } = state;
  return { data, error, loading, reload, put };
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

/** A tag as the library spells it. */
export const spelt = (name) => tagList.value.find(({ tag }) => tag === name)?.shown ?? name;

export function announce(sentence) {
  spoken.set("");
  setTimeout(() => spoken.set(sentence), 30);
}

let nToasts = 0;
/** Show a message for a while; `action` is {label, run}. */
export function toast(text, action = null, { bad = false } = {}) {
  const id = ++nToasts;
  toasts.set((all) => [...all.slice(-2), { id, text, action, bad }]);
  return id;
}
export const dropToast = (id) => toasts.set((all) => all.filter((message) => message.id !== id));

/** Show an error of something that the user did. */
export function complain(error) {
  if (error.name !== "AbortError" && error.status !== 401)
    toast(error.message, null, { bad: true });
}

export const bumpChanges = () => changeCount.set((n) => n + 1);

export async function refreshLibrary() {
  const summary = await get("/library");
  library.set(summary);
  jobs.set((old) => {
    const all = { ...old };
    for (const job of summary.jobs ?? []) all[job.id] = job;
    return all;
  });
  return summary;
}

export async function refreshTags() {
  const { tags } = await get("/tags");
  tagList.set(tags.filter((tag) => !tag.hidden));
}

/** Keep what the server says about a job. */
export const putJob = (job) => jobs.set((old) => ({ ...old, [job.id]: job }));

/** The newest job of a kind, if any. */
export function newestJob(all, kind) {
  const ofKind = Object.values(all).filter((job) => job.kind === kind);
  return ofKind.sort((a, b) => (a.started_at < b.started_at ? 1 : -1))[0];
}

export const isAtWork = (job) => job?.state === "running" || job?.state === "waiting";
