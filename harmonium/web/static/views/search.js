// Search and browse; the first view.

import { html, useEffect, useMemo, useRef, useState } from "../vendor/preact.js";
import { address, get } from "../api.js";
import { go, href } from "../router.js";
import { announce, cell, changeCount, library, tagList, useCell, useChange, useLoad } from "../state.js";
import { byKind, byline, clock, count, FEATURES, KINDS, listed, percent, quoted, counted, stands, titleOf, withTag } from "../words.js";
import { Bar, Cover, Empty, IconButton, Problem, TagChip, View, Waiting } from "../components/bits.js";
import { Icon } from "../components/icons.js";
import { News } from "../components/news.js";
import { PlayButton } from "../components/player.js";
import { SavedSearches, SaveDialog } from "../components/saved.js";
import { TagField } from "../components/tag-field.js";

const PAGE = 50;
const FACETS = 5; // of each kind
const STOPS = [10, 20, 40, 80]; // of a path
const SMOOTH = 50; // tracks of a smooth order
const MAX_PLAYLIST = 10000;
/** Longer lists are not loaded again when the library changes. */
const MAX_AGAIN = 500;

/** The last result, which is shown at once when the view is opened again. */
const found = cell({ key: null, total: 0, hits: [], facets: [] });

/** The parameters of the routes search, facets and playlist. */
const filterOf = ({ q, name, like, from, to, stops, order, min_probability, owner, predicted }) => ({
  q, name, like, owner, predicted, min_probability: min_probability ?? minProbability(q),
  ...(from && to ? { from, to, stops: stops ?? STOPS[1] } : order === "smooth" ? { order, stops: stops ?? SMOOTH } : {}),
});

