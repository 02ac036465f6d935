// Where in a track a tag is strongest: bars under the spectrum, on its time axis.

import { html, useState } from "../vendor/preact.js";
import { get } from "../api.js";
import { useCell, useLoad } from "../state.js";
import { clock, percent } from "../words.js";
import { play, player, position } from "./player.js";

export function OverTime({ track }) {
  const [open, setOpen] = useState(false);
  return html`<div class="over-time">
    <button class="quiet" aria-expanded=${String(open)} onClick=${() => setOpen(!open)}><span aria-hidden="true">${open ? "▾" : "▸"}</span> Tags over time</button>
    ${open && html`<${Course} key=${track.id} track=${track} />`}
  </div>`;
}

/** The tag that is shown first: of those that reach their threshold, the one that changes most. */
function mostVaried(tags, about) {
  const range = (name) => Math.max(...tags[name]) - Math.min(...tags[name]);
  const names = [...about.keys()];
  const listed = names.filter((name) => Math.max(...tags[name]) >= (about.get(name).threshold ?? 1));
  return (listed.length ? listed : names).reduce((best, name) => (range(name) > range(best) ? name : best));
}

function Course({ track }) {
  const { data, error } = useLoad((signal) => get(`/tracks/${track.id}/over-time`, {}, signal), [track.id]);
  const [chosen, setChosen] = useState(null);
  const state = useCell(player);
  const now = useCell(position);
  if (error) return html`<p role="alert">${error.message}</p>`;
  if (!data) return html`<p class="soft" role="status">Listening to thirty places in the track. This takes a few seconds …</p>`;
  const known = new Map(track.tags.map((one) => [one.tag, one]));
  const about = new Map(Object.keys(data.tags).filter((name) => known.has(name)).map((name) => [name, known.get(name)]));
  if (!about.size) return html`<p class="soft">No tag is likely anywhere in this track.</p>`;
  const tag = chosen ?? mostVaried(data.tags, about);
  const p = data.tags[tag];
  const current = state.track?.id === track.id;
  const length = (current && state.length) || track.duration || data.ends.at(-1);
  const best = p.indexOf(Math.max(...p));
  // Each place is the middle of one of equal parts, so the first is as far from the beginning as the last from the end.
  const part = (100 * (data.begins[0] + data.ends.at(-1))) / p.length / length;
  const goTo = (i) => play(track, null, data.begins[Math.min(i, p.length - 1)]);
  const onClick = (event) => {
    const box = event.currentTarget.getBoundingClientRect();
    goTo(Math.floor((100 * (event.clientX - box.left)) / box.width / part));
  };
  const { shown, threshold: least } = about.get(tag);
  const threshold = least ?? 1;
  return html`<div class="course">
    <div class="course-bars" role="img" aria-label=${`How likely ${shown} is over time`} onClick=${onClick}>
      ${p.map((one, i) => html`<span key=${i} class=${one >= threshold ? "course-bar" : "course-bar faint"} title=${`${clock(data.begins[i])}: ${percent(one)}`}
        style=${{ left: `${i * part}%`, width: `${part}%` }}><span style=${{ transform: `scaleY(${one})` }}></span></span>`)}
      ${threshold < 1 && html`<span class="course-mark" style=${{ bottom: `${100 * threshold}%` }}></span>`}
      ${current && length > 0 && html`<span class="course-now" style=${{ left: `${(100 * now) / length}%` }}></span>`}
    </div>
    <p class="course-tools"><label>Tag <select value=${tag} onChange=${(event) => setChosen(event.target.value)}>
        ${[...about].map(([name, one]) => html`<option value=${name} key=${name}>${one.shown}</option>`)}</select></label>
      <button class="quiet" onClick=${() => goTo(best)}>Strongest at ${clock(data.begins[best])}, ${percent(p[best])}</button>
      <span class="soft hint">From the sound at each place alone; the dashed line is the threshold.</span></p>
  </div>`;
}
