"""The RBM over trees beside trees, boosting, stacking and chains, on every dataset.

    HARMONIUM_DATA=FOLDER python benchmarks/over_trees.py --prepare DATA.npz
    python benchmarks/over_trees.py --data DATA.npz --out FOLDER [--cores 16] [DATASET ...]
    python benchmarks/over_trees.py --report FOLDER
    python benchmarks/over_trees.py --data DATA.npz --times [DATASET ...]

Five test folds by artist or item. Everything is cross-fitted over the other four: the members of
the RBMs, and the classifiers below them. Trees, regressions and boosting are fitted in processes on
the CPU, without a pair of folds or a single one; what they say is shared by all models. The RBMs of
all test folds and settings are trained as one program, on a GPU if JAX finds one. Both are tuned
alike, by the AUC of held-out clips: ℓ2 and the scaling of the features, then hidden units, learning
rate and ℓ2 on U. With ``--default`` there is no search.

Results go to FOLDER/results.json as each dataset ends; ``--seconds`` ends the rest. Rivals:

- trees: 400, at least 3 clips in a leaf, of all training clips; "members": the mean of four
- tuned trees: leaves and features per split chosen by held-out clips
- boosting: HistGradientBoostingClassifier for each tag
- mean of both: of the log-odds of the trees and of the RBM alone
- stacking: what StackingClassifier does, for all tags at once: a logistic regression for each tag
  on the held-out probabilities of the trees and of a logistic regression
- chains: classifier chains over trees, the mean of three
"""

import argparse
import json
import os
import sys
import time
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from functools import lru_cache
from itertools import combinations, product
from multiprocessing import get_context
from pathlib import Path

import numpy as np

NAMES = (
    *("emotions", "birds", "gtzan", "emotify", "cal500", "4q", "scene", "yeast"),
    *("msd-50", "majorminer-104", "majorminer-1022", "hetrec-msd", "bibtex"),
)
N_FOLDS = 5
L2 = (0.1, 0.3, 1.0, 3.0)
L2_TAGS = (0.03, 0.3)
TREES = "trees"
SMALL = 1000  # clips up to which the variants that need more classifiers are tried
LEAVES = (1, 3, 10)
SPLITS = ("sqrt", 0.2)
N_CHAINS = 3


# Data


def prepare(path):
    """Features, labels (-1: unknown) and groups of all datasets as one file."""
    from harmonium.experiments.datasets import CATALOGUE, load_dataset

    arrays = {}
    for name in NAMES:
        data = load_dataset(CATALOGUE[name])
        arrays[f"{name}|X"] = np.asarray(data.X, np.float32)
        arrays[f"{name}|Y"] = np.where(np.isnan(data.Y), -1, data.Y).astype(np.int8)
        arrays[f"{name}|groups"] = np.unique(data.groups, return_inverse=True)[1].astype(np.int32)
    np.savez_compressed(path, **arrays)


@lru_cache(maxsize=16)
def load(path, name):
    """A dataset, read once in a process."""
    return Data(path, name)


class Data:
    """A dataset and its folds."""

    def __init__(self, path, name):
        from harmonium.evaluation.folds import grouped_folds

        with np.load(path) as arrays:
            self.X = arrays[f"{name}|X"]
            labels = arrays[f"{name}|Y"]
            groups = arrays[f"{name}|groups"]
        self.name = name
        self.Y = np.where(labels < 0, np.nan, labels).astype(np.float32)
        self.folds = grouped_folds(groups, self.Y, n_folds=N_FOLDS, seed=0)

    def rows(self, *folds):
        """The clips of these folds."""
        return np.flatnonzero(np.isin(self.folds, folds))

    def others(self, *folds):
        """The clips of all other folds."""
        return np.flatnonzero(~np.isin(self.folds, folds))


# Classifiers, in processes on the CPU


def on_cpu():
    """Start a worker that leaves the GPU and the other cores alone."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    os.environ["JAX_PLATFORMS"] = "cpu"
    import warnings

    warnings.simplefilter("ignore")


def classifier(kind):
    """An untrained one of scikit-learn's."""
    from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier

    if kind == "boosting":
        return HistGradientBoostingClassifier(
            max_bins=32, max_features=0.2, max_leaf_nodes=8, random_state=0
        )
    if kind.startswith("tuned"):
        _, leaf, split, n_trees = kind.split()
        return ExtraTreesClassifier(
            int(n_trees),
            min_samples_leaf=int(leaf),
            max_features=split if split == "sqrt" else float(split),
            random_state=0,
        )
    return TREES


