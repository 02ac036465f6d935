// Drop a file anywhere, or choose one, to see its tags; it is not kept.

import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { postFile } from "../api.js";
import { announce } from "../state.js";
import { clock, percent } from "../words.js";
import { Bar, Features, Problem, Waiting } from "./bits.js";
import { Dialog } from "./dialog.js";
import { PlayButton } from "./player.js";

const N_TAGS = 24;

const hasFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");

/** Listeners for files that are dragged over the page: whether one is over it, and its drop. */
function dropListeners(setOver, onFile) {
  let depth = 0; // of the elements that the pointer has entered
  const setDepth = (n) => {
    depth = n;
    setOver(n > 0);
  };
  return {
    dragenter: () => setDepth(depth + 1),
    dragleave: () => setDepth(Math.max(0, depth - 1)),
    dragover: (event) => event.preventDefault(),
    drop: (event) => {
      event.preventDefault();
      setDepth(0);
      if (event.dataTransfer.files[0]) onFile(event.dataTransfer.files[0]);
    },
  };
}

export function Drop() {
  const [over, setOver] = useState(false);
  const [file, setFile] = useState(null);
  const input = useRef();
  useEffect(() => {
    const listeners = dropListeners(setOver, setFile);
    const listen = (event) => hasFiles(event) && listeners[event.type](event);
    for (const type in listeners) addEventListener(type, listen);
    return () => {
      for (const type in listeners) removeEventListener(type, listen);
    };
  }, []);
  const onChange = (event) => {
    setFile(event.target.files[0] ?? null);
    event.target.value = "";
  };
  const key = file && file.name + file.size + file.lastModified;
  return html`
    <button class="quiet tag-file" onClick=${() => input.current.click()}>Tag a file</button>
    <input
      ref=${input}
      type="file"
      accept="audio/*"
      hidden
      aria-label="A sound file to tag"
      onChange=${onChange}
    />
    ${
      over &&
      html`<div class="drop-here" aria-hidden="true">
      <p>Drop the file to see its tags</p>
    </div>`
    }
    ${file && html`<${FileTags} key=${key} file=${file} onClose=${() => setFile(null)} />`}
  `;
}

/** A track for the player, made of a file that is not in the library. */
const trackOf = (file) => ({
  id: `file ${file.name} ${file.lastModified}`,
  name: file.name,
  title: file.name,
  localAddress: URL.createObjectURL(file),
});

function FileTags({ file, onClose }) {
  const [state, set] = useState({ data: null, error: null });
  const [track] = useState(() => trackOf(file));
  const load = () => {
    const controller = new AbortController();
    set({ data: null, error: null });
    postFile(file, controller.signal).then(
      (data) => {
        set({ data, error: null });
        announce(`${data.tags.length} tags for ${file.name}`);
      },
      (error) => error.name === "AbortError" || set({ data: null, error }),
    );
    return () => controller.abort();
  };
  useEffect(load, []);
  const { data, error } = state;
  return html`<${Dialog} title=${file.name} onClose=${onClose}>
    <div class="row">
      <${PlayButton} track=${track} />
      <span class="soft num">${data ? clock(data.duration) : ""}</span>
    </div>
    ${error && html`<${Problem} error=${error} retry=${load} />`}
    ${!error && !data && html`<p role="status">Listening …</p>`}
    ${!error && !data && html`<${Waiting} rows=${8} what="Listening" />`}
    ${data && html`<${Heard} data=${data} />`}
    <p class="soft">The file is not kept.</p>
  <//>`;
}

/** The tags and audio features of a file. */
function Heard({ data }) {
  const tags = data.tags
    .filter((tag) => tag.probability !== null)
    .sort((a, b) => b.probability - a.probability)
    .slice(0, N_TAGS);
  if (!tags.length) return html`<p>There is no model yet. Train one first.</p>`;
  return html`<ul class="file-tags">
      ${tags.map(
        (tag) => html`<li key=${tag.tag}>
          <span class=${tag.predicted ? "tag-name sure" : "tag-name"}>${tag.shown}</span>
          <${Bar} p=${tag.probability} look=${tag.predicted ? "" : "faint"} />
          <span class="num">${percent(tag.probability)}</span>
        </li>`,
      )}
    </ul>
    <${Features} values=${data.features} />`;
}
