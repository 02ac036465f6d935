// One tag: its precision and recall, related tags, and tracks; rename, merge or hide it.

import { html, useState } from "../vendor/preact.js";
import { get, post, put, tagPath } from "../api.js";
import { go, href } from "../router.js";
import {
  changeCount,
  complain,
  refreshTags,
  spelt,
  tagList,
  useChange,
  useLoad,
} from "../state.js";
import { count, KINDS, percent, quoted } from "../words.js";
import { Bar, FormError, Problem, Quality, View, Waiting } from "../components/bits.js";
import { Dialog } from "../components/dialog.js";
import { Hit } from "../components/hits.js";
import { PrecisionCurve } from "../components/precision-curve.js";
import { TagField } from "../components/tag-field.js";
import { toastUndo, undo } from "../components/toast.js";

export function Tag({ id }) {
  const { data, error, reload } = useLoad((signal) => get(tagPath(id), {}, signal), [id]);
  const [dialog, setDialog] = useState(null); // rename, merge or hide
  useChange(changeCount, reload);
  if (error && !data) {
    return html`<${View} title=${id}>
      <${Problem} error=${error} retry=${reload}><a class="button" href="#/tags">All tags</a><//>
    <//>`;
  }
  const after = () => {
    refreshTags().catch(complain);
    reload();
  };
  const close = () => setDialog(null);
  return html`<${View}
    title=${data?.shown ?? id}
    trail=${html`<${Trail} tag=${data} after=${after} />`}
    aside=${data && html`<${Actions} tag=${data} open=${setDialog} after=${after} />`}
  >
    ${data ? html`<${TagPage} tag=${data} />` : html`<${Waiting} rows=${10} />`}
    ${dialog === "hide" && html`<${HideDialog} tag=${data} onClose=${close} after=${after} />`}
    ${dialog === "rename" && html`<${RenameDialog} tag=${data} onClose=${close} after=${after} />`}
    ${dialog === "merge" && html`<${MergeDialog} tag=${data} onClose=${close} after=${after} />`}
  <//>`;
}

/** The way back to all tags, and the kind of the tag. */
function Trail({ tag, after }) {
  const setKind = async (kind) => {
    try {
      const { change } = await put(tagPath(tag.tag, "kind"), { kind });
      toastUndo(`The kind of ${tag.shown} is now ${kind}.`, change, after);
      after();
    } catch (problem) {
      complain(problem);
    }
  };
  const menu =
    tag &&
    html`<label class="inline">
      Kind${" "}
      <select value=${tag.kind} onChange=${(event) => setKind(event.target.value)}>
        ${[...KINDS.keys(), "none"].map((kind) => html`<option value=${kind}>${kind}</option>`)}
      </select>
    </label>`;
  return html`<p class="trail"><a href="#/tags">Tags</a> / ${menu ?? "…"}</p>`;
}

function Actions({ tag, open, after }) {
  const unhide = async () => {
    const { changes } = await get("/changes", { limit: 200 });
    const isHiding = ({ command, summary, undone }) =>
      command === "hide" && summary === tag.tag && !undone;
    const hiding = changes.find(isHiding);
    if (hiding) undo(hiding.id, after);
    else go("changes");
  };
  return html`<a class="button" href=${href("search", null, { q: quoted(tag.tag) })}>Show tracks</a>
    <a class="button" href=${href("teach", null, { tag: tag.tag })}>Teach</a>
    <button onClick=${() => open("rename")}>Rename</button>
    <button onClick=${() => open("merge")}>Merge</button>
    ${
      tag.hidden
        ? html`<button onClick=${unhide}>Unhide</button>`
        : html`<button onClick=${() => open("hide")}>Hide</button>`
    }`;
}

const TagPage = ({ tag }) => html`
  <${Figures} tag=${tag} />
  <div class="tag-page">
    <${PrecisionCurve} tag=${tag} />
    <${Related} tag=${tag} />
  </div>
  <div class="three">
    <${Tracks} title="Most certain" about="The model is most certain here" hits=${tag.surest} />
    <${Tracks} title="Least certain" about="An answer would help here" hits=${tag.doubtful} />
    <${Tracks}
      title="Most surprising"
      about="People and the model disagree here"
      hits=${tag.surprising}
    />
  </div>
`;

function Figures({ tag }) {
  const figures = [
    ["quality (AUC)", html`<${Quality} auc=${tag.auc} word=${tag.quality ?? "–"} />`],
    ["tracks tagged", count(tag.people)],
    ["tracks predicted", count(tag.predicted)],
    [tag.owner === "built-in" ? "examples from other music" : "examples", count(tag.examples)],
    ["precision", percent(tag.precision)],
    ["recall", percent(tag.recall)],
  ];
  return html`<dl class="figures">
    ${figures.map(
      ([name, value]) => html`<div>
        <dt>${name}</dt>
        <dd class="num">${value}</dd>
      </div>`,
    )}
  </dl>`;
}

const N_RELATED = 5;

function Related({ tag }) {
  const gain = (other) => other.probability_with - other.probability_without;
  const related = tag.related ?? [];
  const more = related.filter((other) => gain(other) > 0).slice(0, N_RELATED);
  const less = related.filter((other) => gain(other) < 0).slice(0, N_RELATED);
  const none = !more.length && !less.length;
  return html`<section class="card" aria-labelledby="related">
    <h2 id="related">Often together</h2>
    ${
      none
        ? html`<p class="soft">No related tags yet.</p>`
        : html`<${RelatedTable} tag=${tag} related=${more} />`
    }
    ${
      less.length > 0 &&
      html`<h2 class="again">Rarely together</h2>
      <${RelatedTable} tag=${tag} related=${less} />`
    }
  </section>`;
}