def said_without(data_path, name, kind, left_out):
    """Log-odds of the clips of these folds, by a classifier of all others; and seconds."""
    from harmonium.estimators.base_classifier import classifier_maker, fit_fold

    data = load(data_path, name)
    train, asked = data.others(*left_out), data.rows(*left_out)
    began = time.process_time()
    if kind == "regression":
        from harmonium import LogisticTagger

        model = LogisticTagger(solver="newton", l2=0.003, scale_features="auto")
        Y = np.where(np.isnan(data.Y[train]).all(axis=0), 0, data.Y[train])
        model.fit(data.X[train], Y)
        fitted = time.process_time()
        said = model.decision_function(data.X[asked])
    else:
        make = classifier_maker(classifier(kind), seed=0, n_jobs=1)
        below = fit_fold(make, data.X[train], data.Y[train], n_jobs=1)
        fitted = time.process_time()
        said = below.log_odds(data.X[asked])
    said = np.clip(said, -12, 12)
    return asked, said.astype(np.float32), fitted - began, time.process_time() - fitted


def chain(data_path, name, test_fold, number, n_trees):
    """Probabilities by one chain of trees for the clips of a fold: alone, and half observed."""
    from sklearn.ensemble import ExtraTreesClassifier

    from harmonium.estimators.calibration import half_observed

    data = load(data_path, name)
    train, test = data.others(test_fold), data.rows(test_fold)
    Y = data.Y[train]
    n_tags = Y.shape[1]
    fed = np.where(np.isnan(Y), np.nanmean(Y, axis=0), Y)
    given = [np.full(data.Y[test].shape, np.nan), half_observed(data.Y[test])]
    P = [np.zeros(data.Y[test].shape) for _ in given]
    values = [np.zeros(data.Y[test].shape) for _ in given]
    before = []
    for tag in np.random.default_rng(number).permutation(n_tags):
        known = ~np.isnan(Y[:, tag])
        labels = Y[known, tag] > 0.5
        trees = None
        if labels.any() and not labels.all():
            trees = ExtraTreesClassifier(n_trees, min_samples_leaf=3, random_state=number)
            trees.fit(np.hstack([data.X[train][known], fed[known][:, before]]), labels)
        for p, value, observed in zip(P, values, given, strict=True):
            p[:, tag] = labels.mean()
            if trees is not None:
                p[:, tag] = trees.predict_proba(np.hstack([data.X[test], value[:, before]]))[:, 1]
            value[:, tag] = np.where(np.isnan(observed[:, tag]), p[:, tag], observed[:, tag])
        before.append(tag)
    return test_fold, P[0], P[1]


# RBMs, in a few processes on the GPU


def on_gpu():
    """Start a worker that shares the GPU."""
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    import warnings

    warnings.simplefilter("ignore")


OURS = "RBM over trees"
SAID = {}  # what a classifier says about all clips, by the random_state of the model above it


class Fixed:
    """Stands for the classifiers below a model, which were fitted before."""

    def __init__(self, said):
        self.said = said

    def log_odds(self, X):
        """Of all clips, which ``X`` must be."""
        assert len(X) == len(self.said)
        return self.said.copy()


def over_fixed():
    """The estimator, over classifiers that were fitted before."""
    from harmonium import DiscriminativeRBM

    class OverFixed(DiscriminativeRBM):
        def _fit_below(self, X, Y, folds, groups=None, sample_weight=None):
            self._below, rows = SAID[self.random_state]
            return self._below.said[rows]

        def _trainer(self, architecture, *, soft, **more):
            trainer = super()._trainer(architecture, soft=soft, **more)
            if CHANGED_V is None:
                return trainer
            from dataclasses import replace

            return replace(trainer, gradient=changed_v(trainer.gradient, CHANGED_V))

    return OverFixed


CHANGED_V = None  # "shared" or "fixed"


