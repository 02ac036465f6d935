// Search and browse; the first view.

import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { address, get } from "../api.js";
import { go, href } from "../router.js";
import { announce, cell, changeCount, useCell, useChange, useLoad } from "../state.js";
import { count, counted, FEATURES, listed, titleOf } from "../words.js";
import { Empty, IconButton, Problem, View, Waiting } from "../components/bits.js";
import { Facets } from "../components/facets.js";
import { Hits, More } from "../components/hits.js";
import { Icon } from "../components/icons.js";
import { News } from "../components/news.js";
import { SavedSearches, SaveDialog } from "../components/saved.js";
import { SearchBox } from "../components/search-box.js";

const PAGE = 50;
const STOPS = [10, 20, 40, 80]; // of a path
const SMOOTH = 50; // tracks of a smooth order
const MAX_PLAYLIST = 10000;
/** Longer lists are not loaded again when the library changes. */
const MAX_RELOADED = 500;

/** The last result, which is shown at once when the view is opened again. */
const lastResult = cell({ key: null, total: 0, nListed: 0, hits: [], facets: [] });

const isPath = ({ from, to }) => !!(from && to);

/** The parameters of the routes search, facets and playlist. */
function filterOf(params) {
  const { q, name, like, from, to, order, owner, predicted } = params;
  const filter = {
    q,
    name,
    like,
    owner,
    predicted,
    min_probability: params.min_probability,
  };
  if (isPath(params)) return { ...filter, from, to, stops: params.stops ?? STOPS[1] };
  if (order === "smooth") return { ...filter, order, stops: params.stops ?? SMOOTH };
  return filter;
}

function orderOf(params) {
  if (isPath(params)) return null;
  if (params.order) return params.order;
  if (params.like) return "likeness";
  return params.q ? "probability" : "name";
}

/** The most tracks that a saved search shows. */
function limitOf(params) {
  if (isPath(params) || params.order === "smooth") return Infinity;
  return Number(params.stops ?? Infinity);
}

/** Search, and load further pages: {state, error, loading, load}. */
function useSearch(params) {
  const key = JSON.stringify(params);
  const state = useCell(lastResult);
  const [error, setError] = useState(null);
  const [loading, setLoading] = useState(state.key !== key);
  const latest = useRef(key);
  latest.current = key;
  const query = { ...filterOf(params), order: orderOf(params) };
  const most = limitOf(params);

  const fetchPage = (offset, limit) =>
    get("/search", { ...query, offset, limit: Math.min(limit, most - offset), features: true });
  const fetchFacets = async (offset) => {
    if (!offset) return get("/facets", filterOf(params));
    return { facets: lastResult.value.facets, total: lastResult.value.n_tags };
  };
  const load = async (offset, limit = PAGE, again = false) => {
    setLoading(!again);
    try {
      const [page, { facets, total: nTags }] = await Promise.all([
        fetchPage(offset, limit),
        fetchFacets(offset),
      ]);
      if (latest.current !== key) return;
      const before = offset ? lastResult.value.hits : [];
      const total = Math.min(page.total, most);
      // Less likely tracks follow those that match.
      const nListed = Math.min(total + (params.unlikely ? page.n_below : 0), most);
      lastResult.set({
        ...page,
        key,
        total,
        nListed,
        n_left_out: page.total - total,
        hits: [...before, ...page.hits].slice(0, nListed),
        facets,
        n_tags: nTags,
      });
      setError(null);
      if (!again) {
        announce(offset ? `${page.hits.length} more tracks` : counted(total, "track"));
      }
    } catch (problem) {
      if (latest.current === key && problem.status !== 401) setError(problem);
    }
    if (latest.current === key) setLoading(false);
  };
  useEffect(() => {
    setError(null);
    if (lastResult.value.key !== key) load(0);
    else setLoading(false);
  }, [key]);
  useChange(changeCount, () => {
    const nHits = lastResult.value.hits.length;
    if (nHits <= MAX_RELOADED) load(0, Math.max(PAGE, nHits), true);
  });
  return { state, query, most, error, loading, load, isCurrent: state.key === key };
}

