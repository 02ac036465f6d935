// One track: play it, correct its tags, see how the other tags change, and why.

import { html, useEffect, useMemo, useRef, useState } from "../vendor/preact.js";
import { get, post } from "../api.js";
import { href } from "../router.js";
import {
  announce,
  changeCount,
  complain,
  drafts,
  refreshTags,
  useChange,
  useLoad,
} from "../state.js";
import {
  byKind,
  byline,
  clock,
  counted,
  KINDS,
  listed,
  percent,
  points,
  titleOf,
} from "../words.js";
import { Cover, Features, Moved, Problem, View, Waiting } from "../components/bits.js";
import { Icon } from "../components/icons.js";
import { OverTime } from "../components/over-time.js";
import { PlayButton, Spectrum } from "../components/player.js";
import { TagField } from "../components/tag-field.js";
import { TagRow } from "../components/tag-row.js";
import { toastUndo } from "../components/toast.js";

/** Less likely tags are hidden behind a button. */
const UNLIKELY = 0.1;
/** How many tags that moved are announced. */
const N_SPOKEN = 3;

export function Track({ id }) {
  const load = (signal) => get(`/tracks/${id}`, {}, signal);
  const { data, error, reload, put } = useLoad(load, [id]);
  useChange(changeCount, () => drafts.has(id) || reload());
  if (error && !data) {
    return html`<${View} title="Track">
      <${Problem} error=${error} retry=${reload}><a class="button" href="#/search">Search</a><//>
    <//>`;
  }
  const trail = html`<p class="trail soft">${(data && byline(data)) || "Track"}</p>`;
  return html`<${View} wide=${true} title=${data ? titleOf(data) : "Track"} trail=${trail}>
    ${
      data
        ? html`<${Listen} track=${data} />
          <${TrackFeatures} values=${data.features} />
          <${Tags} key=${String(id)} track=${data} put=${put} reload=${reload} />`
        : html`<${Waiting} rows=${12} />`
    }
  <//>`;
}

function Listen({ track }) {
  return html`<section class="listen" aria-label="Listen">
    <div class="listen-row">
      <${Cover} key=${track.id} track=${track} big=${true} />
      <${PlayButton} track=${track} big=${true} />
      <${Spectrum} track=${track} />
    </div>
    <${OverTime} track=${track} />
    <p class="soft listen-facts">
      <span class="num">${clock(track.duration)}</span>
      <span class="path">${track.file}</span>
      ${track.playable === false && html`<span>This browser may not play this kind of file.</span>`}
      ${
        track.copies?.length > 0 &&
        html`<span>${counted(track.copies.length, "copy", "copies")} of the same sound</span>`
      }
      <a href=${href("search", null, { like: track.id })}>More like this</a>
    </p>
  </section>`;
}

function TrackFeatures({ values }) {
  if (!Object.keys(values).length) return null;
  return html`<section class="track-features" aria-labelledby="features">
    <h2 id="features">Audio features</h2>
    <${Features} values=${values} />
  </section>`;
}

// Answers are maps from tags to true or false.

/** The saved answers of this person. */
function savedAnswers(track) {
  const answers = new Map();
  for (const { tag, said } of track.tags) {
    if (said !== null) answers.set(tag, said);
  }
  return answers;
}

/** The answers that differ: tag → true, false, or null for a removed one. */
function differences(answers, saved) {
  const changed = new Map();
  for (const tag of new Set([...answers.keys(), ...saved.keys()])) {
    const said = answers.get(tag) ?? null;
    if (said !== (saved.get(tag) ?? null)) changed.set(tag, said);
  }
  return changed;
}

/** The unsaved answers, on top of what is saved now instead of what was saved before. */
function rebased(answers, before, saved) {
  const result = new Map(saved);
  for (const [tag, said] of differences(answers, before)) {
    if (said === null) result.delete(tag);
    else result.set(tag, said);
  }
  return result;
}

/** The answers on tags that the server knows, as {yes, no}. */
function sides(answers, known) {
  const given = { yes: [], no: [] };
  for (const [tag, said] of answers) {
    if (known.has(tag)) given[said ? "yes" : "no"].push(tag);
  }
  return given;
}

const NOTHING_MOVED = { tags: new Map(), moved: [] };

