// A text field that completes tags (the combobox pattern), for search, adding and renaming tags.

import { html, useRef, useState } from "../vendor/preact.js";
import { tagList, useCell } from "../state.js";
import { count } from "../words.js";

const N_SHOWN = 8;

/** The number of a tag's tracks. */
const tracksOf = (tag) => (tag.people ?? 0) + (tag.predicted ?? 0);

/** Whether a tag starts with a text (0), one of its words does (1), or none (2). */
function rank(tag, text) {
  const names = [tag.tag, tag.shown.toLocaleLowerCase()];
  if (names.some((name) => name.startsWith(text))) return 0;
  return names.some((name) => name.includes(" " + text)) ? 1 : 2;
}

/** The tags that complete a text: those that start with it first, then the most common. */
function completions(all, begun) {
  const text = begun.toLocaleLowerCase();
  if (!text) return [];
  return all
    .filter((tag) => rank(tag, text) < 2 && tag.tag !== text)
    .sort((a, b) => rank(a, text) - rank(b, text) || tracksOf(b) - tracksOf(a))
    .slice(0, N_SHOWN);
}

const optionOf = (tag) => ({ label: tag.shown, note: tracksOf(tag), tag });

/**
 * begun(text): the part of the text that is being completed; complete(text, tag): the text with
 * the tag in its place; extra(text): further options, {label, run}; onEnter(text): called by Enter
 * without an option.
 */
export function TagField({
  id,
  label,
  value,
  onInput,
  onEnter,
  begun = (text) => text,
  complete = (_, tag) => tag.shown,
  onComplete = null,
  extra = () => [],
  placeholder = "",
  inputRef = null,
  look = "",
  described = undefined,
}) {
  const all = useCell(tagList);
  const [open, setOpen] = useState(false);
  const [active, setActive] = useState(-1);
  const own = useRef();
  const field = inputRef ?? own;
  const options = open ? [...completions(all, begun(value)).map(optionOf), ...extra(value)] : [];
  const expanded = options.length > 0;
  const isChosen = active >= 0 && expanded;
  const close = () => {
    setOpen(false);
    setActive(-1);
  };
  const choose = (option) => {
    close();
    if (option.run) return option.run();
    const text = complete(value, option.tag);
    onInput(text);
    if (onComplete) onComplete(text);
    field.current.focus();
  };
  const enter = () => {
    close();
    onEnter(value);
  };
  const onKeyDown = (event) => {
    const n = options.length;
    if (event.key === "ArrowDown" && n) setActive((active + 1) % n);
    else if (event.key === "ArrowUp" && n) setActive(active <= 0 ? n - 1 : active - 1);
    else if (event.key === "Enter" && isChosen) choose(options[active]);
    else if (event.key === "Enter") enter();
    else if (event.key === "Tab" && isChosen) choose(options[active]);
    else if (event.key === "Escape" && open && n) close();
    else return;
    event.preventDefault();
  };
  const onText = (event) => {
    onInput(event.target.value);
    setOpen(true);
    setActive(-1);
  };
  return html`<div class=${"tag-field " + look}>
    <input
      id=${id}
      ref=${field}
      type="text"
      role="combobox"
      autocomplete="off"
      autocapitalize="none"
      spellcheck=${false}
      aria-label=${label}
      aria-autocomplete="list"
      aria-expanded=${String(expanded)}
      aria-controls=${`${id}-options`}
      aria-describedby=${described}
      aria-activedescendant=${isChosen ? `${id}-option-${active}` : undefined}
      placeholder=${placeholder}
      value=${value}
      onInput=${onText}
      onKeyDown=${onKeyDown}
      onBlur=${close}
    />
    <ul
      id=${`${id}-options`}
      role="listbox"
      aria-label="Suggestions"
      class="options"
      hidden=${!expanded}
    >
      ${options.map(
        (option, i) =>
          html`<${Option}
            id=${`${id}-option-${i}`}
            option=${option}
            selected=${i === active}
            choose=${choose}
          />`,
      )}
    </ul>
  </div>`;
}

function Option({ id, option, selected, choose }) {
  const onMouseDown = (event) => {
    event.preventDefault();
    choose(option);
  };
  return html`<li
    id=${id}
    role="option"
    aria-selected=${String(selected)}
    onMouseDown=${onMouseDown}
  >
    <span>${option.label}</span>
    ${option.note ? html`<span class="soft num">${count(option.note)}</span>` : null}
  </li>`;
}
