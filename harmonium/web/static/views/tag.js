// One tag: its precision and recall, related tags, and tracks; rename, merge or hide it.

import { html, useMemo, useState } from "../vendor/preact.js";
import { get, post, put, tagPath } from "../api.js";
import { go, href } from "../router.js";
import { changeCount, complain, refreshTags, spelt, tagList, useChange, useLoad, useWidth } from "../state.js";
import { count, KINDS, percent, quoted, counted } from "../words.js";
import { Bar, Problem, Quality, Range, View, Waiting } from "../components/bits.js";
import { Dialog } from "../components/dialog.js";
import { TagField } from "../components/tag-field.js";
import { toastUndo, undo } from "../components/toast.js";
import { Hit } from "./search.js";

export function Tag({ id }) {
  const { data, error, reload } = useLoad((signal) => get(tagPath(id), {}, signal), [id]);
  const [asking, setAsking] = useState(null);
  useChange(changeCount, reload);
  if (error && !data) return html`<${View} title=${id}><${Problem} error=${error} retry=${reload}><a class="button" href="#/tags">All tags</a><//><//>`;
  const after = () => { refreshTags().catch(complain); reload(); };
  const unhide = async () => {
    const { changes } = await get("/changes", { limit: 200 });
    const hiding = changes.find((change) => change.command === "hide" && change.summary === data.tag && !change.undone);
    if (hiding) undo(hiding.id, after);
    else go("changes");
  };
  const setKind = async (kind) => {
    try {
      const { change } = await put(tagPath(data.tag, "kind"), { kind });
      toastUndo(`${shown} is now of the kind ${kind}.`, change, after);
      after();
    } catch (problem) { complain(problem); }
  };
  const shown = data?.shown ?? id;
  return html`<${View} title=${shown} trail=${html`<p class="trail"><a href="#/tags">Tags</a> / ${data ? html`<label class="inline">Kind <select value=${data.kind} onChange=${(event) => setKind(event.target.value)}>${[...KINDS.keys(), "none"].map((kind) => html`<option value=${kind}>${kind}</option>`)}</select></label>` : "…"}</p>`}
    aside=${data && html`<a class="button" href=${href("search", null, { q: quoted(id) })}>Its tracks</a><a class="button" href=${href("teach", null, { tag: id })}>Teach</a>
      <button onClick=${() => setAsking("rename")}>Rename</button><button onClick=${() => setAsking("merge")}>Merge</button>
      ${data.hidden ? html`<button onClick=${unhide}>Show again</button>` : html`<button onClick=${() => setAsking("hide")}>Hide</button>`}`}>
    ${!data ? html`<${Waiting} rows=${10} />` : html`
      <${Figures} tag=${data} />
      <div class="tag-page">
        <${Curve} tag=${data} />
        <${Related} tag=${data} />
      </div>
      <div class="three">
        <${Tracks} title="Most certain" about="Where the model is most certain" hits=${data.surest} />
        <${Tracks} title="Least certain" about="Where an answer would help" hits=${data.doubtful} />
        <${Tracks} title="Most surprising" about="People and the model disagree" hits=${data.surprising} />
      </div>`}
    ${asking === "hide" && html`<${Hide} tag=${data} onClose=${() => setAsking(null)} after=${after} />`}
    ${(asking === "rename" || asking === "merge") && html`<${Rename} tag=${data} merge=${asking === "merge"} onClose=${() => setAsking(null)} after=${after} />`}
  <//>`;
}

function Figures({ tag }) {
  const figures = [
    [html`<${Quality} auc=${tag.auc} />`, "quality (AUC)"],
    [count(tag.people), "of your tracks tagged"],
    [count(tag.predicted), "predicted"],
    [count(tag.examples), tag.owner === "built-in" ? "examples, of other music" : "examples"],
    [percent(tag.precision), "precision"],
    [percent(tag.recall), "recall"],
  ];
  return html`<dl class="figures">${figures.map(([figure, what]) => html`<div><dt>${what}</dt><dd class="num">${figure}</dd></div>`)}</dl>`;
}