/** The lowest probability to show: 0.3 for one tag, and less for several, whose probabilities multiply. */
function minProbability(q) {
  if (!q) return null;
  const wanted = q.replace(/(^|[\s(])(-|NOT\s+)("[^"]*"|[^\s()]+)/g, " ").match(/"[^"]*"|[^\s()]+/g) ?? [];
  const tags = wanted.includes("OR") ? 1 : wanted.filter((piece) => piece !== "AND" && !/^\w+:[<>.\d]/.test(piece)).length;
  return Math.max(0.05, 0.3 ** Math.max(1, tags)).toFixed(2);
}

export function Search({ params }) {
  const key = JSON.stringify(params);
  const state = useCell(found);
  const [error, setError] = useState(null);
  const [loading, setLoading] = useState(state.key !== key);
  const latest = useRef(key);
  latest.current = key;
  const isPath = !!(params.from && params.to);
  const most = isPath || params.order === "smooth" ? Infinity : Number(params.stops ?? Infinity); // of a saved search
  const query = { ...filterOf(params), order: isPath ? null : params.order || (params.like ? "likeness" : params.q ? "probability" : "name") };

  const load = async (offset, limit = PAGE, again = false) => {
    setLoading(!again);
    try {
      const [page, facets] = await Promise.all([
        get("/search", { ...query, offset, limit: Math.min(limit, most - offset), features: true }),
        offset ? { facets: found.value.facets, total: found.value.n_tags } : get("/facets", filterOf(params)),
      ]);
      if (latest.current !== key) return;
      const before = offset ? found.value.hits : [];
      const total = Math.min(page.total, most);
      found.set({ ...page, total, n_left_out: page.total - total, key, hits: [...before, ...page.hits], facets: facets.facets, n_tags: facets.total });
      setError(null);
      if (!again) announce(offset ? `${page.hits.length} more tracks` : counted(total, "track"));
    } catch (problem) {
      if (latest.current === key && problem.status !== 401) setError(problem);
    }
    if (latest.current === key) setLoading(false);
  };
  useEffect(() => {
    setError(null);
    if (found.value.key !== key) load(0);
    else setLoading(false);
  }, [key]);
  useChange(changeCount, () => found.value.hits.length <= MAX_AGAIN && load(0, Math.max(PAGE, found.value.hits.length), true));

  const show = (change) => go("search", null, { ...params, ...change });
  const here = state.key === key ? state : null;
  const by = (query.order ?? "").replace(/^-/, "");
  const [saving, setSaving] = useState(false);
  const features = FEATURES.has(by) || state.hits.some((hit) => "energy" in hit.features) ? [...FEATURES.keys()] : [];
  return html`<${View} title="Search" hidden=${true} wide=${true}>
    <${News} />
    <${SearchBox} params=${params} show=${show} features=${features.length > 0} />
    <div class="search">
      <div class="facets"><${SavedSearches} />
      <${Facets} facets=${state.facets} total=${state.n_tags} q=${params.q ?? ""} show=${show} known=${state.key !== null} /></div>
      <section class="results" aria-labelledby="found" aria-busy=${String(loading)}>
        ${error ? html`<h2 id="found" class="vh">Results</h2><${SearchProblem} error=${error} params=${params} retry=${() => load(0)} />` : html`
          <div class="results-head">
            <h2 id="found">${state.key === null ? "Tracks" : `${count(state.total)} ${state.total === 1 ? "track" : "tracks"}`}</h2>
            <${Around} params=${params} />
            <div class="results-tools">
              ${isPath ? html`<label class="inline">Stops <select value=${query.stops} onChange=${(event) => show({ stops: event.target.value })}>
                ${STOPS.map((n) => html`<option value=${n}>${n}</option>`)}</select></label>` : html`<label class="inline">Order <select value=${query.order} onChange=${(event) => show({ order: event.target.value })}>
                ${params.q && html`<option value="probability">most likely first</option>`}
                ${params.like && html`<option value="likeness">most similar first</option>`}
                <option value="name">by name</option>
                <option value="added">newest first</option>
                <option value="smooth">smooth by sound</option>
                ${features.length > 0 && [["", "most"], ["-", "least"]].map(([sign, word]) => html`<optgroup label=${`${word} first`}>
                  ${features.map((name) => html`<option value=${sign + name}>${word} ${name}</option>`)}</optgroup>`)}
              </select></label>`}
              <button class="button quiet" onClick=${() => setSaving(true)}><${Icon} name="plus" /> <span class="word">Save</span></button>
              <a class="button quiet" href=${address("/playlist", { ...query, limit: most < Infinity ? Math.min(most, MAX_PLAYLIST) : null })} download><${Icon} name="download" /> <span class="word">Playlist</span></a>
            </div>
          </div>
          ${state.key === null ? html`<${Waiting} rows=${10} />` : html`
            <${Notes} state=${state} params=${params} show=${show} />
            ${state.total === 0 && here ? html`<${Nothing} params=${params} show=${show} />`
              : html`<${Hits} state=${state} searching=${!!(params.q || params.like || isPath)} from=${params.from && !params.to ? params : null} by=${FEATURES.has(by) ? by : null} />`}
            ${here && state.hits.length < state.total && html`<${More} load=${() => load(state.hits.length)} loading=${loading} left=${state.total - state.hits.length} />`}`}
        `}
      </section>
    </div>
    ${saving && html`<${SaveDialog} query=${query} most=${query.stops ?? params.stops} suggested=${params.q ?? params.name ?? (isPath ? "Path" : "")} onClose=${() => setSaving(false)} />`}
  <//>`;
}

/** The words before the caret that may start a tag: after brackets, quotes, minus and operators. */
export function lastPiece(text, all) {
  const inQuotes = (text.match(/"/g) ?? []).length % 2 === 1;
  if (inQuotes) return text.slice(text.lastIndexOf('"') + 1);
  const run = text.match(/(?:^|[\s("-]|\b(?:AND|OR|NOT)\s)([^()"]*)$/)?.[1] ?? "";
  const words = run.replace(/^.*\b(AND|OR|NOT)\s+/, "").split(/\s+/);
  for (let i = 0; i < words.length; i += 1) { // The longest ending that some tag starts with.
    const piece = words.slice(i).join(" ").replace(/^-/, "");
    if (piece && all.some((tag) => tag.tag.startsWith(piece.toLocaleLowerCase()))) return piece;
  }
  return words[words.length - 1].replace(/^-/, "");
}

function SearchBox({ params, show, features }) {
  const all = useCell(library);
  const [text, setText] = useState(params.q ?? params.name ?? "");
  const field = useRef();
  useEffect(() => { // A space at the end stays while typing.
    const asked = params.q ?? params.name ?? "";
    setText((old) => (old.trim() === asked.trim() ? old : asked));
  }, [params.q, params.name]);
  const usual = { order: null, stops: null, min_probability: null, owner: null, predicted: null };
  const search = (q) => show({ ...usual, q: q.trim(), name: null });
  const byName = (name) => show({ ...usual, name: name.trim(), q: null });
  const complete = (whole, tag) => {
    const piece = lastPiece(whole, tags());
    const start = whole.slice(0, whole.length - piece.length).replace(/"$/, "");
    return `${start}${quoted(tag.tag)} `;
  };
  return html`<form role="search" class="search-box" onSubmit=${(event) => event.preventDefault()}>
    <${Icon} name="search" />
    <${TagField} id="q" kind="big" label="Search for tags, titles or artists" described="search-help" placeholder="Tags, as in mellow piano -live" value=${text} inputRef=${field}
      onInput=${setText} onEnter=${(value) => (params.name && value.trim() === params.name ? byName(value) : search(value))}
      begun=${(value) => lastPiece(value, tags())} complete=${complete} onComplete=${search}
      extra=${(value) => (value.trim().length > 1 ? [{ label: `Titles and artists with “${value.trim()}”`, run: () => byName(value) }] : [])} />
    ${text && html`<${IconButton} icon="close" label="Clear the search" type="button" onClick=${() => { setText(""); go("search"); field.current.focus(); }} />`}
    <p id="search-help" class="search-help soft">${all ? `${counted(all.tracks, "track")}. ` : ""}Combine tags with <b>AND</b>, <b>OR</b>, <b>NOT</b>; <b>-live</b> excludes a tag${features && html`; <b>energy:>0.7</b> searches by an audio feature`}.</p>
  </form>`;
}
const tags = () => tagList.value;

/** What the result is based on besides tags: a name, or a similar track. */
function Around({ params }) {
  const ids = [params.like ?? params.from, params.to];
  const tracks = useLoad((signal) => Promise.all(ids.map((id) => (id ? get(`/tracks/${id}`, {}, signal) : null))), ids);
  const name = (i) => html`<a href=${href("track", ids[i])}>${tracks.data?.[i] ? titleOf(tracks.data[i]) : "…"}</a>`;
  const stop = (label) => html`<${IconButton} icon="close" label=${label} onClick=${() => go("search", null, { ...params, like: null, from: null, to: null, stops: null, order: null })} />`;
  if (params.like) {
    return html`<span class="around"><span>similar to ${name(0)}</span>
      ${stop("Stop searching by similarity")} <a href=${href("search", null, { from: params.like })}>Path from here …</a></span>`;
  }
  if (params.from) {
    return html`<span class="around"><span>${params.to ? html`on a path by sound from ${name(0)} to ${name(1)}` : html`choose where the path from ${name(0)} ends (→)`}</span>
      ${stop("Leave the path")}</span>`;
  }
  return params.name ? html`<span class="around">with “${params.name}” in title, artist or file name</span>` : null;
}

/** Tags to narrow the result by. A click requires a tag, minus excludes it. */
function Facets({ facets: counted, total, q, show, known }) {
  const [all, setAll] = useState(false);
  const tags = useCell(tagList);
  const facets = useMemo(() => { // A tag of the query stays visible, even if no track has it.
    const there = new Set(counted.map((facet) => facet.tag));
    return [...counted, ...tags.filter((tag) => q && !there.has(tag.tag) && stands(q, tag.tag) !== null).map(({ tag, shown, kind }) => ({ tag, shown, kind, n: 0 }))];
  }, [counted, q, tags]);
  const set = (tag, how) => show({ q: withTag(q, tag, how), order: null });
  const onClick = (event, tag, stand) => {
    if (event.shiftKey || event.altKey) set(tag, stand === false ? null : false);
    else set(tag, stand === true ? null : true);
  };
  const groups = byKind(facets).map(([kind, some]) => [kind, all ? some : some.filter((facet, i) => i < FACETS || stands(q, facet.tag) !== null)]);
  const nShown = groups.reduce((sum, [, some]) => sum + some.length, 0);
  if (known && !facets.length) return null;
  return html`<section aria-labelledby="facets">
    <h2 id="facets">Narrow by tag</h2>
    ${!known && html`<${Waiting} rows=${8} />`}
    <div class="facet-groups">${groups.map(([kind, some]) => html`<h3 id=${`facets-${kind}`}>${KINDS.get(kind) ?? kind}</h3><ul key=${kind} aria-labelledby=${`facets-${kind}`}>${some.map((facet) => {
      const stand = stands(q, facet.tag);
      return html`<li key=${facet.tag} class=${stand === true ? "facet on" : stand === false ? "facet off" : "facet"}>
        <button class="facet-add" aria-pressed=${String(stand === true)} onClick=${(event) => onClick(event, facet.tag, stand)}>
          <span class="facet-name">${facet.shown}</span><span class="soft num">${count(facet.n)}<span class="vh"> tracks</span></span></button>
        <button class="icon-button facet-not" aria-pressed=${String(stand === false)} aria-label=${`Exclude ${facet.shown}`} title=${`Exclude ${facet.shown}`}
          onClick=${() => set(facet.tag, stand === false ? null : false)}><${Icon} name="minus" /></button></li>`;
    })}</ul>`)}</div>
    ${(all || nShown < facets.length) && html`<button class="quiet facets-all" aria-expanded=${String(all)} onClick=${() => setAll(!all)}>${all ? "Fewer tags" : total > facets.length ? `${count(facets.length)} of ${count(total)} tags` : `All ${count(total)} tags`}</button>`}
  </section>`;
}

function Notes({ state, params, show }) {
  const notes = [];
  if (params.predicted) notes.push(html`<p>Only tracks that the model adds. <button class="link" onClick=${() => show({ predicted: null })}>Show all</button></p>`);
  if (params.owner) notes.push(html`<p>Only tags ${params.owner === "own" ? "learnt from this library" : "of the built-in model"}. <button class="link" onClick=${() => show({ owner: null })}>Use all</button></p>`);
  if (state.people_only?.length) {
    notes.push(html`<p>The model has not learnt ${listed(state.people_only.map((tag) => `“${tag}”`))}; only tracks that people tagged are found.</p>`);
  }
  if (state.n_left_out > 0) {
    notes.push(html`<p>The first ${count(state.total)} of ${counted(state.total + state.n_left_out, "track")}. <button class="link" onClick=${() => show({ stops: null })}>Show all</button></p>`);
  } else if (state.n_below > 0) {
    notes.push(html`<p>${counted(state.n_below, "less likely track")} not shown. <button class="link" onClick=${() => show({ min_probability: "0.01" })}>Show ${state.n_below === 1 ? "it" : "them"}</button></p>`);
  }
  return notes.length ? html`<div class="notes soft">${notes}</div>` : null;
}

function Nothing({ params, show }) {
  return html`<${Empty} title="No tracks found.">
    <p>${params.name ? "No title, artist or file name has these words." : "Use fewer tags, or combine them with OR."}</p>
    <div class="row"><a class="button" href="#/search">Show all tracks</a>
      ${params.name && html`<button onClick=${() => show({ q: params.name, name: null })}>Search for the tag instead</button>`}</div>
  <//>`;
}

function SearchProblem({ error, params, retry }) {
  const name = (params.q ?? "").replace(/["()]/g, "").trim();
  return html`<${Problem} error=${error} retry=${error.status >= 400 && error.status < 500 ? null : retry}>
    ${error.code === "unknown_tag" && name && html`<a class="button" href=${href("search", null, { name })}>Titles and artists with “${name}”</a>`}
    ${params.q && html`<a class="button quiet" href="#/search">Show all tracks</a>`}
  <//>`;
}

function Hits({ state, searching, by, from }) {
  const onKeyDown = (event) => {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    const titles = [...event.currentTarget.querySelectorAll(".hit-title")];
    const row = event.target.closest(".hit");
    const next = titles[titles.findIndex((title) => row?.contains(title)) + (event.key === "ArrowDown" ? 1 : -1)];
    if (next) { next.focus(); event.preventDefault(); }
  };
  return html`<ol class=${searching || by ? "hits" : "hits unscored"} onKeyDown=${onKeyDown}>
    ${state.hits.map((hit) => html`<${Hit} key=${hit.id} hit=${hit} queue=${state.hits} searching=${searching} by=${by} from=${from} />`)}
  </ol>`;
}

/** One track of a list, with its probability, or with the audio feature that it is ordered by. */
export function Hit({ hit, queue, searching = false, by = null, from = null }) {
  const score = hit.probability ?? null, similarity = hit.similarity ?? null;
  return html`<li class="hit">
    <span class="hit-play"><${Cover} track=${hit} /><${PlayButton} track=${hit} queue=${queue} /></span>
    <div class="hit-what">
      <a class="hit-title" href=${href("track", hit.id)}>${titleOf(hit)}</a>
      <span class="hit-by soft">${byline(hit)}</span>
    </div>
    ${hit.tags && html`<div class="hit-tags">${hit.tags.map((tag) => html`<${TagChip} key=${tag.tag} tag=${tag} />`)}</div>`}
    <div class="hit-score num">${by ? by in hit.features && html`<${Bar} p=${hit.features[by]} kind="small" /><span>${hit.features[by].toFixed(2)}<span class="vh"> ${by}</span></span>`
      : searching && score !== null ? html`<${Bar} p=${score} kind="small" /><span>${percent(score)}<span class="vh"> likely</span></span>`
      : searching && similarity !== null ? html`<span>${percent(similarity)}<span class="vh"> similar</span></span>` : null}</div>
    <span class="hit-time soft num">${clock(hit.duration)}</span>
    ${from ? String(hit.id) !== from.from && html`<a class="icon-button hit-alike" href=${href("search", null, { from: from.from, to: hit.id })} aria-label=${`Path to ${titleOf(hit)}`} title="Path to this track"><${Icon} name="path" /></a>`
      : html`<a class="icon-button hit-alike" href=${href("search", null, { like: hit.id })} aria-label=${`More like ${titleOf(hit)}`} title="More like this"><${Icon} name="alike" /></a>`}
  </li>`;
}

/** Loads the next page when it becomes visible; also a button for the keyboard. */
function More({ load, loading, left }) {
  const button = useRef();
  const latest = useRef(load);
  latest.current = () => loading || load();
  useEffect(() => {
    const watch = new IntersectionObserver((entries) => entries[0].isIntersecting && latest.current(), { rootMargin: "400px" });
    watch.observe(button.current);
    return () => watch.disconnect();
  }, [left]);
  return html`<button ref=${button} class="more" onClick=${load} aria-disabled=${String(loading)}>${loading ? "Loading …" : `Show more (${count(left)})`}</button>`;
}
