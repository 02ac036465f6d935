// One question at a time, where an answer helps most.

import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { get, post } from "../api.js";
import { go, href } from "../router.js";
import { announce, changeCount, complain, tagList, toast, useCell, useChange } from "../state.js";
import { byline, counted, percent, titleOf } from "../words.js";
import { Empty, Problem, View, Waiting } from "../components/bits.js";
import { PlayButton, Spectrum, isPlaying, play, player, toggle } from "../components/player.js";

const N_FETCHED = 20;
const MIN_QUEUE = 5;
const MAX_SKIPPED = 200;
const PLAY_KEY = "harmonium.teach.play";

const keyOf = (question) => `${question.track.id}:${question.tag}`;

/** The change that holds all answers since the page was opened. */
const session = { change: null };

/** Questions of a queue and new ones, each once. */
function joined(queue, questions) {
  const queued = new Set(queue.map(keyOf));
  return [...queue, ...questions.filter((question) => !queued.has(keyOf(question)))];
}

/** The questions about a tag, or about all, and answering them. */
function useQuestions(tag) {
  const [queue, setQueue] = useState(null);
  const [error, setError] = useState(null);
  const [answered, setAnswered] = useState([]); // the latest last
  const [progress, setProgress] = useState(null);
  const seen = useRef(new Set());
  // Answers are sent one after another; the next question does not wait.
  const sending = useRef(Promise.resolve());
  const question = queue?.[0];

  const fetchMore = async (fresh = false) => {
    const skip = [...seen.current].slice(-MAX_SKIPPED).join(",");
    try {
      const { questions } = await get("/teach", { tag, n: N_FETCHED, skip });
      const unseen = questions.filter((candidate) => !seen.current.has(keyOf(candidate)));
      setQueue((old) => joined((!fresh && old) || [], unseen));
      setError(null);
    } catch (problem) {
      setError(problem);
    }
  };
  const loadProgress = async () => setProgress(await get("/teach/progress"));
  useChange(changeCount, () => loadProgress().catch(() => {}));
  useEffect(() => {
    setQueue(null);
    seen.current = new Set();
    fetchMore(true);
    loadProgress().catch(() => {});
  }, [tag]);

  /** Put a question back, to ask it again. */
  const askAgain = (old) => {
    setAnswered((all) => all.filter((other) => other !== old));
    setQueue((rest) => [old, ...(rest ?? [])]);
  };
  const skip = () => {
    seen.current.add(keyOf(question));
    const rest = queue.slice(1);
    setQueue((all) => all.slice(1));
    if (rest.length <= MIN_QUEUE) fetchMore();
    if (rest[0]) announce(`${rest[0].shown}? ${titleOf(rest[0].track)}`);
  };
  const send = async (given, said) => {
    const { track, tag: name } = given;
    try {
      const body = { track: track.id, tag: name, answer: said, change: session.change };
      const report = await post("/teach", body);
      session.change = report.change; // The progress follows with the server's events.
    } catch (problem) {
      complain(problem);
      askAgain(given);
    }
  };
  const answer = (said) => {
    if (!question) return;
    skip();
    setAnswered((all) => [...all, question]);
    sending.current = sending.current.then(() => send(question, said));
  };
  const undoLast = async () => {
    const last = answered.at(-1);
    if (!last) return;
    try {
      await sending.current;
      await post(`/tracks/${last.track.id}/say`, { yes: [], no: [], unknown: [last.tag] });
      seen.current.delete(keyOf(last));
      askAgain(last);
      await loadProgress();
      toast("The last answer was undone.");
    } catch (problem) {
      complain(problem);
    }
  };
  return { question, queue, error, answered, progress, fetchMore, skip, answer, undoLast };
}

/** Keys that answer questions. */
function useKeys(actions) {
  const latest = useRef();
  latest.current = (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, select, textarea, dialog")) return;
    const onButton = event.target.closest("button, a");
    const hasFocus = onButton && document.activeElement.matches(":focus-visible");
    if (event.key === " " && hasFocus) return; // It presses the button.
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  };
  useEffect(() => {
    const listen = (event) => latest.current(event);
    document.addEventListener("keydown", listen, true);
    return () => document.removeEventListener("keydown", listen, true);
  }, []);
}

/** Whether each track is played when its question comes; the browser remembers it. */
function useAutoPlay(question) {
  const [auto, setAuto] = useState(localStorage.getItem(PLAY_KEY) === "yes");
  useEffect(() => {
    if (question && auto && document.hasFocus()) play(question.track);
  }, [question && keyOf(question)]);
  const choose = (on) => {
    setAuto(on);
    localStorage.setItem(PLAY_KEY, on ? "yes" : "no");
    if (on && question) play(question.track);
  };
  return [auto, choose];
}