const MIN_RECALL = 0.1;
const H = 240, LEFT = 40, BOTTOM = 34, TOP = 12, RIGHT = 20;

/** Precision against recall; a slider moves along the thresholds. */
function Curve({ tag }) {
  // With hardly any track found, the precision is chance.
  const curve = useMemo(() => (tag.curve ?? []).filter((one) => one.recall >= MIN_RECALL).sort((a, b) => a.threshold - b.threshold), [tag]);
  const nearest = () => {
    const gap = (i) => Math.abs(curve[i].threshold - (tag.threshold ?? 0.5));
    return curve.reduce((best, _, i) => (gap(i) < gap(best) ? i : best), 0);
  };
  const [chosen, setChosen] = useState(null);
  const [frame, W] = useWidth();
  if (curve.length < 2) return html`<section class="card" ref=${frame}><h2>Precision and recall</h2><p class="soft">The model has not learnt this tag well enough to predict it. About fifteen tracks with the tag help.</p></section>`;
  const i = Math.min(chosen ?? nearest(), curve.length - 1);
  const here = curve[i];
  const x = (recall) => LEFT + recall * (W - LEFT - RIGHT), y = (precision) => TOP + (1 - precision) * (H - TOP - BOTTOM);
  const line = (value) => curve.map((one, k) => `${k ? "L" : "M"}${x(one.recall).toFixed(1)} ${y(value(one)).toFixed(1)}`).join("");
  const band = `${line((one) => one.precision)}${[...curve].reverse().map((one) => `L${x(one.recall).toFixed(1)} ${y(Math.min(one.low ?? 1, one.precision)).toFixed(1)}`).join("")}Z`;
  const ticks = [0, 0.25, 0.5, 0.75, 1];
  const text = `${percent(here.precision)} of its predictions are right${(here.low ?? 1) > here.precision ? "" : ` (at least ${percent(here.low)})`}; it finds ${percent(here.recall)} of the tracks.`;
  return html`<section class="card" aria-labelledby="curve"><h2 id="curve">Precision and recall</h2><div ref=${frame}></div>
    <svg class="chart" width=${W} height=${H} role="img" aria-label=${`Precision against recall. ${text}`}>
      ${ticks.map((tick) => html`<line class="grid" x1=${LEFT} x2=${W - RIGHT} y1=${y(tick)} y2=${y(tick)} /><text class="tick" x=${LEFT - 6} y=${y(tick)} text-anchor="end" dominant-baseline="central">${100 * tick}%</text>
        <text class="tick" x=${x(tick)} y=${H - BOTTOM + 16} text-anchor="middle">${100 * tick}%</text>`)}
      <text class="tick" x=${(LEFT + W - RIGHT) / 2} y=${H - 3} text-anchor="middle">recall</text>
      <path class="band" d=${band} /><path class="curve" d=${line((one) => one.precision)} />
      <line class="cross" x1=${x(here.recall)} x2=${x(here.recall)} y1=${TOP} y2=${H - BOTTOM} /><circle cx=${x(here.recall)} cy=${y(here.precision)} r="6" />
    </svg>
    <label class="slider">Threshold <b class="num">${percent(here.threshold)}</b>
      <${Range} min=${0} max=${curve.length - 1} value=${i} onInput=${setChosen} aria-valuetext=${`${percent(here.threshold)}: ${text}`} /></label>
    <p>${text}</p>
    <p><a href=${href("write", null, { precision: Math.max(0.5, Math.min(0.99, here.low ?? here.precision)).toFixed(2) })}>Write tags with this precision</a></p>
  </section>`;
}

const N_RELATED = 5;

