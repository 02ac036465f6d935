// Short messages at the bottom, some with Undo. They stay while the pointer or the focus is on them.

import { html, useEffect, useState } from "../vendor/preact.js";
import { post } from "../api.js";
import { complain, dropToast, spoken, toast, toasts, useCell } from "../state.js";
import { IconButton } from "./bits.js";

const SECONDS = 10;

function Toast({ id, text, action, bad }) {
  const [held, setHeld] = useState(false);
  useEffect(() => {
    if (held || bad) return;
    const timer = setTimeout(() => dropToast(id), 1000 * SECONDS);
    return () => clearTimeout(timer);
  }, [held]);
  const hold = { onMouseEnter: () => setHeld(true), onMouseLeave: () => setHeld(false), onFocusIn: () => setHeld(true), onFocusOut: () => setHeld(false) };
  return html`<div class=${bad ? "toast bad" : "toast"} ...${hold}>
    <span>${text}</span>
    ${action && html`<button onClick=${() => { dropToast(id); action.run(); }}>${action.label}</button>`}
    <${IconButton} icon="close" label="Dismiss" onClick=${() => dropToast(id)} />
  </div>`;
}

export function Toasts() {
  return html`<div class="toasts" role="region" aria-label="Messages" aria-live="polite">
    ${useCell(toasts).map((one) => html`<${Toast} key=${one.id} ...${one} />`)}
  </div>`;
}

/** Announcements for screen readers. */
export const Spoken = () => html`<div class="vh" role="status" aria-live="polite">${useCell(spoken)}</div>`;

/** Undo a change, and show what could not be undone. */
export async function undo(change, after = () => {}) {
  try {
    const done = await post(`/changes/${change}/undo`);
    toast(done.complete ? "Undone." : `Partly undone: ${done.problems?.[0] ?? `${done.left} left`}`, null, { bad: !done.complete });
    await after();
  } catch (error) {
    complain(error);
  }
}

/** Show that something was done, with Undo. */
export const toastUndo = (text, change, after) =>
  toast(text, change ? { label: "Undo", run: () => undo(change, after) } : null);
