// Formatting of numbers, times and lists; tags in queries.

export const count = (n) => Number(n).toLocaleString("en");

/** 1 track, 2 tracks */
export const counted = (n, one, many = one + "s") => `${count(n)} ${n === 1 ? one : many}`;

/** A probability in percent. */
export function percent(p) {
  if (p === null || p === undefined) return "–";
  if (p > 0 && p < 0.005) return "<1%";
  if (p < 1 && p >= 0.995) return ">99%";
  return `${Math.round(100 * p)}%`;
}

/** A change of probability in points, with its sign. */
export const points = (change) => `${change > 0 ? "+" : "−"}${Math.round(Math.abs(100 * change))}`;

/** Seconds as m:ss. */
export function clock(seconds) {
  if (!Number.isFinite(seconds)) return "–:––";
  const whole = Math.floor(seconds);
  const minutes = Math.floor(whole / 60) % 60, hours = Math.floor(whole / 3600);
  const ss = String(whole % 60).padStart(2, "0");
  return hours ? `${hours}:${String(minutes).padStart(2, "0")}:${ss}` : `${minutes}:${ss}`;
}

/** A duration: 12 s, 3 min. */
export const howLong = (seconds) =>
  seconds < 90 ? `${Math.round(seconds)} s` : seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;

export const listed = (names) =>
  names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names[names.length - 1]}`;

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
export const KINDS = new Map([["own", "Your tags"], ["genre", "Genre"], ["mood", "Mood"], ["instrument", "Instruments"], ["voice", "Voice"], ["era", "Era"], ["sound", "Sound"]]);
const place = (kind) => ([...KINDS.keys()].indexOf(kind) + KINDS.size + 1) % (KINDS.size + 1);

/** [kind, its items] of items with a kind, in the order of the kinds. */
export function byKind(items) {
  const kinds = new Map();
  for (const one of items) kinds.set(one.kind ?? "own", [...(kinds.get(one.kind ?? "own") ?? []), one]);
  return [...kinds].sort(([a], [b]) => (KINDS.has(b) - KINDS.has(a)) || place(a) - place(b) || a.localeCompare(b));
}

/** How well a tag is known, in a word; the AUC is 0.5 for chance and 1 for perfect. */
export const quality = (auc) => (auc === null || auc === undefined ? "–" : auc >= 0.85 ? "good" : auc >= 0.7 ? "fair" : "poor");

const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
export function when(text) {
  const date = new Date(text);
  return Number.isNaN(date.getTime()) ? String(text ?? "") : day.format(date);
}

export const titleOf = (track) => track.title || track.name;
export const byline = (track) => [track.artist, track.album].filter(Boolean).join(" · ");

/** A tag as it is written in a query. */
export const quoted = (tag) =>
  /^[\p{L}\p{N}_]+$/u.test(tag) && !["AND", "OR", "NOT"].includes(tag)
    ? tag
    : `"${tag.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;

const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
const piece = (tag, not) =>
  new RegExp(`(^|\\s)${not ? "(?:-|NOT\\s+)" : ""}(?:${escaped(quoted(tag))}${quoted(tag) === tag ? "" : "|" + escaped(tag)})(?=\\s|$)`, "iu");

/** Whether a query requires a tag (true), excludes it (false), or neither (null). */
export const stands = (question, tag) =>
  piece(tag, true).test(question) ? false : piece(tag, false).test(question) ? true : null;

/** The query with a tag required (true), excluded (false), or removed (null). */
export function withTag(question, tag, how) {
  const rest = question.replace(piece(tag, true), "$1").replace(piece(tag, false), "$1").replace(/\s+/g, " ").trim();
  if (how === null) return rest.replace(/^(AND|OR)\s+|\s+(AND|OR|NOT)$/g, "");
  const base = /\sOR\s/.test(rest) && !/^\([^()]*\)(?!.*\sOR\s)/.test(rest) ? `(${rest})` : rest;
  return `${base} ${how ? "" : "-"}${quoted(tag)}`.trim();
}
