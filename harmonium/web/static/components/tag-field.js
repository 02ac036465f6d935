// A text field that completes tags (the combobox pattern), for search, adding and renaming tags.

import { html, useRef, useState } from "../vendor/preact.js";
import { tagList, useCell } from "../state.js";
import { count } from "../words.js";

const N_SHOWN = 8;

/** The tags that complete a text: those that start with it first, then the most common. */
export function completions(all, begun) {
  const text = begun.toLocaleLowerCase();
  if (!text) return [];
  const often = (tag) => (tag.people ?? 0) + (tag.predicted ?? 0);
  const rank = (tag) => {
    const name = tag.tag, shown = tag.shown.toLocaleLowerCase();
    if (name.startsWith(text) || shown.startsWith(text)) return 0;
    return name.includes(" " + text) || shown.includes(" " + text) ? 1 : 2;
  };
  return all.filter((tag) => rank(tag) < 2 && tag.tag !== text)
    .sort((a, b) => rank(a) - rank(b) || often(b) - often(a)).slice(0, N_SHOWN);
}

/**
 * begun(text): the part of the text that is being completed; complete(text, tag): the text with the tag in its place;
 * extra(text): further options, {label, run}; onEnter(text): called by Enter without an option.
 */
export function TagField({ id, label, value, onInput, onEnter, begun = (text) => text, complete = (_, tag) => tag.shown,
  onComplete = null, extra = () => [], placeholder = "", inputRef = null, kind = "", described = undefined }) {
  const all = useCell(tagList);
  const [open, setOpen] = useState(false);
  const [active, setActive] = useState(-1);
  const own = useRef();
  const field = inputRef ?? own;
  const options = open
    ? [...completions(all, begun(value)).map((tag) => ({ label: tag.shown, note: tag.people + tag.predicted, tag })), ...extra(value)]
    : [];
  const close = () => { setOpen(false); setActive(-1); };
  const choose = (option) => {
    close();
    if (option.run) return option.run();
    const text = complete(value, option.tag);
    onInput(text);
    if (onComplete) onComplete(text);
    field.current.focus();
  };
  const onKeyDown = (event) => {
    const n = options.length;
    if (event.key === "ArrowDown" && n) setActive((active + 1) % n);
    else if (event.key === "ArrowUp" && n) setActive(active <= 0 ? n - 1 : active - 1);
    else if (event.key === "Enter" && active >= 0 && n) choose(options[active]);
    else if (event.key === "Enter") { close(); onEnter(value); }
    else if (event.key === "Tab" && active >= 0 && n) choose(options[active]);
    else if (event.key === "Escape" && open && n) close();
    else return;
    event.preventDefault();
  };
  const expanded = options.length > 0;
  return html`<div class=${"tag-field " + kind}>
    <input id=${id} ref=${field} type="text" role="combobox" autocomplete="off" autocapitalize="none" spellcheck=${false} aria-label=${label}
      aria-autocomplete="list" aria-expanded=${String(expanded)} aria-controls=${`${id}-options`} aria-describedby=${described}
      aria-activedescendant=${active >= 0 && expanded ? `${id}-option-${active}` : undefined} placeholder=${placeholder} value=${value}
      onInput=${(event) => { onInput(event.target.value); setOpen(true); setActive(-1); }} onKeyDown=${onKeyDown} onBlur=${close} />
    <ul id=${`${id}-options`} role="listbox" aria-label="Suggestions" class="options" hidden=${!expanded}>
      ${options.map((option, i) => html`<li id=${`${id}-option-${i}`} role="option" aria-selected=${String(i === active)}
        onMouseDown=${(event) => { event.preventDefault(); choose(option); }}>
        <span>${option.label}</span>${option.note ? html`<span class="soft num">${count(option.note)}</span>` : null}</li>`)}
    </ul>
  </div>`;
}
