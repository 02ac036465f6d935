// One player for the whole page; it plays on when the view changes.

import { html, useEffect, useState } from "../vendor/preact.js";
import { audioAddress, spectrumAddress } from "../api.js";
import { cell, useCell } from "../state.js";
import { href } from "../router.js";
import { byline, clock, titleOf } from "../words.js";
import { Icon } from "./icons.js";
import { Cover, IconButton, Range } from "./bits.js";

const audio = new Audio();
audio.preload = "metadata";

/** {track, queue, playing, problem, length}; track is null until something is played. */
export const player = cell({ track: null, queue: [], playing: false, problem: null });
/** The position in seconds, updated with each frame. */
export const position = cell(0);

const update = (changes) => player.set((old) => ({ ...old, ...changes }));

audio.addEventListener("play", () => {
  update({ playing: true });
  follow();
});
audio.addEventListener("pause", () => update({ playing: false }));
audio.addEventListener("ended", () => skip(1));
audio.addEventListener("seeked", () => position.set(audio.currentTime));
audio.addEventListener("loadedmetadata", () => update({ length: audio.duration }));
audio.addEventListener("error", async () => {
  const source = audio.src;
  const response = await fetch(source, { headers: { Range: "bytes=0-0" } }).catch(() => null);
  if (audio.src !== source) return; // Another track plays by now.
  const problem =
    response?.status === 404
      ? "This file is missing. Rescan its folder."
      : "This browser cannot play this file.";
  update({ playing: false, problem });
});

function follow() {
  position.set(audio.currentTime);
  if (!audio.paused) requestAnimationFrame(follow);
}

/** Play a track, or resume it; `queue` is the list for next and previous. */
export function play(track, queue = null, at = null) {
  if (player.value.track?.id !== track.id) {
    audio.src = track.localAddress ?? audioAddress(track.id);
    position.set(at ?? 0);
    update({ track, problem: null, length: track.duration });
  }
  if (queue) update({ queue });
  if (at !== null) audio.currentTime = at;
  // The error event reports failures; a play that another replaces is no failure.
  audio.play().catch(() => {});
}

const pause = () => audio.pause();
export const isPlaying = (state, id) => state.playing && state.track?.id === id;

/** Play or pause this track, or the current one. */
export function toggle(track = player.value.track, queue = null) {
  if (!track) return;
  if (isPlaying(player.value, track.id)) pause();
  else play(track, queue);
}

function seek(seconds) {
  audio.currentTime = Math.max(0, Math.min(seconds, audio.duration || seconds));
  position.set(audio.currentTime);
}

const placeIn = (queue, track) => queue.findIndex(({ id }) => id === track?.id);

/** Play the next (1) or the previous (-1) track of the queue. */
function skip(step) {
  const { queue, track } = player.value;
  const next = queue[placeIn(queue, track) + step];
  if (next && track) play(next);
}

const IN_FIELDS = "input, textarea, select, dialog, [role=slider]";

/** The deed of a key, if any. */
function deedOf({ key, shiftKey, target }) {
  if (key === " " && !target.closest("button, a, summary")) return () => toggle();
  if (key === "ArrowRight") return () => (shiftKey ? skip(1) : seek(audio.currentTime + 5));
  if (key === "ArrowLeft") return () => (shiftKey ? skip(-1) : seek(audio.currentTime - 5));
  return null;
}

/** Keys that work everywhere except in fields and on sliders. */
export function onKey(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (!player.value.track || event.target.closest(IN_FIELDS)) return;
  const deed = deedOf(event);
  if (!deed) return;
  deed();
  event.preventDefault();
}

/** The button that plays a track. */
export function PlayButton({ track, queue = null, big = false }) {
  const playing = isPlaying(useCell(player), track.id);
  return html`<button
    class=${big ? "play big" : "play"}
    aria-label=${`${playing ? "Pause" : "Play"} ${titleOf(track)}`}
    aria-pressed=${String(playing)}
    onClick=${() => toggle(track, queue)}
  >
    <${Icon} name=${playing ? "pause" : "play"} />
  </button>`;
}