export function Search({ params }) {
  const search = useSearch(params);
  const { state, query, most, error, loading, load } = search;
  const [saving, setSaving] = useState(false);
  const show = (change) => go("search", null, { ...params, ...change });
  const by = (query.order ?? "").replace(/^-/, "");
  const hasFeatures = FEATURES.has(by) || state.hits.some((hit) => "energy" in hit.features);
  const suggested = params.q ?? params.name ?? (isPath(params) ? "Path" : "");
  return html`<${View} title="Search" hidden=${true} wide=${true}>
    <${News} />
    <${SearchBox} params=${params} show=${show} hasFeatures=${hasFeatures} />
    <div class="search">
      <div class="facets">
        <${SavedSearches} />
        <${Facets}
          facets=${state.facets}
          total=${state.n_tags}
          q=${params.q ?? ""}
          show=${show}
          isLoaded=${state.key !== null}
        />
      </div>
      <section class="results" aria-labelledby="found" aria-busy=${String(loading)}>
        ${
          error
            ? html`<h2 id="found" class="vh">Results</h2>
              <${SearchProblem} error=${error} params=${params} retry=${() => load(0)} />`
            : html`<div class="results-head">
                <h2 id="found">
                  ${state.key === null ? "Tracks" : counted(state.total, "track")}
                </h2>
                <${Around} params=${params} />
                <div class="results-tools">
                  ${
                    isPath(params)
                      ? html`<${StopsMenu} stops=${query.stops} show=${show} />`
                      : html`<${OrderMenu}
                        order=${query.order}
                        params=${params}
                        show=${show}
                        hasFeatures=${hasFeatures}
                      />`
                  }
                  <button class="button quiet" onClick=${() => setSaving(true)}>
                    <${Icon} name="plus" /> <span class="word">Save</span>
                  </button>
                  <${PlaylistLink} query=${query} most=${most} />
                </div>
              </div>
              ${
                state.key === null
                  ? html`<${Waiting} rows=${10} />`
                  : html`<${Results} search=${search} params=${params} show=${show} by=${by} />`
              }`
        }
      </section>
    </div>
    ${
      saving &&
      html`<${SaveDialog}
      query=${query}
      most=${query.stops ?? params.stops}
      suggested=${suggested}
      onClose=${() => setSaving(false)}
    />`
    }
  <//>`;
}

const StopsMenu = ({ stops, show }) =>
  html`<label class="inline">
    Stops${" "}
    <select value=${stops} onChange=${(event) => show({ stops: event.target.value })}>
      ${STOPS.map((n) => html`<option value=${n}>${n}</option>`)}
    </select>
  </label>`;

const OrderMenu = ({ order, params, show, hasFeatures }) =>
  html`<label class="inline">
    Order${" "}
    <select value=${order} onChange=${(event) => show({ order: event.target.value })}>
      ${params.q && html`<option value="probability">most likely first</option>`}
      ${params.like && html`<option value="likeness">most similar first</option>`}
      <option value="name">by name</option>
      <option value="added">newest first</option>
      <option value="smooth">smooth by sound</option>
      ${hasFeatures && html`<${FeatureOrders} sign="" word="most" />`}
      ${hasFeatures && html`<${FeatureOrders} sign="-" word="least" />`}
    </select>
  </label>`;

const FeatureOrders = ({ sign, word }) =>
  html`<optgroup label=${`${word} first`}>
    ${[...FEATURES.keys()].map(
      (name) => html`<option value=${sign + name}>${word} ${name}</option>`,
    )}
  </optgroup>`;

function PlaylistLink({ query, most }) {
  const limit = most < Infinity ? Math.min(most, MAX_PLAYLIST) : null;
  return html`<a class="button quiet" href=${address("/playlist", { ...query, limit })} download>
    <${Icon} name="download" /> <span class="word">Playlist</span>
  </a>`;
}

function Results({ search, params, show, by }) {
  const { state, loading, load, isCurrent } = search;
  const left = state.nListed - state.hits.length;
  const nothing = state.nListed === 0 && isCurrent;
  const pathFrom = params.to ? null : (params.from ?? null);
  return html`<${Notes} state=${state} params=${params} show=${show} />
    ${
      nothing
        ? html`<${Nothing} params=${params} show=${show} />`
        : html`<${Hits}
          hits=${state.hits}
          searching=${!!(params.q || params.like || isPath(params))}
          by=${FEATURES.has(by) ? by : null}
          pathFrom=${pathFrom}
        />`
    }
    ${
      isCurrent &&
      left > 0 &&
      html`<${More} load=${() => load(state.hits.length)} loading=${loading} left=${left} />`
    }`;
}

