"""How many places musicnn must listen to: tags and features of whole tracks by fewer patches.

    OMP_NUM_THREADS=1 python benchmarks/places.py FOLDER ... [--generated 20] [--cache DIR]

Both networks hear all patches of a track, or --most evenly spaced ones. Then features are means
over some of them: n from the first to the last ("ends"), or those in the middle of n equal parts
("middles"). They are compared with ten by "ends", and with the mean over all patches: the relative
error of the features, and of the tags of the built-in model the share of those listed by either
that both list (Jaccard), the share of the five most probable that both have, and the rank
correlation of the probabilities. What two random choices of ten agree on is the ceiling.

--time says how much processor time a track takes, the least of three rounds, the mean over files.

Folders with music under a free licence: the contents of Debian's packages, such as
`apt-get download wesnoth-1.16-music && dpkg-deb -x wesnoth-1.16-music_*.deb FOLDER`. Generated
tracks are three minutes long, five sections of 36 seconds.
"""

import argparse
import hashlib
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from threadpoolctl import threadpool_limits

from harmonium.audio.decoding import decode_windows
from harmonium.audio.folders import find_audio
from harmonium.audio.musicnn import EXTRACTOR, N_HIDDEN, RATE, Patches, listen
from harmonium.audio.windows import Window
from harmonium.library.model.builtin import builtin_model
from harmonium.library.model.tagger import Tagger
from harmonium.synthetic import make_collection

Matrix = NDArray[np.float64]
Choice = Callable[[int], NDArray[np.int64]]
PLACES = (3, 4, 5, 6, 7, 10)
SECONDS, PARTS = 180, 5


def generated(n_tracks: int) -> Iterator[tuple[str, tuple[NDArray[np.float32], int]]]:
    """Sounds of three minutes, whose parts are the sections of one track."""
    collection = make_collection(n_tracks, PARTS, clip_seconds=SECONDS / PARTS)
    for number in range(n_tracks):
        parts = [collection.samples(number * PARTS + part) for part in range(PARTS)]
        yield f"generated {number}", (np.concatenate(parts), collection.rate)


def heard(name: str, sound: object, most: int, cache: Path) -> Matrix:
    """(n_patches, 500): what both networks give for each patch of a track."""
    kept = cache / f"{hashlib.sha256(f'{name} {most}'.encode()).hexdigest()[:24]}.npy"
    if not kept.exists():

        def plan(length: int | None, start: int | None) -> list[Window]:
            windows = Patches(10**6 if length else most)(length, start)
            return [windows[k] for k in ends(most)(len(windows)).tolist()]

        windows = decode_windows(sound, plan, rate=RATE)  # type: ignore[arg-type]
        np.save(kept, np.array([listen(window, RATE) for window in windows], np.float32))
    return np.load(kept).astype(np.float64)


def ends(places: int) -> Choice:
    return lambda n: np.unique(np.linspace(0, n - 1, min(n, places)).round().astype(int))


def middles(places: int) -> Choice:
    return lambda n: np.unique(np.floor((np.arange(min(n, places)) + 0.5) * n / min(n, places)))


def random_ten(seed: int) -> Choice:
    return lambda n: np.random.default_rng((seed, n)).permutation(n)[:10]


def agreement(one: Matrix, two: Matrix, tagger: Tagger) -> dict[str, float]:
    """What the features of all tracks by two choices, (n_tracks, 400) each, have in common."""
    error = np.linalg.norm(one - two, axis=1) / np.linalg.norm(two, axis=1)
    p, q = (tagger.probabilities(x.astype(np.float32), music_only=False) for x in (one, two))
    learnt = np.isfinite(builtin_model().thresholds)
    p, q = p[:, learnt], q[:, learnt]
    thresholds = builtin_model().thresholds[learnt]
    listed = p >= thresholds, q >= thresholds
    both, either = (listed[0] & listed[1]).sum(1), (listed[0] | listed[1]).sum(1)
    top = [np.argsort(-x, axis=1, kind="stable")[:, :5] for x in (p, q)]
    ranks = [rankdata(x, axis=1) for x in (p, q)]
    return {
        "relative error": float(np.mean(error)),
        "same list": float(np.mean(both == either)),
        "Jaccard": float(np.mean(np.where(either > 0, both / np.maximum(either, 1), 1))),
        "top five": float(np.mean([len({*a} & {*b}) / 5 for a, b in zip(*top, strict=True)])),
        "rank correlation": float(
            np.mean([np.corrcoef(a, b)[0, 1] for a, b in zip(*ranks, strict=True)])
        ),
        "mean change": float(np.mean(np.abs(p - q))),
    }


