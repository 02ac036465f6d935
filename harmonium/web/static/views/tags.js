// All tags: a sortable table, and a map of how they relate.

import { html, useMemo, useState } from "../vendor/preact.js";
import { get } from "../api.js";
import { go, href } from "../router.js";
import { changeCount, tagList, useCell, useChange, useLoad, useWidth } from "../state.js";
import { count, percent } from "../words.js";
import { Choice, Empty, Problem, Quality, View, Waiting } from "../components/bits.js";

const COLUMNS = [
  ["shown", "Tag", ""],
  ["kind", "Kind", "wide-only"],
  ["auc", "Quality", ""],
  ["people", "Tagged", "num"],
  ["predicted", "Predicted", "num"],
  ["precision", "Precision", "num wide-only"],
  ["recall", "Recall", "num wide-only"],
];

export function Tags({ params }) {
  const { data, error, reload } = useLoad((signal) => get("/tags", {}, signal), []);
  useChange(changeCount, reload);
  const showMap = params.as === "map";
  return html`<${View} title="Tags" lead="All tags, and how well the model knows them."
    aside=${html`<${Choice} label="Show as" value=${showMap ? "map" : "table"} options=${[["table", "Table"], ["map", "Map"]]} onChange=${(as) => go("tags", null, { as: as === "map" ? "map" : null }, { replace: true })} />`}>
    ${error && !data ? html`<${Problem} error=${error} retry=${reload} />` : !data ? html`<${Waiting} rows=${12} />`
      : !data.tags.length ? html`<${Empty} title="No tags yet."><p>Open a track and add tags of your own, or train a model.</p><div class="row"><a class="button" href="#/search">Tracks</a><a class="button" href="#/training">Training</a></div><//>`
      : showMap ? html`<${TagMap} />` : html`<${Table} tags=${data.tags} />`}
  <//>`;
}

/** Whether it was learnt here, or people gave it to a track. */
const isOwn = (tag) => tag.owner !== "built-in" || tag.people > 0;

function Table({ tags }) {
  const [sort, setSort] = useState(["people", -1]);
  const [filter, setFilter] = useState("");
  const [hidden, setHidden] = useState(false);
  const [whose, setWhose] = useState(tags.some(isOwn) ? "own" : "all");
  const [column, direction] = sort;
  const wanted = filter.trim().toLocaleLowerCase();
  const rows = useMemo(() => {
    const order = (a, b) => {
      const x = a[column], y = b[column];
      if ((x ?? null) === null || (y ?? null) === null) return ((x ?? null) === null) - ((y ?? null) === null);
      return direction * (typeof x === "string" ? x.localeCompare(y) : x - y) || a.shown.localeCompare(b.shown);
    };
    return tags.filter((tag) => (hidden || !tag.hidden) && (whose === "all" || isOwn(tag) === (whose === "own")) && (!wanted || tag.shown.toLocaleLowerCase().includes(wanted))).sort(order);
  }, [tags, sort, wanted, hidden, whose]);
  const both = new Set(tags.map(isOwn)).size > 1;
  const choose = (name) => setSort(name === column ? [name, -direction] : [name, name === "shown" || name === "kind" ? 1 : -1]);
  const nHidden = tags.filter((tag) => tag.hidden).length;
  return html`<div class="tags-tools">
      <label class="vh" for="filter">Filter</label>
      <input id="filter" type="search" placeholder="Filter" value=${filter} onInput=${(event) => setFilter(event.target.value)} />
      ${both && html`<${Choice} label="Whose tags" value=${whose} options=${[["own", "Your tags"], ["built-in", "Built-in"], ["all", "All"]]} onChange=${setWhose} />`}
      ${nHidden > 0 && html`<label class="inline"><input type="checkbox" checked=${hidden} onChange=${(event) => setHidden(event.target.checked)} /> Show ${nHidden} hidden</label>`}
      <details><summary>What the numbers mean</summary><p class="soft"><b>Quality</b>: how well the model tells tracks with the tag from those without, on tracks that it has not learnt from; the number is the AUC (0.5 is chance, 1 is perfect). <b>Tagged</b>: your tracks that people gave the tag. <b>Predicted</b>: your tracks that the model gives it. <b>Precision</b>: how many of its predictions are right. <b>Recall</b>: how many of the tag's tracks it finds.</p></details>
    </div>
    <table class="table tags-table"><caption class="vh">Tags, sorted by ${COLUMNS.find(([name]) => name === column)[1]}</caption>
      <thead><tr>${COLUMNS.map(([name, label, kind]) => html`<th class=${kind} scope="col" aria-sort=${name === column ? (direction > 0 ? "ascending" : "descending") : undefined}>
        <button class="sort" onClick=${() => choose(name)}>${label}<span aria-hidden="true" class="sort-mark">${name === column ? (direction > 0 ? "▲" : "▼") : ""}</span></button></th>`)}</tr></thead>
      <tbody>${rows.map((tag) => html`<tr key=${tag.tag} class=${tag.hidden ? "hidden-tag" : ""}>
        <th scope="row"><a href=${href("tags", tag.tag)}>${tag.shown}</a>${tag.hidden && html` <span class="soft">hidden</span>`}</th>
        <td class="wide-only soft">${tag.kind}</td>
        <td><${Quality} auc=${tag.auc} /></td>
        <td class="num">${count(tag.people)}</td>
        <td class="num">${count(tag.predicted)}</td>
        <td class="num wide-only">${percent(tag.precision)}</td>
        <td class="num wide-only">${percent(tag.recall)}</td>
      </tr>`)}</tbody>
    </table>
    ${!rows.length && html`<p class="soft">No tag matches.</p>`}`;
}

