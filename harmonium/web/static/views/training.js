// Train a model, compare it with the one in use, and switch between models.

import { html, useEffect, useState } from "../vendor/preact.js";
import { get, post } from "../api.js";
import {
  changeCount,
  complain,
  isAtWork,
  jobs,
  library,
  newestJob,
  putJob,
  refreshLibrary,
  refreshTags,
  useCell,
  useChange,
  useLoad,
} from "../state.js";
import { auc, count, when } from "../words.js";
import { Empty, JobProgress, Pending, View } from "../components/bits.js";
import { Compare } from "../components/compare.js";
import { toastUndo } from "../components/toast.js";

const ABOUT_AUC =
  "How well the model ranks held-out tracks with a tag before those without: 0.5 is chance, 1 is perfect";

export function Training() {
  const list = useLoad((signal) => get("/models", {}, signal), []);
  const job = newestJob(useCell(jobs), "train");
  const [chosen, setChosen] = useState(null); // the number of a model to compare
  useChange(changeCount, list.reload);
  useEffect(() => {
    if (job && !isAtWork(job)) list.reload();
  }, [job?.id, job?.state]);

  const use = async (model) => {
    try {
      const { change } = await post(`/models/${model.id}/use`);
      toastUndo(`Model ${model.id} is in use.`, change, list.reload);
      setChosen(null);
      list.reload();
      refreshLibrary().catch(complain);
      refreshTags().catch(complain);
    } catch (problem) {
      complain(problem);
    }
  };
  const models = list.data?.models ?? [];
  const current = models.find((model) => model.in_use);
  const trained = job?.state === "done" ? job.result?.model : null;
  const wanted = chosen ?? trained;
  const candidate = models.find((model) => !model.in_use && model.id === wanted);
  return html`<${View} title="Training" lead="A model learns from all tags that people gave.">
    <${InUse} model=${current} job=${job} onTrain=${() => setChosen(null)} />
    ${
      candidate &&
      current &&
      html`<${Compare}
      key=${`${current.id}-${candidate.id}`}
      current=${current}
      candidate=${candidate}
      use=${() => use(candidate)}
      close=${chosen ? () => setChosen(null) : null}
    />`
    }
    ${
      candidate &&
      !current &&
      html`<section class="card">
      <h2>New model</h2>
      <${Figures} model=${candidate} />
      <div class="row">
        <button class="primary" onClick=${() => use(candidate)}>Use the new model</button>
      </div>
    </section>`
    }
    <section aria-labelledby="all-models">
      <h2 id="all-models">All models</h2>
      ${
        list.data
          ? html`<${Models} models=${models} current=${current} compare=${setChosen} use=${use} />`
          : html`<${Pending} load=${list} rows=${3} />`
      }
    </section>
  <//>`;
}

/** The model in use, and training another. */
function InUse({ model, job, onTrain }) {
  const [busy, setBusy] = useState(false);
  const train = async () => {
    setBusy(true);
    try {
      putJob(await post("/train", { take_over: false }));
      onTrain();
    } catch (problem) {
      complain(problem);
    }
    setBusy(false);
  };
  return html`<section class="card" aria-labelledby="now">
    <h2 id="now">${headingOf(model)}</h2>
    ${model ? html`<${Figures} model=${model} />` : html`<${NoModel} />`}
    ${
      isAtWork(job)
        ? html`<${JobProgress} job=${job} />`
        : html`<div class="row">
          <button class="primary" onClick=${train} disabled=${busy}>Train a new model</button>
          <span class="soft">The current model stays in use until you switch.</span>
        </div>`
    }
    ${job?.state === "failed" && html`<p class="bad" role="alert">${job.error}</p>`}
    ${
      job?.state === "stopped" &&
      html`<p class="soft">Training was stopped. You can start it again.</p>`
    }
  </section>`;
}

function headingOf(model) {
  if (!model) return "In use";
  return model.built_in ? "In use: the built-in model" : `In use: model ${model.id}`;
}

function NoModel() {
  const isReady = useCell(library)?.built_in?.ready;
  if (!isReady) return html`<p>No model yet.</p>`;
  return html`<p>
    The built-in model. It knows general tags. Train a model to learn your own tags.
  </p>`;
}

const Figures = ({ model }) =>
  html`<dl class="figures">
    <div>
      <dt>tags learnt</dt>
      <dd class="num">${count(model.learnt)} of ${count(model.tags)}</dd>
    </div>
    <div>
      <dt title=${ABOUT_AUC}>mean AUC</dt>
      <dd class="num">${auc(model.mean_auc)}</dd>
    </div>
    ${
      model.tracks !== null &&
      html`<div>
      <dt>training tracks</dt>
      <dd class="num">${count(model.tracks)}</dd>
    </div>`
    }
  </dl>`;

function Models({ models, current, compare, use }) {
  if (!models.length) {
    return html`<${Empty} title="No model has been trained yet.">
      <p>Give about fifteen tracks each tag that the model should learn, then train.</p>
      <div class="row"><a class="button" href="#/search">Tracks</a></div>
    <//>`;
  }
  return html`<table class="table models">
    <thead>
      <tr>
        <th scope="col">Model</th>
        <th scope="col" class="wide-only">Made</th>
        <th scope="col" class="num">Tags learnt</th>
        <th scope="col" class="num" title=${ABOUT_AUC}>Mean AUC</th>
        <th scope="col" class="num wide-only">Tracks</th>
        <th scope="col"><span class="vh">Actions</span></th>
      </tr>
    </thead>
    <tbody>
      ${models.map(
        (model) =>
          html`<${ModelRow}
            key=${model.id}
            model=${model}
            compare=${current && (() => compare(model.id))}
            use=${() => use(model)}
          />`,
      )}
    </tbody>
  </table>`;
}

/** One model; `compare` is missing if there is none to compare it with. */
function ModelRow({ model, compare, use }) {
  const actions = html`
    ${compare && html`<button onClick=${compare}>Compare</button>`}
    <button onClick=${use}>Use<span class="vh"> model ${model.id}</span></button>
  `;
  return html`<tr class=${model.in_use ? "in-use" : ""}>
    <th scope="row">
      ${model.id}
      ${model.in_use && html`${" "}<span class="badge">in use</span>`}
      ${model.built_in && html`${" "}<span class="badge">built-in</span>`}
    </th>
    <td class="wide-only">${when(model.made_at)}</td>
    <td class="num">${count(model.learnt)} of ${count(model.tags)}</td>
    <td class="num">${auc(model.mean_auc)}</td>
    <td class="num wide-only">${model.tracks === null ? "–" : count(model.tracks)}</td>
    <td class="actions">${!model.in_use && actions}</td>
  </tr>`;
}
