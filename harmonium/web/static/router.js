// The hash of the address names the view: #/search?q=jazz, #/track/12.

import { cell } from "./state.js";

const parse = (hash) => {
  const [path, query] = hash.replace(/^#\/?/, "").split("?");
  const parts = path.split("/").filter(Boolean).map((part) => {
    try { return decodeURIComponent(part); } catch { return part; }
  });
  return { view: parts[0] ?? "search", id: parts[1] ?? null, params: Object.fromEntries(new URLSearchParams(query)) };
};

export const route = cell(parse(location.hash));

/** The hash of a view. */
export function href(view, id = null, params = {}) {
  const given = Object.entries(params).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const query = new URLSearchParams(given).toString();
  return `#/${view}${id === null ? "" : "/" + encodeURIComponent(id)}${query ? "?" + query : ""}`;
}

/** Show a view. With `replace`, Back does not return to the current one. */
export function go(view, id = null, params = {}, { replace = false } = {}) {
  const hash = href(view, id, params);
  if (hash === location.hash) return;
  if (replace) {
    history.replaceState(history.state, "", hash);
    follow();
  } else location.hash = hash;
}

// Back and Forward restore the scroll position; a new view starts at its top.
history.scrollRestoration = "manual";
const heights = new Map();
let here = history.state?.place ?? 0;
history.replaceState({ place: here }, "");
addEventListener("scroll", () => heights.set(here, scrollY), { passive: true });

function follow() {
  const place = history.state?.place;
  const known = place !== undefined;
  if (!known) history.replaceState({ place: Date.now() }, "");
  const moved = history.state.place !== here;
  here = history.state.place;
  route.set(parse(location.hash));
  if (moved) requestAnimationFrame(() => scrollTo(0, (known && heights.get(here)) || 0));
}
addEventListener("hashchange", follow);
