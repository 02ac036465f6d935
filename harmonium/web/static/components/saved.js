// Searches with a name: a list of them, and a dialog that saves or renames one.

import { html, useState } from "../vendor/preact.js";
import { get, post, put, remove } from "../api.js";
import { href } from "../router.js";
import { changeCount, complain, useChange, useLoad } from "../state.js";
import { IconButton } from "./bits.js";
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
      toastUndo(`${name} is deleted.`, change, reload);
      reload();
    } catch (error) { complain(error); }
  };
  if (!data?.searches.length) return null;
  return html`<section class="saved" aria-labelledby="saved"><h2 id="saved">Saved searches</h2>
    <div class="facet-groups"><ul>${data.searches.map((one) => html`<li key=${one.name} class="facet">
      <a class="facet-add" href=${href("search", null, one.query)} title=${one.words}><span class="facet-name">${one.name}</span></a>
      <${IconButton} icon="pencil" label=${`Rename ${one.name}`} class="icon-button facet-not" onClick=${() => rename(one.name)} />
      <${IconButton} icon="close" label=${`Delete ${one.name}`} class="icon-button facet-not" onClick=${() => drop(one.name)} /></li>`)}</ul></div>
    ${renamed !== null && html`<${SaveDialog} renamed=${renamed} onClose=${() => rename(null)} />`}
  </section>`;
}

/** Save the present search, with the parameters of the route in `query`; or rename a saved one. */
export function SaveDialog({ query = {}, most, suggested, renamed = null, onClose }) {
  const [title, setTitle] = useState(renamed ?? suggested);
  const [limit, setLimit] = useState(most ?? 100);
  const [error, setError] = useState(null);
  const name = title.trim();
  const run = async (event) => {
    event.preventDefault();
    try {
      const { change } = renamed === null ? await put("/searches", undefined, { ...query, title: name, stops: limit })
        : await post(`/searches/rename?title=${encodeURIComponent(renamed)}`, { to: name });
      onClose();
      toastUndo(renamed === null ? `${name} is saved.` : `${renamed} is now called ${name}.`, change, () => changeCount.set((n) => n + 1));
      changeCount.set((n) => n + 1);
    } catch (problem) { setError(problem); }
  };
  return html`<${Dialog} title=${renamed === null ? "Save this search" : `Rename ${renamed}`} onClose=${onClose}>
    <form class="save-search" onSubmit=${run}>
      ${renamed === null && html`<p>It searches again each time you open it. “harmonium playlists” writes all saved searches as playlists.</p>`}
      <label>Name <input type="text" value=${title} maxlength="200" required onInput=${(event) => setTitle(event.target.value)} /></label>
      ${renamed === null && html`<label>Tracks at most <input type="number" min="1" max="10000" required value=${limit} onInput=${(event) => setLimit(event.target.value)} /></label>`}
      ${error && html`<p class="bad" role="alert">${error.message}</p>`}
      <div class="dialog-buttons"><button type="button" onClick=${onClose}>Cancel</button><button class="primary" disabled=${!name || name === renamed}>${renamed === null ? "Save" : "Rename"}</button></div>
    </form>
  <//>`;
}