/** This person's answers on a track, saved or not, and what they mean for its other tags. */
function useAnswers({ track, put, reload }) {
  const saved = useMemo(() => savedAnswers(track), [track]);
  const known = useMemo(() => new Set(track.tags.map(({ tag }) => tag)), [track]);
  const [answers, setAnswers] = useState(() => new Map(drafts.get(String(track.id)) ?? saved));
  const [completion, setCompletion] = useState(NOTHING_MOVED);
  const [busy, setBusy] = useState(false);
  const unsaved = useMemo(() => differences(answers, saved), [answers, saved]);
  const turn = useRef(0); // An answer that another overtakes is not shown.

  const complete = async (given, then = () => {}) => {
    const mine = ++turn.current;
    const body = sides(given, known);
    try {
      const isEmpty = !body.yes.length && !body.no.length;
      const { tags, moved } = isEmpty
        ? { tags: [], moved: [] }
        : await post(`/tracks/${track.id}/complete`, body);
      if (mine !== turn.current) return;
      const result = { tags: new Map(tags.map((tag) => [tag.tag, tag])), moved };
      setCompletion(result);
      then(result);
    } catch (error) {
      if (error.code !== "not_ready") complain(error);
    }
  };
  const before = useRef(saved);
  useEffect(() => {
    const given = rebased(answers, before.current, saved);
    before.current = saved;
    setAnswers(given);
    complete(given);
    return () => {
      turn.current += 1;
    };
  }, [track]);
  useEffect(() => {
    const id = String(track.id);
    if (unsaved.size) drafts.set(id, answers);
    else drafts.delete(id);
  }, [unsaved]);

  const answer = (tag, said) => {
    const given = new Map(answers);
    if (said === null) given.delete(tag);
    else given.set(tag, said);
    setAnswers(given);
    if (known.has(tag)) complete(given, (result) => announceMoves(track, said, result));
  };
  const save = async () => {
    setBusy(true);
    const tagsOf = (wanted) =>
      [...unsaved].filter(([, said]) => said === wanted).map(([tag]) => tag);
    const body = { yes: tagsOf(true), no: tagsOf(false), unknown: tagsOf(null) };
    try {
      const { change, track: fresh } = await post(`/tracks/${track.id}/say`, body);
      // A new tag may have another name now: Hip-Hop is hip hop.
      const names = new Set(fresh.tags.map(({ tag }) => tag));
      const isKept = ([tag]) => names.has(tag) || !unsaved.has(tag);
      setAnswers((old) => new Map([...old].filter(isKept)));
      put(fresh);
      toastUndo(`Saved ${counted(unsaved.size, "answer")}.`, change, reload);
      if ([...unsaved.keys()].some((tag) => !known.has(tag))) refreshTags().catch(complain);
    } catch (error) {
      complain(error);
    }
    setBusy(false);
  };
  const discard = () => {
    setAnswers(new Map(saved));
    complete(saved);
    announce("Discarded.");
  };
  const given = () => sides(answers, known);
  return { answers, unsaved, known, completion, busy, answer, save, discard, given };
}

/** How far the answers moved a tag. */
function changeOf(completion, tag) {
  const { probability, before } = completion.tags.get(tag);
  return probability - before;
}

/** Tell screen readers which tags an answer moved. */
function announceMoves(track, said, completion) {
  const { moved, tags } = completion;
  const shownOf = (name) => track.tags.find(({ tag }) => tag === name)?.shown ?? name;
  const moves = moved.slice(0, N_SPOKEN).map((name) => {
    const change = changeOf(completion, name);
    const direction = change > 0 ? "up" : "down";
    const distance = points(change).slice(1);
    return `${shownOf(name)} ${direction} ${distance} to ${percent(tags.get(name).probability)}`;
  });
  const word = { true: "Yes", false: "No", null: "Unknown" }[said];
  const effect = moves.length
    ? `${counted(moved.length, "tag")} moved: ${listed(moves)}`
    : "No other tag moved";
  announce(`${word}. ${effect}.`);
}

/** A tag that the person has just added. */
const newTag = (name) => ({
  tag: name,
  shown: name,
  kind: null,
  probability: null,
  said: null,
  people: { yes: 0, no: 0 },
  isNew: true,
});

/** Tags by kind, the most likely first, as they were when the track was opened. */
function grouped(tags) {
  const height = ({ said, probability }) => {
    if (said === null) return probability ?? 0;
    return said ? 2 : -1;
  };
  return byKind([...tags].sort((a, b) => height(b) - height(a)));
}

