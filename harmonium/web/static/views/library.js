// The library: its folders, problems, imports and people. An empty library asks where the music is.

import { html, useState } from "../vendor/preact.js";
import { get, post, remove } from "../api.js";
import { href } from "../router.js";
import {
  changeCount,
  complain,
  isAtWork,
  jobs,
  library,
  newestJob,
  putJob,
  spelt,
  useCell,
  useChange,
  useLoad,
} from "../state.js";
import { count, counted, percent } from "../words.js";
import { FormError, JobProgress, Pending, Problem, View, Waiting } from "../components/bits.js";
import { Dialog } from "../components/dialog.js";
import { Icon } from "../components/icons.js";
import { indexed, useLearning } from "../components/news.js";

/** The number of music files in a folder; with +, if counting them took too long. */
function nFiles({ n_sounds: n, counted: isExact }) {
  if (!n && !isExact) return "";
  return isExact ? counted(n, "music file") : `${count(n)}+ music files`;
}

/** The folders of the machine that the server runs on; one is chosen. */
function Picker({ choose, button, busy }) {
  const [path, setPath] = useState("");
  const listing = useLoad((signal) => get("/folders", { path }, signal), [path]);
  const { data, error, loading } = listing;
  if (!data) return html`<${Pending} load=${listing} rows=${5} />`;
  return html`<div class="picker" aria-busy=${String(loading)}>
    <div class="picker-here">
      <span class="path"><b>${data.path}</b> <span class="soft num">${nFiles(data)}</span></span>
      <button class="primary" disabled=${busy} onClick=${() => choose(data.path)}>${button}</button>
    </div>
    <${FormError} error=${error} />
    <ul aria-label="Folders">
      ${
        data.parent &&
        html`<li>
        <button class="quiet" onClick=${() => setPath(data.parent)}>
          <span aria-hidden="true">↑</span> Folder above
        </button>
      </li>`
      }
      ${data.folders.map(
        (folder) => html`<li key=${folder.path}>
          <button class="quiet" onClick=${() => setPath(folder.path)}>
            <${Icon} name="folder" />
            <span class="picker-name">${folder.name}</span>
            <span class="soft num">${nFiles(folder)}</span>
          </button>
        </li>`,
      )}
    </ul>
    ${!data.folders.length && html`<p class="soft">No folders inside.</p>`}
  </div>`;
}

/** Starts indexing a folder, and tells how it went. */
function useIndexing() {
  const job = newestJob(useCell(jobs), "index");
  const [error, setError] = useState(null);
  const start = async (folder) => {
    setError(null);
    try {
      putJob(await post("/index", { folder: folder.trim() }));
    } catch (problem) {
      setError(problem);
    }
  };
  return { job, start, outcome: html`<${Outcome} error=${error} job=${job} />` };
}

/** How indexing went. */
function Outcome({ error, job }) {
  if (error) return html`<p id="folder-problem" class="bad" role="alert">${error.message}</p>`;
  if (job?.state === "failed") return html`<p class="bad" role="alert">${job.error}</p>`;
  if (job?.state === "done") return html`<p class="soft">${indexed(job.result)}</p>`;
  if (job?.state === "stopped") {
    return html`<p class="soft">Stopped. Index the folder again to continue.</p>`;
  }
  return null;
}

function TypedFolder({ start }) {
  const [folder, setFolder] = useState("");
  const onSubmit = (event) => {
    event.preventDefault();
    start(folder);
  };
  return html`<form class="index-form" onSubmit=${onSubmit}>
    <label for="folder">Or type its path</label>
    <div class="row">
      <input
        id="folder"
        type="text"
        placeholder="/home/me/Music"
        spellcheck=${false}
        autocapitalize="none"
        value=${folder}
        onInput=${(event) => setFolder(event.target.value)}
      />
      <button type="submit" disabled=${!folder.trim()}>Index</button>
    </div>
  </form>`;
}

const ONLY_READS = "Harmonium analyses the music and predicts tags. It does not change your files.";

/** The view of an empty library. */
export function First() {
  const { job, start, outcome } = useIndexing();
  const atWork = isAtWork(job);
  return html`<${View}
    title=${atWork ? "Your music" : "Where is your music?"}
    lead=${atWork ? ONLY_READS : `Choose a folder. ${ONLY_READS}`}
  >
    <section class="card first">
      ${
        atWork
          ? html`<${JobProgress} job=${job} />`
          : html`<${Picker} choose=${start} button="Index this folder" />
            ${outcome}
            <${TypedFolder} start=${start} />`
      }
      <p class="soft">
        Each file takes about a second. The first tags appear after a few seconds; you can use the
        page in the meantime, and stop at any time.
      </p>
    </section>
    <p class="soft">
      Just curious? Drop a single file anywhere on this page, or choose “Tag a file”, to see its
      tags. The file is not kept.
    </p>
  <//>`;
}

