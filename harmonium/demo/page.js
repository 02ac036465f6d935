// The white line on a spectrogram follows the sound, and a click on it goes there.
for (const card of document.querySelectorAll(".card")) {
  const audio = card.querySelector("audio"), sound = card.querySelector(".sound");
  const line = sound.querySelector("i");
  const follow = () => {
    line.style.display = "block";
    line.style.left = `${100 * audio.currentTime / (audio.duration || 1)}%`;
    if (!audio.paused) requestAnimationFrame(follow);
  };
  audio.addEventListener("play", () => {
    for (const other of document.querySelectorAll("audio")) if (other !== audio) other.pause();
    follow();
  });
  audio.addEventListener("seeked", follow);
  sound.addEventListener("click", event => {
    const box = sound.getBoundingClientRect();
    audio.currentTime = (audio.duration || 0) * (event.clientX - box.left) / box.width;
    audio.play();
  });
}

// A tag in the field: the tracks in the order of its probability.
const field = document.querySelector("#tag"), said = document.querySelector("#found");
const cards = document.querySelector(".cards"), first = [...cards.children];
const probabilities = new Map(first.map(card => [card, JSON.parse(card.dataset.tags)]));
field.addEventListener("input", () => {
  const tag = field.value.trim().toLowerCase();
  const known = tag !== "" && first.some(card => tag in probabilities.get(card));
  const worth = card => probabilities.get(card)[tag] ?? -1;
  cards.append(...(known ? [...first].sort((a, b) => worth(b) - worth(a)) : first));
  said.textContent = known ? `likeliest “${tag}” first` : tag === "" ? "" : `no tag “${tag}”`;
});
