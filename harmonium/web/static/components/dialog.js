// A modal dialog. Escape and the cross close it, and the focus returns to where it was.

import { html, useEffect, useRef } from "../vendor/preact.js";
import { IconButton } from "./bits.js";

let nDialogs = 0;

export function Dialog({ title, onClose, children, wide = false }) {
  const element = useRef();
  const id = useRef(`dialog-${++nDialogs}`);
  useEffect(() => {
    const before = document.activeElement;
    element.current.showModal();
    element.current.querySelector("input, .primary")?.focus();
    return () => before?.isConnected && before.focus();
  }, []);
  const onCancel = (event) => {
    event.preventDefault();
    onClose();
  };
  const onClick = (event) => event.target === element.current && onClose();
  return html`<dialog
    ref=${element}
    class=${wide ? "wide" : ""}
    aria-labelledby=${id.current}
    onCancel=${onCancel}
    onClick=${onClick}
    onKeyDown=${(event) => event.stopPropagation()}
  >
    <div class="dialog-body">
      <div class="dialog-head">
        <h2 id=${id.current}>${title}</h2>
        <${IconButton} icon="close" label="Close" onClick=${onClose} />
      </div>
      ${children}
    </div>
  </dialog>`;
}
