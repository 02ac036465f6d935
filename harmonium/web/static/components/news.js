// What a new library has to say: indexing, files that could not be read, and genres to learn from.

import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { get, post } from "../api.js";
import {
  complain,
  isAtWork,
  jobs,
  library,
  newestJob,
  putJob,
  toast,
  useCell,
  useLoad,
} from "../state.js";
import { count, counted } from "../words.js";
import { IconButton, JobProgress } from "./bits.js";

const OUTCOMES = [
  ["new", "new"],
  ["changed", "changed"],
  ["moved", "moved"],
  ["missing", "missing"],
  ["unreadable", "could not be read"],
];

/** What indexing has found. */
export function indexed(result) {
  if (!result) return "Done.";
  const parts = [];
  for (const [name, word] of OUTCOMES) {
    if (result[name]) parts.push(`${count(result[name])} ${word}`);
  }
  return parts.length ? `Files: ${parts.join(", ")}.` : "No new music in this folder.";
}

/** The tags in the files that could be learnt, and learning them. */
export function useLearning(fields) {
  const all = useCell(jobs);
  const job = newestJob(all, "import");
  const busy = Object.values(all).some(isAtWork); // Counting needs the library for itself.
  const load = async (signal) => (busy || !fields ? null : get("/import", { fields }, signal));
  const { data, error } = useLoad(load, [fields, busy]);
  const learn = async () => {
    try {
      putJob(await post("/import", { fields: fields.split(",") }));
    } catch (problem) {
      complain(problem);
    }
  };
  return { job, data, error, learn };
}

const MIN_TRACKS = 20; // Training needs them.
const stored = (name) => localStorage.getItem(`harmonium.${name}`);

/** One line of news; it can be dismissed, until it changes. */
function Line({ name, state, children }) {
  const [gone, setGone] = useState(stored(name) === state);
  if (gone) return null;
  const dismiss = () => {
    localStorage.setItem(`harmonium.${name}`, state);
    setGone(true);
  };
  return html`<div class="news-line">
    ${children}
    <${IconButton} icon="close" label="Dismiss" onClick=${dismiss} />
  </div>`;
}

/** What a job that learnt from files has achieved. */
function learnt({ learnt: nTags, tracks }) {
  const where = counted(tracks, "track");
  if (nTags) return `Learnt ${counted(nTags, "tag")} from ${where}.`;
  return `Imported the genres of ${where}. No genre has enough consistent examples yet.`;
}

export function News() {
  const summary = useCell(library);
  const indexing = newestJob(useCell(jobs), "index");
  // Later, the library's page offers to learn from the files.
  const isNew = summary && !summary.people.some((person) => person.name === "files");
  const { job, data, learn } = useLearning(isNew ? "genre" : "");
  const running = [indexing, job].filter(isAtWork);
  const wasAtWork = useRef(false); // Only jobs that ran while the page was open have news.
  useEffect(() => {
    if (wasAtWork.current && job?.state === "done") toast(learnt(job.result));
    wasAtWork.current = isAtWork(job);
  }, [job?.state]);
  const failure = job?.state === "failed" && job.error;
  const offer = !isAtWork(job) && data && data.new > 0 && data.tracks >= MIN_TRACKS;
  const nUnreadable = summary?.unreadable ?? 0;
  if (!running.length && !failure && !offer && !nUnreadable) return null;
  return html`<section class="news" aria-label="News">
    ${running.map((active) => html`<${JobProgress} key=${active.id} job=${active} />`)}
    ${failure && html`<${Failure} key=${failure} message=${failure} />`}
    ${offer && html`<${Offer} key=${`genres ${data.new}`} data=${data} learn=${learn} />`}
    ${nUnreadable > 0 && html`<${Unreadable} key=${`unreadable ${nUnreadable}`} n=${nUnreadable} />`}
  </section>`;
}

const Failure = ({ message }) =>
  html`<${Line} name="failed" state=${message}><p class="bad">${message}</p><//>`;

const Offer = ({ data, learn }) =>
  html`<${Line} name="genres" state=${String(data.new)}>
    <p>
      <b class="num">${counted(data.tracks, "track")}</b> have genres in their files. Learn from them?
    </p>
    <button class="primary" onClick=${learn}>Learn from them</button>
  <//>`;

const Unreadable = ({ n }) =>
  html`<${Line} name="unreadable" state=${String(n)}>
    <p>
      <b class="num">${counted(n, "file")}</b> could not be read.${" "}
      <a href="#/library">See which and why</a>
    </p>
  <//>`;
