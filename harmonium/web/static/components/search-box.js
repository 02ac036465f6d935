// The field for queries, which completes tags.

import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { go } from "../router.js";
import { library, tagList, useCell } from "../state.js";
import { counted, quoted } from "../words.js";
import { IconButton } from "./bits.js";
import { Icon } from "./icons.js";
import { TagField } from "./tag-field.js";

/** The words before the caret that may start a tag: after brackets, quotes, minus and operators. */
function lastPiece(text, tags) {
  const inQuotes = (text.match(/"/g) ?? []).length % 2 === 1;
  if (inQuotes) return text.slice(text.lastIndexOf('"') + 1);
  const run = text.match(/(?:^|[\s("-]|\b(?:AND|OR|NOT)\s)([^()"]*)$/)?.[1] ?? "";
  const words = run.replace(/^.*\b(AND|OR|NOT)\s+/, "").split(/\s+/);
  const startsTag = (piece) => tags.some(({ tag }) => tag.startsWith(piece.toLocaleLowerCase()));
  for (let i = 0; i < words.length; i += 1) {
    // The longest ending that some tag starts with.
    const piece = words.slice(i).join(" ").replace(/^-/, "");
    if (piece && startsTag(piece)) return piece;
  }
  return words.at(-1).replace(/^-/, "");
}

/** The query with its last piece completed to a tag. */
function complete(text, tag) {
  const piece = lastPiece(text, tagList.value);
  const start = text.slice(0, text.length - piece.length).replace(/"$/, "");
  return `${start}${quoted(tag.tag)} `;
}

/** What a new search does not take over from the one before. */
const USUAL = {
  order: null,
  stops: null,
  min_probability: null,
  owner: null,
  predicted: null,
  unlikely: null,
};

export function SearchBox({ params, show, hasFeatures }) {
  const summary = useCell(library);
  const asked = params.q ?? params.name ?? "";
  const [text, setText] = useState(asked);
  const field = useRef();
  useEffect(() => {
    // A space at the end stays while typing.
    setText((old) => (old.trim() === asked.trim() ? old : asked));
  }, [params.q, params.name]);
  const search = (q) => show({ ...USUAL, q: q.trim(), name: null });
  const searchNames = (name) => show({ ...USUAL, name: name.trim(), q: null });
  const onEnter = (value) =>
    params.name && value.trim() === params.name ? searchNames(value) : search(value);
  const nameOption = (value) => ({
    label: `Titles and artists with “${value.trim()}”`,
    run: () => searchNames(value),
  });
  const clear = () => {
    setText("");
    go("search");
    field.current.focus();
  };
  const clearButton = html`<${IconButton}
    icon="close"
    label="Clear the search"
    type="button"
    onClick=${clear}
  />`;
  return html`<form
    role="search"
    class="search-box"
    onSubmit=${(event) => event.preventDefault()}
  >
    <${Icon} name="search" />
    <${TagField}
      id="q"
      look="big"
      label="Search for tags, titles or artists"
      described="search-help"
      placeholder="Tags, such as mellow piano -live"
      value=${text}
      inputRef=${field}
      onInput=${setText}
      onEnter=${onEnter}
      begun=${(value) => lastPiece(value, tagList.value)}
      complete=${complete}
      onComplete=${search}
      extra=${(value) => (value.trim().length > 1 ? [nameOption(value)] : [])}
    />
    ${text && clearButton}
    <p id="search-help" class="search-help soft">
      ${summary ? `${counted(summary.tracks, "track")}. ` : ""}Combine tags with <b>AND</b>,${" "}
      <b>OR</b>, <b>NOT</b>; <b>-live</b> excludes a tag${
        hasFeatures && html`; <b>energy:>0.7</b> searches by an audio feature`
      }.
    </p>
  </form>`;
}