function Folders({ folders }) {
  const { job, start, outcome } = useIndexing();
  const [picking, setPicking] = useState(false);
  const atWork = isAtWork(job);
  const choose = (folder) => {
    setPicking(false);
    start(folder);
  };
  return html`<section class="card" aria-labelledby="folders">
    <h2 id="folders">Folders</h2>
    <ul class="plain folders">
      ${folders.map(
        (folder) => html`<li>
          <span class="path">${folder}</span>${" "}
          <button disabled=${atWork} onClick=${() => start(folder)}>
            Rescan<span class="vh"> ${folder}</span>
          </button>
        </li>`,
      )}
    </ul>
    ${
      atWork
        ? html`<${JobProgress} job=${job} />`
        : html`<div class="row">
            <button onClick=${() => setPicking(true)}>Add a folder</button>
          </div>
          ${outcome}`
    }
    ${
      picking &&
      html`<${Dialog} title="Add a folder" onClose=${() => setPicking(false)}>
      <${Picker} choose=${choose} button="Index this folder" />
      <${TypedFolder} start=${choose} />
    <//>`
    }
  </section>`;
}

const TagLink = ({ tag }) => html`<a href=${href("tags", tag)}>${spelt(tag)}</a>`;
const fileName = (path) => path.split(/[\\/]/).pop();

const PathLine = (path) => html`<li class="path">${path}</li>`;

const UnreadableLine = ({ path, reason }) =>
  html`<li><span class="path">${path}</span><br /><span class="soft">${reason}</span></li>`;

const CopyLine = ({ path, track }) =>
  html`<li>
    <span class="path">${path}</span><br /><span class="soft path">same as ${track}</span>
  </li>`;

const SpellingLine = ({ tag, n_tracks, other, n_other }) =>
  html`<li>
    <${TagLink} tag=${tag} /> (${count(n_tracks)}) and${" "}
    <${TagLink} tag=${other} /> (${count(n_other)})
  </li>`;

const DoubtLine = ({ id, track, tag, said, probability }) =>
  html`<li>
    <a href=${href("track", id)}>${fileName(track)}</a>: ${spelt(tag)}${" "}
    ${said ? "given" : "not given"}; the model says ${percent(probability)}
  </li>`;

/** [field of GET /doctor, its title for n entries, the line of an entry] */
const PROBLEMS = [
  ["unreadable", (n) => `${counted(n, "file")} could not be read`, UnreadableLine],
  ["missing", (n) => `${counted(n, "file")} ${n === 1 ? "is" : "are"} missing`, PathLine],
  ["copies", (n) => `${counted(n, "file")} with the same sound as another`, CopyLine],
  [
    "recordings",
    (n) => `${counted(n, "title")} in several recordings`,
    (paths) => PathLine(paths.join(", ")),
  ],
  ["spellings", (n) => `${counted(n, "pair")} of tags that may be the same`, SpellingLine],
  [
    "once",
    (n) => `${counted(n, "tag")} on a single track`,
    (tag) => html`<li><${TagLink} tag=${tag} /></li>`,
  ],
  ["doubts", (n) => `${counted(n, "tag")} by people that may be wrong`, DoubtLine],
];

/** What is wrong with files and tags, as `harmonium doctor` says it. */
function Problems() {
  const { data, error, reload } = useLoad((signal) => get("/doctor", {}, signal), []);
  useChange(changeCount, reload);
  if (error) {
    return html`<section class="card" aria-label="Problems">
      <${Problem} error=${error} retry=${reload} />
    </section>`;
  }
  if (!data) {
    return html`<section class="card" aria-label="Problems">
      <h2>Problems</h2>
      <${Waiting} rows=${3} />
    </section>`;
  }
  const found = PROBLEMS.filter(([field]) => data[field]?.length);
  return html`<section class="card" aria-labelledby="problems">
    <h2 id="problems">Problems</h2>
    ${!found.length && html`<p class="soft">None found.</p>`}
    ${found.map(
      ([field, title, line]) => html`<details class="problem-list" open=${field === "unreadable"}>
        <summary>${title(data[field].length)}</summary>
        <ul class="plain">
          ${data[field].map(line)}
        </ul>
      </details>`,
    )}
  </section>`;
}

const FIELDS = [
  ["genre", "Genre"],
  ["mood", "Mood"],
  ["grouping", "Grouping"],
  ["comment", "Comment"],
];

/** Learn the tags that the files have. */
function Learn() {
  const [fields, setFields] = useState(["genre"]);
  const { job, data, error, learn } = useLearning(fields.join(","));
  const flip = (field) => {
    const isChosen = fields.includes(field);
    setFields(isChosen ? fields.filter((other) => other !== field) : [...fields, field]);
  };
  const disabled = !fields.length || !data?.tracks;
  return html`<section class="card" aria-labelledby="learn">
    <h2 id="learn">Tags in your files</h2>
    <p>The model can learn the tags that your files already have.</p>
    <fieldset class="row checks">
      <legend class="vh">Fields</legend>
      ${FIELDS.map(
        ([field, name]) => html`<label class="inline">
          <input
            type="checkbox"
            checked=${fields.includes(field)}
            onChange=${() => flip(field)}
          />${" "}
          ${name}
        </label>`,
      )}
    </fieldset>
    ${
      error
        ? html`<${FormError} error=${error} />`
        : data && html`<p class="soft">${importable(data)}</p>`
    }
    ${
      isAtWork(job)
        ? html`<${JobProgress} job=${job} />`
        : html`<div class="row">
          <button class="primary" disabled=${disabled} onClick=${learn}>Learn from them</button>
        </div>`
    }
    ${job?.state === "failed" && html`<p class="bad" role="alert">${job.error}</p>`}
  </section>`;
}

/** What importing the tags of the files would add. */
function importable({ tags, tracks, new: nNew, ignored }) {
  const sentences = [];
  if (tracks) {
    const added = nNew ? `, ${count(nNew)} new` : ", all imported";
    sentences.push(`${counted(tags, "tag")} on ${counted(tracks, "track")}${added}.`);
  } else {
    sentences.push("Your files have no tags in these fields.");
  }
  const words = Object.entries(ignored ?? {}).sort((a, b) => b[1] - a[1]);
  const list = words.map(([word, n]) => `${word} (${count(n)})`).join(", ");
  if (list) sentences.push(`Ignored: ${list}.`);
  return sentences.join(" ");
}

const COMMANDS = [
  ["harmonium import tags.csv", "import a table of tags"],
  ["harmonium import --features table.parquet", "use features from another program"],
  [
    "harmonium search jazz --playlist jazz.m3u8",
    "save a playlist; --export also writes .csv or Rekordbox .xml",
  ],
  [
    "harmonium write --help",
    "write with rules: overwrite, aliases, only some tags, audio features",
  ],
  ["harmonium forget FOLDER", "remove tracks from the library; their files stay"],
];

const KEYS = [
  [["/"], "search"],
  [["space"], "play or pause"],
  [["←", "→"], "five seconds back or forward"],
  [["shift", "←", "→"], "previous or next track"],
  [["y", "n", "u"], "yes, no, unknown on a tag's row"],
  [["y", "n", "space", "p", "z"], "yes, no, skip, play, undo in Teach"],
];

const LOCAL = ["localhost", "127.0.0.1", "[::1]"];

export function Library() {
  const summary = useCell(library);
  return html`<${View} title=${summary?.name ?? "Library"} lead=${summary && leadOf(summary)}>
    ${
      summary &&
      html`
      <${Folders} folders=${summary.folders ?? []} />
      ${!summary.empty && html`<${Problems} /><${Learn} />`}
      <${People} summary=${summary} />
      <${Terminal} />
      <${Keys} />
    `
    }
  <//>`;
}

