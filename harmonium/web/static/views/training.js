// Train a model, compare it with the one in use, and switch between models.

import { html, useEffect, useState } from "../vendor/preact.js";
import { get, post } from "../api.js";
import { href } from "../router.js";
import { changeCount, complain, isAtWork, jobs, library, newestJob, refreshLibrary, refreshTags, spelt, useCell, useChange, useLoad } from "../state.js";
import { count, counted, when } from "../words.js";
import { Empty, JobProgress, Problem, Quality, View, Waiting } from "../components/bits.js";
import { toastUndo } from "../components/toast.js";

export function Training() {
  const { data, error, reload } = useLoad((signal) => get("/models", {}, signal), []);
  const job = newestJob(useCell(jobs), "train");
  const about = useCell(library);
  const [chosen, setChosen] = useState(null);
  const [busy, setBusy] = useState(false);
  useChange(changeCount, reload);
  useEffect(() => { if (job && !isAtWork(job)) reload(); }, [job?.id, job?.state]);

  const train = async () => {
    setBusy(true);
    try {
      const news = await post("/train", { take_over: false });
      jobs.set((old) => ({ ...old, [news.id]: news }));
      setChosen(null);
    } catch (problem) { complain(problem); }
    setBusy(false);
  };
  const use = async (model) => {
    try {
      const { change } = await post(`/models/${model.id}/use`);
      toastUndo(`Model ${model.id} is in use.`, change, reload);
      setChosen(null);
      reload();
      refreshLibrary().catch(complain);
      refreshTags().catch(complain);
    } catch (problem) { complain(problem); }
  };
  const models = data?.models ?? [];
  const current = models.find((model) => model.in_use);
  const made = job?.state === "done" ? job.result?.model : null;
  const candidate = models.find((model) => !model.in_use && String(model.id) === String(chosen ?? made));
  return html`<${View} title="Training" lead="The model learns from all tags that people have given.">
    <section class="card" aria-labelledby="now">
      <h2 id="now">${current ? `In use: ${current.built_in ? "the built-in model" : `model ${current.id}`}` : "In use"}</h2>
      ${current ? html`<${Figures} model=${current} />` : html`<p>${about?.built_in?.ready ? "The built-in model. It knows general tags; train one to learn your own tags." : "No model yet."}</p>`}
      ${isAtWork(job) ? html`<${JobProgress} job=${job} />` : html`<div class="row"><button class="primary" onClick=${train} disabled=${busy}>Train a new model</button>
        <span class="soft">The model in use stays until you switch to the new one.</span></div>`}
      ${job?.state === "failed" && html`<p class="bad" role="alert">${job.error}</p>`}
      ${job?.state === "stopped" && html`<p class="soft">Training was stopped. You can start it again.</p>`}
    </section>
    ${candidate && current && html`<${Compare} key=${`${current.id}-${candidate.id}`} current=${current} candidate=${candidate} use=${() => use(candidate)} close=${chosen ? () => setChosen(null) : null} />`}
    ${candidate && !current && html`<section class="card"><h2>New model</h2><${Figures} model=${candidate} /><div class="row"><button class="primary" onClick=${() => use(candidate)}>Use the new model</button></div></section>`}
    <section aria-labelledby="all-models"><h2 id="all-models">All models</h2>
      ${error && !data ? html`<${Problem} error=${error} retry=${reload} />` : !data ? html`<${Waiting} rows=${3} />`
        : !models.length ? html`<${Empty} title="No model has been trained yet."><p>Give about fifteen tracks each tag that the model should learn, then train.</p><div class="row"><a class="button" href="#/search">Tracks</a></div><//>`
        : html`<table class="table models"><thead><tr><th scope="col">Model</th><th scope="col" class="wide-only">Made</th><th scope="col" class="num">Tags learnt</th><th scope="col">Quality</th><th scope="col" class="num wide-only">Tracks</th><th scope="col"><span class="vh">Actions</span></th></tr></thead>
          <tbody>${models.map((model) => html`<tr key=${model.id} class=${model.in_use ? "in-use" : ""}><th scope="row">${model.id}${model.in_use && html` <span class="badge">in use</span>`}${model.built_in && html` <span class="badge">built-in</span>`}</th>
            <td class="wide-only">${when(model.made_at)}</td><td class="num">${count(model.learnt)} of ${count(model.tags)}</td><td><${Quality} auc=${model.mean_auc} /></td><td class="num wide-only">${model.tracks === null ? "–" : count(model.tracks)}</td>
            <td class="actions">${!model.in_use && html`${current && html`<button onClick=${() => { setChosen(model.id); }}>Compare</button>`}<button onClick=${() => use(model)}>Use<span class="vh"> model ${model.id}</span></button>`}</td></tr>`)}</tbody></table>`}
    </section>
  <//>`;
}

