// One track: play it, correct its tags, see how the other tags change, and why.

import { html, useEffect, useMemo, useRef, useState } from "../vendor/preact.js";
import { get, post } from "../api.js";
import { href } from "../router.js";
import { announce, changeCount, complain, drafts, refreshTags, useChange, useLoad } from "../state.js";
import { byKind, byline, clock, KINDS, listed, percent, points, counted, titleOf } from "../words.js";
import { Bar, Cover, Features, Moved, Problem, View, Waiting } from "../components/bits.js";
import { Icon } from "../components/icons.js";
import { OverTime } from "../components/over-time.js";
import { PlayButton, Spectrum } from "../components/player.js";
import { TagField } from "../components/tag-field.js";
import { toastUndo } from "../components/toast.js";

/** Less likely tags are hidden behind a button. */
const UNLIKELY = 0.1;

export function Track({ id }) {
  const { data, error, reload, put } = useLoad((signal) => get(`/tracks/${id}`, {}, signal), [id]);
  useChange(changeCount, () => drafts.has(id) || reload());
  if (error && !data) return html`<${View} title="Track"><${Problem} error=${error} retry=${reload}><a class="button" href="#/search">Search</a><//><//>`;
  const title = data ? titleOf(data) : "Track";
  return html`<${View} wide=${true} title=${title} trail=${html`<p class="trail soft">${(data && byline(data)) || "Track"}</p>`}>
    ${data ? html`<${Listen} track=${data} />
      ${Object.keys(data.features).length > 0 && html`<section class="track-features" aria-labelledby="features"><h2 id="features">Audio features</h2><${Features} values=${data.features} /></section>`}
      <${Tags} key=${`${id}`} track=${data} put=${put} reload=${reload} />` : html`<${Waiting} rows=${12} />`}
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
    <p class="soft listen-facts"><span class="num">${clock(track.duration)}</span><span class="path">${track.file}</span>
      ${track.playable === false && html`<span>This browser may not play this kind of file.</span>`}
      ${track.copies?.length > 0 && html`<span>${counted(track.copies.length, "copy", "copies")} of the same sound</span>`}
      <a href=${href("search", null, { like: track.id })}>More like this</a></p>
  </section>`;
}

const saidOf = (track) => new Map(track.tags.filter((tag) => tag.said !== null).map((tag) => [tag.tag, tag.said]));

/** The unsaved answers, on top of what is saved now instead of what was saved before. */
function rebased(answers, before, saved) {
  const now = new Map(saved);
  for (const tag of new Set([...answers.keys(), ...before.keys()])) {
    if ((answers.get(tag) ?? null) === (before.get(tag) ?? null)) continue;
    if (answers.has(tag)) now.set(tag, answers.get(tag));
    else now.delete(tag);
  }
  return now;
}

const sides = (answers, known) => {
  const names = [...answers].filter(([tag, said]) => said !== null && known.has(tag));
  return { yes: names.filter(([, said]) => said).map(([tag]) => tag), no: names.filter(([, said]) => !said).map(([tag]) => tag) };
};

