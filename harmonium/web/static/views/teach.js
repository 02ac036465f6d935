// One question at a time, where an answer helps most.

import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { get, post } from "../api.js";
import { go, href } from "../router.js";
import { announce, complain, tagList, toast, useCell } from "../state.js";
import { byline, percent, counted, titleOf } from "../words.js";
import { Empty, Problem, View, Waiting } from "../components/bits.js";
import { PlayButton, Spectrum, isPlaying, play, player, toggle } from "../components/player.js";

const N_FETCHED = 20, MIN_QUEUE = 5;
const PLAY_KEY = "harmonium.teach.play";
const keyOf = (question) => `${question.track.id}:${question.tag}`;

/** The change that holds all answers since the page was opened. */
const session = { change: null };

export function Teach({ params }) {
  const tag = params.tag ?? "";
  const tags = useCell(tagList);
  const [queue, setQueue] = useState(null);
  const [error, setError] = useState(null);
  const [done, setDone] = useState([]); // the answered questions, the latest last
  const [progress, setProgress] = useState(null);
  const [auto, setAuto] = useState(localStorage.getItem(PLAY_KEY) === "yes");
  const seen = useRef(new Set());
  const sending = useRef(Promise.resolve()); // Answers are sent one after another; the next question does not wait.

  const fetchMore = async (fresh = false) => {
    try {
      const { questions } = await get("/teach", { tag, n: N_FETCHED, skip: [...seen.current].slice(-200).join(",") });
      const news = questions.filter((question) => !seen.current.has(keyOf(question)));
      setQueue((old) => {
        const there = new Set((fresh ? [] : old ?? []).map(keyOf));
        return [...(fresh ? [] : old ?? []), ...news.filter((question) => !there.has(keyOf(question)))];
      });
      setError(null);
    } catch (problem) {
      setError(problem);
    }
  };
  useEffect(() => {
    setQueue(null);
    seen.current = new Set();
    fetchMore(true);
    get("/teach/progress").then(setProgress).catch(() => {});
  }, [tag]);

  const question = queue?.[0];
  useEffect(() => {
    if (question && auto && document.hasFocus()) play(question.track);
  }, [question && keyOf(question)]);

  const advance = () => {
    seen.current.add(keyOf(question));
    const rest = queue.slice(1);
    setQueue((all) => all.slice(1));
    if (rest.length <= MIN_QUEUE) fetchMore();
    if (rest[0]) announce(`${rest[0].shown}? ${titleOf(rest[0].track)}`);
  };
  const answer = (said) => {
    if (!question) return;
    const given = question;
    advance();
    setDone((all) => [...all, given]);
    sending.current = sending.current.then(async () => {
      try {
        const news = await post("/teach", { track: given.track.id, tag: given.tag, answer: said, change: session.change });
        session.change = news.change;
        setProgress(news.progress);
      } catch (problem) {
        complain(problem);
        setDone((all) => all.filter((one) => one !== given));
        setQueue((rest) => [given, ...rest]);
      }
    });
  };
  const undoLast = async () => {
    const last = done[done.length - 1];
    if (!last) return;
    try {
      await sending.current;
      await post(`/tracks/${last.track.id}/say`, { yes: [], no: [], unknown: [last.tag] });
      seen.current.delete(keyOf(last));
      setDone((all) => all.filter((one) => one !== last));
      setQueue((rest) => [last, ...(rest ?? [])]);
      setProgress(await get("/teach/progress"));
      toast("The last answer was undone.");
    } catch (problem) {
      complain(problem);
    }
  };

  const act = useRef();
  act.current = (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea, dialog")) return;
    const onButton = event.target.closest("button, a") && document.activeElement.matches(":focus-visible");
    const action = { y: () => answer(true), n: () => answer(false), p: () => question && toggle(question.track), z: undoLast, " ": onButton ? null : () => question && advance() }[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  };
  useEffect(() => {
    const listen = (event) => act.current(event);
    document.addEventListener("keydown", listen, true);
    return () => document.removeEventListener("keydown", listen, true);
  }, []);

  const chooseAuto = (event) => {
    setAuto(event.target.checked);
    localStorage.setItem(PLAY_KEY, event.target.checked ? "yes" : "no");
    if (event.target.checked && question) play(question.track);
  };
  const names = [...tags].sort((a, b) => a.shown.localeCompare(b.shown));
  return html`<${View} title="Teach" lead="Short questions where an answer helps the model most.">
    <div class="teach-tools">
      <label class="inline">About <select value=${tag} onChange=${(event) => go("teach", null, { tag: event.target.value })}>
        <option value="">all tags</option>
        ${[["Your tags", names.filter((one) => one.owner !== "built-in")], ["Built-in", names.filter((one) => one.owner === "built-in")]]
          .filter(([, some]) => some.length).map(([label, some]) => html`<optgroup label=${label}>${some.map((one) => html`<option value=${one.tag}>${one.shown}</option>`)}</optgroup>`)}
      </select></label>
      <label class="inline"><input type="checkbox" checked=${auto} onChange=${chooseAuto} /> Play each track automatically</label>
    </div>
    ${error && !question ? html`<${Problem} error=${error} retry=${() => fetchMore(true)}>${error.code === "not_ready" && html`<a class="button primary" href="#/training">Train a model</a>`}<//>`
      : queue === null ? html`<div class="question"><${Waiting} rows=${4} /></div>`
      : question ? html`<${Question} question=${question} answer=${answer} skip=${advance} />`
      : html`<${Empty} title="No more questions."><p>${tag ? "This tag has no open questions." : "There are no open questions."} Train again, so that the model learns from your answers.</p>
          <div class="row"><a class="button primary" href="#/training">Train</a>${tag && html`<a class="button" href="#/teach">Ask about all tags</a>`}</div><//>`}
    <section class="teach-progress" aria-labelledby="so-far">
      <h2 id="so-far">So far</h2>
      <${Progress} progress=${progress} n=${done.length} />
      <button onClick=${undoLast} disabled=${!done.length}>Undo the last answer <kbd>z</kbd></button>
    </section>
  <//>`;
}