const signed = (change) => `${change < 0 ? "−" : "+"}${Math.abs(change).toFixed(3)}`;

const Figures = ({ model }) => html`<dl class="figures">
  <div><dt>tags learnt</dt><dd class="num">${count(model.learnt)} of ${count(model.tags)}</dd></div>
  <div><dt>quality (mean AUC)</dt><dd><${Quality} auc=${model.mean_auc} /></dd></div>
  ${model.tracks !== null && html`<div><dt>tracks learnt from</dt><dd class="num">${count(model.tracks)}</dd></div>`}
  </dl>`;

function Compare({ current, candidate, use, close }) {
  const { data, error, reload } = useLoad((signal) => get("/models/compare", { a: current.id, b: candidate.id }, signal), [current.id, candidate.id]);
  const size = (tag) => (tag.auc_a === null ? 1 : Math.abs(tag.auc_b - tag.auc_a));
  const tags = (data?.tags ?? []).filter((tag) => tag.auc_b !== null).sort((a, b) => size(b) - size(a));
  const unknown = (data?.tags ?? []).filter((tag) => tag.auc_b === null);
  return html`<section class="card compare" aria-labelledby="compare"><h2 id="compare">Model ${candidate.id} compared with model ${current.id}</h2>
    ${error ? html`<${Problem} error=${error} retry=${reload} />` : !data ? html`<${Waiting} rows=${6} />` : html`
      <p>${data.mean_a === null ? "No tag of both was measured on the same music" : html`<strong>${counted(data.better, "tag")} better, ${count(data.worse)} worse</strong>`}${data.mean_a !== null && `; mean AUC of the tags of both ${data.mean_a.toFixed(3)} → ${data.mean_b.toFixed(3)}${data.error === null ? "" : ` (difference ${signed(data.mean_b - data.mean_a)} ± ${data.error.toFixed(3)})`}`}.
        ${data.changed_tracks !== null && data.changed_tracks !== undefined ? ` ${counted(data.changed_tracks, "track")} would get other tags.` : ""}</p>
      <div class="row"><button class="primary" onClick=${use}>Use model ${candidate.id}</button>${close && html`<button onClick=${close}>Close</button>`}</div>
      ${tags.length > 0 && html`<table class="table"><thead><tr><th scope="col">Tag</th><th scope="col">In use</th><th scope="col">Model ${candidate.id}</th><th scope="col" class="num">Change of AUC</th></tr></thead>
        <tbody>${tags.map((tag) => {
          const change = tag.auc_a === null ? null : tag.auc_b - tag.auc_a;
          return html`<tr key=${tag.tag}><th scope="row"><a href=${href("tags", tag.tag)}>${spelt(tag.tag)}</a></th><td><${Quality} auc=${tag.auc_a} /></td><td><${Quality} auc=${tag.auc_b} /></td>
            <td class="num">${change === null ? "new" : html`<span class=${Math.abs(change) < 0.0005 ? "soft" : change > 0 ? "moved up" : "moved down"}>${signed(change)}</span>`}</td></tr>`;
        })}</tbody></table>`}
      ${unknown.length > 0 && html`<details><summary>${counted(unknown.length, "tag")} not evaluated</summary>
        <p class="soft">There were too few tracks to evaluate them, or they belong to the built-in model: ${unknown.map((tag) => spelt(tag.tag)).join(", ")}.</p></details>`}`}
  </section>`;
}
