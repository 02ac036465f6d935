"""A collection of real music, end to end, by the commands that a person would give.

    HARMONIUM_DATA=... python benchmarks/emotify_collection.py [--cache DIR] [--seed 0] [--jobs 2]

The 400 Emotify clips are the collection. Three fifths of each genre are tagged by their listeners:
these tags are imported, and a model is trained on them. It tags the other two fifths, whose
listeners' tags it has never seen; against those, by the dataset's own rule (an emotion holds where
a quarter of the listeners marked it), the AUC of each emotion is computed. Every step is a command
in a process of its own, and its seconds include the start of Python.

Without --cache, features are computed anew, in a cache of their own that is thrown away.
"""

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from harmonium.data.datasets import Dataset, load
from harmonium.evaluation import auc_per_tag
from harmonium.library import Library

SHARE = 0.6
RULE = 0.25  # Emotify's: the share of listeners from which an emotion is there


class Commands:
    """Runs commands on one library, and notes their seconds."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self.library = folder / "library.db"
        self._environment = {
            **os.environ,
            "HARMONIUM_LIBRARY": str(self.library),
            "HARMONIUM_CACHE": str(cache),
        }
        self._environment.pop("JAX_COMPILATION_CACHE_DIR", None)

    def __call__(self, *arguments: str) -> str:
        program = "from harmonium.cli import main; main()"
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", program, *arguments],
            env=self._environment,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        seconds = time.perf_counter() - began
        shown = " ".join(Path(a).name if "/" in a else a for a in arguments)
        print(f"| `harmonium {shown}` | {seconds:.1f} |", flush=True)
        return done.stdout


def chosen_for_tagging(data: Dataset, seed: int) -> NDArray[np.bool_]:
    """Which excerpts are tagged by their listeners: the same share of each genre."""
    genres = np.array([item.partition("_")[0] for item in data.items])
    rng = np.random.default_rng(seed)
    tagged = np.zeros(len(genres), bool)
    for genre in np.unique(genres):
        rows = rng.permutation(np.flatnonzero(genres == genre))
        tagged[rows[: round(SHARE * len(rows))]] = True
    return tagged


def write_tags(file: Path, data: Dataset, tagged: NDArray[np.bool_]) -> int:
    """What the listeners of some excerpts marked, as a table."""
    assert data.triples is not None
    chosen = set(data.items.filter(tagged))
    rows = [row for row in data.triples.frame().iter_rows() if row[1] in chosen]
    with file.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(("user", "item", "tag"))
        writer.writerows(rows)
    return len(rows)


def score(place: Path, data: Dataset, tagged: NDArray[np.bool_]) -> None:
    """The AUC of each emotion over the excerpts that were not tagged."""
    labels = data.labels()
    with Library.open(place, create=False) as library:
        model = library.models.current()
        assert model is not None
        assert model.id is not None
        tracks = {Path(track.path).stem: track.id for track in library.tracks.all()}
        rows = [i for i in np.flatnonzero(~tagged) if data.items[int(i)] in tracks]
        P = library.predictions.probabilities(model.id, [tracks[data.items[int(i)]] for i in rows])
    columns = [labels.tags.to_list().index(tag) for tag in model.vocabulary]
    auc = auc_per_tag(labels.values[rows][:, columns], P)
    print(f"\n{len(rows)} excerpts that the model tagged, {len(model.vocabulary)} emotions:\n")
    print("| emotion | examples | AUC, held out in training | AUC, excerpts never seen |")
    print("|---|---|---|---|")
    for tag, value in zip(model.report["tags"], auc.values, strict=True):
        mark = "" if tag["learnt"] else " (not learnt)"
        print(
            f"| {tag['tag']}{mark} | {tag['examples']} | "
            f"{tag['auc']:.3f} ± {tag['error']:.3f} | {value:.3f} |"
        )
    print(f"| mean | | {model.report['mean_auc']:.3f} | {auc.mean:.3f} |")
    best = model.report["trials"][0]
    print(f"\nChosen: {json.dumps(best)}; folds by {model.report['grouped_by']}.")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cache", type=Path, help="a cache of features that is there already")
    parser.add_argument("--seed", type=int, default=0, help="another choice of excerpts")
    parser.add_argument("--jobs", type=int, default=2, help="processes that listen")
    options = parser.parse_args()
    data = load("emotify")
    assert data.audio is not None
    tagged = chosen_for_tagging(data, options.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cache = options.cache or folder / "cache"
        run = Commands(folder, cache)
        n_rows = write_tags(folder / "tags.csv", data, tagged)
        kept = "from a cache where they are there" if options.cache else "computed anew"
        print(f"{len(data.items)} excerpts; features {kept}; {n_rows:,} tags of listeners for")
        print(f"{tagged.sum()} of them, the other {(~tagged).sum()} are tagged by the model.\n")
        print("| command | s |\n|---|---|")
        run("index", str(data.audio[0].parent), "--jobs", str(options.jobs))
        run("import", str(folder / "tags.csv"))
        run("train", "--min-share", str(RULE))
        run("tag")
        run("tag", str(data.audio[int(np.flatnonzero(~tagged)[0])]))
        run("search", "calmness tenderness -power", "--limit", "5")
        run("doctor")
        score(run.library, data, tagged)


if __name__ == "__main__":
    main()