function Tags({ track, put, reload }) {
  const saved = useMemo(() => saidOf(track), [track]);
  const known = useMemo(() => new Set(track.tags.map((tag) => tag.tag)), [track]);
  const [answers, setAnswers] = useState(() => new Map(drafts.get(String(track.id)) ?? saved));
  const [follows, setFollows] = useState({ tags: new Map(), moved: [] }); // what the answers mean for the other tags
  const [filter, setFilter] = useState("");
  const [all, setAll] = useState(false);
  const [busy, setBusy] = useState(false);
  const turn = useRef(0);

  const unsaved = useMemo(() => {
    const names = new Set([...answers.keys(), ...saved.keys()]);
    return new Map([...names].filter((tag) => (answers.get(tag) ?? null) !== (saved.get(tag) ?? null)).map((tag) => [tag, answers.get(tag) ?? null]));
  }, [answers, saved]);

  const follow = async (given, then = () => {}) => {
    const mine = ++turn.current;
    const asked = sides(given, known);
    try {
      const { tags, moved } = asked.yes.length + asked.no.length ? await post(`/tracks/${track.id}/complete`, asked) : { tags: [], moved: [] };
      if (mine !== turn.current) return;
      const news = { tags: new Map(tags.map((tag) => [tag.tag, tag])), moved };
      setFollows(news);
      then(news);
    } catch (error) {
      if (error.code !== "not_ready") complain(error);
    }
  };
  const before = useRef(saved);
  useEffect(() => {
    const given = rebased(answers, before.current, saved);
    before.current = saved;
    setAnswers(given);
    follow(given);
    return () => { turn.current += 1; };
  }, [track]);
  useEffect(() => {
    const id = String(track.id);
    if (unsaved.size) drafts.set(id, answers);
    else drafts.delete(id);
  }, [unsaved]);

  const probability = (tag) => follows.tags.get(tag.tag)?.probability ?? tag.probability;
  const change = (tag, { tags } = follows) => tags.get(tag).probability - tags.get(tag).before;
  const moved = unsaved.size ? follows.moved.map((name) => track.tags.find((tag) => tag.tag === name)).filter(Boolean) : [];
  const marked = new Set(moved.map((tag) => tag.tag));

  const answer = (tag, said) => {
    const given = new Map(answers);
    if (said === null) given.delete(tag);
    else given.set(tag, said);
    setAnswers(given);
    if (known.has(tag)) follow(given, (news) => speak(said, news));
  };
  const speak = (said, news) => {
    const shownOf = (name) => track.tags.find((tag) => tag.tag === name)?.shown ?? name;
    const first = news.moved.slice(0, 3).map((name) => `${shownOf(name)} ${change(name, news) > 0 ? "up" : "down"} ${points(change(name, news)).slice(1)} to ${percent(news.tags.get(name).probability)}`);
    announce(`${said === null ? "Unknown" : said ? "Yes" : "No"}. ${first.length ? `${counted(news.moved.length, "tag")} moved: ${listed(first)}` : "No other tag moved"}.`);
  };

  const save = async () => {
    setBusy(true);
    const of = (wanted) => [...unsaved].filter(([, said]) => said === wanted).map(([tag]) => tag);
    try {
      const { change: id, track: fresh } = await post(`/tracks/${track.id}/say`, { yes: of(true), no: of(false), unknown: of(null) });
      const names = new Set(fresh.tags.map((one) => one.tag)); // A new tag may have another name now: Hip-Hop is hip hop.
      setAnswers((now) => new Map([...now].filter(([tag]) => names.has(tag) || !unsaved.has(tag))));
      put(fresh);
      toastUndo(`Saved ${counted(unsaved.size, "answer")}.`, id, reload);
      if ([...unsaved.keys()].some((tag) => !known.has(tag))) refreshTags().catch(complain);
    } catch (error) {
      complain(error);
    }
    setBusy(false);
  };
  const discard = () => {
    setAnswers(new Map(saved));
    follow(saved);
    announce("Discarded.");
  };

  const added = [...answers.keys()].filter((tag) => !known.has(tag)).map((tag) => ({ tag, shown: tag, kind: null, probability: null, said: null, people: { yes: 0, no: 0 }, fresh: true }));
  const tags = [...track.tags, ...added];
  const wanted = filter.trim().toLocaleLowerCase();
  const likely = (tag) => wanted ? tag.shown.toLocaleLowerCase().includes(wanted) || tag.tag.includes(wanted)
    : all || tag.fresh || tag.said !== null || tag.predicted || tag.people.yes > 0 || answers.has(tag.tag) || marked.has(tag.tag)
      || (tag.probability ?? 0) >= UNLIKELY || (probability(tag) ?? 0) >= UNLIKELY;
  const shown = tags.filter(likely);
  const groups = grouped(shown);
  const jump = (tag) => document.querySelector(`[data-tag="${CSS.escape(tag)}"] button`)?.focus();

  return html`<section aria-label="Tags" class="track-tags">
    <div class="tags-tools">
      <label class="vh" for="filter">Filter these tags</label>
      <input id="filter" type="search" placeholder="Filter these tags" value=${filter} onInput=${(event) => setFilter(event.target.value)} />
      <${AddTag} onAdd=${(tag) => { setFilter(""); answer(tag, true); }} tags=${tags} />
      <p class="soft hint keys-hint">On a row: <kbd>y</kbd> yes, <kbd>n</kbd> no, <kbd>u</kbd> unknown, <kbd>↑</kbd> <kbd>↓</kbd> next row</p>
      <p class="soft hint"><span class="tick-sign" aria-hidden="true"></span> From this mark on, the model gives the track the tag.</p>
    </div>
    ${shown.length === 0 && html`<p class="soft">${wanted ? "No tag matches. You can add it as a tag of your own." : track.tags.length ? "No tag is likely; perhaps it is not music. You can add one of your own." : "No tags yet. Add one of your own, or train a model."}</p>`}
    <div class="tag-groups">
      ${groups.map(([group, members]) => html`<section class="tag-group" key=${group} aria-labelledby=${`group-${group}`}>
        <h2 id=${`group-${group}`}>${KINDS.get(group) ?? group}</h2>
        <ul class="tag-rows">${members.map((tag) => html`<${TagRow} key=${tag.tag} tag=${tag} track=${track} p=${probability(tag)} said=${answers.get(tag.tag) ?? null}
          unsaved=${unsaved.has(tag.tag)} change=${marked.has(tag.tag) ? change(tag.tag) : 0} answer=${answer} sides=${() => sides(answers, known)} />`)}</ul>
      </section>`)}
    </div>
    ${!wanted && shown.length < tags.length && html`<button class="more" onClick=${() => setAll(true)}>Show ${counted(tags.length - shown.length, "unlikely tag")}</button>`}
    ${!wanted && all && html`<button class="more" onClick=${() => setAll(false)}>Hide unlikely tags</button>`}
    <div class=${unsaved.size ? "save-bar open" : "save-bar"} role="region" aria-label="Unsaved answers">
      ${unsaved.size > 0 && html`<div class="save-inner">
        <strong class="save-count">${counted(unsaved.size, "unsaved answer")}</strong>
        <span class="save-moved">${moved.map((tag) => html`<button class="chip guess" key=${tag.tag} onClick=${() => jump(tag.tag)}>${tag.shown} <${Moved} change=${change(tag.tag)} /></button>`)}</span>
        <span class="row"><button onClick=${discard} disabled=${busy}>Discard</button><button class="primary" onClick=${save} disabled=${busy}>Save</button></span>
      </div>`}
    </div>
  </section>`;
}

