// What writing would do to the files, by kind of tag; and writing it.

import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { get, post, put } from "../api.js";
import { go, href } from "../router.js";
import {
  complain,
  isAtWork,
  jobs,
  library,
  newestJob,
  putJob,
  refreshLibrary,
  spelt,
  useCell,
  useLoad,
} from "../state.js";
import { byKind, count, counted, KINDS, percent, titleOf } from "../words.js";
import { Empty, JobProgress, MoreButton, Pending, Range, View } from "../components/bits.js";
import { Dialog } from "../components/dialog.js";
import { undo } from "../components/toast.js";

const PREVIEW = 5;
const MORE = 20;
const FIELDS = ["genre", "mood", "grouping", "comment", "none"];
const USUAL_PRECISION = 0.8;
const MIN_PRECISION = 0.5;
const MAX_PRECISION = 0.99;
const SLIDER_REST = 250; // milliseconds after which the plan follows the slider

const LEAD =
  "Write tags into your music files, so that other programs see them. The sound is not changed, " +
  "and you can undo it.";

function precisionOf(params) {
  const asked = Number(params.precision) || USUAL_PRECISION;
  return Math.min(MAX_PRECISION, Math.max(MIN_PRECISION, asked));
}

export function Write({ params }) {
  const precision = precisionOf(params);
  const [ignored, setIgnored] = useState(() => new Set());
  const [asking, setAsking] = useState(false);
  const [started, setStarted] = useState(null); // the job that this view has started
  const [nPreview, setNPreview] = useState(PREVIEW);
  const summary = useCell(library);
  const job = newestJob(useCell(jobs), "write");
  const atWork = isAtWork(job);
  const ignore = [...ignored];
  const loadPlan = async (signal) => {
    const query = { precision, ignore: ignore.join(","), offset: 0, limit: nPreview };
    return { ...(await get("/write/plan", query, signal)), ignored };
  };
  const plan = useLoad(loadPlan, [precision, ignore.join(","), nPreview]);
  const fields = useLoad((signal) => get("/write/fields", {}, signal), []);
  useEffect(() => {
    if (job && !atWork) plan.reload();
  }, [job?.state]);

  const setPrecision = (value) =>
    go("write", null, { ...params, precision: value.toFixed(2) }, { replace: true });
  const choose = (tags, on) =>
    setIgnored((old) => {
      const next = new Set(old);
      for (const { tag } of tags) {
        if (on) next.delete(tag);
        else next.add(tag);
      }
      return next;
    });
  const setField = async (kind, field) => {
    try {
      fields.put(await put("/write/fields", { fields: { [kind]: field } }));
      plan.reload();
    } catch (problem) {
      complain(problem);
    }
  };
  const write = async () => {
    setAsking(false);
    try {
      const job = await post("/write", { precision, q: "", ignore, skip: [] });
      putJob(job);
      setStarted(job.id);
    } catch (problem) {
      complain(problem);
    }
  };
  const { data, error } = plan;
  const showJob = job && (atWork || started === job.id);
  return html`<${View} title="Write" lead=${LEAD}>
    ${showJob && html`<${WriteJob} job=${job} after=${plan.reload} />`}
    ${summary && !summary.model && html`<${NoModel} />`}
    ${
      data && !error
        ? html`<${Plan}
          plan=${plan}
          precision=${precision}
          ignored=${ignored}
          fields=${fields.data?.fields}
          atWork=${atWork}
          hasModel=${!!summary?.model}
          choose=${choose}
          setField=${setField}
          setPrecision=${setPrecision}
          ask=${() => setAsking(true)}
          more=${() => setNPreview(nPreview + MORE)}
        />`
        : html`<${Pending} load=${plan} rows=${10} />`
    }
    ${asking && html`<${Confirm} data=${data} write=${write} onClose=${() => setAsking(false)} />`}
  <//>`;
}

const NoModel = () =>
  html`<p class="card notice">
    There is no model yet, so only tags that people gave can be written.${" "}
    <a href="#/library">Index your music</a> or <a href="#/training">train a model</a> first.
  </p>`;

