// Drop a file anywhere, or choose one, to see its tags; it is not kept.

import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { postFile } from "../api.js";
import { announce } from "../state.js";
import { clock, percent } from "../words.js";
import { Bar, Features, Problem, Waiting } from "./bits.js";
import { Dialog } from "./dialog.js";
import { PlayButton } from "./player.js";

const N_TAGS = 24;

export function Drop() {
  const [over, setOver] = useState(false);
  const [file, setFile] = useState(null);
  const input = useRef();
  useEffect(() => {
    let depth = 0;
    const holds = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
    const listeners = {
      dragenter: (event) => { if (holds(event)) { depth += 1; setOver(true); } },
      dragleave: (event) => { if (holds(event)) { depth -= 1; if (depth <= 0) { depth = 0; setOver(false); } } },
      dragover: (event) => { if (holds(event)) event.preventDefault(); },
      drop: (event) => {
        if (!holds(event)) return;
        event.preventDefault();
        depth = 0;
        setOver(false);
        if (event.dataTransfer.files[0]) setFile(event.dataTransfer.files[0]);
      },
    };
    for (const [name, listener] of Object.entries(listeners)) addEventListener(name, listener);
    return () => { for (const [name, listener] of Object.entries(listeners)) removeEventListener(name, listener); };
  }, []);
  return html`
    <button class="quiet tag-file" onClick=${() => input.current.click()}>Tag a file</button>
    <input ref=${input} type="file" accept="audio/*" hidden aria-label="A sound file to tag" onChange=${(event) => { setFile(event.target.files[0] ?? null); event.target.value = ""; }} />
    ${over && html`<div class="drop-here" aria-hidden="true"><p>Drop the file to see its tags</p></div>`}
    ${file && html`<${FileTags} key=${file.name + file.size + file.lastModified} file=${file} onClose=${() => setFile(null)} />`}`;
}

function FileTags({ file, onClose }) {
  const [state, set] = useState({ data: null, error: null });
  const [track] = useState(() => ({ id: `file ${file.name} ${file.lastModified}`, name: file.name, title: file.name, localAddress: URL.createObjectURL(file) }));
  const load = () => {
    const controller = new AbortController();
    set({ data: null, error: null });
    postFile(file, controller.signal).then(
      (data) => { set({ data, error: null }); announce(`${data.tags.length} tags for ${file.name}`); },
      (error) => error.name === "AbortError" || set({ data: null, error }),
    );
    return () => controller.abort();
  };
  useEffect(load, []);
  const { data, error } = state;
  const tags = [...(data?.tags ?? [])].filter((tag) => tag.probability !== null).sort((a, b) => b.probability - a.probability).slice(0, N_TAGS);
  return html`<${Dialog} title=${file.name} onClose=${onClose}>
    <div class="row"><${PlayButton} track=${track} /><span class="soft num">${data ? clock(data.duration) : ""}</span></div>
    ${error ? html`<${Problem} error=${error} retry=${load} />` : !data ? html`<p role="status">Listening …</p><${Waiting} rows=${8} what="Listening" />`
      : !tags.length ? html`<p>No model yet; train one first.</p>`
      : html`<ul class="file-tags">${tags.map((tag) => html`<li key=${tag.tag}><span class=${tag.predicted ? "tag-name sure" : "tag-name"}>${tag.shown}</span>
          <${Bar} p=${tag.probability} kind=${tag.predicted ? "" : "faint"} /><span class="num">${percent(tag.probability)}</span></li>`)}</ul>
          <${Features} values=${data.features} />`}
    <p class="soft">The file is not kept.</p>
  <//>`;
}