function Question({ question, answer, skip }) {
  const { track, shown, probability, threshold } = question;
  const playing = isPlaying(useCell(player), track.id);
  return html`<section class="question" aria-label="Question">
    <p class="question-text">Is this <strong>${shown}</strong>?</p>
    <div class="question-track"><${PlayButton} track=${track} big=${true} />
      <div class="hit-what"><a class="hit-title" href=${href("track", track.id)}>${titleOf(track)}</a><span class="hit-by soft">${byline(track)}</span></div>
      <span class="soft"><kbd>p</kbd> ${playing ? "pauses" : "plays"}</span></div>
    <${Spectrum} key=${track.id} track=${track} />
    <div class="question-answers">
      <button class="answer" onClick=${() => answer(true)}>Yes <kbd>y</kbd></button>
      <button class="answer" onClick=${() => answer(false)}>No <kbd>n</kbd></button>
      <button class="answer quiet" onClick=${skip}>Skip <kbd>space</kbd></button>
    </div>
    <p class="soft">The model says ${percent(probability)}. It gives a track this tag from ${percent(threshold)} on, so your answer decides.</p>
  </section>`;
}

/** How much the answers have improved the model. */
function Progress({ progress, n }) {
  if (!progress || !progress.answers) return html`<p class="soft">No answers yet. Ten take about a minute.</p>`;
  const share = (right) => (right === null || right === undefined ? null : right / progress.answers);
  const bar = (label, right) => right !== null && right !== undefined && html`<div class="progress-line"><span>${label}</span>
    <span class="progress" aria-hidden="true"><span style=${{ transform: `scaleX(${share(right)})` }}></span></span>
    <span class="num">${right} of ${progress.answers} right</span></div>`;
  return html`<div class="teach-figures">
    <p>${progress.text}</p>
    ${bar("Right before", progress.right_before)}${bar("Right now", progress.right_now)}
    <p class="soft">${counted(n, "answer")} since you opened this view.</p>
  </div>`;
}
