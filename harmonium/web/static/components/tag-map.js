// A map of the tags: those that go together are close.

import { html, useMemo, useState } from "../vendor/preact.js";
import { get } from "../api.js";
import { href } from "../router.js";
import { tagList, useCell, useLoad, useWidth } from "../state.js";
import { count } from "../words.js";
import { Empty, Problem, Waiting } from "./bits.js";

/** The area of the map, as a multiple of the area of its labels. */
const ROOM = 5;
/** The number of tags on a wide map; a narrow one has half as many. */
const MAX_TAGS = 64;
/** A narrower map has no lines between tags that exclude each other. */
const NARROW = 700;
const LINE_HEIGHT = 24;

/** The approximate width of a label. */
const labelWidth = (text, size) => text.length * size * 0.56 + 10;

/** Values scaled to 0…1 and averaged with their ranks, so that no part of the map stays empty. */
function evened(values) {
  const low = Math.min(...values);
  const span = Math.max(...values) - low || 1;
  const ranks = new Map();
  const sorted = [...values].sort((a, b) => a - b);
  sorted.forEach((value, i) => ranks.set(value, i / Math.max(1, values.length - 1)));
  return values.map((value) => ((value - low) / span + ranks.get(value)) / 2);
}

/** The label of each tag as a box, with its middle at x and y. */
function boxesOf(tags, width, height, sizeOf) {
  const xs = evened(tags.map((tag) => tag.x));
  const ys = evened(tags.map((tag) => tag.y));
  return tags.map((tag, i) => {
    const size = sizeOf(tag);
    return {
      tag,
      size,
      x: 50 + xs[i] * (width - 100),
      y: 20 + ys[i] * (height - 40),
      w: labelWidth(tag.shown, size),
      h: size * 1.5,
    };
  });
}

/** Move two boxes apart if they overlap; whether they did. */
function part(a, b) {
  const dx = (a.w + b.w) / 2 - Math.abs(a.x - b.x);
  const dy = (a.h + b.h) / 2 - Math.abs(a.y - b.y);
  if (dx <= 0 || dy <= 0) return false;
  const axis = dy < dx ? "y" : "x";
  const step = (a[axis] < b[axis] ? -1 : 1) * Math.min(dx, dy) * 0.3;
  a[axis] += step;
  b[axis] -= step;
  return true;
}

function keepInside(box, width, height) {
  box.x = Math.min(width - box.w / 2 - 4, Math.max(box.w / 2 + 4, box.x));
  box.y = Math.min(height - box.h, Math.max(box.h, box.y));
}

/** Boxes moved apart until none overlap. */
function spread(boxes, width, height) {
  for (let round = 0; round < 200; round += 1) {
    let touched = false;
    for (let i = 0; i < boxes.length; i += 1) {
      for (let j = 0; j < i; j += 1) touched = part(boxes[i], boxes[j]) || touched;
    }
    for (const box of boxes) keepInside(box, width, height);
    if (!touched) break;
  }
  return boxes;
}

/** The labels of the most important tags, and the height of the map. */
function layOut(allTags, own, width) {
  const important = (a, b) => own.has(b.tag) - own.has(a.tag) || b.size - a.size;
  const n = width > NARROW ? MAX_TAGS : MAX_TAGS / 2;
  const tags = [...allTags].sort(important).slice(0, n);
  const largest = Math.max(1, ...tags.map((tag) => tag.size));
  const sizeOf = (tag) => 12 + 5 * Math.sqrt(tag.size / largest);
  let area = 0;
  for (const tag of tags) area += labelWidth(tag.shown, sizeOf(tag)) * LINE_HEIGHT;
  const height = Math.max(440, Math.min(width * 0.55, 620), (ROOM * area) / width);
  return { boxes: spread(boxesOf(tags, width, height, sizeOf), width, height), height };
}

export function TagMap() {
  const { data, error, reload } = useLoad((signal) => get("/tags/map", {}, signal), []);
  const [frame, width] = useWidth();
  return html`<div class="map" ref=${frame}>
    ${error && html`<${Problem} error=${error} retry=${reload} />`}
    ${!error && !data && html`<div class="map-wait"><${Waiting} rows=${8} /></div>`}
    ${!error && data && html`<${Drawing} map=${data} width=${width} />`}
  </div>`;
}

function Drawing({ map, width }) {
  const [over, setOver] = useState(null); // the tag in focus
  const tags = useCell(tagList);
  const own = new Set(tags.filter(({ owner }) => owner !== "built-in").map(({ tag }) => tag));
  const { boxes, height } = useMemo(
    () => (width ? layOut(map.tags, own, width) : { boxes: [], height: 0 }),
    [map, width, own.size],
  );
  if (!map.tags.length) {
    return html`<${Empty} title="No map yet.">
      <p>The map is drawn from what a model has learnt.</p>
      <div class="row"><a class="button primary" href="#/training">Train a model</a></div>
    <//>`;
  }
  const linksOver = map.links.filter(({ a, b }) => a === over || b === over);
  const near = new Set(linksOver.flatMap(({ a, b }) => [a, b])).add(over);
  const some = ` The map shows your own tags and the most common of ${count(map.tags.length)} tags.`;
  return html`<p class="soft hint">
      Tags that go together are close, and joined by a line. A dashed line joins tags that exclude
      each other. Select a tag to see its links.${boxes.length < map.tags.length ? some : ""}
    </p>
    <svg
      role="group"
      aria-label="Map of tags"
      width=${width}
      height=${height}
      class=${over ? "has-over" : ""}
    >
      <${Links} links=${map.links} boxes=${boxes} over=${over} width=${width} />
      ${boxes.map(
        (box) =>
          html`<${Label}
            key=${box.tag.tag}
            box=${box}
            near=${near.has(box.tag.tag)}
            setOver=${setOver}
          />`,
      )}
    </svg>`;
}

function Links({ links, boxes, over, width }) {
  const boxOf = new Map(boxes.map((box) => [box.tag.tag, box]));
  const heaviest = Math.max(1e-9, ...links.map(({ weight }) => Math.abs(weight)));
  return links.map((link) => {
    const a = boxOf.get(link.a);
    const b = boxOf.get(link.b);
    const isOver = over && (link.a === over || link.b === over);
    const excludes = link.weight < 0;
    if (!a || !b || (width <= NARROW && excludes && !isOver)) return null;
    return html`<line
      x1=${a.x}
      y1=${a.y}
      x2=${b.x}
      y2=${b.y}
      class=${`${excludes ? "apart" : "together"}${isOver ? " mine" : ""}`}
      stroke-width=${0.5 + (2.5 * Math.abs(link.weight)) / heaviest}
    />`;
  });
}

function Label({ box: { tag, x, y, w, h, size }, near, setOver }) {
  const enter = () => setOver(tag.tag);
  const leave = () => setOver(null);
  return html`<a
    href=${href("tags", tag.tag)}
    class=${near ? "map-tag near" : "map-tag"}
    onMouseEnter=${enter}
    onMouseLeave=${leave}
    onFocus=${enter}
    onBlur=${leave}
  >
    <rect x=${x - w / 2} y=${y - h / 2} width=${w} height=${h} rx=${h / 2} />
    <text x=${x} y=${y} font-size=${size} text-anchor="middle" dominant-baseline="central">
      ${tag.shown}
    </text>
  </a>`;
}
