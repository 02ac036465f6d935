// Everything done to the library, with Undo.

import { html, useState } from "../vendor/preact.js";
import { get } from "../api.js";
import { changeCount, useChange, useLoad } from "../state.js";
import { when } from "../words.js";
import { Empty, Problem, View, Waiting } from "../components/bits.js";
import { undo } from "../components/toast.js";

const PAGE = 50;

export function Changes() {
  const [limit, setLimit] = useState(PAGE);
  const [busy, setBusy] = useState(null);
  const { data, error, reload } = useLoad((signal) => get("/changes", { offset: 0, limit: limit + 1 }, signal), [limit]);
  useChange(changeCount, reload);
  const back = async (change) => {
    setBusy(change.id);
    await undo(change.id, reload);
    setBusy(null);
  };
  const changes = data?.changes.slice(0, limit) ?? [];
  return html`<${View} title="Changes" lead="Everything done to this library, newest first. Most of it can be undone.">
    ${error && !data ? html`<${Problem} error=${error} retry=${reload} />` : !data ? html`<${Waiting} rows=${10} />`
      : !changes.length ? html`<${Empty} title="No changes yet."><p>Tags that you save, files that you write and models that you train will be listed here.</p><//>`
      : html`<ul class="changes">${changes.map((change) => html`<li key=${change.id} class=${change.undone ? "undone" : ""}>
          <span class="change-when soft num">${when(change.at)}</span>
          <span class="change-what"><b>${change.command}</b> ${change.summary}</span>
          ${change.undone ? html`<span class="soft">undone</span>` : html`<span class="change-do">${change.undone_in_part && html`<span class="soft">partly undone</span>`}
            <button disabled=${busy !== null} onClick=${() => back(change)}>${busy === change.id ? "Undoing …" : "Undo"}<span class="vh"> ${change.command} ${change.summary}</span></button></span>`}
        </li>`)}</ul>
        ${data.changes.length > limit && html`<button class="more" onClick=${() => setLimit(limit + PAGE)}>Show older changes</button>`}`}
  <//>`;
}
