// The library: its folders, problems, imports and people. An empty library asks where the music is.

import { html, useState } from "../vendor/preact.js";
import { get, post, remove } from "../api.js";
import { href } from "../router.js";
import { changeCount, complain, isAtWork, jobs, library, newestJob, spelt, useCell, useChange, useLoad } from "../state.js";
import { count, counted, percent } from "../words.js";
import { JobProgress, Problem, View, Waiting } from "../components/bits.js";
import { Dialog } from "../components/dialog.js";
import { Icon } from "../components/icons.js";
import { indexed, useLearning } from "../components/news.js";

const nFiles = ({ n_sounds, counted: all }) => (n_sounds || all ? `${count(n_sounds)}${all ? "" : "+"} ${n_sounds === 1 && all ? "music file" : "music files"}` : "");

/** The folders of the machine that the server runs on; one is chosen. */
function Picker({ choose, button, busy }) {
  const [path, setPath] = useState("");
  const { data, error, loading, reload } = useLoad((signal) => get("/folders", { path }, signal), [path]);
  if (!data) return error ? html`<${Problem} error=${error} retry=${reload} />` : html`<${Waiting} rows=${5} />`;
  return html`<div class="picker" aria-busy=${String(loading)}>
    <div class="picker-here"><span class="path"><b>${data.path}</b> <span class="soft num">${nFiles(data)}</span></span>
      <button class="primary" disabled=${busy} onClick=${() => choose(data.path)}>${button}</button></div>
    ${error && html`<p class="bad" role="alert">${error.message}</p>`}
    <ul aria-label="Folders">
      ${data.parent && html`<li><button class="quiet" onClick=${() => setPath(data.parent)}><span aria-hidden="true">↑</span> Folder above</button></li>`}
      ${data.folders.map((folder) => html`<li key=${folder.path}><button class="quiet" onClick=${() => setPath(folder.path)}>
        <${Icon} name="folder" /><span class="picker-name">${folder.name}</span><span class="soft num">${nFiles(folder)}</span></button></li>`)}
    </ul>
    ${!data.folders.length && html`<p class="soft">No folders in here.</p>`}
  </div>`;
}

/** Starts indexing a folder, and tells how it went. */
function useIndexing() {
  const job = newestJob(useCell(jobs), "index");
  const [error, setError] = useState(null);
  const start = async (folder) => {
    setError(null);
    try {
      const news = await post("/index", { folder: folder.trim() });
      jobs.set((old) => ({ ...old, [news.id]: news }));
    } catch (problem) { setError(problem); }
  };
  const said = error ? html`<p id="folder-problem" class="bad" role="alert">${error.message}</p>`
    : job?.state === "failed" ? html`<p class="bad" role="alert">${job.error}</p>`
    : job?.state === "done" ? html`<p class="soft">${indexed(job.result)}</p>`
    : job?.state === "stopped" ? html`<p class="soft">Stopped. Index the folder again to continue.</p>` : null;
  return { job, start, said };
}

function TypedFolder({ start }) {
  const [folder, setFolder] = useState("");
  return html`<form class="index-form" onSubmit=${(event) => { event.preventDefault(); start(folder); }}>
    <label for="folder">Or type its path</label>
    <div class="row"><input id="folder" type="text" placeholder="/home/me/Music" spellcheck=${false} autocapitalize="none" value=${folder} onInput=${(event) => setFolder(event.target.value)} />
      <button type="submit" disabled=${!folder.trim()}>Index</button></div>
  </form>`;
}

/** The view of an empty library. */
export function First() {
  const { job, start, said } = useIndexing();
  const atWork = isAtWork(job);
  return html`<${View} title=${atWork ? "Your music" : "Where is your music?"} lead=${`${atWork ? "" : "Choose a folder. "}Harmonium listens to the music and finds tags. It only reads the files.`}>
    <section class="card first">${atWork ? html`<${JobProgress} job=${job} />` : html`<${Picker} choose=${start} button="Index this folder" />${said}<${TypedFolder} start=${start} />`}
      <p class="soft">Each file takes about a second. The first tags appear after a few seconds; you can use the page in the meantime, and stop at any time.</p></section>
    <p class="soft">Just curious? Drop a single file anywhere on this page, or choose “Tag a file”, to see its tags. The file is not kept.</p>
  <//>`;
}

