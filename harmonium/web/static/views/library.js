// The library: its folders and people. An empty library asks where the music is.

import { html, useState } from "../vendor/preact.js";
import { post, remove } from "../api.js";
import { complain, isAtWork, jobs, library, newestJob, useCell } from "../state.js";
import { count, counted } from "../words.js";
import { JobProgress, View } from "../components/bits.js";

/** Asks for a folder, and shows the progress of indexing. */
function IndexFolder({ label = "Folder with music", button = "Index" }) {
  const job = newestJob(useCell(jobs), "index");
  const [folder, setFolder] = useState("");
  const [error, setError] = useState(null);
  const start = async (event) => {
    event.preventDefault();
    setError(null);
    try {
      const news = await post("/index", { folder: folder.trim() });
      jobs.set((old) => ({ ...old, [news.id]: news }));
    } catch (problem) { setError(problem); }
  };
  if (isAtWork(job)) return html`<${JobProgress} job=${job} />`;
  return html`<form class="index-form" onSubmit=${start}>
    <label for="folder">${label}</label>
    <div class="row"><input id="folder" type="text" placeholder="/home/me/Music" spellcheck=${false} autocapitalize="none" aria-describedby=${error ? "folder-problem" : undefined} value=${folder} onInput=${(event) => setFolder(event.target.value)} />
      <button class="primary" type="submit" disabled=${!folder.trim()}>${button}</button></div>
    ${error && html`<p id="folder-problem" class="bad" role="alert">${error.message}</p>`}
    ${!error && job?.state === "failed" && html`<p class="bad" role="alert">${job.error}</p>`}
    ${!error && job?.state === "done" && html`<p class="soft">${job.text || "Done."}</p>`}
    ${!error && job?.state === "stopped" && html`<p class="soft">Stopped. Index the folder again to continue.</p>`}
  </form>`;
}

/** The view of an empty library. */
export function First() {
  return html`<${View} title="Where is your music?" lead="Harmonium listens to the music in a folder and finds its tags. It only reads the files.">
    <section class="card first"><${IndexFolder} label="Folder on this computer" button="Index the folder" />
      <p class="soft">Each file takes about a second. You can use the page meanwhile and stop at any time.</p></section>
    <p class="soft">Just curious? Drop a single file anywhere on this page, or choose “Tag a file”, to see its tags. The file is not kept.</p>
  <//>`;
}

export function Library() {
  const about = useCell(library);
  const signOut = () => remove("/session").then(() => location.reload()).catch(complain);
  return html`<${View} title=${about?.name ?? "Library"} lead=${about && `${counted(about.tracks, "track")}${about.missing ? `, ${count(about.missing)} of them missing` : ""}${about.unreadable ? `, ${count(about.unreadable)} unreadable` : ""}.`}>
    ${about && html`
      <section class="card" aria-labelledby="folders"><h2 id="folders">Folders</h2>
        ${about.folders?.length ? html`<ul class="plain">${about.folders.map((folder) => html`<li class="path">${folder}</li>`)}</ul>` : html`<p class="soft">None yet.</p>`}
        <${IndexFolder} label="Add or rescan a folder" />
      </section>
      <section class="card" aria-labelledby="people"><h2 id="people">People</h2>
        <p>You are <b>${about.person}</b>.</p>
        ${about.people?.length > 0 && html`<ul class="plain">${about.people.map((person) => html`<li>${person.name} <span class="soft num">${counted(person.n, "tag")}</span></li>`)}</ul>`}
        ${!["localhost", "127.0.0.1", "[::1]"].includes(location.hostname) && html`<button onClick=${signOut}>Sign out</button>`}
      </section>
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
