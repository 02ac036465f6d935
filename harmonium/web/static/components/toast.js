// Short messages at the bottom, some with Undo. They stay while the pointer or focus is on them.

import { html, useEffect, useState } from "../vendor/preact.js";
import { post } from "../api.js";
import { complain, dropToast, spoken, toast, toasts, useCell } from "../state.js";
import { IconButton } from "./bits.js";

const SECONDS = 10;

function Toast({ id, text, action, bad }) {
  const [held, setHeld] = useState(false);
  const drop = () => dropToast(id);
  useEffect(() => {
    if (held || bad) return;
    const timer = setTimeout(drop, 1000 * SECONDS);
    return () => clearTimeout(timer);
  }, [held]);
  const hold = () => setHeld(true);
  const release = () => setHeld(false);
  const act = () => {
    drop();
    action.run();
  };
  return html`<div
    class=${bad ? "toast bad" : "toast"}
    onMouseEnter=${hold}
    onMouseLeave=${release}
    onFocusIn=${hold}
    onFocusOut=${release}
  >
    <span>${text}</span>
    ${action && html`<button onClick=${act}>${action.label}</button>`}
    <${IconButton} icon="close" label="Dismiss" onClick=${drop} />
  </div>`;
}

export function Toasts() {
  return html`<div class="toasts" role="region" aria-label="Messages" aria-live="polite">
    ${useCell(toasts).map((message) => html`<${Toast} key=${message.id} ...${message} />`)}
  </div>`;
}

/** Announcements for screen readers. */
export const Spoken = () =>
  html`<div class="vh" role="status" aria-live="polite">${useCell(spoken)}</div>`;

/** Undo a change, and show what could not be undone. */
export async function undo(change, after = () => {}) {
  try {
    const report = await post(`/changes/${change}/undo`);
    const problem = report.problems?.[0] ?? `${report.left} left`;
    toast(report.complete ? "Undone." : `Partly undone: ${problem}`, null, {
      bad: !report.complete,
    });
    await after();
  } catch (error) {
    complain(error);
  }
}

/** Show that something was done, with Undo. */
export const toastUndo = (text, change, after) =>
  toast(text, change ? { label: "Undo", run: () => undo(change, after) } : null);
