// What writing would do to the files, by kind of tag; and writing it.

import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { get, post, put } from "../api.js";
import { go, href } from "../router.js";
import { complain, isAtWork, jobs, library, newestJob, refreshLibrary, spelt, useCell, useLoad } from "../state.js";
import { byKind, count, KINDS, percent, counted, titleOf } from "../words.js";
import { Empty, JobProgress, Problem, Range, View, Waiting } from "../components/bits.js";
import { Dialog } from "../components/dialog.js";
import { undo } from "../components/toast.js";

const PREVIEW = 5;
const FIELDS = ["genre", "mood", "grouping", "comment", "none"];

export function Write({ params }) {
  const precision = Math.min(0.99, Math.max(0.5, Number(params.precision) || 0.8));
  const [shown, setShown] = useState(precision); // The slider; the plan waits until it rests.
  const [ignored, setIgnored] = useState(() => new Set());
  const [asking, setAsking] = useState(false);
  const [started, setStarted] = useState(null);
  const [n, setN] = useState(PREVIEW);
  const timer = useRef();
  const about = useCell(library);
  const job = newestJob(useCell(jobs), "write");
  const atWork = isAtWork(job);
  const ignore = [...ignored];
  const { data, error, loading, reload } = useLoad(
    (signal) => get("/write/plan", { precision, ignore: ignore.join(","), offset: 0, limit: n }, signal).then((plan) => ({ ...plan, ignored })), [precision, ignore.join(","), n]);
  const fields = useLoad((signal) => get("/write/fields", {}, signal), []);
  useEffect(() => { if (job && !atWork) reload(); }, [job?.state]);
  useEffect(() => setShown(precision), [precision]);

  const slide = (value) => {
    setShown(value);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => go("write", null, { ...params, precision: value.toFixed(2) }, { replace: true }), 250);
  };
  const choose = (tags, on) => setIgnored((old) => {
    const now = new Set(old);
    for (const { tag } of tags) on ? now.delete(tag) : now.add(tag);
    return now;
  });
  const setField = async (kind, field) => {
    try {
      fields.put(await put("/write/fields", { fields: { [kind]: field } }));
      reload();
    } catch (problem) { complain(problem); }
  };
  const write = async () => {
    setAsking(false);
    try {
      const news = await post("/write", { precision, q: "", ignore, skip: [] });
      jobs.set((old) => ({ ...old, [news.id]: news }));
      setStarted(news.id);
    } catch (problem) { complain(problem); }
  };
  // A click shows at once; the sums follow with the next plan.
  const isOn = (tag) => !ignored.has(tag.tag) && (tag.accepted || data.ignored.has(tag.tag));
  const nothing = data && data.files === 0 && !data.tags.length;
  return html`<${View} title="Write" lead="Write tags into your music files, so that other programs see them. The sound is not touched, and you can undo it.">
    ${job && (atWork || started === job.id) && html`<${WriteJob} job=${job} after=${reload} />`}
    ${about && !about.model && html`<p class="card notice">There is no model yet, so only tags that people gave can be written. <a href="#/library">Index your music</a> or <a href="#/training">train a model</a> first.</p>`}
    ${error ? html`<${Problem} error=${error} retry=${reload} />`
      : !data ? html`<${Waiting} rows=${10} />`
      : html`<div class=${loading ? "plan stale" : "plan"}>
        ${!nothing && html`<section class="card" aria-labelledby="what"><h2 id="what">What happens</h2>
          <div class="write-sum"><p><strong class="num">${counted(data.total, "tag")}</strong> into <strong class="num">${counted(data.files, "file")}</strong>.
            <span class="soft">${data.guessed > 0 ? ` ${count(data.guessed)} predicted, about ${count(Math.round(data.expected_wrong))} of them wrong.` : " None is predicted."}
            ${data.features > 0 && ` Audio features into ${counted(data.features, "file")}.`}</span></p>
            <button class="primary" disabled=${atWork || data.files === 0} onClick=${() => setAsking(true)}>Write into ${counted(data.files, "file")} …</button></div>
          <${Kinds} tags=${data.tags} isOn=${isOn} fields=${fields.data?.fields} choose=${choose} setField=${setField} />
        </section>`}
        <section class="card write-how" aria-labelledby="how-sure"><h2 id="how-sure">Precision</h2>
          <label class="slider">At least <b class="num">${percent(shown)}</b> of the predicted tags should be right
            <${Range} min=${50} max=${99} value=${Math.round(100 * shown)} onInput=${(value) => slide(value / 100)} aria-valuetext=${percent(shown)} /></label>
          <p class="soft">Higher: fewer tags, fewer mistakes. Tags that people gave are always written.</p>
          ${data.not_reached?.length > 0 && html`<details><summary>${counted(data.not_reached.length, "tag")} not as precise, and not written</summary>
            <p class="soft">${data.not_reached.map((one, i) => html`${i ? ", " : ""}<a href=${href("tags", one.tag)}>${spelt(one.tag)}</a>${one.best ? ` (at best ${percent(one.best)})` : ""}`)}</p></details>`}
        </section>
        ${nothing ? html`<${Empty} title="Nothing to write."><p>${atWork ? "Writing is in progress." : about?.model ? "The files already have all tags of this precision. Choose a lower one, or teach the model." : "Nobody has given a tag yet."}</p><div class="row"><a class="button" href="#/teach">Teach</a><a class="button" href="#/changes">Changes</a></div><//>`
          : html`<${Preview} data=${data} more=${() => setN(n + 20)} />`}
      </div>`}
    ${asking && html`<${Dialog} title=${`Write into ${counted(data.files, "file")}?`} onClose=${() => setAsking(false)}>
      <p>${counted(data.total, "tag")} will be added to the fields of your files. The sound is not touched. You can undo it.</p>
      <div class="dialog-buttons"><button onClick=${() => setAsking(false)}>Cancel</button><button class="primary" onClick=${write}>Write</button></div>
    <//>`}
  <//>`;
}

