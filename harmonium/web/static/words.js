// Formatting of numbers, times and lists; tags in queries.

export const count = (n) => Number(n).toLocaleString("en");

/** 1 track, 2 tracks */
export const counted = (n, singular, plural = singular + "s") =>
  `${count(n)} ${n === 1 ? singular : plural}`;

/** A probability in percent. */
export function percent(p) {
  if (p === null || p === undefined) return "–";
  if (p > 0 && p < 0.005) return "<1%";
  if (p < 1 && p >= 0.995) return ">99%";
  return `${Math.round(100 * p)}%`;
}

/** An AUC, which is 0.5 for chance and 1 for perfect. */
export const auc = (value) => ((value ?? null) === null ? "–" : value.toFixed(2));

/** A change of probability in points, with its sign. */
export const points = (change) => `${change > 0 ? "+" : "−"}${Math.round(Math.abs(100 * change))}`;

/** Seconds as m:ss. */
export function clock(seconds) {
  if (!Number.isFinite(seconds)) return "–:––";
  const whole = Math.floor(seconds);
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor(whole / 60) % 60;
  const ss = String(whole % 60).padStart(2, "0");
  return hours ? `${hours}:${String(minutes).padStart(2, "0")}:${ss}` : `${minutes}:${ss}`;
}

/** A duration: 12 s, 3 min. */
export function howLong(seconds) {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

/** a, b and c */
export const listed = (names) =>
  names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;

/** Audio features, and what a high value means. */
export const FEATURES = new Map([
  ["energy", "How loud, fast and intense it sounds"],
  ["valence", "How happy it sounds; low values sound sad, dark or angry"],
  ["danceability", "How danceable it is: a steady, strong beat"],
  ["acousticness", "How much of it is played on acoustic instruments"],
  ["instrumentalness", "How little singing there is"],
  ["liveness", "How much it sounds like a recording in front of an audience"],
  ["speechiness", "How much of it is spoken"],
]);

/** The kinds of tags, in the order in which they are shown. */
export const KINDS = new Map([
  ["own", "Your tags"],
  ["genre", "Genre"],
  ["mood", "Mood"],
  ["instrument", "Instruments"],
  ["voice", "Voice"],
  ["era", "Era"],
  ["sound", "Sound"],
]);

/** Kinds in the order of KINDS, then any others by name. */
function compareKinds(a, b) {
  const order = [...KINDS.keys()];
  const place = (kind) => (KINDS.has(kind) ? order.indexOf(kind) : order.length);
  return place(a) - place(b) || a.localeCompare(b);
}

/** [kind, its items] of items with a kind, in the order of the kinds. */
export function byKind(items) {
  const kinds = new Map();
  for (const item of items) {
    const kind = item.kind ?? "own";
    if (!kinds.has(kind)) kinds.set(kind, []);
    kinds.get(kind).push(item);
  }
  return [...kinds].sort(([a], [b]) => compareKinds(a, b));
}

/** How well a tag is known, in a word; the AUC is 0.5 for chance and 1 for perfect. */
export function quality(auc) {
  if (auc === null || auc === undefined) return "–";
  if (auc >= 0.85) return "good";
  return auc >= 0.7 ? "fair" : "poor";
}

const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
export function when(text) {
  const date = new Date(text);
  return Number.isNaN(date.getTime()) ? String(text ?? "") : day.format(date);
}

export const titleOf = (track) => track.title || track.name;
export const byline = (track) => [track.artist, track.album].filter(Boolean).join(" · ");

const isWord = (tag) => /^[\p{L}\p{N}_]+$/u.test(tag) && !["AND", "OR", "NOT"].includes(tag);
const quote = (tag) => `"${tag.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;

/** A tag as it is written in a query. */
export const quoted = (tag) => (isWord(tag) ? tag : quote(tag));

const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

/** A tag in a query, with or without its quotes; or the tag excluded. */
function pattern(tag, excluded) {
  const sign = excluded ? "(?:-|NOT\\s+)" : "";
  const spellings = [...new Set([quoted(tag), tag])].map(escaped).join("|");
  return new RegExp(`(^|\\s)${sign}(?:${spellings})(?=\\s|$)`, "iu");
}

/** Whether a query requires a tag (true), excludes it (false), or neither (null). */
export function stands(query, tag) {
  if (pattern(tag, true).test(query)) return false;
  return pattern(tag, false).test(query) ? true : null;
}

/** Whether OR outside of brackets would swallow a tag put behind the query. */
const isAlternative = (query) => /\sOR\s/.test(query) && !/^\([^()]*\)(?!.*\sOR\s)/.test(query);

/** The query with a tag required (true), excluded (false), or removed (null). */
export function withTag(query, tag, stand) {
  const rest = query
    .replace(pattern(tag, true), "$1")
    .replace(pattern(tag, false), "$1")
    .replace(/\s+/g, " ")
    .trim();
  if (stand === null) return rest.replace(/^(AND|OR)\s+|\s+(AND|OR|NOT)$/g, "");
  const base = isAlternative(rest) ? `(${rest})` : rest;
  return `${base} ${stand ? "" : "-"}${quoted(tag)}`.trim();
}
