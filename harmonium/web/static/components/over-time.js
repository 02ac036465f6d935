// Where in a track a tag is strongest: bars under the spectrum, on its time axis.

import { html, useState } from "../vendor/preact.js";
import { get } from "../api.js";
import { useCell, useLoad } from "../state.js";
import { clock, percent } from "../words.js";
import { play, player, position } from "./player.js";

export function OverTime({ track }) {
  const [open, setOpen] = useState(false);
  return html`<div class="over-time">
    <button class="quiet" aria-expanded=${String(open)} onClick=${() => setOpen(!open)}>
      <span aria-hidden="true">${open ? "▾" : "▸"}</span> Tags over time
    </button>
    ${open && html`<${Course} key=${track.id} track=${track} />`}
  </div>`;
}

/** The tag that is shown first: of those that reach their threshold, the one that changes most. */
function mostVaried(probabilities, tags) {
  const most = (name) => Math.max(...probabilities[name]);
  const range = (name) => most(name) - Math.min(...probabilities[name]);
  const names = [...tags.keys()];
  const reached = names.filter((name) => most(name) >= (tags.get(name).threshold ?? 1));
  const candidates = reached.length ? reached : names;
  return candidates.reduce((best, name) => (range(name) > range(best) ? name : best));
}

function Course({ track }) {
  const load = (signal) => get(`/tracks/${track.id}/over-time`, {}, signal);
  const { data, error } = useLoad(load, [track.id]);
  const [chosen, setChosen] = useState(null);
  if (error) return html`<p role="alert">${error.message}</p>`;
  if (!data) {
    return html`<p class="soft" role="status">
      Analysing the track at thirty points. This takes a few seconds …
    </p>`;
  }
  const tags = new Map(); // of the track, by name
  for (const name of Object.keys(data.tags)) {
    const tag = track.tags.find((candidate) => candidate.tag === name);
    if (tag) tags.set(name, tag);
  }
  if (!tags.size) return html`<p class="soft">No tag is likely anywhere in this track.</p>`;
  const name = chosen ?? mostVaried(data.tags, tags);
  const p = data.tags[name];
  const best = p.indexOf(Math.max(...p));
  const goTo = (i) => play(track, null, data.begins[Math.min(i, p.length - 1)]);
  return html`<div class="course">
    <${CourseBars} track=${track} data=${data} tag=${tags.get(name)} goTo=${goTo} />
    <p class="course-tools">
      <label>
        Tag${" "}
        <select value=${name} onChange=${(event) => setChosen(event.target.value)}>
          ${[...tags.values()].map(
            (tag) => html`<option value=${tag.tag} key=${tag.tag}>${tag.shown}</option>`,
          )}
        </select>
      </label>
      <button class="quiet" onClick=${() => goTo(best)}>
        Strongest at ${clock(data.begins[best])}, ${percent(p[best])}
      </button>
      <span class="soft hint">
        From the sound at each point alone. The dashed line is the threshold.
      </span>
    </p>
  </div>`;
}

/** The probabilities of a tag over time; a click plays from there. */
function CourseBars({ track, data, tag, goTo }) {
  const state = useCell(player);
  const now = useCell(position);
  const p = data.tags[tag.tag];
  const threshold = tag.threshold ?? 1;
  const current = state.track?.id === track.id;
  const length = (current && state.length) || track.duration || data.ends.at(-1);
  // Each point is the middle of one of equal parts, so the first is as far from the beginning as
  // the last from the end.
  const part = (100 * (data.begins[0] + data.ends.at(-1))) / p.length / length;
  const onClick = (event) => {
    const box = event.currentTarget.getBoundingClientRect();
    goTo(Math.floor((100 * (event.clientX - box.left)) / box.width / part));
  };
  const bar = (value, i) =>
    html`<span
      key=${i}
      class=${value >= threshold ? "course-bar" : "course-bar faint"}
      title=${`${clock(data.begins[i])}: ${percent(value)}`}
      style=${{ left: `${i * part}%`, width: `${part}%` }}
    >
      <span style=${{ transform: `scaleY(${value})` }}></span>
    </span>`;
  const mark = { bottom: `${100 * threshold}%` };
  const played = { left: `${(100 * now) / length}%` };
  const label = `How likely ${tag.shown} is over time`;
  return html`<div class="course-bars" role="img" aria-label=${label} onClick=${onClick}>
    ${p.map(bar)}
    ${threshold < 1 && html`<span class="course-mark" style=${mark}></span>`}
    ${current && length > 0 && html`<span class="course-now" style=${played}></span>`}
  </div>`;
}
