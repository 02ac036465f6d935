"""Is what `harmonium write --precision` adds right as often as promised?

    HARMONIUM_DATA=... python benchmarks/precision.py                 all three, about ten minutes
    python benchmarks/precision.py --datasets generated --draws 1

The clips of a dataset are the tracks of a library, with their features and their artists. Three
fifths of the artists, drawn by chance, are tagged as the dataset says; `harmonium train` learns
from them, and `harmonium tag` and `harmonium write` do the rest, without files. What would be
written to the other tracks is compared with the dataset. Emotify and MajorMiner are real; of the
generated collection the tags are what is so, three clips of a piece of music are tracks of one
artist, and every draw has a collection of its own. The settings of the bound were chosen with draws
0 to 5; what is shown begins with draw 100.

    own         the thresholds of `harmonium tag` (--precision 0)
    0.5 …       --precision
    point       a rival of 0.8: for each tag the most tracks of which 80 % of the held-out ones were
                right, without a bound
    bound       the rule for the built-in model: a lower bound, of at least eight artists
    p ≥ 0.8     another: one threshold for all tags, a probability of 0.8
    counted     another: the bound of Clopper and Pearson (80 %, one-sided) with every track for
                itself, going down from the eighth track while it is not below 0.8

right: the share of what was written that is right, ± its standard error over draws; expected: the
same by the probabilities; found: the share of what there is; tags: how many of those learnt are
written; worse: how many of those are right less often than asked, by a one-sided test at 5 %, of
which 5 % would be so by chance if all were just as right as asked.
"""

import argparse
import tempfile
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy.stats import beta, binom

from harmonium.estimators.model_files import from_bytes
from harmonium.experiments.datasets import CATALOGUE, DatasetSpec, load_dataset
from harmonium.library import Library
from harmonium.library.learning.train import train
from harmonium.library.model.precision import (
    PrecisionCurve,
    TagPrecision,
    curves_from_arrays,
    threshold_for,
)
from harmonium.library.model.tagger import tag_library
from harmonium.library.store.tracks import Track
from harmonium.precision_bound import DOUBT, MIN_EFFECTIVE

TAGGED = 0.6
FIRST = 100
"""The first draw: not one of those by which the bound was chosen."""
ASKED = (0.5, 0.6, 0.7, 0.8, 0.9)
GENERATED = DatasetSpec(
    name="generated",
    label="generated",
    n_tags=40,
    groups="track",
    options={"n_tracks": 185, "clips_per_track": 3, "n_users": 60},
)
DATASETS = {
    "emotify": CATALOGUE["emotify"],
    "majorminer": CATALOGUE["majorminer-104"],
    "generated": GENERATED,
}


def by_point(curve: PrecisionCurve, precision: float) -> float:
    enough = np.flatnonzero(curve.precision >= precision)
    return float(curve.thresholds[enough[-1]]) if len(enough) else np.nan


def bound(curve: PrecisionCurve, precision: float) -> float:
    threshold = threshold_for(curve, precision)
    return np.nan if threshold is None else threshold


def counted(curve: PrecisionCurve, precision: float) -> float:
    threshold = np.nan
    bound = beta.ppf(DOUBT, np.maximum(curve.right, 1), curve.chosen - curve.right + 1)
    enough = np.where(curve.right > 0, bound, 0.0) >= precision
    for rank in np.flatnonzero(curve.chosen >= MIN_EFFECTIVE):
        if not enough[rank]:
            break
        threshold = float(curve.thresholds[rank])
    return threshold


def promised(curves: list[PrecisionCurve], precision: float) -> Any:
    found = [TagPrecision(own=curve, taught=True).threshold(precision) for curve in curves]
    return np.array([np.nan if one is None else one for one in found])


def loaded(name: str, seed: int) -> Any:
    spec = DATASETS[name]
    if name == "generated":
        spec = replace(spec, label=f"generated {seed}", options={**spec.options, "seed": seed})
    return load_dataset(spec)