const Confirm = ({ data, write, onClose }) =>
  html`<${Dialog} title=${`Write into ${counted(data.files, "file")}?`} onClose=${onClose}>
    <p>
      ${counted(data.total, "tag")} will be added to the fields of your files. The sound is not
      changed. You can undo it.
    </p>
    <div class="dialog-buttons">
      <button onClick=${onClose}>Cancel</button>
      <button class="primary" onClick=${write}>Write</button>
    </div>
  <//>`;

function WriteJob({ job, after }) {
  const { change, failures = [], failed } = job.result ?? {};
  const [undone, setUndone] = useState(false);
  if (isAtWork(job)) {
    return html`<section class="card" aria-label="Writing"><${JobProgress} job=${job} /></section>`;
  }
  const undoWriting = async () => {
    await undo(change, after);
    setUndone(true);
    refreshLibrary().catch(complain);
  };
  const ok = job.state === "done";
  return html`<section
    class=${ok ? "card good" : "card problem"}
    role="status"
    aria-label="Writing"
  >
    <p><${Outcome} job=${job} undone=${undone} /></p>
    ${ok && html`<${Failures} n=${failed} lines=${failures} verb="could not" />`}
    <div class="row">
      ${change && !undone && html`<button onClick=${undoWriting}>Undo</button>`}
      <a class="button quiet" href="#/changes">All changes</a>
    </div>
  </section>`;
}

/** The files that cannot be written, and why; of very many, the first. */
function Failures({ n, lines, verb }) {
  if (!n) return null;
  return html`<details class="write-failures">
    <summary>${counted(n, "file")} ${verb} be written</summary>
    <ul class="plain">
      ${lines.map((line) => html`<li class="path">${line}</li>`)}
    </ul>
  </details>`;
}

/** How writing ended. */
function Outcome({ job, undone }) {
  if (undone) return "Undone: the files are as they were before.";
  if (job.error) return job.error;
  if (job.state !== "done") return "Stopped. What was written is listed under Changes.";
  const { tags, written } = job.result;
  return html`<b>${counted(tags, "tag")} written to ${counted(written, "file")}.</b>`;
}

function Plan(props) {
  const { plan, precision, ignored, fields, atWork, hasModel, choose, setField } = props;
  const { data, loading } = plan;
  const isEmpty = data.files === 0 && !data.tags.length;
  const failures = html`<${Failures} n=${data.failed} lines=${data.failures} verb="cannot" />`;
  // A click shows at once; the sums follow with the next plan.
  const isOn = ({ tag, accepted }) => !ignored.has(tag) && (accepted || data.ignored.has(tag));
  return html`<div class=${loading ? "plan stale" : "plan"}>
    ${
      !isEmpty &&
      html`<section class="card" aria-labelledby="what">
      <h2 id="what">What happens</h2>
      <${Sum} plan=${plan} atWork=${atWork} ask=${props.ask} />
      <ul class="write-kinds">
        ${byKind(data.tags.filter(({ kind }) => kind !== "none")).map(
          ([kind, tags]) =>
            html`<${Kind}
              key=${kind}
              kind=${kind}
              tags=${tags}
              isOn=${isOn}
              fields=${fields}
              choose=${choose}
              setField=${setField}
            />`,
        )}
      </ul>
      ${failures}
    </section>`
    }
    <${Precision}
      precision=${precision}
      setPrecision=${props.setPrecision}
      notReached=${data.not_reached ?? []}
    />
    ${
      isEmpty
        ? html`<${Nothing} data=${data} atWork=${atWork} hasModel=${hasModel} />
            ${failures}`
        : html`<${Preview} plan=${plan} more=${props.more} />`
    }
  </div>`;
}

function Sum({ plan: { data, loading }, atWork, ask }) {
  const { total, files, guessed, expected_wrong, features } = data;
  const wrong = count(Math.round(expected_wrong));
  const predicted =
    guessed > 0
      ? `${count(guessed)} predicted, about ${wrong} of them wrong.`
      : "None are predicted.";
  const alsoFeatures = features > 0 && ` Audio features into ${counted(features, "file")}.`;
  return html`<div class="write-sum">
    <p>
      <strong class="num">${counted(total, "tag")}</strong> into${" "}
      <strong class="num">${counted(files, "file")}</strong>.${" "}
      <span class="soft">${predicted}${alsoFeatures}</span>
    </p>
    <button class="primary" disabled=${atWork || loading || files === 0} onClick=${ask}>
      Write into ${counted(files, "file")} …
    </button>
  </div>`;
}