function Tags({ track, put, reload }) {
  const state = useAnswers({ track, put, reload });
  const { answers, unsaved, known, completion, answer, given } = state;
  const [filter, setFilter] = useState("");
  const [all, setAll] = useState(false);

  const isMoved = new Set(unsaved.size ? completion.moved : []);
  const moved = completion.moved
    .filter((name) => isMoved.has(name))
    .map((name) => track.tags.find(({ tag }) => tag === name))
    .filter(Boolean);
  const probability = ({ tag, probability: p }) => completion.tags.get(tag)?.probability ?? p;
  const isLikely = (tag) =>
    all ||
    tag.isNew ||
    tag.said !== null ||
    tag.predicted ||
    tag.people.yes > 0 ||
    answers.has(tag.tag) ||
    isMoved.has(tag.tag) ||
    (tag.probability ?? 0) >= UNLIKELY ||
    (probability(tag) ?? 0) >= UNLIKELY;
  const wanted = filter.trim().toLocaleLowerCase();
  const matches = ({ tag, shown }) =>
    tag.includes(wanted) || shown.toLocaleLowerCase().includes(wanted);

  const added = [...answers.keys()].filter((tag) => !known.has(tag)).map(newTag);
  const tags = [...track.tags, ...added];
  const shown = tags.filter(wanted ? matches : isLikely);
  const nHidden = tags.length - shown.length;
  const add = (tag) => {
    setFilter("");
    answer(tag, true);
  };
  const row = (tag) =>
    html`<${TagRow}
      key=${tag.tag}
      tag=${tag}
      track=${track}
      p=${probability(tag)}
      said=${answers.get(tag.tag) ?? null}
      isUnsaved=${unsaved.has(tag.tag)}
      change=${isMoved.has(tag.tag) ? changeOf(completion, tag.tag) : 0}
      answer=${answer}
      given=${given}
    />`;
  return html`<section aria-label="Tags" class="track-tags">
    <${Tools} filter=${filter} setFilter=${setFilter} tags=${tags} add=${add} />
    ${!shown.length && html`<p class="soft">${noTags(track, wanted)}</p>`}
    <div class="tag-groups">
      ${grouped(shown).map(
        ([kind, members]) => html`<section
          class="tag-group"
          key=${kind}
          aria-labelledby=${`group-${kind}`}
        >
          <h2 id=${`group-${kind}`}>${KINDS.get(kind) ?? kind}</h2>
          <ul class="tag-rows">
            ${members.map(row)}
          </ul>
        </section>`,
      )}
    </div>
    ${
      !wanted &&
      nHidden > 0 &&
      html`<button class="more" onClick=${() => setAll(true)}>
      Show ${counted(nHidden, "unlikely tag")}
    </button>`
    }
    ${
      !wanted &&
      all &&
      html`<button class="more" onClick=${() => setAll(false)}>Hide unlikely tags</button>`
    }
    <${SaveBar} state=${state} moved=${moved} />
  </section>`;
}

/** Why no tag is shown. */
function noTags(track, wanted) {
  if (wanted) return "No tag matches. You can add it as a tag of your own.";
  if (track.tags.length) {
    return "No tag is likely. This may not be music. You can add a tag of your own.";
  }
  return "No tags yet. Add one of your own, or train a model.";
}

const Tools = ({ filter, setFilter, tags, add }) =>
  html`<div class="tags-tools">
    <label class="vh" for="filter">Filter these tags</label>
    <input
      id="filter"
      type="search"
      placeholder="Filter these tags"
      value=${filter}
      onInput=${(event) => setFilter(event.target.value)}
    />
    <${AddTag} onAdd=${add} tags=${tags} />
    <p class="soft hint keys-hint">
      On a row: <kbd>y</kbd> yes, <kbd>n</kbd> no, <kbd>u</kbd> unknown, <kbd>↑</kbd> <kbd>↓</kbd>
      ${" "}next row
    </p>
    <p class="soft hint">
      <span class="tick-sign" aria-hidden="true"></span> The tag's threshold: the model predicts
      the tag from here on.
    </p>
  </div>`;

const jumpTo = (tag) => document.querySelector(`[data-tag="${CSS.escape(tag)}"] button`)?.focus();

/** The number of unsaved answers, and what they moved. */
function SaveBar({ state: { unsaved, completion, busy, save, discard }, moved }) {
  const isOpen = unsaved.size > 0;
  const chip = ({ tag, shown }) =>
    html`<button class="chip guess" key=${tag} onClick=${() => jumpTo(tag)}>
      ${shown} <${Moved} change=${changeOf(completion, tag)} />
    </button>`;
  const content = () =>
    html`<div class="save-inner">
      <strong class="save-count">${counted(unsaved.size, "unsaved answer")}</strong>
      <span class="save-moved">${moved.map(chip)}</span>
      <span class="row">
        <button onClick=${discard} disabled=${busy}>Discard</button>
        <button class="primary" onClick=${save} disabled=${busy}>Save</button>
      </span>
    </div>`;
  return html`<div
    class=${isOpen ? "save-bar open" : "save-bar"}
    role="region"
    aria-label="Unsaved answers"
  >
    ${isOpen && content()}
  </div>`;
}

function AddTag({ onAdd, tags }) {
  const [text, setText] = useState("");
  const add = (value) => {
    const name = value.trim().replace(/\s+/g, " ");
    if (!name) return;
    const isSame = ({ tag, shown }) => tag === name.toLocaleLowerCase() || shown === name;
    onAdd(tags.find(isSame)?.tag ?? name);
    setText("");
  };
  const onSubmit = (event) => {
    event.preventDefault();
    add(text);
  };
  return html`<form class="add-tag" onSubmit=${onSubmit}>
    <${TagField}
      id="add-tag"
      label="Add a tag of your own"
      placeholder="Add a tag of your own"
      value=${text}
      onInput=${setText}
      onEnter=${add}
    />
    <button type="submit" disabled=${!text.trim()}><${Icon} name="plus" /> Add</button>
  </form>`;
}
