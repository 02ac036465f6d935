// Tags to narrow a search by. A click requires a tag, minus excludes it.

import { html, useMemo, useState } from "../vendor/preact.js";
import { tagList, useCell } from "../state.js";
import { byKind, count, KINDS, stands, withTag } from "../words.js";
import { Waiting } from "./bits.js";
import { Icon } from "./icons.js";

const N_SHOWN = 5; // of each kind

/** The counted tags, and those of the query that no track has. */
function withQuery(counted, tags, q) {
  if (!q) return counted;
  const isCounted = new Set(counted.map((facet) => facet.tag));
  const missing = tags.filter(({ tag }) => !isCounted.has(tag) && stands(q, tag) !== null);
  return [...counted, ...missing.map(({ tag, shown, kind }) => ({ tag, shown, kind, n: 0 }))];
}

/** The most common tags of a kind, and those of the query. */
const shortened = (facets, q) =>
  facets.filter((facet, i) => i < N_SHOWN || stands(q, facet.tag) !== null);

export function Facets({ facets: counted, total, q, show, isLoaded }) {
  const [all, setAll] = useState(false);
  const tags = useCell(tagList);
  const facets = useMemo(() => withQuery(counted, tags, q), [counted, q, tags]);
  const setStand = (tag, stand) => show({ q: withTag(q, tag, stand), order: null, unlikely: null });
  if (isLoaded && !facets.length) return null;
  const groups = byKind(facets).map(([kind, ofKind]) => [
    kind,
    all ? ofKind : shortened(ofKind, q),
  ]);
  const nShown = groups.reduce((sum, [, shown]) => sum + shown.length, 0);
  const label =
    total > facets.length
      ? `${count(facets.length)} of ${count(total)} tags`
      : `All ${count(total)} tags`;
  return html`<section aria-labelledby="facets">
    <h2 id="facets">Narrow by tag</h2>
    ${!isLoaded && html`<${Waiting} rows=${8} />`}
    <div class="facet-groups">
      ${groups.map(
        ([kind, shown]) =>
          html`<${FacetGroup} key=${kind} kind=${kind} facets=${shown} q=${q} set=${setStand} />`,
      )}
    </div>
    ${
      (all || nShown < facets.length) &&
      html`<button
      class="quiet facets-all"
      aria-expanded=${String(all)}
      onClick=${() => setAll(!all)}
    >
      ${all ? "Fewer tags" : label}
    </button>`
    }
  </section>`;
}

const FacetGroup = ({ kind, facets, q, set }) =>
  html`<h3 id=${`facets-${kind}`}>${KINDS.get(kind) ?? kind}</h3>
    <ul aria-labelledby=${`facets-${kind}`}>
      ${facets.map(
        (facet) =>
          html`<${Facet}
            key=${facet.tag}
            facet=${facet}
            stand=${stands(q, facet.tag)}
            set=${(stand) => set(facet.tag, stand)}
          />`,
      )}
    </ul>`;

/** One tag; `stand` is true if the query requires it, false if it excludes it, else null. */
function Facet({ facet: { shown, n }, stand, set }) {
  const require = () => set(stand === true ? null : true);
  const exclude = () => set(stand === false ? null : false);
  const onClick = (event) => (event.shiftKey || event.altKey ? exclude() : require());
  const mark = { true: " on", false: " off", null: "" }[stand];
  const exclusion = `Exclude ${shown}`;
  return html`<li class=${"facet" + mark}>
    <button class="facet-add" aria-pressed=${String(stand === true)} onClick=${onClick}>
      <span class="facet-name">${shown}</span>
      <span class="soft num">${count(n)}<span class="vh"> tracks</span></span>
    </button>
    <button
      class="icon-button facet-not"
      aria-pressed=${String(stand === false)}
      aria-label=${exclusion}
      title=${exclusion}
      onClick=${exclude}
    >
      <${Icon} name="minus" />
    </button>
  </li>`;
}