const RelatedTable = ({ tag, related }) =>
  html`<table class="table related">
    <thead>
      <tr>
        <th scope="col">Tag</th>
        <th scope="col" class="num">with ${tag.shown}</th>
        <th scope="col" class="num">without</th>
      </tr>
    </thead>
    <tbody>
      ${related.map((other) => html`<${RelatedRow} other=${other} />`)}
    </tbody>
  </table>`;

const RelatedRow = ({ other: { tag, probability_with, probability_without } }) =>
  html`<tr>
    <th scope="row"><a href=${href("tags", tag)}>${spelt(tag)}</a></th>
    <td class="num">
      <span class="auc">
        <${Bar} p=${probability_with} look="small" mark=${probability_without} />
        ${percent(probability_with)}
      </span>
    </td>
    <td class="num soft">${percent(probability_without)}</td>
  </tr>`;

function Tracks({ title, about, hits }) {
  const list = (hits ?? []).map(
    (hit) =>
      html`<${Hit} key=${hit.id} hit=${{ ...hit, tags: null }} queue=${hits} searching=${true} />`,
  );
  return html`<section class="card">
    <h2>${title}</h2>
    <p class="soft">${about}</p>
    ${list.length ? html`<ol class="hits narrow">${list}</ol>` : html`<p>None.</p>`}
  </section>`;
}

const withoutSpaces = (text) => text.trim().replace(/\s+/g, " ");

/** The other tag of a name, if there is one. */
function otherTag(tag, name) {
  const wanted = name.toLocaleLowerCase();
  return tagList.value.find((other) => other.tag === wanted && other.tag !== tag.tag);
}

/** Renaming a tag; the rename of a tag to another's name merges the two. */
function useRename({ tag, onClose, after }) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const rename = async (name) => {
    if (!name) return;
    setBusy(true);
    try {
      const report = await post(tagPath(tag.tag, "rename"), { to: name });
      const deed = report.merged ? `Merged ${tag.shown} into` : `Renamed ${tag.shown} to`;
      const later = report.needs_training ? " The model learns it in the next training." : "";
      onClose();
      toastUndo(`${deed} ${name}.${later}`, report.change, () => {
        after();
        go("tags", tag.tag);
      });
      after();
      const target = otherTag(tag, name)?.tag ?? name.toLocaleLowerCase();
      go("tags", target, {}, { replace: true });
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  };
  return { busy, error, rename };
}

function RenameDialog({ tag, onClose, after }) {
  const [text, setText] = useState(tag.shown);
  const { busy, error, rename } = useRename({ tag, onClose, after });
  const name = withoutSpaces(text);
  const other = otherTag(tag, name);
  const run = () => rename(name);
  return html`<${Dialog} title=${`Rename ${tag.shown}`} onClose=${onClose}>
    <p>The tag gets the new name for everyone. You can undo it.</p>
    <${TagField}
      id="rename"
      label="New name"
      placeholder="New name"
      value=${text}
      onInput=${setText}
      onEnter=${run}
    />
    ${other && html`<p>${other.shown} already exists. The two tags will be merged.</p>`}
    <${FormError} error=${error} />
    <div class="dialog-buttons">
      <button onClick=${onClose}>Cancel</button>
      <button class="primary" disabled=${busy || !name} onClick=${run}>
        ${other ? "Merge" : "Rename"}
      </button>
    </div>
  <//>`;
}

function MergeDialog({ tag, onClose, after }) {
  const [text, setText] = useState("");
  const { busy, error, rename } = useRename({ tag, onClose, after });
  const name = withoutSpaces(text);
  const other = otherTag(tag, name);
  const run = () => other && rename(name);
  return html`<${Dialog} title=${`Merge ${tag.shown} into another tag`} onClose=${onClose}>
    <p>All tracks with ${tag.shown} get the other tag instead. You can undo it.</p>
    <${TagField}
      id="rename"
      label="The tag to merge it into"
      placeholder="Tag"
      value=${text}
      onInput=${setText}
      onEnter=${run}
    />
    <${FormError} error=${error} />
    <div class="dialog-buttons">
      <button onClick=${onClose}>Cancel</button>
      <button class="primary" disabled=${busy || !other} onClick=${run}>Merge</button>
    </div>
  <//>`;
}

function HideDialog({ tag, onClose, after }) {
  const hide = async () => {
    try {
      const { change } = await post(tagPath(tag.tag, "hide"));
      onClose();
      toastUndo(`Hid ${tag.shown}.`, change, after);
      after();
    } catch (problem) {
      complain(problem);
    }
  };
  return html`<${Dialog} title=${`Hide ${tag.shown}?`} onClose=${onClose}>
    <p>
      It will no longer be predicted, suggested or written into files. Tracks that people gave it
      (${count(tag.people)}) keep it. You can undo it.
    </p>
    <div class="dialog-buttons">
      <button onClick=${onClose}>Cancel</button>
      <button class="primary" onClick=${hide}>Hide</button>
    </div>
  <//>`;
}
