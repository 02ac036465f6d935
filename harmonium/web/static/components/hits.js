// Lists of tracks.

import { html, useEffect, useRef } from "../vendor/preact.js";
import { href } from "../router.js";
import { byline, clock, count, percent, titleOf } from "../words.js";
import { Bar, Cover, MoreButton, TagChip } from "./bits.js";
import { Icon } from "./icons.js";
import { PlayButton } from "./player.js";

/** A list of tracks; the arrow keys go from title to title. */
export function Hits({ hits, searching = false, by = null, pathFrom = null }) {
  const onKeyDown = (event) => {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    const titles = [...event.currentTarget.querySelectorAll(".hit-title")];
    const row = event.target.closest(".hit");
    const i = titles.findIndex((title) => row?.contains(title));
    const next = titles[i + (event.key === "ArrowDown" ? 1 : -1)];
    if (!next) return;
    next.focus();
    event.preventDefault();
  };
  return html`<ol class=${searching || by ? "hits" : "hits unscored"} onKeyDown=${onKeyDown}>
    ${hits.map(
      (hit) =>
        html`<${Hit}
          key=${hit.id}
          hit=${hit}
          queue=${hits}
          searching=${searching}
          by=${by}
          pathFrom=${pathFrom}
        />`,
    )}
  </ol>`;
}

/** One track, with its probability, or with the audio feature that the list is ordered by. */
export function Hit({ hit, queue, searching = false, by = null, pathFrom = null }) {
  return html`<li class="hit">
    <span class="hit-play">
      <${Cover} track=${hit} />
      <${PlayButton} track=${hit} queue=${queue} />
    </span>
    <div class="hit-what">
      <a class="hit-title" href=${href("track", hit.id)}>${titleOf(hit)}</a>
      <span class="hit-by soft">${byline(hit)}</span>
    </div>
    ${
      hit.tags &&
      html`<div class="hit-tags">
      ${hit.tags.map((tag) => html`<${TagChip} key=${tag.tag} tag=${tag} />`)}
    </div>`
    }
    <div class="hit-score num"><${Score} hit=${hit} searching=${searching} by=${by} /></div>
    <span class="hit-time soft num">${clock(hit.duration)}</span>
    <${Onward} hit=${hit} pathFrom=${pathFrom} />
  </li>`;
}

/** Why a track is in its place: a feature, its probability or its similarity. */
function Score({ hit, searching, by }) {
  if (by) {
    const value = hit.features[by];
    if (value === undefined) return null;
    return html`<${Bar} p=${value} look="small" />
      <span>${value.toFixed(2)}<span class="vh"> ${by}</span></span>`;
  }
  if (!searching) return null;
  const { probability, similarity } = hit;
  if ((probability ?? null) !== null) {
    return html`<${Bar} p=${probability} look="small" />
      <span>${percent(probability)}<span class="vh"> likely</span></span>`;
  }
  if ((similarity ?? null) !== null) {
    return html`<span>${percent(similarity)}<span class="vh"> similar</span></span>`;
  }
  return null;
}

/** Where a track leads: to similar ones, or to the end of a path. */
function Onward({ hit, pathFrom }) {
  if (pathFrom === String(hit.id)) return null;
  const title = titleOf(hit);
  const link = pathFrom
    ? {
        icon: "path",
        href: href("search", null, { from: pathFrom, to: hit.id }),
        label: `Path to ${title}`,
        tip: "Path to this track",
      }
    : {
        icon: "alike",
        href: href("search", null, { like: hit.id }),
        label: `More like ${title}`,
        tip: "More like this",
      };
  return html`<a
    class="icon-button hit-alike"
    href=${link.href}
    aria-label=${link.label}
    title=${link.tip}
  >
    <${Icon} name=${link.icon} />
  </a>`;
}

/** Loads the next page when it becomes visible; also a button for the keyboard. */
export function More({ load, loading, left }) {
  const place = useRef();
  const latest = useRef(load);
  latest.current = () => loading || load();
  useEffect(() => {
    const onSight = (entries) => entries[0].isIntersecting && latest.current();
    const watch = new IntersectionObserver(onSight, { rootMargin: "400px" });
    watch.observe(place.current);
    return () => watch.disconnect();
  }, [left]);
  return html`<div ref=${place}>
    <${MoreButton} load=${load} loading=${loading}>
      ${loading ? "Loading …" : `Show more (${count(left)})`}
    <//>
  </div>`;
}
