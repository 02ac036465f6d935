// The page: the view that is shown, and what surrounds every view.

import { html, render, useEffect, useErrorBoundary, useState } from "./vendor/preact.js";
import { onUnauthorized } from "./api.js";
import { route } from "./router.js";
import { changeCount, complain, drafts, isAtWork, jobs, library, refreshLibrary, refreshTags, useCell } from "./state.js";
import { count } from "./words.js";
import { Problem, View } from "./components/bits.js";
import { Drop } from "./components/drop.js";
import { Player, onKey } from "./components/player.js";
import { Spoken, Toasts } from "./components/toast.js";
import { Changes } from "./views/changes.js";
import { First, Library } from "./views/library.js";
import { Search } from "./views/search.js";
import { SignIn, tokenFromAddress } from "./views/sign-in.js";
import { Tag } from "./views/tag.js";
import { Tags } from "./views/tags.js";
import { Teach } from "./views/teach.js";
import { Track } from "./views/track.js";
import { Training } from "./views/training.js";
import { Write } from "./views/write.js";

const NAVIGATION = [["search", "Search"], ["teach", "Teach"], ["tags", "Tags"], ["write", "Write"], ["training", "Training"], ["changes", "Changes"]];
const JOB_VIEW = { index: "search", import: "search", train: "training", write: "write", tag: "training" };
const JOB_WORD = { index: "Indexing", import: "Learning", train: "Training", write: "Writing", tag: "Tagging" };

/** Listen to the server's events. The browser reconnects by itself. */
function listen() {
  const source = new EventSource("/api/v1/events");
  let late = null, next = 0;
  const changed = () => { // Several events in a row count as one.
    clearTimeout(late);
    late = setTimeout(() => {
      changeCount.set((n) => n + 1);
      refreshLibrary().catch(() => {});
      if (!library.value?.empty) refreshTags().catch(() => {});
    }, 300);
  };
  source.addEventListener("job", (event) => {
    const job = JSON.parse(event.data);
    jobs.set((old) => ({ ...old, [job.id]: job }));
    if (!isAtWork(job) || library.value?.empty) refreshLibrary().then((about) => about.empty || changed(), () => {});
    else if (job.kind === "index" && Date.now() > next) { // Some more tracks may have tags.
      next = Date.now() + 3000;
      changed();
    }
  });
  source.addEventListener("change", changed);
  source.addEventListener("learnt", changed); // The model has learnt from answers; its probabilities have changed.
  return () => source.close();
}

function CurrentView() {
  const { view, id, params } = useCell(route);
  const about = useCell(library);
  const [error, forget] = useErrorBoundary();
  useEffect(() => { if (error) forget(); }, [view, id]);
  if (error) {
    return html`<${View} title="Something went wrong" lead="This view could not be shown. Your library is not affected."><p class="soft">${String(error.message ?? error)}</p><div class="row"><button onClick=${() => location.reload()}>Reload the page</button></div><//>`;
  }
  if (about?.empty && view !== "library" && view !== "changes") return html`<${First} />`;
  if (view === "track" && id) return html`<${Track} key=${"track" + id} id=${id} />`;
  if (view === "tags" && id) return html`<${Tag} key=${"tag" + id} id=${id} />`;
  const views = { search: Search, teach: Teach, tags: Tags, write: Write, training: Training, changes: Changes, library: Library };
  const Shown = views[view];
  if (!Shown) return html`<${View} key="none" title="No such page"><p>There is no page at this address. <a href="#/search">Search your music</a></p><//>`;
  return html`<${Shown} key=${view} params=${params} />`;
}

function Header() {
  const { view, id } = useCell(route);
  const about = useCell(library);
  const busy = Object.values(useCell(jobs)).filter(isAtWork);
  const current = view === "track" ? "search" : view;
  return html`<header class="top">
    <a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); document.querySelector("main h1")?.focus(); }}>Skip to the content</a>
    <a class="brand" href="#/search"><span class="brand-mark" aria-hidden="true"></span>Harmonium</a>
    <nav aria-label="Main"><ul>${NAVIGATION.map(([name, label]) => html`<li><a href=${`#/${name}`} aria-current=${current === name ? (id ? "true" : "page") : undefined}>${label}</a></li>`)}</ul></nav>
    <div class="top-end">
      ${busy.map((job) => html`<a key=${job.id} class="busy" href=${`#/${JOB_VIEW[job.kind] ?? "training"}`}><span class="spinner" aria-hidden="true"></span>${JOB_WORD[job.kind] ?? "Working"}${job.total ? html` <span class="num">${Math.round((100 * job.done) / job.total)}%</span>` : ""}</a>`)}
      <${Drop} />
      <a class="library-link" href="#/library" aria-current=${view === "library" ? "page" : undefined}>${about ? html`${about.name ?? "Library"} <span class="soft num">${count(about.tracks)}</span>` : "Library"}</a>
    </div>
  </header>`;
}

function App() {
  const [stage, setStage] = useState("start"); // start, sign-in, ready, failed
  const [problem, setProblem] = useState(null);
  const start = async () => {
    setProblem(null);
    try {
      await tokenFromAddress();
      const about = await refreshLibrary();
      setStage("ready");
      if (!about.empty) refreshTags().catch(complain);
    } catch (error) {
      setProblem(error);
      setStage(error.status === 401 || error.status === 403 ? "sign-in" : "failed");
    }
  };
  useEffect(() => {
    onUnauthorized.call = () => setStage("sign-in");
    start();
    const onKeyDown = (event) => {
      if (event.key === "/" && !event.target.closest("input, textarea, select, dialog") && !event.ctrlKey && !event.metaKey) {
        event.preventDefault();
        const field = document.getElementById("q");
        if (field) field.focus();
        else {
          location.hash = "#/search";
          setTimeout(() => document.getElementById("q")?.focus(), 60);
        }
      } else onKey(event);
    };
    document.addEventListener("keydown", onKeyDown);
    const onLeave = (event) => { if (drafts.size) event.preventDefault(); };
    addEventListener("beforeunload", onLeave);
  }, []);
  useEffect(() => (stage === "ready" ? listen() : undefined), [stage]);
  if (stage === "start") return html`<header class="top"><span class="brand"><span class="brand-mark" aria-hidden="true"></span>Harmonium</span></header><main id="main"></main>`;
  if (stage !== "ready") {
    return html`<header class="top"><span class="brand"><span class="brand-mark" aria-hidden="true"></span>Harmonium</span></header>
      <main id="main">${stage === "sign-in" ? html`<${SignIn} onDone=${start} />` : html`<${View} title="Not connected"><${Problem} error=${problem} retry=${start} /><//>`}</main>`;
  }
  return html`<${Header} /><main id="main"><${CurrentView} /></main><${Toasts} /><${Spoken} /><${Player} />`;
}

const place = document.getElementById("app");
place.textContent = "";
render(html`<${App} />`, place);