def changed_v(gradient, how):
    """The gradient with one V for all tags, or with none."""
    from dataclasses import dataclass

    import jax.numpy as jnp

    from harmonium.rbm.gradients import Gradient

    @dataclass(frozen=True)
    class ChangedV(Gradient):
        inner: Gradient
        how: str

        def noise(self, params, unknown):
            return self.inner.noise(params, unknown)

        def __call__(self, params, batch, noise):
            found, logits = self.inner(params, batch, noise)
            V = 0 * found.V
            if self.how == "shared":
                V = V + jnp.sum(found.V)
            return found._replace(V=V), logits

    return ChangedV(gradient, how)


class Stacks:
    """Trains the RBMs of a dataset, and judges them."""

    def __init__(self, data):
        self.data = data
        self.kinds = {}

    def fit(self, settings, said=None, test_folds=range(N_FOLDS)):
        """A model for each of the settings and test folds; ``said``: by test fold, (N, C) each."""
        from harmonium import DiscriminativeRBM
        from harmonium.estimators.stacked import fit_stacked

        data = self.data
        kind = self.kinds.setdefault("over", over_fixed()) if said else DiscriminativeRBM
        models, train = [], []
        for fold in test_folds:
            rows = data.others(fold)
            if said:
                SAID[fold] = (Fixed(said[fold]), rows)
            for setting in settings[fold]:
                more = {"estimator": TREES} if said else {}
                models.append(kind(calibrate=False, random_state=fold, **more, **setting))
                train.append(rows)
        fit_stacked(models, data.X, data.Y, train, [[]] * len(models), folds=data.folds)
        by_fold = {}
        for model in models:
            by_fold.setdefault(model.random_state, []).append(model)
        return by_fold

    def fit_members(self, settings, said):
        """Models of one member each, by test and held-out fold; ``said`` is by both."""
        from harmonium.estimators.stacked import fit_stacked

        data = self.data
        kind = self.kinds.setdefault("over", over_fixed())
        models, train, valid, places = [], [], [], []
        for fold, held_out in said:
            rows = data.others(fold, held_out)
            seed = 10 * fold + held_out
            SAID[seed] = (Fixed(said[fold, held_out]), rows)
            models.append(
                kind(calibrate=False, random_state=seed, n_models=1, estimator=TREES, **settings)
            )
            train.append(rows)
            valid.append(data.rows(held_out))
            places.append((fold, held_out))
        fit_stacked(models, data.X, data.Y, train, valid)
        return dict(zip(places, models, strict=True))

    def inputs(self, model, rows, said=None):
        """What a model computes with."""
        scaled = model._scaling(self.data.X[rows])
        return scaled if said is None else np.hstack([scaled, said[rows]])


def held_out_auc(model, Y):
    """The mean over folds, by which settings are chosen."""
    from harmonium.evaluation import auc_per_tag

    aucs = []
    for fold in np.unique(model.folds_):
        own = model.folds_ == fold
        aucs.append(auc_per_tag(Y[own], model.held_out_[own]).mean)
    return float(np.mean(aucs))


def measures(Y, P, completed=None):
    """Of the clips of one test fold."""
    from harmonium.estimators.calibration import half_observed
    from harmonium.evaluation import auc_per_tag
    from harmonium.evaluation.metrics import calibration_error_per_tag, log_loss_per_tag

    P = np.clip(np.asarray(P, np.float64), 1e-6, 1 - 1e-6)
    result = {
        "auc": auc_per_tag(Y, P).mean,
        "calibration": calibration_error_per_tag(Y, P).mean,
        "log_loss": log_loss_per_tag(Y, P).mean,
    }
    observed = half_observed(Y)
    asked = np.where(np.isnan(observed), Y, np.nan)
    result["half"] = auc_per_tag(asked, P if completed is None else completed).mean
    return result


def judge(stacks, model, fold, said=None, *, calibrated=True):
    """A chosen model on its test fold: probabilities and measures."""
    from harmonium.estimators.calibration import half_observed, observed_fraction
    from harmonium.estimators.tables import ClipTable

    data = stacks.data
    rows, test = data.others(fold), data.rows(fold)
    if calibrated and getattr(model, "folds_", None) is not None:
        model.calibrate = True
        clips = ClipTable(X=stacks.inputs(model, rows, said), Y=data.Y[rows])
        model._calibrate_by_folds(clips, model.folds_)
    inputs = stacks.inputs(model, test, said)
    P = model._scores(inputs)
    observed = half_observed(data.Y[test])
    completed = model._probabilities(model._member_params(), inputs, observed)
    if model.recalibration_ is not None:
        completed = model.recalibration_(completed, observed_fraction(observed))
    return P, {
        **measures(data.Y[test], P, completed),
        "held_out": held_out_auc(model, data.Y[rows]),
    }