function WriteJob({ job, after }) {
  const { change, tags, written, failures = [], failed } = job.result ?? {};
  const [undone, setUndone] = useState(false);
  const back = async () => { await undo(change, after); setUndone(true); refreshLibrary().catch(complain); };
  if (isAtWork(job)) return html`<section class="card" aria-label="Writing"><${JobProgress} job=${job} /></section>`;
  const ok = job.state === "done";
  return html`<section class=${ok ? "card good" : "card problem"} role="status" aria-label="Writing">
    <p>${undone ? "Undone: the files are as they were before." : job.error ?? (ok ? html`<b>${counted(tags, "tag")} written to ${counted(written, "file")}.</b>` : "Stopped. What was written is listed under Changes.")}</p>
    ${ok && failed > 0 && html`<details><summary>${counted(failed, "file")} could not be written</summary><ul class="plain">${failures.map((line) => html`<li class="path">${line}</li>`)}</ul></details>`}
    <div class="row">${change && !undone && html`<button onClick=${back}>Undo</button>`}<a class="button quiet" href="#/changes">All changes</a></div></section>`;
}

/** The tags by kind: how many, where they go, and which of them. */
function Kinds({ tags, isOn, fields, choose, setField }) {
  const sum = (some, value) => some.reduce((total, tag) => total + value(tag), 0);
  return html`<ul class="write-kinds">${byKind(tags.filter((tag) => tag.kind !== "none")).map(([kind, some]) => {
    const on = some.filter(isOn), nowhere = fields?.[kind] === "none";
    const predicted = sum(on, (tag) => tag.n - tag.n_said);
    return html`<li key=${kind}>
      <div class="write-kind"><label class="inline"><input type="checkbox" disabled=${nowhere} checked=${on.length > 0} indeterminate=${on.length > 0 && on.length < some.length} onChange=${(event) => choose(some, event.target.checked)} />
          <b>${KINDS.get(kind) ?? kind}</b></label>
        <span class="num">${counted(sum(on, (tag) => tag.n), "tag")}${predicted > 0 && html`<span class="soft">, ${count(predicted)} predicted</span>`}</span>
        ${fields && html`<label class="inline">to <select value=${fields[kind] ?? "none"} onChange=${(event) => setField(kind, event.target.value)}>${FIELDS.map((field) => html`<option value=${field}>${field === "none" ? "no field" : field}</option>`)}</select></label>`}</div>
      <details><summary>${counted(some.length, "different tag")}: ${some.slice(0, 4).map((tag) => tag.shown).join(", ")}${some.length > 4 ? " …" : ""}</summary>
        <div class="row all-none"><button class="link" onClick=${() => choose(some, true)}>All</button><button class="link" onClick=${() => choose(some, false)}>None</button></div>
        <table class="table write-tags"><thead><tr><th scope="col">Tag</th><th scope="col" class="num">Files</th><th scope="col" class="num">Given</th><th scope="col" class="num">Predicted</th><th scope="col" class="num">Right</th></tr></thead>
          <tbody>${some.map((tag) => html`<tr key=${tag.tag} class=${isOn(tag) ? "" : "rejected"}>
            <th scope="row"><label class="inline"><input type="checkbox" disabled=${nowhere} checked=${isOn(tag)} onChange=${() => choose([tag], !isOn(tag))} /> ${tag.shown}</label></th>
            <td class="num">${count(tag.n)}</td><td class="num">${count(tag.n_said)}</td><td class="num">${count(tag.n - tag.n_said)}</td>
            <td class="num">${tag.precision === null ? "–" : html`${percent(tag.precision)}${tag.elsewhere ? html`<span aria-hidden="true"> *</span><span class="vh">, by the built-in model</span>` : ""}`}</td></tr>`)}</tbody></table>
        <p class="soft"><b>Right</b>: how often the model was right about this tag on tracks that it had not learnt from.${some.some((tag) => tag.elsewhere) && " * By the built-in model, which has learnt from other music: fewer may be right on yours."}</p>
      </details></li>`;
  })}</ul>`;
}

function Preview({ data, more }) {
  if (!data.preview?.length) return null;
  return html`<section aria-labelledby="preview"><h2 id="preview">Files, before and after</h2>
    <p class="soft hint">The percentage beside a new tag is its <b>probability</b> on this track. <b>Right</b>, above, is how often such predictions were right.</p>
    <ul class="preview">${data.preview.map(({ track, fields, guessed }) => html`<li key=${track.id}>
      <a class="hit-title" href=${href("track", track.id)}>${titleOf(track)}</a> <span class="soft">${track.artist}</span>
      <dl>${fields.map((field) => html`<div><dt>${field.field}</dt><dd>
        ${field.before.length ? html`<span class="soft">${field.before.join(", ")}</span>` : html`<span class="soft">empty</span>`} <span aria-hidden="true">→ </span><span class="vh"> becomes </span>
        ${field.after.map((value, i) => html`${i ? ", " : ""}${field.before.includes(value) ? html`<span class="soft">${value}</span>` : html`<ins>${value}</ins>`}${guessed?.[value] ? html` <span class="soft num">${percent(guessed[value])}</span>` : ""}`)}
      </dd></div>`)}</dl></li>`)}</ul>
    ${data.preview.length < data.files && html`<button class="more" onClick=${more}>Show more files (${count(data.files - data.preview.length)})</button>`}
  </section>`;
}