function Related({ tag }) {
  const gain = (one) => one.probability_with - one.probability_without;
  const more = (tag.related ?? []).filter((one) => gain(one) > 0).slice(0, N_RELATED);
  const less = (tag.related ?? []).filter((one) => gain(one) < 0).slice(0, N_RELATED);
  return html`<section class="card" aria-labelledby="related"><h2 id="related">Often together</h2>
    ${more.length + less.length ? html`<${RelatedTable} tag=${tag} tags=${more} />${less.length > 0 && html`<h2 class="again">Rarely together</h2><${RelatedTable} tag=${tag} tags=${less} />`}`
      : html`<p class="soft">No related tags are known yet.</p>`}
  </section>`;
}

const RelatedTable = ({ tag, tags }) =>
  html`<table class="table related"><thead><tr><th scope="col">Tag</th><th scope="col" class="num">with ${tag.shown}</th><th scope="col" class="num">without</th></tr></thead>
      <tbody>${tags.map((one) => html`<tr><th scope="row"><a href=${href("tags", one.tag)}>${spelt(one.tag)}</a></th>
        <td class="num"><span class="auc"><${Bar} p=${one.probability_with} kind="small" mark=${one.probability_without} />${percent(one.probability_with)}</span></td><td class="num soft">${percent(one.probability_without)}</td></tr>`)}</tbody></table>`;

function Tracks({ title, about, hits }) {
  return html`<section class="card"><h2>${title}</h2><p class="soft">${about}</p>
    ${hits?.length ? html`<ol class="hits narrow">${hits.map((hit) => html`<${Hit} key=${hit.id} hit=${{ ...hit, tags: null }} queue=${hits} searching=${true} />`)}</ol>` : html`<p>None.</p>`}
  </section>`;
}

function Rename({ tag, merge, onClose, after }) {
  const [text, setText] = useState(merge ? "" : tag.shown);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const name = text.trim().replace(/\s+/g, " ");
  const into = tagList.value.find((one) => one.tag === name.toLocaleLowerCase() && one.tag !== tag.tag);
  const run = async () => {
    if (!name) return;
    setBusy(true);
    try {
      const { change, merged, needs_training } = await post(tagPath(tag.tag, "rename"), { to: name });
      onClose();
      toastUndo(`${tag.shown} is ${merged ? "merged into" : "now called"} ${name}.${needs_training ? " The model learns it in the next training." : ""}`, change, () => { after(); go("tags", tag.tag); });
      after();
      go("tags", into?.tag ?? name.toLocaleLowerCase(), {}, { replace: true });
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  };
  return html`<${Dialog} title=${merge ? `Merge ${tag.shown} into another tag` : `Rename ${tag.shown}`} onClose=${onClose}>
    <p>${merge ? `Every ${tag.shown} becomes the other tag.` : "The tag gets the new name for everyone."} You can undo it.</p>
    <${TagField} id="rename" label=${merge ? "The tag to merge it into" : "New name"} placeholder=${merge ? "Tag" : "New name"} value=${text} onInput=${setText} onEnter=${run} />
    ${!merge && into && html`<p>The tag ${into.shown} exists already; the two will be merged.</p>`}
    ${error && html`<p class="bad" role="alert">${error.message}</p>`}
    <div class="dialog-buttons"><button onClick=${onClose}>Cancel</button><button class="primary" disabled=${busy || !name || (merge && !into)} onClick=${run}>${merge || into ? "Merge" : "Rename"}</button></div>
  <//>`;
}

function Hide({ tag, onClose, after }) {
  const run = async () => {
    try {
      const { change } = await post(tagPath(tag.tag, "hide"));
      onClose();
      toastUndo(`${tag.shown} is hidden.`, change, after);
      after();
    } catch (problem) { complain(problem); }
  };
  return html`<${Dialog} title=${`Hide ${tag.shown}?`} onClose=${onClose}>
    <p>It will no longer be predicted, suggested or written into files. What people said (${counted(tag.people, "track")}) is kept. You can undo it.</p>
    <div class="dialog-buttons"><button onClick=${onClose}>Cancel</button><button class="primary" onClick=${run}>Hide</button></div>
  <//>`;
}