def assembled(data, pairs):
    """(N, C) log-odds for each test fold."""
    said = {}
    for fold in range(N_FOLDS):
        table = np.zeros(data.Y.shape, np.float32)
        for other in range(N_FOLDS):
            if other == fold:
                continue
            rows, values = pairs[tuple(sorted((fold, other)))]
            own = data.folds[rows] == other
            table[rows[own]] = values[own]
            table[rows[~own]] += values[~own] / (N_FOLDS - 1)
        said[fold] = table
    return said


def nested(data, pairs, triples):
    """(N, C) for each test and held-out fold, by classifiers that have seen neither; or cheaply."""
    honest, cheap = {}, {}
    ordinary = assembled(data, pairs)
    for fold, held_out in product(range(N_FOLDS), repeat=2):
        if fold == held_out:
            continue
        cheap[fold, held_out] = ordinary[fold]
        table = ordinary[fold].copy()
        for other in set(range(N_FOLDS)) - {fold, held_out}:
            rows, values = triples[tuple(sorted((fold, held_out, other)))]
            own = data.folds[rows] == other
            table[rows[own]] = values[own]
        honest[fold, held_out] = table
    return honest, cheap


def best_of(by_fold, Y_of):
    """The best model of each test fold, by held-out clips."""
    chosen = {}
    for fold, models in by_fold.items():
        aucs = [held_out_auc(model, Y_of(fold)) for model in models]
        chosen[fold] = models[int(np.argmax(aucs))]
    return chosen


def settings_of(model, **changes):
    """The searched settings of a model, with some changed."""
    names = ("l2", "l2_tags", "scale_features", "n_hidden", "learning_rate")
    return {**{name: getattr(model, name) for name in names}, **changes}


