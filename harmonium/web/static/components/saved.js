// Searches with a name: a list of them, and dialogs that save or rename one.

import { html, useState } from "../vendor/preact.js";
import { get, post, put, remove } from "../api.js";
import { href } from "../router.js";
import { bumpChanges, changeCount, complain, useChange, useLoad } from "../state.js";
import { FormError, IconButton } from "./bits.js";
import { Dialog } from "./dialog.js";
import { toastUndo } from "./toast.js";

/** The saved searches; a click opens one. */
export function SavedSearches() {
  const [renamed, rename] = useState(null);
  const { data, reload } = useLoad((signal) => get("/searches", {}, signal), []);
  useChange(changeCount, reload);
  const drop = async (name) => {
    try {
      const { change } = await remove("/searches", { title: name });
      toastUndo(`Deleted ${name}.`, change, reload);
      reload();
    } catch (error) {
      complain(error);
    }
  };
  if (!data?.searches.length) return null;
  return html`<section class="saved" aria-labelledby="saved">
    <h2 id="saved">Saved searches</h2>
    <div class="facet-groups">
      <ul>
        ${data.searches.map(
          (search) =>
            html`<${SavedSearch}
              key=${search.name}
              search=${search}
              rename=${rename}
              drop=${drop}
            />`,
        )}
      </ul>
    </div>
    ${renamed !== null && html`<${RenameDialog} old=${renamed} onClose=${() => rename(null)} />`}
  </section>`;
}

const SavedSearch = ({ search: { name, query, words }, rename, drop }) =>
  html`<li class="facet">
    <a class="facet-add" href=${href("search", null, query)} title=${words}>
      <span class="facet-name">${name}</span>
    </a>
    <${IconButton}
      icon="pencil"
      label=${`Rename ${name}`}
      class="icon-button facet-not"
      onClick=${() => rename(name)}
    />
    <${IconButton}
      icon="close"
      label=${`Delete ${name}`}
      class="icon-button facet-not"
      onClick=${() => drop(name)}
    />
  </li>`;

const NameField = ({ name, setName }) =>
  html`<label>
    Name${" "}
    <input
      type="text"
      value=${name}
      maxlength="200"
      required
      onInput=${(event) => setName(event.target.value)}
    />
  </label>`;

const Buttons = ({ label, disabled, onClose }) =>
  html`<div class="dialog-buttons">
    <button type="button" onClick=${onClose}>Cancel</button>
    <button class="primary" disabled=${disabled}>${label}</button>
  </div>`;

/** Submitting a dialog: `run` does it and answers with a change; `done` says what was done. */
function useSubmit(run, done, onClose) {
  const [error, setError] = useState(null);
  const onSubmit = async (event) => {
    event.preventDefault();
    try {
      const { change } = await run();
      onClose();
      toastUndo(done, change, bumpChanges);
      bumpChanges();
    } catch (problem) {
      setError(problem);
    }
  };
  return [onSubmit, error];
}

/** Save the present search, with the parameters of the route in `query`. */
export function SaveDialog({ query, most, suggested, onClose }) {
  const [text, setText] = useState(suggested);
  const [limit, setLimit] = useState(most ?? 100);
  const name = text.trim();
  const save = () => put("/searches", undefined, { ...query, title: name, stops: limit });
  const [onSubmit, error] = useSubmit(save, `Saved ${name}.`, onClose);
  return html`<${Dialog} title="Save this search" onClose=${onClose}>
    <form class="save-search" onSubmit=${onSubmit}>
      <p>
        A saved search runs again each time you open it. “harmonium playlists” writes all of them as
        playlists.
      </p>
      <${NameField} name=${text} setName=${setText} />
      <label>
        Tracks at most${" "}
        <input
          type="number"
          min="1"
          max="10000"
          required
          value=${limit}
          onInput=${(event) => setLimit(event.target.value)}
        />
      </label>
      <${FormError} error=${error} />
      <${Buttons} label="Save" disabled=${!name} onClose=${onClose} />
    </form>
  <//>`;
}

function RenameDialog({ old, onClose }) {
  const [text, setText] = useState(old);
  const name = text.trim();
  const rename = () => post(`/searches/rename?title=${encodeURIComponent(old)}`, { to: name });
  const [onSubmit, error] = useSubmit(rename, `Renamed ${old} to ${name}.`, onClose);
  return html`<${Dialog} title=${`Rename ${old}`} onClose=${onClose}>
    <form class="save-search" onSubmit=${onSubmit}>
      <${NameField} name=${text} setName=${setText} />
      <${FormError} error=${error} />
      <${Buttons} label="Rename" disabled=${!name || name === old} onClose=${onClose} />
    </form>
  <//>`;
}