def draw(data: Any, seed: int, folder: Path) -> tuple[Any, Any, Any]:
    """The stored model, its probabilities of the tracks not tagged, and their labels."""
    rng = np.random.default_rng(seed)
    groups = np.unique(data.groups)
    tagged = np.isin(data.groups, rng.permutation(groups)[: int(TAGGED * len(groups))])
    with Library.open(folder / f"{seed}.db") as library:
        files = [
            Track(f"/music/{i:05}.ogg", f"{i:010}", title=str(i), artist=f"artist {group}")
            for i, group in enumerate(data.groups)
        ]
        ids = np.array(library.tracks.put(files))
        library.tracks.put_features(ids, data.X.astype(np.float32), extractor="made up")
        library.settings.set("extractor", "made up")
        clips, tags = np.nonzero((data.Y == 1) & tagged[:, None])
        said = pl.DataFrame(
            {
                "person": ["somebody"] * len(clips),
                "track_id": ids[clips].tolist(),
                "tag": [data.tags[tag] for tag in tags],
            }
        )
        change = library.changes.begin("import", "a dataset")
        library.opinions.add_triples(said, change=change)
        train(library)
        tag_library(library)
        model = library.models.current()
        assert model is not None
        assert model.id is not None
        P = library.predictions.probabilities(model.id, ids[~tagged].tolist())
    place = [list(data.tags).index(tag) for tag in model.vocabulary]
    return model, P, data.Y[~tagged][:, place]


def judge(thresholds: Any, asked: float, P: Any, Y: Any) -> tuple[float, ...]:
    """Written, right, expected to be right, to be found, tags written, tags worse than asked."""
    chosen = (thresholds <= P) & ~np.isnan(Y)
    n, right = chosen.sum(axis=0), (chosen & (Y == 1)).sum(axis=0)
    worse = (n > 0) & (binom.cdf(right, n, asked) < 0.05)
    expected = np.where(chosen, P, 0).sum()
    return (
        n.sum(),
        right.sum(),
        expected,
        (Y == 1).sum(),
        np.isfinite(thresholds).sum(),
        worse.sum(),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS), choices=DATASETS)
    parser.add_argument("--draws", type=int, default=5, help="draws of artists (5)")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    heads = f"{'written':>8}{'right':>15}{'expected':>10}{'found':>7}  tags  worse"
    print(f"{'':<12}{'asked':<9}{heads}")
    for name in args.datasets:
        began = time.perf_counter()
        found: dict[str, list[tuple[float, ...]]] = {}
        learnt = []
        with tempfile.TemporaryDirectory() as folder:
            for seed in range(FIRST, FIRST + args.draws):
                model, P, Y = draw(loaded(name, seed), seed, Path(folder))
                learnt.append(int(np.isfinite(model.thresholds).sum()))
                curves = curves_from_arrays(from_bytes(model.bytes)[0])
                ways = {"own": (model.thresholds, 0.0)}
                ways |= {str(p): (promised(curves, p), p) for p in ASKED}
                for way, rule in (("point", by_point), ("bound", bound), ("counted", counted)):
                    ways[way] = (np.array([rule(curve, 0.8) for curve in curves]), 0.8)
                ways["p ≥ 0.8"] = (np.full(len(curves), 0.8), 0.8)
                for way, (thresholds, asked) in ways.items():
                    used = np.where(np.isfinite(model.thresholds), thresholds, np.nan)
                    found.setdefault(way, []).append(judge(used, asked, P, Y))
        for way, rows in found.items():
            n, right, expected, there, tags, worse = np.array(rows, float).T
            shares = right[n > 0] / n[n > 0]
            error = shares.std(ddof=1) / np.sqrt(len(shares)) if len(shares) > 1 else np.nan
            total = max(n.sum(), 1)
            print(
                f"{name:<12}{way:<9}{n.sum():8.0f}{right.sum() / total:8.3f} ± {error:.3f}"
                f"{expected.sum() / total:10.3f}{right.sum() / there.sum():7.3f}"
                f"{tags.sum():6.0f}/{sum(learnt)}{worse.sum():4.0f}",
                flush=True,
            )
        print(f"{'':<12}{time.perf_counter() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
