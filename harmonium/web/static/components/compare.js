// Two models side by side.

import { html } from "../vendor/preact.js";
import { get } from "../api.js";
import { href } from "../router.js";
import { spelt, useLoad } from "../state.js";
import { auc, count, counted } from "../words.js";
import { Pending } from "./bits.js";

/** A change of AUC smaller than this is none. */
const NEGLIGIBLE = 0.0005;

const signed = (change) => `${change < 0 ? "−" : "+"}${Math.abs(change).toFixed(3)}`;

/** How much better the second model knows a tag; null if the first does not know it. */
const changeOf = ({ auc_a, auc_b }) => (auc_a === null ? null : auc_b - auc_a);

/** The model in use beside another one; `close` is null if it cannot be closed. */
export function Compare({ current, candidate, use, close }) {
  const load = (signal) => get("/models/compare", { a: current.id, b: candidate.id }, signal);
  const comparison = useLoad(load, [current.id, candidate.id]);
  const { data, error } = comparison;
  return html`<section class="card compare" aria-labelledby="compare">
    <h2 id="compare">Model ${candidate.id} compared with model ${current.id}</h2>
    ${
      data && !error
        ? html`<${Comparison} data=${data} candidate=${candidate} use=${use} close=${close} />`
        : html`<${Pending} load=${comparison} rows=${6} />`
    }
  </section>`;
}

function Comparison({ data, candidate, use, close }) {
  const size = (tag) => Math.abs(changeOf(tag) ?? 1); // A new tag counts as a large change.
  const measured = data.tags.filter(({ auc_b }) => auc_b !== null);
  const unmeasured = data.tags.filter(({ auc_b }) => auc_b === null);
  measured.sort((a, b) => size(b) - size(a));
  return html`<p><${Summary} data=${data} /></p>
    <div class="row">
      <button class="primary" onClick=${use}>Use model ${candidate.id}</button>
      ${close && html`<button onClick=${close}>Close</button>`}
    </div>
    ${measured.length > 0 && html`<${ChangeTable} tags=${measured} candidate=${candidate} />`}
    ${
      unmeasured.length > 0 &&
      html`<details>
      <summary>${counted(unmeasured.length, "tag")} not evaluated</summary>
      <p class="soft">
        There were too few tracks to evaluate them, or they belong to the built-in model:${" "}
        ${unmeasured.map(({ tag }) => spelt(tag)).join(", ")}.
      </p>
    </details>`
    }`;
}

function Summary({ data }) {
  const { better, worse, mean_a, mean_b, error, changed_tracks } = data;
  const tracks =
    (changed_tracks ?? null) === null
      ? ""
      : ` ${counted(changed_tracks, "track")} would get different tags.`;
  if (mean_a === null) return `No shared tag was evaluated on the same music.${tracks}`;
  const means = `${mean_a.toFixed(3)} → ${mean_b.toFixed(3)}`;
  const difference =
    error === null ? "" : ` (difference ${signed(mean_b - mean_a)} ± ${error.toFixed(3)})`;
  return html`<strong>${counted(better, "tag")} better, ${count(worse)} worse</strong>; mean AUC of
    the shared tags ${means}${difference}.${tracks}`;
}

const ChangeTable = ({ tags, candidate }) =>
  html`<table class="table">
    <thead>
      <tr>
        <th scope="col">Tag</th>
        <th scope="col" class="num">AUC in use</th>
        <th scope="col" class="num">Model ${candidate.id}</th>
        <th scope="col" class="num">Change</th>
      </tr>
    </thead>
    <tbody>
      ${tags.map((tag) => html`<${ChangeRow} key=${tag.tag} tag=${tag} />`)}
    </tbody>
  </table>`;

const ChangeRow = ({ tag }) =>
  html`<tr>
    <th scope="row"><a href=${href("tags", tag.tag)}>${spelt(tag.tag)}</a></th>
    <td class="num">${auc(tag.auc_a)}</td>
    <td class="num">${auc(tag.auc_b)}</td>
    <td class="num"><${Change} change=${changeOf(tag)} /></td>
  </tr>`;

function Change({ change }) {
  if (change === null) return "new";
  if (Math.abs(change) < NEGLIGIBLE) return html`<span class="soft">${signed(change)}</span>`;
  const direction = change > 0 ? "up" : "down";
  return html`<span class=${`moved ${direction}`}>${signed(change)}</span>`;
}