def train_rbms(data_path, name, said_by, triples, options):
    """All RBMs of a dataset: alone and over trees, tuned alike; the defaults; and variants."""
    global CHANGED_V
    from harmonium.estimators.scaling import best_scaling

    data = load(data_path, name)
    stacks = Stacks(data)
    auto = best_scaling(data.X.astype(np.float64))
    scalings = ["standard", "quantile"] + (["idf"] if auto == "idf" else [])
    sizes = (100, 300) if auto == "idf" else (50, 100, 200)
    l2s = L2
    if options.default:
        scalings, sizes, l2s = [auto], (), (0.3,)
    more = {"max_epochs": options.max_epochs} if options.max_epochs else {}
    results, seconds = {}, {}
    probabilities = {}

    def labels(fold):
        return data.Y[data.others(fold)]

    for kind, said in (("RBM", None), (OURS, assembled(data, said_by[TREES]))):
        began = time.perf_counter()
        grid = [
            {"l2": l2, "scale_features": scale, "n_hidden": 100, "learning_rate": 0.01, **more}
            for l2, scale in product(l2s, scalings)
        ]
        by_fold = stacks.fit(dict.fromkeys(range(N_FOLDS), grid), said)
        defaults = {}
        for fold, models in by_fold.items():
            for model in models:
                if model.l2 == 0.3 and model.scale_features in (auto, scalings[0]):
                    defaults[fold] = model
        first = best_of(by_fold, labels)
        candidates = {fold: [model] for fold, model in first.items()}
        for size in sizes:
            again = {
                fold: [
                    settings_of(model, n_hidden=size, learning_rate=rate, l2_tags=l2, **more)
                    for rate, l2 in product((0.003, 0.01), L2_TAGS)
                ]
                for fold, model in first.items()
            }
            for fold, models in stacks.fit(again, said).items():
                candidates[fold] += models
        chosen = best_of(candidates, labels)
        seconds[kind] = time.perf_counter() - began
        for label, models in ((kind, chosen), (f"{kind}, default", defaults)):
            judged = {f: judge(stacks, m, f, said and said[f]) for f, m in models.items()}
            results[label] = [judged[fold][1] for fold in range(N_FOLDS)]
            for fold, model in models.items():
                results[label][fold]["settings"] = settings_of(model)
                if said:
                    V = model._params.V
                    results[label][fold]["V"] = [float(V.mean()), float(V.std())]
            probabilities[label] = {fold: judged[fold][0] for fold in range(N_FOLDS)}
    from harmonium.logistic import mean_probabilities

    results[f"{OURS} and RBM"] = []
    for fold in range(N_FOLDS):
        both = [probabilities[kind][fold] for kind in ("RBM", OURS)]
        found = measures(data.Y[data.rows(fold)], mean_probabilities(both))
        results[f"{OURS} and RBM"].append({**found, "held_out": float("nan")})
    yield "main", results, probabilities, seconds

    if not options.variants:
        return

    default = {"l2": 0.3, "scale_features": auto if auto in scalings else "standard", **more}
    alike = {fold: [default] for fold in range(N_FOLDS)}
    results = {}
    trees = assembled(data, said_by[TREES])
    variants = {"trees": (trees, None)}
    variants |= {"V shared": (trees, "shared"), "V fixed at 1": (trees, "fixed")}
    for below in ("boosting", "regression"):
        if below in said_by:
            other = assembled(data, said_by[below])
            both = {fold: (trees[fold] + other[fold]) / 2 for fold in range(N_FOLDS)}
            variants |= {below: (other, None), f"trees and {below}": (both, None)}
    for label, (said, change) in variants.items():
        CHANGED_V = change
        models = stacks.fit(alike, said)
        CHANGED_V = None
        judged = [judge(stacks, models[f][0], f, said[f])[1] for f in range(N_FOLDS)]
        results[f"variant: {label}"] = judged
    X = data.X
    data.X = np.zeros_like(X)
    models = stacks.fit(
        {f: [{"l2": 0.3, "scale_features": "standard", **more}] for f in alike}, trees
    )
    judged = [judge(stacks, models[f][0], f, trees[f])[1] for f in range(N_FOLDS)]
    results["variant: no features"] = judged
    data.X = X
    yield "variants", results, None, None

    if triples:
        from harmonium.evaluation import auc_per_tag

        results = {}
        for label, said in zip(
            ("nested", "cheap"), nested(data, said_by[TREES], triples), strict=True
        ):
            models = stacks.fit_members(default, said)
            rows = []
            for fold in range(N_FOLDS):
                test = data.rows(fold)
                members, held_out = [], []
                for other in set(range(N_FOLDS)) - {fold}:
                    model = models[fold, other]
                    table = said[fold, other]
                    members.append(model._scores(stacks.inputs(model, test, table)))
                    own = data.rows(other)
                    P = model._scores(stacks.inputs(model, own, table))
                    held_out.append(auc_per_tag(data.Y[own], P).mean)
                found = measures(data.Y[test], mean_probabilities(members))
                rows.append({**found, "held_out": float(np.mean(held_out))})
            results[f"folds: {label}"] = rows
        yield "folds", results, None, None


def all_of(generator_arguments):
    """What `train_rbms` yields, written to a file as it comes; for a pool."""
    data_path, name, said_by, triples, options, out = generator_arguments
    parts = []
    for part, results, probabilities, seconds in train_rbms(
        data_path, name, said_by, triples, options
    ):
        parts.append((part, results, probabilities, seconds))
        (Path(out) / f"part-{name}-{part}.json").write_text(json.dumps(results))
    return name, parts


# Rivals that need what others said


