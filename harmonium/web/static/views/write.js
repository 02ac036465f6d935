// What writing would add to the files, tag by tag; and writing it.

import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { get, post } from "../api.js";
import { go, href } from "../router.js";
import { complain, isAtWork, jobs, newestJob, refreshLibrary, useCell, useLoad } from "../state.js";
import { count, percent, counted, titleOf } from "../words.js";
import { Empty, JobProgress, Problem, Range, View, Waiting } from "../components/bits.js";
import { Dialog } from "../components/dialog.js";
import { undo } from "../components/toast.js";

const PREVIEW = 20;

export function Write({ params }) {
  const precision = Math.min(0.99, Math.max(0.5, Number(params.precision) || 0.8));
  const [shown, setShown] = useState(precision); // The slider; the plan waits until it rests.
  const [ignored, setIgnored] = useState(() => new Set());
  const [asking, setAsking] = useState(false);
  const [started, setStarted] = useState(null);
  const [n, setN] = useState(PREVIEW);
  const timer = useRef();
  const job = newestJob(useCell(jobs), "write");
  const atWork = isAtWork(job);
  const ignore = [...ignored];
  const { data, error, loading, reload } = useLoad(
    (signal) => get("/write/plan", { precision, ignore: ignore.join(","), offset: 0, limit: n }, signal), [precision, ignore.join(","), n]);
  useEffect(() => { if (job && !atWork) reload(); }, [job?.state]);
  useEffect(() => setShown(precision), [precision]);

  const slide = (value) => {
    setShown(value);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => go("write", null, { ...params, precision: value.toFixed(2) }, { replace: true }), 250);
  };
  const flip = (tag) => setIgnored((old) => {
    const now = new Set(old);
    if (!now.delete(tag)) now.add(tag);
    return now;
  });
  const write = async () => {
    setAsking(false);
    try {
      const news = await post("/write", { precision, q: "", ignore, skip: [] });
      jobs.set((old) => ({ ...old, [news.id]: news }));
      setStarted(news.id);
    } catch (problem) { complain(problem); }
  };
  const nTags = data ? data.tags.filter((tag) => !ignored.has(tag.tag)).reduce((sum, tag) => sum + tag.n, 0) : 0;
  return html`<${View} title="Write" lead="Write tags into your music files, so that other programs see them.">
    ${job && (atWork || started === job.id) && html`<${WriteJob} job=${job} after=${reload} />`}
    <section class="card write-how" aria-labelledby="how-sure"><h2 id="how-sure">Precision</h2>
      <label class="slider">At least <b class="num">${percent(shown)}</b> of the predicted tags should be right
        <${Range} min=${50} max=${99} value=${Math.round(100 * shown)} onInput=${(value) => slide(value / 100)} aria-valuetext=${percent(shown)} /></label>
      <p class="soft">Higher: fewer tags, fewer mistakes. Your own tags are always written.</p>
    </section>
    ${error ? html`<${Problem} error=${error} retry=${reload}>${error.code === "not_ready" && html`<a class="button primary" href="#/training">Train a model</a>`}<//>`
      : !data ? html`<${Waiting} rows=${10} />`
      : data.files === 0 && !ignored.size ? html`<${Empty} title="Nothing to write."><p>${atWork ? "Writing is in progress." : "The files already have all tags of this precision. Choose a lower one, or teach the model."}</p><div class="row"><a class="button" href="#/teach">Teach</a><a class="button" href="#/changes">Changes</a></div><//>`
      : html`<div class=${loading ? "plan stale" : "plan"}>
        <div class="write-sum"><p><strong class="num">${counted(nTags, "tag")}</strong> into <strong class="num">${counted(data.files, "file")}</strong>.
          ${data.guessed > 0 ? html` <span class="soft">${count(data.guessed)} predicted, about ${count(Math.round(data.expected_wrong))} of them wrong.</span>` : html` <span class="soft">None is predicted.</span>`}</p>
          <button class="primary" disabled=${atWork || data.files === 0} onClick=${() => setAsking(true)}>Write into ${counted(data.files, "file")} …</button></div>
        <${Tags} data=${data} ignored=${ignored} flip=${flip} />
        <${Preview} data=${data} n=${n} more=${() => setN(n + 2 * PREVIEW)} />
      </div>`}
    ${asking && html`<${Dialog} title=${`Write into ${counted(data.files, "file")}?`} onClose=${() => setAsking(false)}>
      <p>${counted(nTags, "tag")} will be added to the genre and similar fields of your files. The sound is not touched. You can undo it.</p>
      <div class="dialog-buttons"><button onClick=${() => setAsking(false)}>Cancel</button><button class="primary" onClick=${write}>Write</button></div>
    <//>`}
  <//>`;
}