/** Tags by kind, the most likely first, as they were when the track was opened. */
function grouped(tags) {
  const height = (tag) => (tag.said === true ? 2 : tag.said === false ? -1 : tag.probability ?? 0);
  return byKind([...tags].sort((a, b) => height(b) - height(a)));
}

function TagRow({ tag, track, p, said, unsaved, change, answer, sides }) {
  const [open, setOpen] = useState(false);
  const label = said === null ? percent(p) : said ? "yes" : "no";
  const set = (value) => answer(tag.tag, said === value ? null : value);
  const onKeyDown = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { key } = event;
    if (key === "y") answer(tag.tag, true);
    else if (key === "n") answer(tag.tag, false);
    else if (key === "u" || key === "Backspace") answer(tag.tag, null);
    else if (key === "ArrowDown" || key === "ArrowUp") {
      const rows = [...document.querySelectorAll(".tag-row")];
      const next = rows[rows.indexOf(event.currentTarget) + (key === "ArrowDown" ? 1 : -1)];
      const column = [...event.currentTarget.querySelectorAll("button")].indexOf(event.target);
      next?.querySelectorAll("button")[Math.max(0, column)]?.focus();
    } else return;
    event.preventDefault();
  };
  const agreed = said === null && p === 1 ? "yes" : said === null && p === 0 ? "no" : null; // other people's answer
  const others = [tag.people?.yes ? `${tag.people.yes} yes` : "", tag.people?.no ? `${tag.people.no} no` : ""].filter(Boolean).join(", ");
  return html`<li class=${`tag-row${said === null ? "" : said ? " yes" : " no"}${unsaved ? " unsaved" : ""}`} data-tag=${tag.tag} onKeyDown=${onKeyDown}>
    <div class="tag-line">
      <a class="tag-name" href=${href("tags", tag.tag)} title=${others ? `People: ${others}` : undefined}>${tag.shown}</a>
      <${Bar} p=${said === null ? p : said ? 1 : 0} kind=${said !== null || agreed ? "said" : tag.predicted ? "" : "faint"} mark=${said === null && !agreed ? tag.threshold : null} />
      <span class="tag-p num">${p === null && said === null ? html`<span class="soft" title="The model has not learnt this tag">–</span>`
        : agreed ? html`<span class="soft" title="Other people said so">${agreed}</span><span class="vh">, other people said so</span>` : label}
        ${said === null && p !== null && !agreed && html`<span class="vh"> likely</span>`}${unsaved && html`<span class="vh">, unsaved</span>`}</span>
      <span class="tag-moved num">${change !== 0 && html`<${Moved} change=${change} />`}</span>
      <span class="yes-no" role="group" aria-label=${`Is it ${tag.shown}?`}>
        <button aria-pressed=${String(said === true)} onClick=${() => set(true)}>Yes<span class="vh">, ${tag.shown}</span></button>
        <button aria-pressed=${String(said === false)} onClick=${() => set(false)}>No<span class="vh">, not ${tag.shown}</span></button>
      </span>
      <button class="quiet why-button" aria-expanded=${String(open)} disabled=${tag.probability === null} onClick=${() => setOpen(!open)}>Why<span class="vh"> ${tag.shown}?</span></button>
    </div>
    ${open && html`<${Why} tag=${tag} track=${track} given=${sides()} said=${said} />`}
  </li>`;
}