def rivals(data, said_by, singles, chains, probabilities):
    """Measures of each rival by test fold, of those whose parts there are."""
    from scipy.special import expit
    from sklearn.linear_model import LogisticRegression

    results = {}

    def add(label, fold, P, completed=None):
        Y = data.Y[data.rows(fold)]
        results.setdefault(label, [None] * N_FOLDS)[fold] = measures(Y, P, completed)

    def aligned(part, fold):
        rows, values = part
        return values[np.argsort(rows)]

    tables = {kind: assembled(data, pairs) for kind, pairs in said_by.items()}
    for fold in range(N_FOLDS):
        test, train = data.rows(fold), data.others(fold)
        for kind in ("trees", "boosting", "regression"):
            if (fold,) in singles.get(kind, {}):
                add(kind, fold, expit(aligned(singles[kind][fold,], fold)))
        if TREES in tables:
            add("trees, members", fold, expit(tables[TREES][fold][test]))
        tuned = {kind: pairs for kind, pairs in said_by.items() if kind.startswith("tuned")}
        if tuned and len(tuned) == len(LEAVES) * len(SPLITS):
            from harmonium.evaluation import auc_per_tag

            score = {
                kind: np.mean(
                    [
                        auc_per_tag(data.Y[data.rows(o)], tables[kind][fold][data.rows(o)]).mean
                        for o in range(N_FOLDS)
                        if o != fold
                    ]
                )
                for kind in tuned
            }
            best = max(score, key=score.get)
            final = best.rsplit(" ", 1)[0] + " 400"
            if (fold,) in singles.get(final, {}):
                add("tuned trees", fold, expit(aligned(singles[final][fold,], fold)))
        if probabilities and (fold,) in singles.get(TREES, {}):
            P = np.clip(probabilities["RBM"][fold].astype(np.float64), 1e-7, 1 - 1e-7)
            log_odds = np.log(P) - np.log1p(-P)
            add("mean of both", fold, expit((aligned(singles[TREES][fold,], fold) + log_odds) / 2))
        has_singles = all((fold,) in singles.get(kind, {}) for kind in (TREES, "regression"))
        if has_singles and "regression" in tables:
            P = np.zeros((len(test), data.Y.shape[1]))
            for tag in range(data.Y.shape[1]):
                known = train[~np.isnan(data.Y[train, tag])]
                y = data.Y[known, tag] > 0.5
                P[:, tag] = y.mean()
                if y.any() and not y.all():
                    inputs = [tables[kind][fold][known, tag] for kind in (TREES, "regression")]
                    last = LogisticRegression().fit(expit(np.stack(inputs, 1)), y)
                    asked = [
                        aligned(singles[k][fold,], fold)[:, tag] for k in (TREES, "regression")
                    ]
                    P[:, tag] = last.predict_proba(expit(np.stack(asked, 1)))[:, 1]
            add("stacking", fold, P)
        if len(chains.get(fold, [])) == N_CHAINS:
            alone, half = (np.mean(part, axis=0) for part in zip(*chains[fold], strict=True))
            add("chains", fold, alone, half)
    return {label: rows for label, rows in results.items() if None not in rows}


# The whole