/** Seconds that the keys of a slider move. */
const STEPS = {
  ArrowRight: 5,
  ArrowUp: 5,
  ArrowLeft: -5,
  ArrowDown: -5,
  PageUp: 30,
  PageDown: -30,
};

/** The mel spectrum of a track: shows the position; a click or the arrow keys change it. */
export function Spectrum({ track }) {
  const state = useCell(player);
  const now = useCell(position);
  const current = state.track?.id === track.id;
  const length = (current && state.length) || track.duration || 0;
  const at = current ? now : 0;
  const goTo = (seconds) => play(track, null, Math.max(0, Math.min(length, seconds)));
  const onClick = (event) => {
    const box = event.currentTarget.getBoundingClientRect();
    goTo(((event.clientX - box.left) / box.width) * length);
  };
  const onKeyDown = (event) => {
    const { key } = event;
    if (key in STEPS) goTo(at + STEPS[key]);
    else if (key === "Home") goTo(0);
    else if (key === "End") goTo(length - 1);
    else if (key === " " || key === "Enter") toggle(track);
    else return;
    event.preventDefault();
  };
  const rest = { left: `${(100 * at) / length}%` };
  return html`<div
    class="spectrum"
    role="slider"
    tabindex="0"
    aria-label="Position in the track"
    aria-valuemin="0"
    aria-valuemax=${Math.round(length)}
    aria-valuenow=${Math.round(at)}
    aria-valuetext=${`${clock(at)} of ${clock(length)}`}
    onClick=${onClick}
    onKeyDown=${onKeyDown}
  >
    <${SpectrumPicture} track=${track} />
    ${length > 0 && html`<span class="spectrum-rest" style=${rest}></span>`}
  </div>`;
}

function SpectrumPicture({ track }) {
  const [state, setState] = useState("awaited"); // awaited, loaded, none
  if (state === "none") return html`<span class="spectrum-none">No spectrum</span>`;
  return html`<img
    src=${spectrumAddress(track.id)}
    alt=""
    width="1200"
    height="128"
    class=${state}
    onLoad=${() => setState("loaded")}
    onError=${() => setState("none")}
  />`;
}

/** The bar at the bottom. */
export function Player() {
  const { track, playing, problem, length, queue } = useCell(player);
  useEffect(() => {
    document.body.classList.toggle("with-player", !!track);
  }, [!!track]);
  if (!track) return null;
  const i = placeIn(queue, track);
  const isLast = i < 0 || i + 1 >= queue.length;
  const name = titleOf(track);
  return html`<section class="player" aria-label="Player">
    <div class="player-buttons">
      <${IconButton}
        icon="previous"
        label="Previous track"
        disabled=${i <= 0}
        onClick=${() => skip(-1)}
      />
      <button class="play" aria-label=${playing ? "Pause" : "Play"} onClick=${() => toggle()}>
        <${Icon} name=${playing ? "pause" : "play"} />
      </button>
      <${IconButton} icon="next" label="Next track" disabled=${isLast} onClick=${() => skip(1)} />
    </div>
    <${Cover} key=${track.id} track=${track} />
    <div class="player-what">
      ${
        track.localAddress
          ? html`<span class="player-title">${name}</span>`
          : html`<a class="player-title" href=${href("track", track.id)}>${name}</a>`
      }
      <span class="soft player-by">${problem ?? byline(track)}</span>
    </div>
    <${PlayerTime} length=${length} />
  </section>`;
}

function PlayerTime({ length }) {
  const now = useCell(position);
  return html`<div class="player-time num">
    <span>${clock(now)}</span>
    <${Range}
      min=${0}
      max=${Math.max(1, Math.round(length || 1))}
      value=${Math.round(now)}
      onInput=${seek}
      aria-label="Position"
      aria-valuetext=${`${clock(now)} of ${clock(length)}`}
    />
    <span>${clock(length)}</span>
  </div>`;
}
