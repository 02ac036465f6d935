// Precision against recall of a tag; a slider moves along the thresholds.

import { html, useMemo, useState } from "../vendor/preact.js";
import { href } from "../router.js";
import { useWidth } from "../state.js";
import { percent } from "../words.js";
import { Range } from "./bits.js";

const MIN_RECALL = 0.1; // With hardly any track found, the precision is chance.
const HEIGHT = 240;
const LEFT = 40;
const RIGHT = 20;
const TOP = 12;
const BOTTOM = 34;
const TICKS = [0, 0.25, 0.5, 0.75, 1];

/** The points that are shown, by threshold; among them the tag's own. */
const pointsOf = (tag) =>
  (tag.curve ?? [])
    .filter((point) => point.recall >= MIN_RECALL || point.threshold === tag.threshold)
    .sort((a, b) => a.threshold - b.threshold);

/** The index of the point at the tag's threshold. */
function indexOf(tag, points) {
  const gap = (i) => Math.abs(points[i].threshold - (tag.threshold ?? 0.5));
  return points.reduce((best, _, i) => (gap(i) < gap(best) ? i : best), 0);
}

/** The precision that is certain at a point. */
const certain = (point) => Math.min(point.low ?? 1, point.precision);

function sentence(point) {
  const atLeast = certain(point) < point.precision ? ` (at least ${percent(point.low)})` : "";
  const found = `it finds ${percent(point.recall)} of the tracks`;
  return `${percent(point.precision)} of its predictions are right${atLeast}; ${found}.`;
}

export function PrecisionCurve({ tag }) {
  const points = useMemo(() => pointsOf(tag), [tag]);
  const [chosen, setChosen] = useState(null);
  const [frame, width] = useWidth();
  if (points.length < 2) {
    return html`<section class="card" ref=${frame}>
      <h2>Precision and recall</h2>
      <p class="soft">
        The model has not learnt this tag well enough to predict it. Give the tag to about fifteen
        tracks, then train.
      </p>
    </section>`;
  }
  const i = Math.min(chosen ?? indexOf(tag, points), points.length - 1);
  const point = points[i];
  const text = sentence(point);
  const precision = Math.max(0.5, Math.min(0.99, point.low ?? point.precision));
  return html`<section class="card" aria-labelledby="curve">
    <h2 id="curve">Precision and recall</h2>
    <div ref=${frame}></div>
    <${Chart} points=${points} point=${point} width=${width} text=${text} />
    <label class="slider">
      Threshold <b class="num">${percent(point.threshold)}</b>
      <${Range}
        min=${0}
        max=${points.length - 1}
        value=${i}
        onInput=${setChosen}
        aria-valuetext=${`${percent(point.threshold)}: ${text}`}
      />
    </label>
    <p>${text}</p>
    <p>
      <a href=${href("write", null, { precision: precision.toFixed(2) })}>
        Write tags with this precision
      </a>
    </p>
  </section>`;
}

function Chart({ points, point, width, text }) {
  const x = (recall) => LEFT + recall * (width - LEFT - RIGHT);
  const y = (precision) => TOP + (1 - precision) * (HEIGHT - TOP - BOTTOM);
  const place = (recall, precision) => `${x(recall).toFixed(1)} ${y(precision).toFixed(1)}`;
  const line = "M" + points.map((p) => place(p.recall, p.precision)).join("L");
  const below = [...points].reverse().map((p) => place(p.recall, certain(p)));
  const band = `${line}L${below.join("L")}Z`;
  const grid = TICKS.map(
    (tick) => html`
      <line class="grid" x1=${LEFT} x2=${width - RIGHT} y1=${y(tick)} y2=${y(tick)} />
      <text
        class="tick"
        x=${LEFT - 6}
        y=${y(tick)}
        text-anchor="end"
        dominant-baseline="central"
      >
        ${100 * tick}%
      </text>
      <text class="tick" x=${x(tick)} y=${HEIGHT - BOTTOM + 16} text-anchor="middle">
        ${100 * tick}%
      </text>
    `,
  );
  const middle = (LEFT + width - RIGHT) / 2;
  const cross = x(point.recall);
  return html`<svg
    class="chart"
    width=${width}
    height=${HEIGHT}
    role="img"
    aria-label=${`Precision against recall. ${text}`}
  >
    ${grid}
    <text class="tick" x=${middle} y=${HEIGHT - 3} text-anchor="middle">recall</text>
    <path class="band" d=${band} />
    <path class="curve" d=${line} />
    <line class="cross" x1=${cross} x2=${cross} y1=${TOP} y2=${HEIGHT - BOTTOM} />
    <circle cx=${cross} cy=${y(point.precision)} r="6" />
  </svg>`;
}
