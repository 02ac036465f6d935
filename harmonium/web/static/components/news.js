// What a new library has to say: indexing, files that could not be read, and genres to learn from.

import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { get, post } from "../api.js";
import { complain, isAtWork, jobs, library, newestJob, toast, useCell, useLoad } from "../state.js";
import { count, counted } from "../words.js";
import { IconButton, JobProgress } from "./bits.js";

/** What indexing has found. */
export function indexed(result) {
  if (!result) return "Done.";
  const found = [["new", "new"], ["changed", "changed"], ["moved", "moved"], ["missing", "missing"], ["unreadable", "could not be read"]];
  const said = found.filter(([name]) => result[name]).map(([name, word]) => `${count(result[name])} ${word}`);
  return said.length ? `Files: ${said.join(", ")}.` : "No new music in this folder.";
}

/** The tags in the files that could be learnt, and learning them. */
export function useLearning(fields) {
  const all = useCell(jobs);
  const job = newestJob(all, "import");
  const busy = Object.values(all).some(isAtWork); // Counting needs the library for itself.
  const { data, error } = useLoad((signal) => (busy || !fields ? Promise.resolve(null) : get("/import", { fields }, signal)), [fields, busy]);
  const learn = async () => {
    try {
      const news = await post("/import", { fields: fields.split(",") });
      jobs.set((old) => ({ ...old, [news.id]: news }));
    } catch (problem) { complain(problem); }
  };
  return { job, data, error, learn };
}

const MIN_TRACKS = 20; // Training needs them.
const dismissed = (key) => localStorage.getItem(`harmonium.${key}`);

/** One line of news; it can be dismissed, until it changes. */
function Line({ name, state, children }) {
  const [gone, setGone] = useState(dismissed(name) === state);
  if (gone) return null;
  const dismiss = () => { localStorage.setItem(`harmonium.${name}`, state); setGone(true); };
  return html`<div class="news-line">${children}<${IconButton} icon="close" label="Dismiss" onClick=${dismiss} /></div>`;
}

export function News() {
  const about = useCell(library);
  const indexing = newestJob(useCell(jobs), "index");
  const isNew = about && !about.people.some((person) => person.name === "files"); // Later, the library's page offers it.
  const { job, data, learn } = useLearning(isNew ? "genre" : "");
  const running = [indexing, job].filter(isAtWork);
  const before = useRef(null);
  useEffect(() => { // Only of a job that has run while the page was open.
    if (before.current && job?.state === "done") {
      const tracks = counted(job.result.tracks, "track");
      toast(job.result.learnt ? `Learnt ${counted(job.result.learnt, "tag")} from ${tracks}.` : `Imported the genres of ${tracks}. They are too few, or too mixed, to predict any yet.`);
    }
    before.current = isAtWork(job);
  }, [job?.state]);
  const failed = job?.state === "failed" && job.error;
  const offer = !isAtWork(job) && data && data.new > 0 && data.tracks >= MIN_TRACKS;
  if (!running.length && !failed && !offer && !about?.unreadable) return null;
  return html`<section class="news" aria-label="News">
    ${running.map((one) => html`<${JobProgress} key=${one.id} job=${one} />`)}
    ${failed && html`<${Line} key=${failed} name="failed" state=${failed}><p class="bad">${failed}</p><//>`}
    ${offer && html`<${Line} key=${`genres ${data.new}`} name="genres" state=${String(data.new)}>
      <p>Your files have genres on <b class="num">${counted(data.tracks, "track")}</b>. Learn from them?</p><button class="primary" onClick=${learn}>Learn from them</button><//>`}
    ${about?.unreadable > 0 && html`<${Line} key=${`unreadable ${about.unreadable}`} name="unreadable" state=${String(about.unreadable)}>
      <p><b class="num">${counted(about.unreadable, "file")}</b> could not be read. <a href="#/library">Which, and why</a></p><//>`}
  </section>`;
}
