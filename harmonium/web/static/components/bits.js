// Small components that every view uses.

import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { isAtWork, refreshLibrary, complain } from "../state.js";
import { coverAddress, post } from "../api.js";
import { href } from "../router.js";
import { count, FEATURES, howLong, percent, points, quality, quoted } from "../words.js";
import { Icon } from "./icons.js";

let firstView = true;

/** A view; its heading gets the focus and sets the window's title. */
export function View({ title, hidden = false, lead, aside, children, wide = false, trail }) {
  const heading = useRef();
  useEffect(() => {
    document.title = `${title} · Harmonium`;
  }, [title]);
  useEffect(() => {
    if (firstView) firstView = false;
    else heading.current?.focus({ preventScroll: true });
  }, []);
  return html`<div class=${wide ? "view wide" : "view"}>
    <div class=${hidden ? "view-head vh" : "view-head"}>
      <div>
        ${trail}
        <h1 tabindex="-1" ref=${heading}>${title}</h1>
        ${lead && html`<p class="lead">${lead}</p>`}
      </div>
      ${aside && html`<div class="view-aside">${aside}</div>`}
    </div>
    ${children}
  </div>`;
}

/** An empty list: what that means, and what to do. */
export const Empty = ({ title, children }) =>
  html`<div class="empty">
    <p class="empty-title">${title}</p>
    ${children}
  </div>`;

/** An error in the server's words, with a way to try again. */
export const Problem = ({ error, retry, children }) =>
  html`<div class="problem" role="alert">
    <p>${error.message}</p>
    ${
      (retry || children) &&
      html`<div class="row">
      ${children}
      ${retry && html`<button onClick=${retry}>Try again</button>`}
    </div>`
    }
  </div>`;

/** Grey lines in place of rows that are loading; they appear after a moment. */
export const Waiting = ({ rows = 6, what = "Loading" }) =>
  html`<div class="waiting" role="status">
    <span class="vh">${what}</span>
    ${Array.from({ length: rows }, () => html`<div class="waiting-row" aria-hidden="true"></div>`)}
  </div>`;

/** What a view shows while `useLoad` has no data for it. */
export const Pending = ({ load, rows = 6 }) =>
  load.error
    ? html`<${Problem} error=${load.error} retry=${load.reload} />`
    : html`<${Waiting} rows=${rows} />`;

/**
 * The button at the end of a list that shows more of it. It keeps its place and the focus while
 * that is loading.
 */
export const MoreButton = ({ load, loading, children }) =>
  html`<button class="more" aria-disabled=${String(loading)} onClick=${() => loading || load()}>
    ${children}
  </button>`;

/** A bar for a value from 0 to 1, which is written beside it. */
export function Bar({ p, look = "", mark = null }) {
  const share = Math.max(0, Math.min(1, p ?? 0));
  const marked = mark !== null && mark > 0 && mark < 1;
  return html`<span class=${"bar " + look} aria-hidden="true">
    <span class="bar-fill" style=${{ transform: `scaleX(${share})` }}></span>
    ${marked && html`<span class="bar-mark" style=${{ left: `${100 * mark}%` }}></span>`}
  </span>`;
}

/** How well a tag is known: a word, by default for its AUC, which is a detail. */
export function Quality({ auc, word = quality(auc) }) {
  if (auc === null) return html`<span class=${"quality " + word}>${word}</span>`;
  return html`<span class=${"quality " + word} title=${`AUC ${auc.toFixed(3)}`}>${word}</span>
    ${" "}<span class="auc soft num">${auc.toFixed(2)}</span>`;
}

/** The picture in a track's file, or a note. */
export function Cover({ track, big = false }) {
  const [state, setState] = useState("awaited"); // awaited, loaded, none
  const picture = html`<img
    src=${coverAddress(track.id)}
    alt=""
    loading="lazy"
    class=${state}
    onLoad=${() => setState("loaded")}
    onError=${() => setState("none")}
  />`;
  return html`<span class=${`cover${big ? " big" : ""}`} aria-hidden="true">
    <${Icon} name="note" />
    ${state !== "none" && !track.localAddress && picture}
  </span>`;
}

