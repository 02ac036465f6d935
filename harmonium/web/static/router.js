// The hash of the address names the view: #/search?q=jazz, #/track/12.

import { queryString } from "./api.js";
import { cell } from "./state.js";

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function parse(hash) {
  const [path, query] = hash.replace(/^#\/?/, "").split("?");
  const parts = path.split("/").filter(Boolean).map(decoded);
  return {
    view: parts[0] ?? "search",
    id: parts[1] ?? null,
    params: Object.fromEntries(new URLSearchParams(query)),
  };
}

export const route = cell(parse(location.hash));

/** The hash of a view. */
export function href(view, id = null, params = {}) {
  const path = id === null ? view : `${view}/${encodeURIComponent(id)}`;
  const query = queryString(params);
  return `#/${path}${query ? "?" + query : ""}`;
}

/** Show a view. With `replace`, Back does not return to the current one. */
export function go(view, id = null, params = {}, { replace = false } = {}) {
  const hash = href(view, id, params);
  if (hash === location.hash) return;
  if (replace) {
    history.replaceState(history.state, "", hash);
    follow();
  } else {
    location.hash = hash;
  }
}

// Back and Forward restore the scroll position; a new view starts at its top.
history.scrollRestoration = "manual";
const heights = new Map(); // by place
let current = history.state?.place ?? 0;
history.replaceState({ place: current }, "");
addEventListener("scroll", () => heights.set(current, scrollY), { passive: true });

/** Show the view of the address. */
function follow() {
  const visited = history.state?.place !== undefined;
  if (!visited) history.replaceState({ place: Date.now() }, "");
  const { place } = history.state;
  const moved = place !== current;
  current = place;
  route.set(parse(location.hash));
  const height = (visited && heights.get(place)) || 0;
  if (moved) requestAnimationFrame(() => scrollTo(0, height));
}
addEventListener("hashchange", follow);