/** The lowest precision of the predicted tags, and the tags that do not reach it. */
function Precision({ precision, setPrecision, notReached }) {
  const [shown, setShown] = useState(precision); // The slider; the plan waits until it rests.
  const timer = useRef();
  useEffect(() => setShown(precision), [precision]);
  const slide = (value) => {
    setShown(value);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setPrecision(value), SLIDER_REST);
  };
  return html`<section class="card write-how" aria-labelledby="how-sure">
    <h2 id="how-sure">Precision</h2>
    <label class="slider">
      At least <b class="num">${percent(shown)}</b> of the predicted tags should be right
      <${Range}
        min=${100 * MIN_PRECISION}
        max=${100 * MAX_PRECISION}
        value=${Math.round(100 * shown)}
        onInput=${(value) => slide(value / 100)}
        aria-valuetext=${percent(shown)}
      />
    </label>
    <p class="soft">
      Higher: fewer tags, fewer mistakes. Tags that people gave are always written.
    </p>
    ${
      notReached.length > 0 &&
      html`<details>
      <summary>${counted(notReached.length, "predicted tag")} not written</summary>
      ${byReason(notReached).map(([why, tags]) => html`<${NotWritten} why=${why} tags=${tags} />`)}
    </details>`
    }
  </section>`;
}

/** [why, its tags] of the tags that are not written. */
function byReason(tags) {
  const reasons = new Map();
  for (const tag of tags) reasons.set(tag.why, [...(reasons.get(tag.why) ?? []), tag]);
  return [...reasons].sort(([, a], [, b]) => a.length - b.length);
}

function NotWritten({ why, tags }) {
  const best = (tag) => (tag.best ? ` (at best ${percent(tag.best)})` : "");
  return html`<p class="soft">
    <b>${why[0].toUpperCase() + why.slice(1)}</b>:${" "}
    ${tags.map(
      (tag, i) =>
        html`${i > 0 && ", "}<a href=${href("tags", tag.tag)}>${spelt(tag.tag)}</a>${best(tag)}`,
    )}
  </p>`;
}

/** Why nothing can be written. */
function reasonOf({ data, atWork, hasModel }) {
  if (atWork) return "Writing is in progress.";
  if (data.failed) return "The files that lack tags cannot be written.";
  if (!hasModel) return "Nobody has given a tag yet.";
  return "The files have all tags of this precision. Choose a lower one, or teach the model.";
}

function Nothing(props) {
  return html`<${Empty} title="Nothing to write.">
    <p>${reasonOf(props)}</p>
    <div class="row">
      <a class="button" href="#/teach">Teach</a>
      <a class="button" href="#/changes">Changes</a>
    </div>
  <//>`;
}

/** The tags of a kind: how many, where they go, and which of them. */
function Kind({ kind, tags, isOn, fields, choose, setField }) {
  const chosen = tags.filter(isOn);
  const nowhere = fields?.[kind] === "none";
  let total = 0;
  let predicted = 0;
  for (const { n, n_said } of chosen) {
    total += n;
    predicted += n - n_said;
  }
  const names = tags.slice(0, 4).map(({ shown }) => shown);
  const others = tags.length > 4 ? " …" : "";
  return html`<li>
    <div class="write-kind">
      <label class="inline">
        <input
          type="checkbox"
          disabled=${nowhere}
          checked=${chosen.length > 0}
          indeterminate=${chosen.length > 0 && chosen.length < tags.length}
          onChange=${(event) => choose(tags, event.target.checked)}
        />
        <b>${KINDS.get(kind) ?? kind}</b>
      </label>
      <span class="num">
        ${counted(total, "tag")}
        ${predicted > 0 && html`<span class="soft">, ${count(predicted)} predicted</span>`}
      </span>
      ${
        fields &&
        html`<${FieldMenu}
        field=${fields[kind] ?? "none"}
        onChange=${(field) => setField(kind, field)}
      />`
      }
    </div>
    <details>
      <summary>${counted(tags.length, "different tag")}: ${names.join(", ")}${others}</summary>
      <div class="row all-none">
        <button class="link" onClick=${() => choose(tags, true)}>All</button>
        <button class="link" onClick=${() => choose(tags, false)}>None</button>
      </div>
      <${KindTable} tags=${tags} isOn=${isOn} nowhere=${nowhere} choose=${choose} />
    </details>
  </li>`;
}