/** The audio features of a track; each leads to the tracks in their order. */
export function Features({ values }) {
  const features = [...FEATURES].filter(([name]) => name in values);
  return html`<ul class="features">
    ${features.map(
      ([name, meaning]) => html`<li key=${name} title=${meaning}>
        <a href=${href("search", null, { order: name })}>${name}</a>
        <span class="vh">: ${meaning}: </span>
        <${Bar} p=${values[name]} />
        <span class="num">${values[name].toFixed(2)}</span>
      </li>`,
    )}
  </ul>`;
}

/** A change of probability, in points. */
export const Moved = ({ change }) =>
  html`<span class=${change > 0 ? "moved up" : "moved down"}>
    <span aria-hidden="true">${change > 0 ? "▲" : "▼"}</span>
    ${" "}${points(change)}<span class="vh"> points</span>
  </span>`;

/** A tag of a track: filled if people gave it, outlined if the model predicts it. */
export function TagChip({ tag }) {
  const predicted = tag.source === "model";
  const note = predicted ? `predicted, ${percent(tag.probability)} likely` : "given by people";
  const tracks = href("search", null, { q: quoted(tag.tag) });
  return html`<a class=${predicted ? "chip guess" : "chip"} data-tip=${note} href=${tracks}>
    ${tag.shown}<span class="vh">, ${note}</span>
  </a>`;
}

/** The progress of a job, and a way to stop it. */
export function JobProgress({ job }) {
  const [stopping, setStopping] = useState(false);
  const share = job.total ? job.done / job.total : null;
  const stop = () => {
    setStopping(true);
    post(`/jobs/${job.id}/stop`).then(refreshLibrary).catch(complain);
  };
  const details = [
    job.total && `${count(job.done)} of ${count(job.total)}`,
    job.seconds && howLong(job.seconds),
  ];
  return html`<div class="job">
    <div class="job-line">
      <span>${job.text || "Working"}</span>
      <span class="soft num">${details.filter(Boolean).join(" · ")}</span>
    </div>
    <div
      class=${share === null ? "progress unknown" : "progress"}
      role="progressbar"
      aria-label=${job.text || "Progress"}
      aria-valuemin="0"
      aria-valuemax="100"
      aria-valuenow=${share === null ? undefined : Math.round(100 * share)}
    >
      <span style=${{ transform: `scaleX(${share ?? 0.3})` }}></span>
    </div>
    ${
      isAtWork(job) &&
      html`<button class="quiet" onClick=${stop} disabled=${stopping}>
      ${stopping ? "Stopping …" : "Stop"}
    </button>`
    }
  </div>`;
}

/** A slider, filled up to its value. */
export const Range = ({ min, max, value, onInput, ...rest }) =>
  html`<input
    type="range"
    min=${min}
    max=${max}
    value=${value}
    style=${{ "--share": (value - min) / Math.max(max - min, 1e-9) }}
    onInput=${(event) => onInput(Number(event.target.value))}
    ...${rest}
  />`;

/** A choice of one of several options, [[value, label]]. */
export const Choice = ({ label, value, options, onChange }) =>
  html`<div class="choice" role="group" aria-label=${label}>
    ${options.map(
      ([name, shown]) =>
        html`<button aria-pressed=${String(value === name)} onClick=${() => onChange(name)}>
          ${shown}
        </button>`,
    )}
  </div>`;

/** A button with an icon only. */
export const IconButton = ({ icon, label, ...rest }) =>
  html`<button class="icon-button" aria-label=${label} title=${label} ...${rest}>
    <${Icon} name=${icon} />
  </button>`;

/** The message of an error in a form. */
export const FormError = ({ error }) =>
  error && html`<p class="bad" role="alert">${error.message}</p>`;
