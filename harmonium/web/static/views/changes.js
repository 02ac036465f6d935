// Everything done to the library, with Undo.

import { html, useState } from "../vendor/preact.js";
import { get } from "../api.js";
import { changeCount, useChange, useLoad } from "../state.js";
import { when } from "../words.js";
import { Empty, MoreButton, Pending, View } from "../components/bits.js";
import { undo } from "../components/toast.js";

const PAGE = 50;
const LEAD = "Everything done to this library, newest first. Most of it can be undone.";

export function Changes() {
  const [limit, setLimit] = useState(PAGE);
  const load = async (signal) => {
    // One more than is shown tells whether there are more.
    const { changes } = await get("/changes", { offset: 0, limit: limit + 1 }, signal);
    return { changes: changes.slice(0, limit), hasMore: changes.length > limit };
  };
  const list = useLoad(load, [limit]);
  useChange(changeCount, list.reload);
  const more = () => setLimit(limit + PAGE);
  return html`<${View} title="Changes" lead=${LEAD}>
    ${
      list.data
        ? html`<${ChangeList} list=${list} more=${more} />`
        : html`<${Pending} load=${list} rows=${10} />`
    }
  <//>`;
}

function ChangeList({ list: { data, loading, reload }, more }) {
  const { changes, hasMore } = data;
  const [busy, setBusy] = useState(null); // the change that is being undone
  const undoChange = async (change) => {
    setBusy(change.id);
    await undo(change.id, reload);
    setBusy(null);
  };
  if (!changes.length) {
    return html`<${Empty} title="No changes yet.">
      <p>Tags that you save, files that you write and models that you train will be listed here.</p>
    <//>`;
  }
  return html`<ul class="changes">
      ${changes.map(
        (change) =>
          html`<${Change}
            key=${change.id}
            change=${change}
            busy=${busy}
            undo=${() => undoChange(change)}
          />`,
      )}
    </ul>
    ${hasMore && html`<${MoreButton} load=${more} loading=${loading}>Show older changes<//>`}`;
}

const Change = ({ change, busy, undo }) =>
  html`<li class=${change.undone ? "undone" : ""}>
    <span class="change-when soft num">${when(change.at)}</span>
    <span class="change-what"><b>${change.command}</b> ${change.summary}</span>
    ${
      change.undone
        ? html`<span class="soft">undone</span>`
        : html`<${UndoButton} change=${change} busy=${busy} undo=${undo} />`
    }
  </li>`;

const UndoButton = ({ change, busy, undo }) =>
  html`<span class="change-do">
    ${change.undone_in_part && html`<span class="soft">partly undone</span>`}
    <button disabled=${busy !== null} onClick=${undo}>
      ${busy === change.id ? "Undoing …" : "Undo"}
      <span class="vh"> ${change.command} ${change.summary}</span>
    </button>
  </span>`;
