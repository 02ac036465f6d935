"""Draws docs/figures/synthetic.png and prints the figures that docs/synthetic.md states.

python docs/figures/synthetic.py        (needs matplotlib; takes about a minute)
"""

import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from PIL import Image
from scipy.signal import stft

from harmonium.synthetic import SyntheticCollection, make_collection

GENRES = ("rock", "jazz", "house", "classical")
SEEDS = range(5)


def summary(collection: SyntheticCollection) -> dict[str, float]:
    """The size of a collection and how its users tag.

    ``precision`` is the share of triples that are true, ``recall`` the share of a clip's relevant
    tags that one user names (mean over users and clips), ``said`` the share that any of its users
    names.
    """
    triples, truth, n_clips = collection.triples, collection.truth, collection.n_clips
    true = truth[triples.item, triples.tag]
    relevant = truth.sum(axis=1)
    hits = np.bincount(triples.item[true], minlength=n_clips)
    said = np.zeros_like(truth)
    said[triples.item, triples.tag] = True
    return {
        "tracks": collection.n_tracks,
        "clips": n_clips,
        "users": len(np.unique(triples.user)),
        "tags": len(collection.tags),
        "triples": len(triples),
        "relevant_tags_per_clip": float(relevant.mean()),
        "tags_per_user_and_clip": len(triples) / (n_clips * collection.users_per_clip),
        "precision": float(true.mean()),
        "recall": float(np.mean(hits / collection.users_per_clip / relevant)),
        "said": float(np.mean((said & truth).sum(axis=1) / relevant)),
    }


def print_summaries() -> None:
    """The listeners of the default collection, for several seeds."""
    summaries = [summary(make_collection(seed=seed)) for seed in SEEDS]
    for name in summaries[0]:
        values = np.array([one[name] for one in summaries])
        print(
            f"{name:>24}: {values.mean():10.3f} ± {values.std(ddof=1):.3f} over {len(values)} seeds"
        )


def print_speed(collection: SyntheticCollection) -> None:
    """Processor time for one clip, over 185 of them."""
    collection.samples(0)
    started = time.process_time()
    for index in range(0, len(collection), 5):
        collection.samples(index + index // 5 % 5)
    seconds = (time.process_time() - started) / collection.n_tracks
    print(f"{1000 * seconds:.0f} ms of processor time for a clip of {collection.clip_seconds:g} s")


def spectrogram(samples: np.ndarray, rate: int) -> np.ndarray:
    """Levels in dB on 96 frequencies, from 50 Hz to 10 kHz in equal ratios: (96, n_frames)."""
    hertz, _, spectrum = stft(samples, rate, nperseg=2048, noverlap=2048 - 441)
    wanted = np.geomspace(50, 10_000, 96)
    levels = 20 * np.log10(np.abs(spectrum) + 1e-6)
    return np.array([np.interp(wanted, hertz, frame) for frame in levels.T]).T


def draw(collection: SyntheticCollection, path: Path) -> None:
    """One clip of each of GENRES: the chorus of its first track with at least three parts."""
    figure, axes = plt.subplots(2, 2, figsize=(9, 5), layout="constrained")
    for axis, genre in zip(axes.flat, GENRES, strict=True):
        chosen = (collection.clips["genre"] == genre) & (collection.clips["section"] == "chorus")
        indices = np.flatnonzero(chosen.to_numpy())
        index = next(int(i) for i in indices if len(collection.clip(int(i)).parts) >= 3)
        clip = collection.clip(index)
        levels = spectrogram(collection.samples(index), collection.rate)
        axis.imshow(
            levels,
            origin="lower",
            aspect="auto",
            extent=(0, collection.clip_seconds, 0, 96),
            vmin=levels.max() - 65,
            cmap="magma",
        )
        places = 95 * np.log([2, 8, 32, 128]) / np.log(200)
        axis.set_yticks(places, ["100", "400", "1600", "6400"])
        parts = ", ".join(part.instrument for part in clip.parts)
        axis.set_title(f"{genre}, {clip.track.tempo:.0f} bpm: {parts}", fontsize=7)
        axis.tick_params(labelsize=7)
    figure.supxlabel("seconds", fontsize=8)
    figure.supylabel("hertz", fontsize=8)
    figure.savefig(path, dpi=75)
    # Few colours make a small file.
    Image.open(path).convert("RGB").quantize(24, dither=Image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    default = make_collection()
    draw(default, Path(__file__).with_suffix(".png"))
    print_summaries()
    print_speed(default)