function WriteJob({ job, after }) {
  const change = job.result?.change;
  const [undone, setUndone] = useState(false);
  const back = async () => { await undo(change, after); setUndone(true); refreshLibrary().catch(complain); };
  if (isAtWork(job)) return html`<section class="card" aria-label="Writing"><${JobProgress} job=${job} /></section>`;
  const ok = job.state === "done";
  return html`<section class=${ok ? "card good" : "card problem"} role="status" aria-label="Writing">
    <p>${undone ? "Undone: the files are as they were before." : job.error ?? (job.text || (ok ? "Written." : "Stopped."))}</p>
    <div class="row">${change && !undone && html`<button onClick=${back}>Undo</button>`}<a class="button quiet" href="#/changes">All changes</a></div></section>`;
}

function Tags({ data, ignored, flip }) {
  const rows = [...data.tags].sort((a, b) => b.n - a.n || a.shown.localeCompare(b.shown));
  return html`<section aria-labelledby="which"><h2 id="which">Which tags</h2>
    <table class="table write-tags"><thead><tr><th scope="col">Tag</th><th scope="col" class="num">Files</th><th scope="col" class="num">Precision</th><th scope="col" class="num wide-only">Expected wrong</th></tr></thead>
      <tbody>${rows.map((tag) => html`<tr key=${tag.tag} class=${ignored.has(tag.tag) ? "rejected" : ""}>
        <th scope="row"><label class="inline"><input type="checkbox" checked=${!ignored.has(tag.tag)} onChange=${() => flip(tag.tag)} /> ${tag.shown}</label></th>
        <td class="num">${count(tag.n)}</td><td class="num">${tag.precision === null ? html`<span class="soft">given by people</span>` : html`${percent(tag.precision)}${tag.elsewhere ? html`<span aria-hidden="true"> *</span><span class="vh">, on other music</span>` : ""}`}</td>
        <td class="num wide-only">${tag.expected_wrong ? tag.expected_wrong.toFixed(1) : "0"}</td></tr>`)}</tbody></table>
    ${rows.some((tag) => tag.elsewhere && !ignored.has(tag.tag)) && html`<p class="soft">* A tag of the built-in model. Its precision was measured on other music and may be lower on yours.</p>`}
    ${data.not_reached?.length > 0 && html`<details><summary>${counted(data.not_reached.length, "tag")} below this precision</summary>
      <p class="soft">${data.not_reached.map((one, i) => html`${i ? ", " : ""}<a href=${href("tags", one.tag)}>${one.shown ?? one.tag}</a>${one.best ? ` (at best ${percent(one.best)})` : ""}`)}</p></details>`}
  </section>`;
}

function Preview({ data, n, more }) {
  if (!data.preview?.length) return null;
  return html`<section aria-labelledby="preview"><h2 id="preview">Files, before and after</h2>
    <ul class="preview">${data.preview.map(({ track, fields, guessed }) => html`<li key=${track.id}>
      <a class="hit-title" href=${href("track", track.id)}>${titleOf(track)}</a> <span class="soft">${track.artist}</span>
      <dl>${fields.map((field) => html`<div><dt>${field.field}</dt><dd>
        ${field.before.length ? html`<span class="soft">${field.before.join(", ")}</span>` : html`<span class="soft">empty</span>`} <span aria-hidden="true">→</span><span class="vh"> becomes </span>
        ${field.after.map((value, i) => html`${i ? ", " : ""}${field.before.includes(value) ? html`<span class="soft">${value}</span>` : html`<ins>${value}</ins>`}${guessed?.[value.toLocaleLowerCase()] ? html` <span class="soft num">${percent(guessed[value.toLocaleLowerCase()])}</span>` : ""}`)}
      </dd></div>`)}</dl></li>`)}</ul>
    ${data.preview.length < data.files && html`<button class="more" onClick=${more}>Show more files (${count(data.files - data.preview.length)})</button>`}
  </section>`;
}