function leadOf({ tracks, missing, unreadable }) {
  const parts = [counted(tracks, "track")];
  if (missing) parts.push(`${count(missing)} missing`);
  if (unreadable) parts.push(`${counted(unreadable, "file")} could not be read`);
  return parts.join("; ") + ".";
}

function People({ summary: { person, people } }) {
  const signOut = () =>
    remove("/session")
      .then(() => location.reload())
      .catch(complain);
  return html`<section class="card" aria-labelledby="people">
    <h2 id="people">People</h2>
    <p>You are <b>${person}</b>.</p>
    ${
      people?.length > 0 &&
      html`<ul class="plain">
      ${people.map(
        ({ name, n }) => html`<li>
          ${name} <span class="soft num">tagged ${counted(n, "track")}</span>
        </li>`,
      )}
    </ul>`
    }
    ${!LOCAL.includes(location.hostname) && html`<button onClick=${signOut}>Sign out</button>`}
  </section>`;
}

const Terminal = () =>
  html`<section class="card" aria-labelledby="terminal">
    <h2 id="terminal">In the terminal</h2>
    <dl class="commands">
      ${COMMANDS.map(
        ([command, what]) => html`<div>
          <dt><code>${command}</code></dt>
          <dd>${what}</dd>
        </div>`,
      )}
    </dl>
  </section>`;

const Keys = () =>
  html`<section class="card" aria-labelledby="keys">
    <h2 id="keys">Keys</h2>
    <dl class="keys">
      ${KEYS.map(
        ([keys, what]) => html`<div>
          <dt>${keys.map((key, i) => html`${i > 0 && " "}<kbd>${key}</kbd>`)}</dt>
          <dd>${what}</dd>
        </div>`,
      )}
    </dl>
  </section>`;