export function Teach({ params }) {
  const tag = params.tag ?? "";
  const questions = useQuestions(tag);
  const { question, answered, progress, skip, answer, undoLast } = questions;
  const [auto, setAuto] = useAutoPlay(question);
  useKeys({
    y: () => answer(true),
    n: () => answer(false),
    p: () => question && toggle(question.track),
    z: undoLast,
    " ": () => question && skip(),
  });
  return html`<${View} title="Teach" lead="Short questions where an answer helps the model most.">
    <div class="teach-tools">
      <${TagMenu} tag=${tag} />
      <label class="inline">
        <input
          type="checkbox"
          checked=${auto}
          onChange=${(event) => setAuto(event.target.checked)}
        />${" "}
        Play each track automatically
      </label>
    </div>
    <${Current} tag=${tag} questions=${questions} />
    <section class="teach-progress" aria-labelledby="so-far">
      <h2 id="so-far">So far</h2>
      <${Progress} progress=${progress} n=${answered.length} />
      <button onClick=${undoLast} disabled=${!answered.length}>
        Undo the last answer <kbd>z</kbd>
      </button>
    </section>
  <//>`;
}

function TagMenu({ tag }) {
  const tags = [...useCell(tagList)].sort((a, b) => a.shown.localeCompare(b.shown));
  const own = tags.filter(({ owner }) => owner !== "built-in");
  const builtIn = tags.filter(({ owner }) => owner === "built-in");
  return html`<label class="inline">
    About${" "}
    <select value=${tag} onChange=${(event) => go("teach", null, { tag: event.target.value })}>
      <option value="">all tags</option>
      <${TagOptions} label="Your tags" tags=${own} />
      <${TagOptions} label="Built-in" tags=${builtIn} />
    </select>
  </label>`;
}

function TagOptions({ label, tags }) {
  if (!tags.length) return null;
  return html`<optgroup label=${label}>
    ${tags.map(({ tag, shown }) => html`<option value=${tag}>${shown}</option>`)}
  </optgroup>`;
}

/** The question, or why there is none. */
function Current({ tag, questions: { question, queue, error, fetchMore, answer, skip } }) {
  if (question) {
    return html`<${Question} question=${question} answer=${answer} skip=${skip} />`;
  }
  if (error) {
    return html`<${Problem} error=${error} retry=${() => fetchMore(true)}>
      ${
        error.code === "not_ready" &&
        html`<a class="button primary" href="#/training">Train a model</a>`
      }
    <//>`;
  }
  if (queue === null) return html`<div class="question"><${Waiting} rows=${4} /></div>`;
  return html`<${Empty} title="No more questions.">
    <p>
      ${tag ? "This tag has no open questions." : "There are no open questions."}${" "}
      Train again to learn from your answers.
    </p>
    <div class="row">
      <a class="button primary" href="#/training">Train</a>
      ${tag && html`<a class="button" href="#/teach">Ask about all tags</a>`}
    </div>
  <//>`;
}

function Question({ question, answer, skip }) {
  const { track, shown, probability, threshold } = question;
  const playing = isPlaying(useCell(player), track.id);
  return html`<section class="question" aria-label="Question">
    <p class="question-text">Is this <strong>${shown}</strong>?</p>
    <div class="question-track">
      <${PlayButton} track=${track} big=${true} />
      <div class="hit-what">
        <a class="hit-title" href=${href("track", track.id)}>${titleOf(track)}</a>
        <span class="hit-by soft">${byline(track)}</span>
      </div>
      <span class="soft"><kbd>p</kbd> ${playing ? "pauses" : "plays"}</span>
    </div>
    <${Spectrum} key=${track.id} track=${track} />
    <div class="question-answers">
      <button class="answer" onClick=${() => answer(true)}>Yes <kbd>y</kbd></button>
      <button class="answer" onClick=${() => answer(false)}>No <kbd>n</kbd></button>
      <button class="answer quiet" onClick=${skip}>Skip <kbd>space</kbd></button>
    </div>
    <p class="soft">
      The model says ${percent(probability)}; the tag's threshold is ${percent(threshold)}.
    </p>
  </section>`;
}

/** How much the answers have improved the model. */
function Progress({ progress, n }) {
  if (!progress?.answers) {
    return html`<p class="soft">No answers yet. Ten take about a minute.</p>`;
  }
  const { answers, right_before, right_now, text } = progress;
  return html`<div class="teach-figures">
    <p>${text}</p>
    <${Right} label="As trained" n=${right_before} of=${answers} />
    <${Right} label="With your answers" n=${right_now} of=${answers} />
    <p class="soft">${counted(n, "answer")} since you opened this view.</p>
  </div>`;
}

function Right({ label, n, of }) {
  if ((n ?? null) === null) return null;
  return html`<div class="progress-line">
    <span>${label}</span>
    <span class="progress" aria-hidden="true">
      <span style=${{ transform: `scaleX(${n / of})` }}></span>
    </span>
    <span class="num">${n} of ${of} right</span>
  </div>`;
}