/** What the result is based on besides tags: a name, a similar track, or a path. */
function Around({ params }) {
  const ids = [params.like ?? params.from, params.to];
  const load = (signal) =>
    Promise.all(ids.map((id) => (id ? get(`/tracks/${id}`, {}, signal) : null)));
  const { data: tracks } = useLoad(load, ids);
  const link = (i) =>
    html`<a href=${href("track", ids[i])}>${tracks?.[i] ? titleOf(tracks[i]) : "…"}</a>`;
  if (params.like) {
    return html`<span class="around">
      <span>similar to ${link(0)}</span>
      <${LeaveButton} label="Stop searching by similarity" params=${params} />${" "}
      <a href=${href("search", null, { from: params.like })}>Path from here …</a>
    </span>`;
  }
  if (params.from) {
    const path = params.to
      ? html`path by sound from ${link(0)} to ${link(1)}`
      : html`choose where the path from ${link(0)} ends (→)`;
    return html`<span class="around">
      <span>${path}</span>
      <${LeaveButton} label="Leave the path" params=${params} />
    </span>`;
  }
  if (params.name) {
    return html`<span class="around">with “${params.name}” in title, artist or file name</span>`;
  }
  return null;
}

const NO_TRACKS = { like: null, from: null, to: null, stops: null, order: null };

const LeaveButton = ({ label, params }) =>
  html`<${IconButton}
    icon="close"
    label=${label}
    onClick=${() => go("search", null, { ...params, ...NO_TRACKS })}
  />`;

/** What limits the result, each with a way to lift the limit. */
function Notes({ state, params, show }) {
  const { people_only, n_left_out, n_below, n_other, total } = state;
  const notes = [];
  const add = (text, button = null, change = {}) =>
    notes.push(
      html`<p>
        ${text}
        ${button && html`${" "}<button class="link" onClick=${() => show(change)}>${button}</button>`}
      </p>`,
    );
  if (params.predicted) add("Only predicted matches.", "Show all", { predicted: null });
  if (params.owner) {
    const whose = params.owner === "own" ? "learnt from your library" : "of the built-in model";
    add(`Only tags ${whose}.`, "Use all", { owner: null });
  }
  if (people_only?.length) {
    const names = listed(people_only.map((tag) => `“${tag}”`));
    add(`The model has not learnt ${names}, so only tracks that people tagged are shown.`);
  }
  if (n_left_out > 0) {
    const all = counted(total + n_left_out, "track");
    add(`The first ${count(total)} of ${all}.`, "Show all", { stops: null });
  } else if (n_below > 0) {
    const them = n_below === 1 ? "it" : "them";
    const less = counted(n_below, "less likely track");
    if (params.unlikely) add(`${less} at the end of the list.`, `Hide ${them}`, { unlikely: null });
    else add(`${less} hidden.`, `Show ${them}`, { unlikely: "yes" });
  }
  if (n_other > 0) {
    const others = counted(n_other, "track");
    add(`${others} cannot match: people say otherwise, or the model says nothing about them.`);
  }
  return notes.length ? html`<div class="notes soft">${notes}</div>` : null;
}

function Nothing({ params: { q, name }, show }) {
  const advice = name
    ? "No title, artist or file name has these words."
    : "Use fewer tags, or combine them with OR.";
  const searchTag = () => show({ q: name, name: null });
  return html`<${Empty} title="No tracks found.">
    <p>${advice}</p>
    <div class="row">
      <a class="button" href="#/search">Show all tracks</a>
      ${name && html`<button onClick=${searchTag}>Search for the tag instead</button>`}
    </div>
  <//>`;
}

function SearchProblem({ error, params, retry }) {
  const name = (params.q ?? "").replace(/["()]/g, "").trim();
  const isFault = error.status >= 400 && error.status < 500; // of the query; trying again is no use
  return html`<${Problem} error=${error} retry=${isFault ? null : retry}>
    ${
      error.code === "unknown_tag" &&
      name &&
      html`<a class="button" href=${href("search", null, { name })}>
      Titles and artists with “${name}”
    </a>`
    }
    ${params.q && html`<a class="button quiet" href="#/search">Show all tracks</a>`}
  <//>`;
}
