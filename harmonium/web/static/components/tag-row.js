// One tag of a track: how likely it is, and the buttons to answer.

import { html, useState } from "../vendor/preact.js";
import { href } from "../router.js";
import { percent } from "../words.js";
import { Bar, Moved } from "./bits.js";
import { Why } from "./why.js";

/** Move the focus to the same button of the next row (1) or the previous one (-1). */
function goToRow(row, button, step) {
  const rows = [...document.querySelectorAll(".tag-row")];
  const next = rows[rows.indexOf(row) + step];
  const column = [...row.querySelectorAll("button")].indexOf(button);
  next?.querySelectorAll("button")[Math.max(0, column)]?.focus();
}

/** What other people said, if all agree: the probability is then certain. */
function agreedOf(said, p) {
  if (said !== null) return null;
  if (p === 1) return "yes";
  return p === 0 ? "no" : null;
}

/** What other people said, as 2 yes, 1 no. */
function votesOf({ people }) {
  const votes = [];
  if (people?.yes) votes.push(`${people.yes} yes`);
  if (people?.no) votes.push(`${people.no} no`);
  return votes.join(", ");
}

const yesOrNo = (said) => (said ? "yes" : "no");

/**
 * `p` is the probability, given the answers; `change` how far they moved it; `said` is your answer:
 * true, false or null; `answer(tag, said)` gives one; `given()` are all answers, {yes, no}.
 */
export function TagRow({ tag, track, p, said, isUnsaved, change, answer, given }) {
  const [open, setOpen] = useState(false);
  const press = (value) => answer(tag.tag, said === value ? null : value);
  const onKeyDown = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { key } = event;
    if (key === "y") answer(tag.tag, true);
    else if (key === "n") answer(tag.tag, false);
    else if (key === "u" || key === "Backspace") answer(tag.tag, null);
    else if (key === "ArrowDown") goToRow(event.currentTarget, event.target, 1);
    else if (key === "ArrowUp") goToRow(event.currentTarget, event.target, -1);
    else return;
    event.preventDefault();
  };
  const classes = ["tag-row"];
  if (said !== null) classes.push(yesOrNo(said));
  if (isUnsaved) classes.push("unsaved");
  const votes = votesOf(tag);
  return html`<li class=${classes.join(" ")} data-tag=${tag.tag} onKeyDown=${onKeyDown}>
    <div class="tag-line">
      <a
        class="tag-name"
        href=${href("tags", tag.tag)}
        title=${votes ? `People: ${votes}` : undefined}
      >
        ${tag.shown}
      </a>
      <${TagBar} tag=${tag} p=${p} said=${said} />
      <span class="tag-p num">
        <${Probability} p=${p} said=${said} />
        ${isUnsaved && html`<span class="vh">, unsaved</span>`}
      </span>
      <span class="tag-moved num">${change !== 0 && html`<${Moved} change=${change} />`}</span>
      <span class="yes-no" role="group" aria-label=${`Is it ${tag.shown}?`}>
        <button aria-pressed=${String(said === true)} onClick=${() => press(true)}>
          Yes<span class="vh">, ${tag.shown}</span>
        </button>
        <button aria-pressed=${String(said === false)} onClick=${() => press(false)}>
          No<span class="vh">, not ${tag.shown}</span>
        </button>
      </span>
      <button
        class="quiet why-button"
        aria-expanded=${String(open)}
        disabled=${tag.probability === null}
        onClick=${() => setOpen(!open)}
      >
        Why<span class="vh"> ${tag.shown}?</span>
      </button>
    </div>
    ${open && html`<${Why} tag=${tag} track=${track} given=${given()} said=${said} />`}
  </li>`;
}

function TagBar({ tag, p, said }) {
  if (said !== null) return html`<${Bar} p=${said ? 1 : 0} look="said" />`;
  if (agreedOf(said, p)) return html`<${Bar} p=${p} look="said" />`;
  return html`<${Bar} p=${p} look=${tag.predicted ? "" : "faint"} mark=${tag.threshold} />`;
}

function Probability({ p, said }) {
  if (said !== null) return yesOrNo(said);
  if (p === null)
    return html`<span class="soft" title="The model has not learnt this tag">–</span>`;
  const agreed = agreedOf(said, p);
  if (agreed) {
    return html`<span class="soft" title="Other people said so">${agreed}</span>
      <span class="vh">, other people said so</span>`;
  }
  return html`${percent(p)}<span class="vh"> likely</span>`;
}
