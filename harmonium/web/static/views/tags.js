// All tags: a sortable table, and a map of how they relate.

import { html, useMemo, useState } from "../vendor/preact.js";
import { get } from "../api.js";
import { go, href } from "../router.js";
import { changeCount, useChange, useLoad } from "../state.js";
import { count, percent } from "../words.js";
import { Choice, Empty, Pending, Quality, View } from "../components/bits.js";
import { TagMap } from "../components/tag-map.js";

/** [field, heading, class] of the columns */
const COLUMNS = [
  ["shown", "Tag", ""],
  ["kind", "Kind", "wide-only"],
  ["auc", "Quality", ""],
  ["people", "Tagged", "num"],
  ["predicted", "Predicted", "num"],
  ["precision", "Precision", "num wide-only"],
  ["recall", "Recall", "num wide-only"],
];
const TEXTS = ["shown", "kind"];

const SHAPES = [
  ["table", "Table"],
  ["map", "Map"],
];
const OWNERS = [
  ["own", "Your tags"],
  ["built-in", "Built-in"],
  ["all", "All"],
];

export function Tags({ params }) {
  const list = useLoad((signal) => get("/tags", {}, signal), []);
  useChange(changeCount, list.reload);
  const showMap = params.as === "map";
  const choose = (shape) =>
    go("tags", null, { as: shape === "map" ? "map" : null }, { replace: true });
  const choice = html`<${Choice}
    label="Show as"
    value=${showMap ? "map" : "table"}
    options=${SHAPES}
    onChange=${choose}
  />`;
  return html`<${View}
    title="Tags"
    lead="All tags, and how well the model knows them."
    aside=${choice}
  >
    ${
      list.data
        ? html`<${Content} tags=${list.data.tags} showMap=${showMap} />`
        : html`<${Pending} load=${list} rows=${12} />`
    }
  <//>`;
}

function Content({ tags, showMap }) {
  if (!tags.length) {
    return html`<${Empty} title="No tags yet.">
      <p>Open a track and add tags of your own, or train a model.</p>
      <div class="row">
        <a class="button" href="#/search">Tracks</a>
        <a class="button" href="#/training">Training</a>
      </div>
    <//>`;
  }
  return showMap ? html`<${TagMap} />` : html`<${Table} tags=${tags} />`;
}

/** Whether it was learnt here, or people gave it to a track. */
const isOwn = (tag) => tag.owner !== "built-in" || tag.people > 0;

/** Order by a column, -1 for the largest first; tags without a value come last. */
function comparison(column, direction) {
  return (a, b) => {
    const x = a[column] ?? null;
    const y = b[column] ?? null;
    if (x === null || y === null) return (x === null) - (y === null);
    const order = typeof x === "string" ? x.localeCompare(y) : x - y;
    return direction * order || a.shown.localeCompare(b.shown);
  };
}

function Table({ tags }) {
  const [[column, direction], setSort] = useState(["people", -1]);
  const [filter, setFilter] = useState("");
  const [showHidden, setShowHidden] = useState(false);
  const [whose, setWhose] = useState(tags.some(isOwn) ? "own" : "all");
  const wanted = filter.trim().toLocaleLowerCase();
  const rows = useMemo(() => {
    const isShown = (tag) =>
      (showHidden || !tag.hidden) &&
      (whose === "all" || isOwn(tag) === (whose === "own")) &&
      tag.shown.toLocaleLowerCase().includes(wanted);
    return tags.filter(isShown).sort(comparison(column, direction));
  }, [tags, column, direction, wanted, showHidden, whose]);
  const sortBy = (name) => {
    const first = TEXTS.includes(name) ? 1 : -1;
    setSort([name, name === column ? -direction : first]);
  };
  const isMixed = new Set(tags.map(isOwn)).size > 1;
  const nHidden = tags.filter((tag) => tag.hidden).length;
  const [, heading] = COLUMNS.find(([name]) => name === column);
  return html`<div class="tags-tools">
      <label class="vh" for="filter">Filter</label>
      <input
        id="filter"
        type="search"
        placeholder="Filter"
        value=${filter}
        onInput=${(event) => setFilter(event.target.value)}
      />
      ${
        isMixed &&
        html`<${Choice} label="Whose tags" value=${whose} options=${OWNERS} onChange=${setWhose} />`
      }
      ${
        nHidden > 0 &&
        html`<label class="inline">
        <input
          type="checkbox"
          checked=${showHidden}
          onChange=${(event) => setShowHidden(event.target.checked)}
        />${" "}
        Show ${nHidden} hidden
      </label>`
      }
      <${Legend} />
    </div>
    <table class="table tags-table">
      <caption class="vh">Tags, sorted by ${heading}</caption>
      <thead>
        <tr>
          ${COLUMNS.map(
            ([name, label, look]) =>
              html`<${Heading}
                label=${label}
                look=${look}
                direction=${name === column ? direction : 0}
                onClick=${() => sortBy(name)}
              />`,
          )}
        </tr>
      </thead>
      <tbody>
        ${rows.map((tag) => html`<${Row} key=${tag.tag} tag=${tag} />`)}
      </tbody>
    </table>
    ${!rows.length && html`<p class="soft">No tag matches.</p>`}`;
}

const Legend = () =>
  html`<details>
    <summary>What the numbers mean</summary>
    <p class="soft">
      <b>Quality</b>: good, fair or poor, by precision and recall. The number is the AUC: how well
      the model ranks tracks with the tag before those without (0.5 is chance, 1 is perfect).${" "}
      <b>Tagged</b>: tracks that people gave the tag.${" "}
      <b>Predicted</b>: other tracks that the model gives it.${" "}
      <b>Precision</b>: the share of its predictions that are right.${" "}
      <b>Recall</b>: the share of the tag's tracks that it finds. All are measured on held-out
      tracks.
    </p>
  </details>`;

/** The heading of a column; `direction` is 0 if the table is not sorted by it. */
function Heading({ label, look, direction, onClick }) {
  const order = { 1: "ascending", "-1": "descending" }[direction];
  const mark = { ascending: "▲", descending: "▼" }[order] ?? "";
  return html`<th class=${look} scope="col" aria-sort=${order}>
    <button class="sort" onClick=${onClick}>
      ${label}<span aria-hidden="true" class="sort-mark">${mark}</span>
    </button>
  </th>`;
}

const Row = ({ tag }) =>
  html`<tr class=${tag.hidden ? "hidden-tag" : ""}>
    <th scope="row">
      <a href=${href("tags", tag.tag)}>${tag.shown}</a>
      ${tag.hidden && html`${" "}<span class="soft">hidden</span>`}
    </th>
    <td class="wide-only soft">${tag.kind}</td>
    <td><${Quality} auc=${tag.auc} word=${tag.quality ?? "–"} /></td>
    <td class="num">${count(tag.people)}</td>
    <td class="num">${count(tag.predicted)}</td>
    <td class="num wide-only">${percent(tag.precision)}</td>
    <td class="num wide-only">${percent(tag.recall)}</td>
  </tr>`;