const FieldMenu = ({ field, onChange }) =>
  html`<label class="inline">
    to${" "}
    <select value=${field} onChange=${(event) => onChange(event.target.value)}>
      ${FIELDS.map(
        (name) => html`<option value=${name}>${name === "none" ? "no field" : name}</option>`,
      )}
    </select>
  </label>`;

const ELSEWHERE =
  " * By the built-in model, which was trained on other music. On yours it may be less precise.";

const KindTable = ({ tags, isOn, nowhere, choose }) =>
  html`<table class="table write-tags">
      <thead>
        <tr>
          <th scope="col">Tag</th>
          <th scope="col" class="num">Files</th>
          <th scope="col" class="num">Given</th>
          <th scope="col" class="num">Predicted</th>
          <th scope="col" class="num">Precision</th>
        </tr>
      </thead>
      <tbody>
        ${tags.map(
          (tag) =>
            html`<${TagRow}
              key=${tag.tag}
              tag=${tag}
              on=${isOn(tag)}
              nowhere=${nowhere}
              choose=${choose}
            />`,
        )}
      </tbody>
    </table>
    <p class="soft">
      <b>Precision</b>: how often the model was right about this tag on held-out tracks.
      ${tags.some(({ elsewhere }) => elsewhere) && ELSEWHERE}
    </p>`;

const TagRow = ({ tag, on, nowhere, choose }) =>
  html`<tr class=${on ? "" : "rejected"}>
    <th scope="row">
      <label class="inline">
        <input
          type="checkbox"
          disabled=${nowhere}
          checked=${on}
          onChange=${() => choose([tag], !on)}
        />${" "}
        ${tag.shown}
      </label>
    </th>
    <td class="num">${count(tag.n)}</td>
    <td class="num">${count(tag.n_said)}</td>
    <td class="num">${count(tag.n - tag.n_said)}</td>
    <td class="num"><${Right} tag=${tag} /></td>
  </tr>`;

/** How often the model was right about a tag. */
function Right({ tag: { precision, elsewhere } }) {
  if (precision === null) return "–";
  if (!elsewhere) return percent(precision);
  return html`${percent(precision)}<span aria-hidden="true"> *</span>
    <span class="vh">, by the built-in model</span>`;
}

function Preview({ plan: { data, loading }, more }) {
  const { preview, files } = data;
  if (!preview?.length) return null;
  const left = files - preview.length;
  return html`<section aria-labelledby="preview">
    <h2 id="preview">Files, before and after</h2>
    <p class="soft hint">
      The percentage beside a new tag is its <b>probability</b> on this track. Its <b>precision</b>,
      above, is how often such predictions were right.
    </p>
    <ul class="preview">
      ${preview.map((file) => html`<${PreviewFile} key=${file.track.id} file=${file} />`)}
    </ul>
    ${
      left > 0 &&
      html`<${MoreButton} load=${more} loading=${loading}>Show more files (${count(left)})<//>`
    }
  </section>`;
}

const PreviewFile = ({ file: { track, fields, guessed } }) =>
  html`<li>
    <a class="hit-title" href=${href("track", track.id)}>${titleOf(track)}</a>${" "}
    <span class="soft">${track.artist}</span>
    <dl>
      ${fields.map(
        ({ field, before, after }) => html`<div>
          <dt>${field}</dt>
          <dd>
            <span class="soft">${before.length ? before.join(", ") : "empty"}</span>${" "}
            <span aria-hidden="true">→ </span>
            <span class="vh"> becomes </span>
            ${after.map(
              (value, i) =>
                html`${i > 0 && ", "}<${Value}
                    value=${value}
                    isNew=${!before.includes(value)}
                    probability=${guessed?.[value]}
                  />`,
            )}
          </dd>
        </div>`,
      )}
    </dl>
  </li>`;

/** A value of a field; a predicted one with its probability. */
const Value = ({ value, isNew, probability }) => html`
  ${isNew ? html`<ins>${value}</ins>` : html`<span class="soft">${value}</span>`}
  ${probability ? html`${" "}<span class="soft num">${percent(probability)}</span>` : ""}
`;