function Folders({ folders }) {
  const { job, start, said } = useIndexing();
  const [picking, setPicking] = useState(false);
  const atWork = isAtWork(job);
  const choose = (folder) => { setPicking(false); start(folder); };
  return html`<section class="card" aria-labelledby="folders"><h2 id="folders">Folders</h2>
    <ul class="plain folders">${folders.map((folder) => html`<li><span class="path">${folder}</span> <button disabled=${atWork} onClick=${() => start(folder)}>Rescan<span class="vh"> ${folder}</span></button></li>`)}</ul>
    ${atWork ? html`<${JobProgress} job=${job} />` : html`<div class="row"><button onClick=${() => setPicking(true)}>Add a folder</button></div>${said}`}
    ${picking && html`<${Dialog} title="Add a folder" onClose=${() => setPicking(false)}><${Picker} choose=${choose} button="Index this folder" /><${TypedFolder} start=${choose} /><//>`}
  </section>`;
}

/** What is wrong with files and tags, as `harmonium doctor` says it. */
function Problems() {
  const { data, error, reload } = useLoad((signal) => get("/doctor", {}, signal), []);
  useChange(changeCount, reload);
  if (error) return html`<section class="card" aria-label="Problems"><${Problem} error=${error} retry=${reload} /></section>`;
  if (!data) return html`<section class="card" aria-label="Problems"><h2>Problems</h2><${Waiting} rows=${3} /></section>`;
  const file = (path) => html`<li class="path">${path}</li>`;
  const lists = [
    [data.unreadable, (n) => `${counted(n, "file")} could not be read`, ({ path, reason }) => html`<li><span class="path">${path}</span><br /><span class="soft">${reason}</span></li>`],
    [data.missing, (n) => `${counted(n, "file")} missing`, file],
    [data.copies, (n) => `${counted(n, "file")} with the sound of another`, ({ path, track }) => html`<li><span class="path">${path}</span><br /><span class="soft path">same as ${track}</span></li>`],
    [data.recordings, (n) => `${counted(n, "title")} in several recordings`, (paths) => html`<li class="path">${paths.join(", ")}</li>`],
    [data.spellings, (n) => `${counted(n, "tag")} that may be spelt in two ways`, (one) => html`<li><a href=${href("tags", one.tag)}>${spelt(one.tag)}</a> (${count(one.n_tracks)}) and <a href=${href("tags", one.other)}>${spelt(one.other)}</a> (${count(one.n_other)})</li>`],
    [data.once, (n) => `${counted(n, "tag")} of a single track`, (tag) => html`<li><a href=${href("tags", tag)}>${spelt(tag)}</a></li>`],
    [data.doubts ?? [], (n) => `${counted(n, "tag")} of people that may be wrong`, (one) => html`<li><a href=${href("track", one.id)}>${one.track.split(/[\\/]/).pop()}</a>: ${spelt(one.tag)} ${one.said ? "given" : "not given"}, the model says ${percent(one.probability)}</li>`],
  ].filter(([list]) => list.length);
  return html`<section class="card" aria-labelledby="problems"><h2 id="problems">Problems</h2>
    ${!lists.length && html`<p class="soft">None found.</p>`}
    ${lists.map(([list, title, line], i) => html`<details class="problem-list" open=${i === 0 && list === data.unreadable}><summary>${title(list.length)}</summary><ul class="plain">${list.map(line)}</ul></details>`)}
  </section>`;
}

const FIELDS = [["genre", "Genre"], ["mood", "Mood"], ["grouping", "Grouping"], ["comment", "Comment"]];

/** Learn the tags that the files have. */
function Learn() {
  const [fields, setFields] = useState(["genre"]);
  const { job, data, error, learn } = useLearning(fields.join(","));
  const flip = (field) => setFields((old) => (old.includes(field) ? old.filter((one) => one !== field) : [...old, field]));
  const ignored = Object.entries(data?.ignored ?? {}).sort((a, b) => b[1] - a[1]);
  return html`<section class="card" aria-labelledby="learn"><h2 id="learn">Tags in your files</h2>
    <p>The model can learn the tags that your files already have.</p>
    <fieldset class="row checks"><legend class="vh">Fields</legend>${FIELDS.map(([field, name]) => html`<label class="inline"><input type="checkbox" checked=${fields.includes(field)} onChange=${() => flip(field)} /> ${name}</label>`)}</fieldset>
    ${error ? html`<p class="bad" role="alert">${error.message}</p>` : data && html`<p class="soft">${data.tracks ? `${counted(data.tags, "tag")} on ${counted(data.tracks, "track")}${data.new ? `, ${count(data.new)} new` : ". All are imported"}.` : "The files have no such tags."}
      ${ignored.length > 0 && ` Not taken for tags: ${ignored.map(([word, n]) => `${word} (${count(n)})`).join(", ")}.`}</p>`}
    ${isAtWork(job) ? html`<${JobProgress} job=${job} />` : html`<div class="row"><button class="primary" disabled=${!fields.length || !data?.tracks} onClick=${learn}>Learn from them</button></div>`}
    ${job?.state === "failed" && html`<p class="bad" role="alert">${job.error}</p>`}
  </section>`;
}

const COMMANDS = [
  ["harmonium import tags.csv", "import a table of tags"],
  ["harmonium import --features table.parquet", "use features from another program"],
  ["harmonium search jazz --playlist jazz.m3u8", "save a playlist; --export also writes .csv or Rekordbox .xml"],
  ["harmonium write --help", "write with rules: overwrite, aliases, only some tags, audio features"],
  ["harmonium forget FOLDER", "remove tracks from the library; their files stay"],
];

export function Library() {
  const about = useCell(library);
  const signOut = () => remove("/session").then(() => location.reload()).catch(complain);
  return html`<${View} title=${about?.name ?? "Library"} lead=${about && `${counted(about.tracks, "track")}${about.missing ? `; ${count(about.missing)} missing` : ""}${about.unreadable ? `; ${counted(about.unreadable, "file")} could not be read` : ""}.`}>
    ${about && html`
      <${Folders} folders=${about.folders ?? []} />
      ${!about.empty && html`<${Problems} /><${Learn} />`}
      <section class="card" aria-labelledby="people"><h2 id="people">People</h2>
        <p>You are <b>${about.person}</b>.</p>
        ${about.people?.length > 0 && html`<ul class="plain">${about.people.map((person) => html`<li>${person.name} <span class="soft num">tagged ${counted(person.n, "track")}</span></li>`)}</ul>`}
        ${!["localhost", "127.0.0.1", "[::1]"].includes(location.hostname) && html`<button onClick=${signOut}>Sign out</button>`}
      </section>
      <section class="card" aria-labelledby="terminal"><h2 id="terminal">In the terminal</h2>
        <dl class="commands">${COMMANDS.map(([command, what]) => html`<div><dt><code>${command}</code></dt><dd>${what}</dd></div>`)}</dl></section>
      <section class="card" aria-labelledby="keys"><h2 id="keys">Keys</h2>
        <dl class="keys">
          <div><dt><kbd>/</kbd></dt><dd>search</dd></div>
          <div><dt><kbd>space</kbd></dt><dd>play or pause</dd></div>
          <div><dt><kbd>←</kbd> <kbd>→</kbd></dt><dd>five seconds back or forward</dd></div>
          <div><dt><kbd>shift</kbd> <kbd>←</kbd> <kbd>→</kbd></dt><dd>previous or next track</dd></div>
          <div><dt><kbd>y</kbd> <kbd>n</kbd> <kbd>u</kbd></dt><dd>yes, no, unknown on a tag's row</dd></div>
          <div><dt><kbd>y</kbd> <kbd>n</kbd> <kbd>space</kbd> <kbd>p</kbd> <kbd>z</kbd></dt><dd>yes, no, skip, play, undo in Teach</dd></div>
        </dl></section>`}
  <//>`;
}