const chance = (logOdds) => 1 / (1 + Math.exp(-logOdds));
const logOdds = (q) => Math.log(Math.max(1e-6, q) / Math.max(1e-6, 1 - q));

/** The steps from how common the tag is to how likely it is here. */
function Why({ tag, track, given, said }) {
  const others = (names) => names.filter((name) => name !== tag.tag);
  const asked = { tag: tag.tag, yes: others(given.yes), no: others(given.no) };
  const key = JSON.stringify(asked);
  const { data, error } = useLoad((signal) => post(`/tracks/${track.id}/why`, asked, signal), [key]);
  if (error) return html`<div class="why"><p>${error.message}</p></div>`;
  if (!data) return html`<div class="why"><p class="soft">…</p></div>`;
  const shownOf = (name) => track.tags.find((one) => one.tag === name)?.shown ?? name;
  const parts = [{ what: "The sound", step: data.sound.log_odds },
    ...data.parts.map((part) => ({ what: `${shownOf(part.tag)}: ${part.said ? "yes" : "no"}`, step: part.log_odds }))];
  const largest = Math.max(0.5, ...parts.map((part) => Math.abs(part.step)));
  let sum = logOdds(data.usual);
  const rows = parts.map((part) => {
    const from = chance(sum);
    sum += part.step;
    return { ...part, from, to: chance(sum) };
  });
  return html`<div class="why">
    <p>${said !== null && `You said ${said ? "yes" : "no"}. Without that answer: `}“${tag.shown}” is usually ${percent(data.usual)} likely; here it is ${percent(data.probability)}.</p>
    <table><thead class="vh"><tr><th>What</th><th>How much</th><th>From, to</th></tr></thead><tbody>
      ${rows.map((row) => html`<tr><th scope="row">${row.what}</th>
        <td class="why-bar" aria-hidden="true"><span class=${row.step < 0 ? "less" : "more"} style=${{ width: `${(50 * Math.abs(row.step)) / largest}%` }}></span></td>
        <td class="num">${percent(row.from)} → ${percent(row.to)}</td></tr>`)}
    </tbody></table>
    ${!data.parts.length && html`<p class="soft">No tag of this track is known, so only the sound counts. Answer some tags to see their effect.</p>`}
  </div>`;
}

function AddTag({ onAdd, tags }) {
  const [text, setText] = useState("");
  const add = (value) => {
    const name = value.trim().replace(/\s+/g, " ");
    if (!name) return;
    onAdd(tags.find((tag) => tag.tag === name.toLocaleLowerCase() || tag.shown === name)?.tag ?? name);
    setText("");
  };
  return html`<form class="add-tag" onSubmit=${(event) => { event.preventDefault(); add(text); }}>
    <${TagField} id="add-tag" label="Add a tag of your own" placeholder="Add a tag of your own" value=${text} onInput=${setText} onEnter=${add} />
    <button type="submit" disabled=${!text.trim()}><${Icon} name="plus" /> Add</button>
  </form>`;
}