def run(arguments):
    """Everything, until it is done or the time is over."""
    began = time.monotonic()
    out = Path(arguments.out)
    out.mkdir(parents=True, exist_ok=True)
    names = arguments.dataset or NAMES
    spawn = get_context("spawn")
    data = {name: load(arguments.data, name) for name in names}
    pairs = list(combinations(range(N_FOLDS), 2))
    triples = list(combinations(range(N_FOLDS), 3))
    cpu = ProcessPoolExecutor(arguments.cores, mp_context=spawn, initializer=on_cpu)
    gpu = ProcessPoolExecutor(arguments.gpu_processes, mp_context=spawn, initializer=on_gpu)
    waiting: dict[Future, tuple] = {}
    said = {name: {} for name in names}  # kind → folds left out → (rows, log-odds)
    chains = {name: {} for name in names}
    seconds = {name: {} for name in names}
    trained = {name: {} for name in names}
    rbm_seconds = {}
    submitted = set()

    def submit(name, kind, left_out):
        job = cpu.submit(said_without, arguments.data, name, kind, left_out)
        waiting[job] = ("said", name, kind, left_out)

    def is_small(name):
        return len(data[name].X) <= SMALL

    def below(name):
        kinds = [TREES, "regression"]
        if is_small(name) and data[name].Y.shape[1] <= 20 and arguments.variants:
            kinds.append("boosting")
        return kinds

    order = [name for name in names if name != "bibtex"]
    if "bibtex" in names:
        order.insert(min(4, len(order)), "bibtex")
    for name in order:
        kinds = below(name) if name != "bibtex" else [TREES]
        for kind in kinds:
            for left_out in pairs:
                submit(name, kind, left_out)
        for left_out in triples if is_small(name) and arguments.variants else []:
            submit(name, TREES, left_out)
    for name in order:
        for kind in (TREES, "regression") if name != "bibtex" else (TREES,):
            for fold in range(N_FOLDS):
                submit(name, kind, (fold,))
    if "bibtex" in names:
        for left_out in [*pairs, *((fold,) for fold in range(N_FOLDS))]:
            submit("bibtex", "regression", left_out)
    for name in order:
        n_tags = data[name].Y.shape[1]
        n_trees = 50 if n_tags < 100 else 25
        for fold in range(N_FOLDS) if name != "bibtex" and not arguments.default else []:
            for number in range(N_CHAINS):
                job = cpu.submit(chain, arguments.data, name, fold, number, n_trees)
                waiting[job] = ("chain", name, fold, number)
    order = [] if arguments.default else order
    for name in order:
        for leaf, split in product(LEAVES, SPLITS) if name != "bibtex" else []:
            for left_out in pairs:
                submit(name, f"tuned {leaf} {split} 100", left_out)
            for fold in range(N_FOLDS):
                submit(name, f"tuned {leaf} {split} 400", (fold,))
    for name in order:
        if name != "bibtex":
            for fold in range(N_FOLDS):
                submit(name, "boosting", (fold,))

    def parts_of(name, kind, which):
        of_kind = said[name].get(kind, {})
        return {left_out: of_kind[left_out] for left_out in which if left_out in of_kind}

    def train_if_ready(name):
        needed = [TREES] if name == "bibtex" else below(name)
        complete = {kind: parts_of(name, kind, pairs) for kind in needed}
        if any(len(parts) < len(pairs) for parts in complete.values()):
            return
        honest = parts_of(name, TREES, triples)
        if is_small(name) and arguments.variants and len(honest) < len(triples):
            return
        submitted.add(name)
        job = gpu.submit(all_of, (arguments.data, name, complete, honest, arguments, str(out)))
        waiting[job] = ("rbm", name)

    def write():
        tables = {}
        for name in names:
            main = trained[name].get("main")
            probabilities = main[1] if main else None
            of_pairs = {
                kind: parts_of(name, kind, pairs)
                for kind in said[name]
                if len(parts_of(name, kind, pairs)) == len(pairs)
            }
            singles = {
                kind: parts_of(name, kind, [(fold,) for fold in range(N_FOLDS)])
                for kind in said[name]
            }
            table = rivals(data[name], of_pairs, singles, chains[name], probabilities)
            for part in trained[name].values():
                table |= part[0]
            size = [*data[name].X.shape, data[name].Y.shape[1]]
            tables[name] = {
                "size": size,
                "measures": table,
                "cpu_seconds": seconds[name],
                "rbm_seconds": rbm_seconds.get(name),
            }
        text = json.dumps(tables)
        (out / "results.json.tmp").write_text(text)
        (out / "results.json.tmp").replace(out / "results.json")

    last_written = began
    while waiting and time.monotonic() - began < arguments.seconds:
        done, _ = wait(waiting, timeout=2, return_when=FIRST_COMPLETED)
        for job in done:
            what, name, *details = waiting.pop(job)
            try:
                result = job.result()
            except Exception as error:  # the other datasets go on
                print(f"{name} {what} {details}: {error!r}", flush=True)
                continue
            if what == "said":
                kind, left_out = details
                rows, values, fit_seconds, predict_seconds = result
                said[name].setdefault(kind, {})[left_out] = (rows, values)
                key = f"{kind} {len(left_out)}"
                seconds[name].setdefault(key, []).append([fit_seconds, predict_seconds])
            elif what == "chain":
                fold, alone, half = result
                chains[name].setdefault(fold, []).append((alone, half))
            else:
                for part, table, probabilities, rbm in result[1]:
                    trained[name][part] = (table, probabilities)
                    if rbm:
                        rbm_seconds[name] = rbm
                print(f"{time.monotonic() - began:.0f} s: RBMs of {name}", flush=True)
        for name in names:
            if name not in submitted:
                train_if_ready(name)
        if time.monotonic() - last_written > 60:
            write()
            last_written = time.monotonic()
    write()
    print(f"{time.monotonic() - began:.0f} s, {len(waiting)} tasks left", flush=True)
    for pool in (cpu, gpu):
        for process in list(pool._processes.values()):
            process.kill()
    os._exit(0)


# The report

RIVALS = (
    *("trees", "trees, members", "tuned trees", "boosting", "regression"),
    *("RBM", "mean of both", "stacking", "chains"),
)


