"""What `harmonium train` costs by the number of tracks, and how good a small library's model is.

    HARMONIUM_DATA=... python benchmarks/training_size.py [--beside CHECKOUT] [--sizes 100 1000]
    HARMONIUM_DATA=... python benchmarks/training_size.py --emotify --sizes 50 100 200 --seeds 6
    HARMONIUM_DATA=... python benchmarks/training_size.py --shown --sizes 60 100 320 --seeds 5
    HARMONIUM_DATA=... python benchmarks/training_size.py --scaling --seeds 2

MajorMiner's clips stand for tracks, with its most frequent tags; where it has too few, clips are
taken again with a little noise (a tenth of each feature's spread, by its quartiles). Every
measurement is a process of its own, on one thread: first with an empty cache of compiled programs,
then with that one. The seconds are those of the processor, from the start of Python to the first
model (a logistic regression) and to the fitted one, so that other work on the machine hardly
changes them. "seen" is the mean AUC of the held-out probabilities that a library shows, "unseen"
that of the model on the clips of 400 other tracks.

With --emotify, the clips are Emotify's, and what is shown is the mean AUC, over all seeds, of the
tracks that were not learnt from: of the first model, and of the one that is used.

With --shown, what a library shows of few tracks is compared with the truth: the mean AUC of
held-out tracks, over pairs within a fold and over all pairs, and that of other tracks; and how many
of as many tags, whose labels are shuffled among the tracks, count as learnt. "nested" is the mean
over folds of the AUC with the settings and the epoch that are best for the other folds.

With --scaling, the features of MajorMiner, Emotify and 4Q are scaled in both ways: the AUC that the
search sees, that of other tracks (of other artists, where they are known), and processor seconds.

With --beside, another checkout of this repository is measured in turn with this one.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

N_UNSEEN_TRACKS = 400


def measure(size: int, n_tags: int, seed: int) -> dict[str, float]:
    """Fit the model of a library of so many tracks in this process."""
    import numpy as np

    from harmonium.evaluation import auc_per_tag
    from harmonium.library.learning.fitting import MAX_FIRST, enable_jax_cache, fit, fit_first
    from harmonium.library.learning.scores import mean_auc

    before = time.process_time()
    examples, X, Y = library(size, n_tags, seed)
    loading = time.process_time() - before
    enable_jax_cache()
    fit_first(examples.rows(np.arange(min(size, MAX_FIRST))))
    first = time.process_time() - loading
    import jax

    compiled: list[str] = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, seconds, **_: compiled.append(event)
    )
    fits: list[int] = []
    fitted = fit(examples, seed=seed, progress=lambda what, done, total: fits.append(done))
    seconds = time.process_time() - loading
    return {
        "fits": max(fits),
        "compiled": sum(event.endswith("backend_compile_duration") for event in compiled),
        "first": first,
        "seconds": seconds,
        "seen": mean_auc(examples.Y, fitted.held_out, fitted.folds),
        "unseen": auc_per_tag(Y, fitted.estimator.predict_proba(X)).mean,
    }


def library(size: int, n_tags: int, seed: int) -> tuple[Any, Any, Any]:
    """A `TrainingSet` of so many tracks, and the features and labels of the other tracks."""
    import numpy as np

    from harmonium.data.datasets import load
    from harmonium.library.learning.examples import TrainingSet

    data = load("majorminer")
    labels = data.labels(n_tags=n_tags)
    assert data.features is not None
    X, Y, groups = data.features, labels.values, data.groups("track")
    rng = np.random.default_rng(seed)
    unseen = np.flatnonzero(np.isin(groups, rng.permutation(np.unique(groups))[:N_UNSEEN_TRACKS]))
    rest = np.setdiff1d(rng.permutation(len(Y)), unseen)
    rows = np.resize(rng.permutation(rest), size)
    spread = np.subtract(*np.percentile(X, [75, 25], axis=0)) / 1.35  # of most clips, not of tails
    noise = 0.1 * spread * rng.normal(size=(size, X.shape[1])) * (size > len(rest))
    learnt = (X[rows] + noise).astype(np.float32)
    examples = TrainingSet(learnt, Y[rows], groups[rows], tuple(labels.tags))
    return examples, X[unseen], Y[unseen]


@contextmanager
def epochs_judged() -> Iterator[list[tuple[float, float]]]:
    """What members are stopped by after each epoch, and their AUC, member by member."""
    from harmonium.estimators.early_stopping import TIE_BREAKER, HostJudge
    from harmonium.estimators.validation import mean_auc

    found, judge = [], HostJudge.judge

    def record(self: Any, params: Any, valid: Any) -> tuple[float, float]:
        auc, likelihood = judge(self, params, valid)
        plain = mean_auc(valid.Y, self.architecture.quick_probabilities(params, valid.X))
        found.append((auc + TIE_BREAKER * likelihood, plain))
        return auc, likelihood

    with mock.patch.object(HostJudge, "judge", record):
        yield found


def nested_auc(judged: list[tuple[float, float]], n_folds: int) -> float:
    """The mean over folds of the AUC at the epoch, of all settings, that is best for the others."""
    import numpy as np

    scores, aucs = np.moveaxis(np.reshape(judged, (-1, n_folds, 2)), 2, 0)  # (epochs, folds)
    best = [np.delete(scores, fold, axis=1).mean(axis=1).argmax() for fold in range(n_folds)]
    return float(np.mean([aucs[epoch, fold] for fold, epoch in enumerate(best)]))


def shown(size: int, n_tags: int, n_seeds: int) -> None:
    """A row of the table of what a library shows."""
    from dataclasses import replace

    import numpy as np

    from harmonium.evaluation import auc_per_tag
    from harmonium.library.learning.fitting import enable_jax_cache, fit
    from harmonium.library.learning.scores import mean_auc, score_tags

    enable_jax_cache()
    aucs, learnt, n_noise = [], [], []
    for seed in range(n_seeds):
        examples, X, Y = library(size, n_tags, seed)
        with epochs_judged() as judged:
            fitted = fit(examples, seed=seed)
        P, folds = fitted.held_out, fitted.folds
        within, all_pairs = mean_auc(examples.Y, P, folds), auc_per_tag(examples.Y, P).mean
        nested = nested_auc(judged, int(folds.max()) + 1)
        unseen = auc_per_tag(Y, fitted.estimator.predict_proba(X)).mean
        aucs.append((within, all_pairs, nested, unseen))
        learnt.append(score_tags(examples.Y, P, folds).learnt.mean())
        noise = replace(examples, Y=np.random.default_rng(seed).permuted(examples.Y, axis=0))
        fitted = fit(noise, seed=seed)
        n_noise.append(score_tags(noise.Y, fitted.held_out, fitted.folds).learnt.sum())
    cells = " | ".join(f"{auc:.3f}" for auc in np.mean(aucs, axis=0))
    of_noise = f"{sum(n_noise)} of {n_tags * n_seeds}"
    print(f"| {size} | {cells} | {np.mean(learnt):.0%} | {of_noise} |", flush=True)


def small(size: int, seed: int) -> dict[str, float]:
    """The mean AUC of the ways to learn from so many Emotify clips, over those left."""
    import numpy as np

    from harmonium.evaluation import auc_per_tag
    from harmonium.experiments.datasets import CATALOGUE, load_dataset
    from harmonium.library.learning.examples import TrainingSet
    from harmonium.library.learning.fitting import enable_jax_cache, fit, fit_first

    enable_jax_cache()
    data = load_dataset(CATALOGUE["emotify"])
    Y = np.nan_to_num(data.Y)
    order = np.random.default_rng(seed).permutation(len(Y))
    rows, rest = order[:size], order[size:]
    enough = np.minimum(Y[rows].sum(axis=0), (1 - Y[rows]).sum(axis=0)) >= (5 if size < 100 else 10)
    tags = tuple(np.array(data.tags)[enough])
    examples = TrainingSet(data.X[rows], Y[rows][:, enough], rows, tags)
    models = {"first": fit_first(examples), "now": fit(examples, seed=seed)}
    P = {name: model.estimator.predict_proba(data.X[rest]) for name, model in models.items()}
    truth = data.Y[rest][:, enough]
    return {name: auc_per_tag(truth, p).mean for name, p in P.items()}


def draw(name: str, size: int, seed: int) -> tuple[Any, Any, Any]:
    """Like `library`, of a dataset with few clips: whole artists, and tags with enough clips."""
    import numpy as np

    from harmonium.experiments.datasets import CATALOGUE, load_dataset
    from harmonium.library.learning.examples import TrainingSet

    data = load_dataset(CATALOGUE[name])
    names, groups = np.unique(data.groups, return_inverse=True)
    order = np.argsort(np.random.default_rng(seed).permutation(len(names))[groups], kind="stable")
    rows, rest = order[:size], order[size:]
    rest = rest[~np.isin(groups[rest], groups[rows])]
    has = data.Y == 1
    tags = (has[rows].sum(axis=0) >= 10) & (has[rest].sum(axis=0) >= 3)
    X, Y, known = data.X, data.Y[:, tags], tuple(np.array(data.tags)[tags])
    return TrainingSet(X[rows], Y[rows], groups[rows], known), X[rest], Y[rest]


def scalings(name: str, size: int, seed: int, n_tags: int) -> None:
    """A row of the table of both scalings."""
    import numpy as np

    from harmonium.estimators import classifier
    from harmonium.evaluation import auc_per_tag
    from harmonium.library.learning.fitting import enable_jax_cache, fit

    enable_jax_cache()
    data = library(size, n_tags, seed) if name == "majorminer" else draw(name, size, seed)
    examples, X, Y = data
    rule, cells = classifier.best_scaling(np.asarray(examples.X, np.float64)), []
    for kind in ("standard", "quantile"):
        began = time.process_time()
        with mock.patch.object(classifier, "best_scaling", lambda X, kind=kind: kind):
            fitted = fit(examples, seed=seed)
        unseen = auc_per_tag(Y, fitted.estimator.predict_proba(X)).mean
        seen, seconds = fitted.candidates[0].auc, time.process_time() - began
        cells.append(f"{seen:.4f} | {unseen:.4f} | {seconds:.1f}")
    print(f"| {name} | {size:,} | {seed} | {rule} | {' | '.join(cells)} |", flush=True)


def measured(checkout: Path, cache: str, *arguments: int) -> dict[str, float]:
    """The same in its own process, by the code and the script of a checkout."""
    environment = os.environ | {
        "PYTHONPATH": str(checkout),
        "JAX_COMPILATION_CACHE_DIR": cache,
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    script = checkout / "benchmarks" / "training_size.py"
    command = [sys.executable, str(script), "--measure", *map(str, arguments)]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def _emotify(sizes: list[int], n_seeds: int) -> None:
    import numpy as np

    print("| tracks | first | used | better than first |\n|---|---|---|---|")
    for size in sizes:
        found = [small(size, seed) for seed in range(n_seeds)]
        first, used = (np.array([one[name] for one in found]) for name in ("first", "now"))
        error = (used - first).std(ddof=1) / np.sqrt(n_seeds)
        gain = f"{(used - first).mean():+.3f} ± {error:.3f}"
        print(f"| {size} | {first.mean():.3f} | {used.mean():.3f} | {gain} |")


def main(arguments: list[str] | None = None) -> None:
    here = Path(__file__).resolve().parents[1]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--beside", type=Path, metavar="CHECKOUT")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--tags", type=int, default=7)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--emotify", action="store_true")
    parser.add_argument("--shown", action="store_true")
    parser.add_argument("--scaling", action="store_true")
    parser.add_argument("--measure", type=int, nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.measure:
        print(json.dumps(measure(*options.measure)))
        return
    if options.emotify:
        _emotify(options.sizes, options.seeds)
        return
    if options.shown:
        print("| tracks | within folds | all pairs | nested | other tracks | learnt | of noise |")
        print("|---|---|---|---|---|---|---|")
        for size in options.sizes:
            shown(size, options.tags, options.seeds)
        return
    if options.scaling:
        print("| dataset | tracks | seed | rule | standard: seen | unseen | s | ", end="")
        print("quantile: seen | unseen | s |\n" + "|---" * 10 + "|")
        sizes = {"majorminer": (100, 1000, 10_000), "emotify": (100, 300), "4q": (300,)}
        for name, size in ((name, size) for name, found in sizes.items() for size in found):
            for seed in range(options.seeds):
                scalings(name, size, seed, options.tags)
        return
    codes = {"this": here} | ({"other": options.beside.resolve()} if options.beside else {})
    print("| tracks | seed | code | cache | fits | compiled | first, s | all, s | seen | unseen |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for size in options.sizes:
        for seed in range(options.seeds):
            for name, checkout in codes.items():
                with tempfile.TemporaryDirectory() as cache:
                    for state in ("empty", "warm"):
                        row = measured(checkout, cache, size, options.tags, seed)
                        print(
                            f"| {size:,} | {seed} | {name} | {state} | {row['fits']} "
                            f"| {row['compiled']} | {row['first']:.1f} | {row['seconds']:.1f} "
                            f"| {row['seen']:.4f} | {row['unseen']:.4f} |",
                            flush=True,
                        )


if __name__ == "__main__":
    main()
