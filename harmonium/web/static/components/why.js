// Why a tag is likely or not: the steps from how common it is to how likely it is here.

import { html } from "../vendor/preact.js";
import { post } from "../api.js";
import { useLoad } from "../state.js";
import { percent } from "../words.js";

const probabilityOf = (logOdds) => 1 / (1 + Math.exp(-logOdds));
const logOddsOf = (p) => Math.log(Math.max(1e-6, p) / Math.max(1e-6, 1 - p));

/** What the sound and each known tag add, {label, step, from, to}. */
function stepsOf({ usual, sound, parts }, shownOf) {
  const steps = [{ label: "The sound", step: sound.log_odds }];
  for (const { tag, said, log_odds } of parts) {
    steps.push({ label: `${shownOf(tag)}: ${said ? "yes" : "no"}`, step: log_odds });
  }
  let sum = logOddsOf(usual);
  return steps.map(({ label, step }) => {
    const from = probabilityOf(sum);
    sum += step;
    return { label, step, from, to: probabilityOf(sum) };
  });
}

/** `given` are the answers on the track, {yes, no}; `said` is the one on this tag. */
export function Why({ tag, track, given, said }) {
  const others = (names) => names.filter((name) => name !== tag.tag);
  const body = { tag: tag.tag, yes: others(given.yes), no: others(given.no) };
  const load = (signal) => post(`/tracks/${track.id}/why`, body, signal);
  const { data, error } = useLoad(load, [JSON.stringify(body)]);
  if (error) return html`<div class="why"><p>${error.message}</p></div>`;
  if (!data) return html`<div class="why"><p class="soft">…</p></div>`;
  const shownOf = (name) => track.tags.find((other) => other.tag === name)?.shown ?? name;
  const steps = stepsOf(data, shownOf);
  const largest = Math.max(0.5, ...steps.map(({ step }) => Math.abs(step)));
  const yourAnswer = `You said ${said ? "yes" : "no"}. Without that answer: `;
  return html`<div class="why">
    <p>
      ${said !== null && yourAnswer}“${tag.shown}” is usually ${percent(data.usual)} likely; here it
      is ${percent(data.probability)}.
    </p>
    <table>
      <thead class="vh">
        <tr>
          <th>What</th>
          <th>How much</th>
          <th>From, to</th>
        </tr>
      </thead>
      <tbody>
        ${steps.map((step) => html`<${Step} step=${step} largest=${largest} />`)}
      </tbody>
    </table>
    ${
      !data.parts.length &&
      html`<p class="soft">
      No tag of this track is known, so only the sound counts. Answer some tags to see their effect.
    </p>`
    }
  </div>`;
}

function Step({ step: { label, step, from, to }, largest }) {
  const width = `${(50 * Math.abs(step)) / largest}%`;
  return html`<tr>
    <th scope="row">${label}</th>
    <td class="why-bar" aria-hidden="true">
      <span class=${step < 0 ? "less" : "more"} style=${{ width }}></span>
    </td>
    <td class="num">${percent(from)} → ${percent(to)}</td>
  </tr>`;
}