/** The approximate width of a label. */
const labelWidth = (text, size) => text.length * size * 0.56 + 10;

/** The area of the map, as a multiple of the area of its labels. */
const ROOM = 5;
/** The number of tags on a wide map; a narrow one has half as many, and no lines between tags that exclude each other. */
const MAX_TAGS = 64, NARROW = 700;

/** Values scaled to 0…1 and averaged with their ranks, so that no part of the map stays empty. */
function evened(values) {
  const low = Math.min(...values), span = Math.max(...values) - low || 1;
  const ranks = new Map([...values].sort((a, b) => a - b).map((value, i) => [value, i / Math.max(1, values.length - 1)]));
  return values.map((value) => ((value - low) / span + ranks.get(value)) / 2);
}

/** Labels moved apart until none overlap. */
function spread(tags, width, height, sizeOf) {
  const xs = evened(tags.map((tag) => tag.x)), ys = evened(tags.map((tag) => tag.y));
  const boxes = tags.map((tag, i) => ({ tag, size: sizeOf(tag), x: 50 + xs[i] * (width - 100), y: 20 + ys[i] * (height - 40) }));
  for (const box of boxes) Object.assign(box, { w: labelWidth(box.tag.shown, box.size), h: box.size * 1.5 });
  for (let round = 0; round < 200; round += 1) {
    let touched = false;
    for (let i = 0; i < boxes.length; i += 1) for (let j = 0; j < i; j += 1) {
      const a = boxes[i], b = boxes[j];
      const dx = (a.w + b.w) / 2 - Math.abs(a.x - b.x), dy = (a.h + b.h) / 2 - Math.abs(a.y - b.y);
      if (dx <= 0 || dy <= 0) continue;
      touched = true;
      if (dy < dx) { const s = (a.y < b.y ? -1 : 1) * dy * 0.3; a.y += s; b.y -= s; } else { const s = (a.x < b.x ? -1 : 1) * dx * 0.3; a.x += s; b.x -= s; }
    }
    for (const box of boxes) {
      box.x = Math.min(width - box.w / 2 - 4, Math.max(box.w / 2 + 4, box.x));
      box.y = Math.min(height - box.h, Math.max(box.h, box.y));
    }
    if (!touched) break;
  }
  return boxes;
}

function TagMap() {
  const { data, error, reload } = useLoad((signal) => get("/tags/map", {}, signal), []);
  const [frame, width] = useWidth();
  const [over, setOver] = useState(null);
  const own = new Set(useCell(tagList).filter((tag) => tag.owner !== "built-in").map((tag) => tag.tag));
  const [boxes, height] = useMemo(() => {
    if (!data || !width) return [[], 0];
    const few = [...data.tags].sort((a, b) => own.has(b.tag) - own.has(a.tag) || b.size - a.size).slice(0, width > NARROW ? MAX_TAGS : MAX_TAGS / 2);
    const largest = Math.max(1, ...few.map((tag) => tag.size));
    const size = (tag) => 12 + 5 * Math.sqrt(tag.size / largest);
    const area = few.reduce((sum, tag) => sum + labelWidth(tag.shown, size(tag)) * 24, 0);
    const tall = Math.max(440, Math.min(width * 0.55, 620), (ROOM * area) / width);
    return [spread(few, width, tall, size), tall];
  }, [data, width, own.size]);
  const at = new Map(boxes.map((box) => [box.tag.tag, box]));
  const heaviest = Math.max(1e-9, ...(data?.links ?? []).map((link) => Math.abs(link.weight)));
  const near = new Set((data?.links ?? []).filter((link) => link.a === over || link.b === over).flatMap((link) => [link.a, link.b]));
  return html`<div class="map" ref=${frame}>
    ${error ? html`<${Problem} error=${error} retry=${reload} />` : !data ? html`<div class="map-wait"><${Waiting} rows=${8} /></div>`
      : !data.tags.length ? html`<${Empty} title="No map yet."><p>The map is drawn from what a model has learnt.</p><div class="row"><a class="button primary" href="#/training">Train a model</a></div><//>` : html`
      <p class="soft hint">Tags that go together are close and joined by a line; a dashed line joins tags that exclude each other. Select one to see more.${boxes.length < data.tags.length ? ` The map shows your own and the most common of ${count(data.tags.length)} tags.` : ""}</p>
      <svg role="group" aria-label="Map of tags" width=${width} height=${height} class=${over ? "has-over" : ""}>
        ${data.links.map((link) => {
          const a = at.get(link.a), b = at.get(link.b);
          const mine = over && (link.a === over || link.b === over);
          if (!a || !b || (width <= NARROW && link.weight < 0 && !mine)) return null;
          return html`<line x1=${a.x} y1=${a.y} x2=${b.x} y2=${b.y} class=${`${link.weight < 0 ? "apart" : "together"}${mine ? " mine" : ""}`} stroke-width=${0.5 + (2.5 * Math.abs(link.weight)) / heaviest} />`;
        })}
        ${boxes.map(({ tag, x, y, w, h, size }) => html`<a key=${tag.tag} href=${href("tags", tag.tag)} class=${`map-tag${tag.tag === over || near.has(tag.tag) ? " near" : ""}`}
          onMouseEnter=${() => setOver(tag.tag)} onMouseLeave=${() => setOver(null)} onFocus=${() => setOver(tag.tag)} onBlur=${() => setOver(null)}>
          <rect x=${x - w / 2} y=${y - h / 2} width=${w} height=${h} rx=${h / 2} />
          <text x=${x} y=${y} font-size=${size} text-anchor="middle" dominant-baseline="central">${tag.shown}</text></a>`)}
      </svg>`}
  </div>`;
}
