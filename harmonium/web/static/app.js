// The page: the view that is shown, and what surrounds every view.

import { html, render, useEffect, useErrorBoundary, useState } from "./vendor/preact.js";
import { onUnauthorized } from "./api.js";
import { route } from "./router.js";
import {
  bumpChanges,
  complain,
  drafts,
  isAtWork,
  jobs,
  library,
  putJob,
  refreshLibrary,
  refreshTags,
  useCell,
} from "./state.js";
import { count } from "./words.js";
import { Problem, View } from "./components/bits.js";
import { Drop } from "./components/drop.js";
import { Player, onKey } from "./components/player.js";
import { Spoken, Toasts } from "./components/toast.js";
import { VIEWS } from "./views.js";
import { First } from "./views/library.js";
import { SignIn, tokenFromAddress } from "./views/sign-in.js";

const NAVIGATION = Object.entries(VIEWS).filter(([, { label }]) => label);

/** What a job is called while it runs, and the view that shows more of it. */
const JOBS = {
  index: { word: "Indexing", view: "search" },
  import: { word: "Learning", view: "search" },
  train: { word: "Training", view: "training" },
  write: { word: "Writing", view: "write" },
  tag: { word: "Tagging", view: "training" },
};
const OTHER_JOB = { word: "Working", view: "training" };

const GATHER = 300; // milliseconds in which several events count as one
const WHILE_INDEXING = 3000; // milliseconds after which more tracks may have tags

/** Listen to the server's events. The browser reconnects by itself. */
function listen() {
  const source = new EventSource("/api/v1/events");
  let timer = null;
  let nextReload = 0;
  const reload = () => {
    bumpChanges();
    refreshLibrary().catch(() => {});
    if (!library.value?.empty) refreshTags().catch(() => {});
  };
  const onChange = () => {
    clearTimeout(timer);
    timer = setTimeout(reload, GATHER);
  };
  const onJob = (event) => {
    const job = JSON.parse(event.data);
    putJob(job);
    if (!isAtWork(job) || library.value?.empty) {
      refreshLibrary()
        .then((summary) => summary.empty || onChange())
        .catch(() => {});
    } else if (job.kind === "index" && Date.now() > nextReload) {
      nextReload = Date.now() + WHILE_INDEXING;
      onChange();
    }
  };
  source.addEventListener("job", onJob);
  source.addEventListener("change", onChange);
  // The model has learnt from answers; its probabilities have changed.
  source.addEventListener("learnt", onChange);
  return () => source.close();
}

function CurrentView() {
  const { view, id, params } = useCell(route);
  const summary = useCell(library);
  const [error, forget] = useErrorBoundary();
  useEffect(() => {
    if (error) forget();
  }, [view, id]);
  if (error) return html`<${Broken} error=${error} />`;
  const entry = Object.hasOwn(VIEWS, view) ? VIEWS[view] : {};
  if (summary?.empty && !entry.isShownEmpty) return html`<${First} />`;
  if (id && entry.detail) return html`<${entry.detail} key=${`${view}/${id}`} id=${id} />`;
  if (entry.view) return html`<${entry.view} key=${view} params=${params} />`;
  return html`<${View} key="none" title="No such page">
    <p>There is no page at this address. <a href="#/search">Search your music</a></p>
  <//>`;
}

const Broken = ({ error }) =>
  html`<${View}
    title="Something went wrong"
    lead="This view could not be shown. Your library is not affected."
  >
    <p class="soft">${String(error.message ?? error)}</p>
    <div class="row"><button onClick=${() => location.reload()}>Reload the page</button></div>
  <//>`;

function Header() {
  const { view, id } = useCell(route);
  const summary = useCell(library);
  const busy = Object.values(useCell(jobs)).filter(isAtWork);
  const current = view === "track" ? "search" : view;
  const skip = (event) => {
    event.preventDefault();
    document.querySelector("main h1")?.focus();
  };
  const isHere = id ? "true" : "page"; // A tag's page is under Tags, but not the same.
  return html`<header class="top">
    <a class="skip" href="#main" onClick=${skip}>Skip to content</a>
    <a class="brand" href="#/search">
      <span class="brand-mark" aria-hidden="true"></span>Harmonium
    </a>
    <nav aria-label="Main">
      <ul>
        ${NAVIGATION.map(
          ([name, { label }]) => html`<li>
            <a href=${`#/${name}`} aria-current=${current === name ? isHere : undefined}>${label}</a>
          </li>`,
        )}
      </ul>
    </nav>
    <div class="top-end">
      ${busy.map((job) => html`<${BusyLink} key=${job.id} job=${job} />`)}
      <${Drop} />
      <a
        class="library-link"
        href="#/library"
        aria-current=${view === "library" ? "page" : undefined}
      >
        ${
          summary
            ? html`${summary.name ?? "Library"} <span class="soft num">${count(summary.tracks)}</span>`
            : "Library"
        }
      </a>
    </div>
  </header>`;
}

function BusyLink({ job: { kind, done, total } }) {
  const { word, view } = JOBS[kind] ?? OTHER_JOB;
  const percentDone = total ? Math.round((100 * done) / total) : null;
  return html`<a class="busy" href=${`#/${view}`}>
    <span class="spinner" aria-hidden="true"></span>${word}
    ${percentDone !== null && html`${" "}<span class="num">${percentDone}%</span>`}
  </a>`;
}

/** The header without a library. */
const PlainHeader = () =>
  html`<header class="top">
    <span class="brand"><span class="brand-mark" aria-hidden="true"></span>Harmonium</span>
  </header>`;

const isTyping = (event) => event.target.closest("input, textarea, select, dialog");

/** “/” goes to the search field, on every view; other keys are the player's. */
function onKeyDown(event) {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || isTyping(event)) return onKey(event);
  event.preventDefault();
  const focus = () => document.getElementById("q")?.focus();
  if (document.getElementById("q")) return focus();
  location.hash = "#/search";
  setTimeout(focus, 60);
}

/** The browser asks before unsaved answers are lost. */
function onLeave(event) {
  if (drafts.size) event.preventDefault();
}

function App() {
  const [stage, setStage] = useState("start"); // start, sign-in, ready, failed
  const [problem, setProblem] = useState(null);
  const start = async () => {
    setProblem(null);
    try {
      await tokenFromAddress();
      const summary = await refreshLibrary();
      setStage("ready");
      if (!summary.empty) refreshTags().catch(complain);
    } catch (error) {
      setProblem(error);
      setStage(error.status === 401 || error.status === 403 ? "sign-in" : "failed");
    }
  };
  useEffect(() => {
    onUnauthorized.call = () => setStage("sign-in");
    start();
    document.addEventListener("keydown", onKeyDown);
    addEventListener("beforeunload", onLeave);
  }, []);
  useEffect(() => (stage === "ready" ? listen() : undefined), [stage]);
  if (stage === "ready") {
    return html`<${Header} />
      <main id="main"><${CurrentView} /></main>
      <${Toasts} />
      <${Spoken} />
      <${Player} />`;
  }
  return html`<${PlainHeader} />
    <main id="main">
      ${stage === "sign-in" && html`<${SignIn} onDone=${start} />`}
      ${
        stage === "failed" &&
        html`<${View} title="Not connected"><${Problem} error=${problem} retry=${start} /><//>`
      }
    </main>`;
}

const root = document.getElementById("app");
root.textContent = "";
render(html`<${App} />`, root);