def report(folder):
    """Tables in Markdown, and the paired differences."""
    tables = json.loads((Path(folder) / "results.json").read_text())
    columns = [*RIVALS, OURS, f"{OURS}, default", f"{OURS} and RBM"]
    for measure in ("auc", "half", "calibration", "log_loss"):
        print(f"\n## {measure}\n\n| |", " | ".join(columns), "|")
        print("|---" * (len(columns) + 1) + "|")
        for name, table in tables.items():
            cells = []
            for column in columns:
                rows = table["measures"].get(column)
                cells.append(f"{np.mean([r[measure] for r in rows]):.4f}" if rows else "")
            print(f"| {name} |", " | ".join(cells), "|")
        print(f"\nDifferences of {OURS}, over folds: mean ± standard error\n")
        print("| |", " | ".join(RIVALS), "|")
        print("|---" * (len(RIVALS) + 1) + "|")
        for name, table in tables.items():
            ours = table["measures"].get(OURS)
            cells = []
            for rival in RIVALS:
                rows = table["measures"].get(rival)
                if not rows or not ours:
                    cells.append("")
                    continue
                difference = np.array(
                    [a[measure] - b[measure] for a, b in zip(ours, rows, strict=True)]
                )
                error = difference.std(ddof=1) / len(difference) ** 0.5
                mark = "*" if abs(difference.mean()) > 2.776 * error else ""
                cells.append(f"{difference.mean():+.4f} ± {error:.4f}{mark}")
            print(f"| {name} |", " | ".join(cells), "|")
    labels = sorted({label for t in tables.values() for label in t["measures"] if ":" in label})
    print("\n## Variants (default settings): AUC, held-out AUC\n")
    for name, table in tables.items():
        for label in labels:
            rows = table["measures"].get(label)
            if rows:
                means = {
                    key: np.mean([row[key] for row in rows]) for key in ("auc", "held_out", "half")
                }
                print(
                    f"{name:16} {label:30}", {key: round(value, 4) for key, value in means.items()}
                )


def times(data_path, names):
    """CPU seconds to fit and to predict with the defaults, as ratios to the trees alone."""
    from sklearn.ensemble import ExtraTreesClassifier

    from harmonium import DiscriminativeRBM

    DiscriminativeRBM(max_epochs=1).fit(np.eye(40, 3), np.eye(40, 2))  # JAX is loaded
    print("| dataset | trees: fit | predict | RBM: fit | predict | over trees: fit | predict |")
    print("|---|---|---|---|---|---|---|")
    for name in names:
        data = load(data_path, name)
        train, test = data.others(0), data.rows(0)
        Y = np.nan_to_num(data.Y[train])
        rows = []
        for model in (
            ExtraTreesClassifier(400, min_samples_leaf=3, random_state=0),
            DiscriminativeRBM(random_state=0),
            DiscriminativeRBM(estimator=TREES, random_state=0),
        ):
            began = time.process_time()
            model.fit(data.X[train], Y)
            fitted = time.process_time()
            model.predict_proba(data.X[test])
            rows.append((fitted - began, time.process_time() - fitted))
        (fit, predict), *others = rows
        cells = [f"{fit:.2f} s", f"{predict:.2f} s"]
        for other_fit, other_predict in others:
            cells += [f"{other_fit / fit:.1f}", f"{other_predict / predict:.1f}"]
        print(f"| {name} |", " | ".join(cells), "|", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("dataset", nargs="*")
    parser.add_argument("--prepare", metavar="FILE")
    parser.add_argument("--data", metavar="FILE")
    parser.add_argument("--out", metavar="FOLDER")
    parser.add_argument("--report", metavar="FOLDER")
    parser.add_argument("--times", action="store_true")
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    parser.add_argument("--gpu-processes", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--default", action="store_true", help="no search: the default settings")
    parser.add_argument("--variants", action="store_true", help="other classifiers, V and folds")
    parser.add_argument("--max-epochs", type=int, default=None)
    arguments = parser.parse_args()
    if arguments.prepare:
        prepare(arguments.prepare)
    elif arguments.report:
        report(arguments.report)
    elif arguments.data and arguments.times:
        times(arguments.data, arguments.dataset or NAMES)
    elif arguments.data and arguments.out:
        run(arguments)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