def show_times(files: list[str]) -> None:
    """Milliseconds of a core for a track: all of it, and decoding alone."""
    print("| places | ms | decoding, ms |\n|---|---|---|")
    least: dict[tuple[int, bool], list[float]] = {}
    for _ in range(3):
        for places in (10, 5):
            one = replace(EXTRACTOR, windows=Patches(places))
            for whole in (True, False):
                spent = []
                for file in files:
                    began = time.process_time()
                    one.extract(file) if whole else decode_windows(file, one.windows, rate=RATE)
                    spent.append(1000 * (time.process_time() - began))
                known = least.setdefault((places, whole), spent)
                least[places, whole] = [*map(min, known, spent)]
    for places in (10, 5):
        print(
            f"| {places} | "
            + " | ".join(f"{np.mean(least[places, x]):.0f}" for x in (True, False))
            + " |"
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folders", nargs="*")
    parser.add_argument("--generated", type=int, default=20, help="generated tracks")
    parser.add_argument("--most", type=int, default=40, help="patches of a track")
    parser.add_argument("--least", type=int, default=20, help="shorter tracks are left out")
    parser.add_argument("--cache", type=Path, default=Path("results/places"))
    parser.add_argument("--time", action="store_true", help="only measure the time of the files")
    options = parser.parse_args()
    if options.time:
        show_times(find_audio(options.folders)[0])
        return
    options.cache.mkdir(parents=True, exist_ok=True)
    sources = [(file, file) for file in find_audio(options.folders)[0]]
    groups: dict[str, list[Matrix]] = {"music": [], "generated": []}
    with threadpool_limits(1):
        for name, sound in chain(sources, generated(options.generated)):
            kind = "music" if isinstance(sound, str) else "generated"
            outputs = heard(name, sound, options.most, options.cache)
            if len(outputs) >= options.least:
                groups[kind].append(outputs[:, : 2 * N_HIDDEN])
            print(f"\r{len(groups['music'])} + {len(groups['generated'])} tracks", end="")
    print()
    tagger = Tagger(builtin_model())
    for kind, tracks in groups.items():
        if not tracks:
            continue

        def by(choice: Choice, tracks: list[Matrix] = tracks) -> Matrix:
            return np.array([x[choice(len(x)).astype(int)].mean(axis=0) for x in tracks])

        whole, ten = np.array([x.mean(axis=0) for x in tracks]), by(ends(10))
        rows = {
            "two random choices of ten": agreement(by(random_ten(0)), by(random_ten(1)), tagger)
        }
        rows["a random choice of ten, with ten"] = agreement(by(random_ten(0)), ten, tagger)
        rows["a random choice of ten, with all"] = agreement(by(random_ten(0)), whole, tagger)
        for name, choice in (("ends", ends), ("middles", middles)):
            for n in PLACES:
                rows[f"{n} by {name}, with ten"] = agreement(by(choice(n)), ten, tagger)
                rows[f"{n} by {name}, with all"] = agreement(by(choice(n)), whole, tagger)
        names = [*next(iter(rows.values()))]
        n_patches = np.mean([len(x) for x in tracks])
        print(f"\n{kind}: {len(tracks)} tracks, {n_patches:.0f} patches each\n")
        print("| places | " + " | ".join(names) + " |" + "\n" + "|---" * (1 + len(names)) + "|")
        for row, found in sorted(rows.items(), key=lambda item: item[0].endswith("all")):
            print(f"| {row} | " + " | ".join(f"{found[name]:.3f}" for name in names) + " |")


if __name__ == "__main__":
    main()
