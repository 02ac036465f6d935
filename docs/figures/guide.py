"""Draws the pictures of docs/guide.md, docs/figures/guide/*.png, and prints the figures it states.

    python docs/figures/guide.py                      # all of them, a few minutes
    python docs/figures/guide.py energy gradients     # some of them

Everything is computed by the code that the guide describes: on small random models, whose exact
answers come from enumeration, and on the generated collection, whose truth is known.
"""

import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from harmonium import DiscriminativeRBM, TagSmoother
from harmonium.audio import clip_features
from harmonium.estimators.calibration import ask_by_features, correct_folds
from harmonium.evaluation import auc_per_tag, log_loss_per_tag, reliability
from harmonium.library.learning.scores import make_curves
from harmonium.library.model.precision import TagPrecision, threshold_for
from harmonium.rbm.gradients import (
    Batch,
    BeliefPropagation,
    ContrastiveDivergence,
    MeanField,
    PseudoLikelihood,
)
from harmonium.rbm.inference import InferenceOptions, infer, log_likelihood
from harmonium.rbm.model import Field, Params, condition, free_energy
from harmonium.synthetic import make_collection

FOLDER = Path(__file__).parent / "guide"
BLUE, ORANGE, GREEN, PURPLE, GREY = "#1f6fb4", "#d9721e", "#2c8c57", "#8a4fae", "#8a8a8a"
plt.rcParams |= {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11,
    "legend.frameon": False,
}


# Small models. --------------------------------------------------------------------------------

TAGS = ("rock", "guitar", "calm")
U = np.array([[2.0, 1.6, -1.5], [-0.5, 0.8, 1.4]], np.float32)
C, D = np.array([-1.0, -1.0], np.float32), np.array([-1.2, -0.6, -0.8], np.float32)


def energy() -> Figure:
    """A model of three tags: its weights, and the probability of every combination of tags."""
    states = np.array([[i >> 2 & 1, i >> 1 & 1, i & 1] for i in range(8)], np.float32)
    field = Field(jnp.array(U), jnp.tile(C, (8, 1)), jnp.tile(D, (8, 1)))
    free = np.asarray(free_energy(field, jnp.array(states)))
    p = np.exp(np.asarray(log_likelihood(field, jnp.array(states))))
    print("energy: the probabilities of the eight combinations sum to", round(float(p.sum()), 6))
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), width_ratios=(1, 1.6))
    top, bottom = [(0.5, 1), (1.5, 1)], [(0, 0), (1, 0), (2, 0)]
    for k, (x, y) in enumerate(top):
        for j, (x2, y2) in enumerate(bottom):
            colour = BLUE if U[k, j] > 0 else ORANGE
            left.plot((x, x2), (y, y2), color=colour, lw=1.8 * abs(U[k, j]), zorder=1)
            at = 0.28 + 0.16 * k
            left.annotate(
                f"{U[k, j]:+.1f}",
                (x2 + at * (x - x2), y2 + at * (y - y2)),
                **{"ha": "center", "va": "center", "fontsize": 9},
                bbox={"fc": "white", "ec": "none", "pad": 1},
            )
    for places, labels in ((top, ("$h_1$", "$h_2$")), (bottom, TAGS)):
        for (x, y), label in zip(places, labels, strict=True):
            left.scatter(x, y, s=1500, color="white", edgecolor="black", zorder=2)
            left.text(x, y, label, ha="center", va="center", zorder=3)
    left.set(xlim=(-0.5, 2.5), ylim=(-0.3, 1.3), title="weights U")
    left.axis("off")
    order = np.argsort(free)
    names = [" + ".join(t for t, on in zip(TAGS, s, strict=True) if on) or "none" for s in states]
    right.barh(range(8), p[order], color=BLUE)
    for place, i in enumerate(order):
        right.text(p[i] + 0.005, place, f"p = {p[i]:.3f}   F = {free[i]:.2f}", va="center")
    right.set_yticks(range(8), [names[i] for i in order])
    right.set(xlim=(0, p.max() * 1.55), xlabel="p(y)", title="low free energy, high probability")
    right.invert_yaxis()
    return figure


def random_params(rng: np.random.Generator, n: int, n_tags: int, scale: float) -> Params:
    """A random RBM without conditions, whose weights have this standard deviation."""

    def normal(*shape: int) -> jax.Array:
        return jnp.array(scale * rng.normal(size=shape), jnp.float32)

    U, c, d = normal(n, n_tags), normal(n), normal(n_tags)
    W, V = jnp.zeros((n, 0)), jnp.zeros((0, n_tags))
    return Params(U, W, V, c - U.sum(1) / 2, d - U.sum(0) / 2)


def no_conditions(n: int) -> tuple[np.ndarray, np.ndarray]:
    """u and a of clips that nothing is known about."""
    return np.zeros((n, 0), np.float32), np.zeros((n, 0), np.int32)


def inference() -> Figure:
    """The marginals of random models of 8 tags and 8 hidden units, against enumeration."""
    methods = {
        "mean field, 20 steps": InferenceOptions("mean_field", steps=20),
        "belief propagation, 20 steps": InferenceOptions("lbp", steps=20, retry=False),
        "Gibbs sampling, 100 sweeps": InferenceOptions("gibbs", steps=100),
    }
    figure, axes = plt.subplots(1, 3, figsize=(9, 3.4), sharey=True)
    unknown = np.full((1, 8), np.nan, np.float32)
    for scale, colour in ((2.0, ORANGE), (1.0, BLUE), (0.5, GREEN)):
        models = [random_params(np.random.default_rng(i), 8, 8, scale) for i in range(30)]
        truth = np.concatenate(
            [infer(m, *no_conditions(1), unknown, InferenceOptions("exact")).y[0] for m in models]
        )
        for axis, (name, options) in zip(axes, methods.items(), strict=True):
            found = np.concatenate(
                [infer(m, *no_conditions(1), unknown, options).y[0] for m in models]
            )
            error = float(np.sqrt(np.mean((found - truth) ** 2)))
            print(f"inference: {name}, weights {scale}: root mean square error {error:.3f}")
            label = f"weights ±{scale:g}: error {error:.3f}"
            axis.scatter(truth, found, s=10, color=colour, label=label, alpha=0.8, lw=0)
            axis.set(title=name, xlabel="exact p(tag)", xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))
    for axis in axes:
        axis.axline((0, 0), slope=1, color=GREY, lw=1, zorder=0)
        axis.legend(loc="upper left", fontsize=8, handletextpad=0.1, borderpad=0)
        axis.set_ylim(-0.03, 1.35)
    axes[0].set_ylabel("p(tag) by the method")
    return figure


def angle(one: Params, other: Params) -> float:
    """The angle between two gradients, in degrees."""
    a, b = (np.concatenate([np.ravel(part) for part in g]).astype(float) for g in (one, other))
    cosine = a @ b / np.linalg.norm(a) / np.linalg.norm(b)
    return float(np.degrees(np.arccos(np.clip(cosine, -1, 1))))


def gradients() -> Figure:
    """The angle between each training method's mean gradient and that of the log-likelihood."""
    methods = {
        "CD-1": (ContrastiveDivergence(1), ORANGE, "-"),
        "CD-5": (ContrastiveDivergence(5), ORANGE, "--"),
        "CD-25": (ContrastiveDivergence(25), ORANGE, ":"),
        "mean-field CD-5": (MeanField(5), PURPLE, "-"),
        "belief propagation, 20 steps": (BeliefPropagation(20), BLUE, "-"),
        "pseudo-likelihood": (PseudoLikelihood(), GREEN, "-"),
    }
    scales, repeats, n_clips, n_trials = np.array([0.25, 0.5, 1.0, 1.5, 2.0, 3.0]), 100, 40, 8
    every = jnp.array([[i >> j & 1 for j in range(8)] for i in range(256)], jnp.float32)

    @jax.jit
    @jax.grad
    def exact_gradient(params: Params, y: jax.Array) -> jax.Array:
        """Of -log p(y) = F(y) + log Z, with log Z summed over all combinations of tags."""

        def free(tags: jax.Array) -> jax.Array:
            return free_energy(condition(params, *no_conditions(len(tags))), tags)

        return jnp.mean(free(y)) + jax.nn.logsumexp(-free(every))

    compiled = {name: jax.jit(method) for name, (method, *_) in methods.items()}
    angles = {name: np.zeros((len(scales), n_trials)) for name in methods}
    for trial in range(n_trials):
        rng = np.random.default_rng(100 + trial)
        y = (rng.random((n_clips, 8)) < rng.uniform(0.1, 0.6, 8)).astype(np.float32)
        y[:, 1] = np.where(rng.random(n_clips) < 0.8, y[:, 0], y[:, 1])  # two tags go together
        for place, scale in enumerate(scales):
            params = random_params(np.random.default_rng(trial), 6, 8, scale)
            truth = exact_gradient(params, jnp.array(y))
            for name, (method, *_) in methods.items():
                sweeps, numbers = method.noise(params, False)
                times = repeats if sweeps else 1
                n = times * n_clips
                batch = Batch(*no_conditions(n), np.tile(y, (times, 1)), np.ones(n, np.float32))
                noise = rng.random((sweeps, n, numbers), np.float32)
                found, _ = compiled[name](params, Batch(*map(jnp.array, batch)), jnp.array(noise))
                angles[name][place, trial] = angle(found, truth)
    figure, axis = plt.subplots(figsize=(9, 3.6))
    for name, (_, colour, line) in methods.items():
        mean = angles[name].mean(axis=1)
        print("gradients:", name, dict(zip(scales.tolist(), mean.round(1).tolist(), strict=True)))
        axis.plot(scales, mean, line, color=colour, label=name, marker="o", ms=4)
    axis.set(xlabel="standard deviation of the weights", ylabel="degrees from the true gradient")
    axis.set_ylim(0)
    axis.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


# The generated collection. --------------------------------------------------------------------


class Music(NamedTuple):
    """Clips to learn from and clips to be judged by."""

    X: np.ndarray
    Y: np.ndarray
    test: np.ndarray
    tags: list[str]


@cache
def music() -> Music:
    """400 tracks of the generated collection; a third of the artists is held out."""
    made = make_collection(n_tracks=400, clips_per_track=1, seed=3)
    X = np.stack([clip_features(made.samples(i), made.rate) for i in range(made.n_clips)])
    counts = made.triples.counts().top(30)
    artists, codes = np.unique(made.clips["artist"].to_numpy(), return_inverse=True)
    held_out = np.random.default_rng(0).random(len(artists)) < 1 / 3
    return Music(X, counts.labels(min_count=1), held_out[codes], counts.tags.to_list())


@cache
def model(training: str = "multi_prediction", **settings: float) -> DiscriminativeRBM:
    """The classifier, trained on the clips that are not held out."""
    data = music()
    fitted = DiscriminativeRBM(training=training, random_state=0, **settings)
    return fitted.fit(data.X[~data.test], data.Y[~data.test])


def told() -> Figure:
    """What one told tag does to the others of a clip."""
    data = music()
    X, Y = data.X[data.test], data.Y[data.test]
    before = model().predict_proba(X)
    j = data.tags.index("guitar")
    after = model().complete(X, {j: 1})
    # of the clips with a guitar, the one in which the model doubted it most
    clip = int(np.argmin(np.where(Y[:, j] == 1, before[:, j], 2)))
    order = np.argsort(-np.abs(after[clip] - before[clip]))
    order = [i for i in order if i != j][:12]
    order.sort(key=lambda i: -before[clip, i])
    figure, axis = plt.subplots(figsize=(9, 3.9))
    for place, i in enumerate(order):
        colour = BLUE if after[clip, i] > before[clip, i] else ORANGE
        axis.annotate(
            "",
            (after[clip, i], place),
            (before[clip, i], place),
            arrowprops={"arrowstyle": "-|>", "color": colour, "lw": 2, "shrinkA": 0, "shrinkB": 0},
        )
        axis.plot(before[clip, i], place, "o", color="black", ms=4)
        if Y[clip, i] == 1:
            axis.text(1.01, place, "said by a listener", va="center", fontsize=9)
    axis.set_yticks(range(len(order)), [data.tags[i] for i in order])
    axis.set(xlim=(0, 1), xlabel="probability: • by the sound,  ▸ with guitar told")
    axis.invert_yaxis()
    axis.grid(axis="x", color="#dddddd")
    for name, P, rows in (("sound", before, Y[:, j] == 1), ("guitar told", after, Y[:, j] == 1)):
        others = np.delete(np.arange(len(data.tags)), j)
        loss = log_loss_per_tag(Y[rows][:, others], P[rows][:, others]).mean
        print(f"told: {name}, clips with a guitar: mean log loss of the other tags {loss:.4f}")
    return figure


def scores_of(
    fitted: DiscriminativeRBM, X: np.ndarray, given: np.ndarray, Y: np.ndarray
) -> tuple[float, float]:
    """Mean AUC and log loss of the tags that are not given, by the model's own marginals."""
    asked, P = np.where(np.isnan(given), Y, np.nan), fitted.infer(X, given).y
    losses = log_loss_per_tag(asked, np.clip(P, 1e-6, 1 - 1e-6))
    return float(auc_per_tag(asked, P).mean), float(losses.mean)


def steps() -> Figure:
    """How well held-out tags are predicted, by the number of mean-field steps."""
    data = music()
    X, Y = data.X[data.test], data.Y[data.test]
    numbers = [1, 2, 3, 4, 5, 7, 10, 15, 20]
    nothing = np.full(Y.shape, np.nan)
    half = np.where(np.random.default_rng(1).random(Y.shape) < 0.5, Y, np.nan)
    figure, axes = plt.subplots(2, 2, figsize=(9, 5.6), sharex=True, sharey="row")
    trained = {
        "multi-prediction, K = 3": (model(), BLUE),
        "contrastive divergence, CD-10": (model("cd", training_steps=10), ORANGE),
    }
    questions = {"sound alone": nothing, "half of the tags told": half}
    for column, (title, given) in zip(axes.T, questions.items(), strict=True):
        for name, (fitted, colour) in trained.items():
            usual = fitted.get_params()
            found = []
            for n in numbers:
                fitted.set_params(inference="mean_field", inference_steps=n)
                found.append(scores_of(fitted, X, given, Y))
            fitted.set_params(inference="lbp", inference_steps=100)
            by_belief = scores_of(fitted, X, given, Y)
            fitted.set_params(**usual)
            for axis, values, line in zip(column, zip(*found, strict=True), by_belief, strict=True):
                axis.plot(numbers, values, "o-", ms=4, color=colour, label=name)
                axis.axhline(line, color=colour, lw=1, ls="--")
            for what, values, line in zip(
                ("AUC", "log loss"), zip(*found, strict=True), by_belief, strict=True
            ):
                shown = {n: round(v, 3) for n, v in zip(numbers, values, strict=True)}
                print(f"steps: {title}, {name}: {what} {shown}, belief propagation {line:.3f}")
        column[0].set_title(title)
        column[1].set(xlabel="mean-field steps at prediction", xscale="log")
        column[1].set_xticks(numbers, numbers)
        column[1].minorticks_off()
    axes[0, 0].set_ylabel("mean AUC")
    axes[1, 0].set_ylabel("log loss")
    axes[1, 1].plot([], [], color=GREY, lw=1, ls="--", label="by belief propagation")
    axes[1, 1].legend(fontsize=9)
    return figure


def smoothing() -> Figure:
    """What three listeners said of some clips, what the smoother makes of it, and the truth."""
    made = make_collection(n_tracks=120, clips_per_track=3, seed=5)
    smoother = TagSmoother(random_state=0, n_tags=40)
    smoother.fit(made.triples, tracks=made.clips["track"])
    smoothed = smoother.smooth()
    counts = made.triples.counts()
    names = list(smoother.tags_)
    columns = [counts.tags.to_list().index(tag) for tag in names]
    said = counts.matrix.toarray()[:, columns].astype(float)
    truth = made.truth[:, columns].astype(float)
    found = smoothed.frame().select(names).to_numpy()
    for name, S in (("raw", said), ("smoothed", found)):
        print(f"smoothing: {name}: mean AUC against the truth {auc_per_tag(truth, S).mean:.3f}")
    shown = [names.index(t) for t in names[:14]]
    clips = np.arange(0, 90, 3)
    figure, axes = plt.subplots(1, 3, figsize=(9, 4.2), sharey=True, layout="constrained")
    parts = {
        "what listeners said": said / np.maximum(said.max(axis=0), 1),
        "smoothed": found / found.max(axis=0),
        "the truth": truth,
    }
    for axis, (title, values) in zip(axes, parts.items(), strict=True):
        axis.imshow(values[np.ix_(clips, shown)].T, cmap="Blues", vmin=0, vmax=1, aspect="auto")
        score = "" if title == "the truth" else f"\nAUC {auc_per_tag(truth, values).mean:.3f}"
        axis.set(title=title + score, xlabel="clips", xticks=[])
        axis.spines[["top", "right"]].set_visible(True)
    axes[0].set_yticks(range(len(shown)), [names[i] for i in shown])
    return figure


def calibration() -> Figure:
    """How often a tag was true where about so much was said, before and after the correction."""
    data = music()
    X, Y = data.X[data.test], data.Y[data.test]
    one = np.full(Y.shape, np.nan)
    rng = np.random.default_rng(0)
    for clip, row in enumerate(Y):
        if (row == 1).any():
            j = rng.choice(np.flatnonzero(row == 1))
            one[clip, j] = 1
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.9), sharey=True)
    for axis, (title, given) in zip(
        axes, (("sound alone", np.full(Y.shape, np.nan)), ("one true tag told", one)), strict=True
    ):
        asked = np.where(np.isnan(given), Y, np.nan)
        for name, P, colour in (
            ("as inferred", model().infer(X, given).y, ORANGE),
            ("corrected", model().complete(X, given), BLUE),
        ):
            found = reliability(asked, P)
            kept = found.n >= 20
            label = f"{name}: error {found.error:.3f}"
            print(f"calibration: {title}, {label}")
            x, y = found.scores[kept] / found.n[kept], found.positives[kept] / found.n[kept]
            axis.plot(x, y, "o-", color=colour, ms=4, label=label)
        axis.axline((0, 0), slope=1, color=GREY, lw=1)
        axis.set(title=title, xlabel="probability given", xlim=(0, 1), ylim=(0, 1))
        axis.legend(loc="upper left", fontsize=9)
    axes[0].set_ylabel("share that is true")
    return figure


def precision() -> Figure:
    """What is written by a promised precision: how often it is right, beside simpler rules."""
    promised = np.array([0.5, 0.6, 0.7, 0.8, 0.9])
    rules = ("your tags", "built-in tags", "the held-out share itself", "the probability itself")
    written = {name: np.zeros((5, 2)) for name in rules}
    for seed in range(20):
        rng = np.random.default_rng(seed)
        offset, trust = rng.normal(-1.5, 0.8, 40), rng.uniform(0.4, 1.2, 40)  # of 40 tags
        said = offset + 1.6 * rng.normal(size=(2200, 40))  # log-odds by the model
        truth = rng.random(said.shape) < 1 / (1 + np.exp(-(offset + trust * (said - offset))))
        P, Y = (1 / (1 + np.exp(-said))).astype(np.float32), truth.astype(np.float32)
        held = [np.arange(fold, 200, 5) for fold in range(5)]
        asked = [ask_by_features(P[rows], Y[rows]) for rows in held]
        P[200:] = correct_folds(asked, held, P[:200])(P[200:])
        curves = make_curves(Y[:200], P[:200])
        for place, share in enumerate(promised):
            for j, curve in enumerate(curves):
                passed = np.flatnonzero((curve.precision >= share) & (curve.chosen >= 8))
                share_itself = curve.thresholds[passed[-1]] if len(passed) else None
                taught = TagPrecision(own=curve, taught=True).threshold(share)
                thresholds = taught, threshold_for(curve, share), share_itself, share
                for name, threshold in zip(rules, thresholds, strict=True):
                    if threshold is None:
                        continue
                    chosen = P[200:, j] >= threshold
                    written[name][place] += (Y[200:, j][chosen].sum(), chosen.sum())
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6))
    for (name, sums), colour in zip(written.items(), (BLUE, PURPLE, ORANGE, GREEN), strict=True):
        reached, volume = sums[:, 0] / sums[:, 1], sums[:, 1] / (20 * 2000)
        left.plot(promised, reached, "o-", color=colour, label=name)
        right.plot(promised, volume, "o-", color=colour, label=name)
        print("precision:", name, "reached", reached.round(3), "tags a track", volume.round(2))
    left.axline((0.5, 0.5), slope=1, color=GREY, lw=1)
    left.set(xlabel="precision promised", ylabel="precision reached", xlim=(0.47, 0.95))
    right.set(xlabel="precision promised", ylabel="tags written for each track")
    right.set_ylim(0)
    left.legend(fontsize=9)
    return figure


FIGURES = (energy, inference, gradients, told, steps, smoothing, calibration, precision)


def main(*names: str) -> None:
    """Draw the figures that are named, or all of them."""
    for draw in FIGURES:
        if not names or draw.__name__ in names:
            figure = draw()
            if figure.get_layout_engine() is None:
                figure.tight_layout()
            figure.savefig(FOLDER / f"{draw.__name__}.png", dpi=110, metadata={"Software": None})
            plt.close(figure)


if __name__ == "__main__":
    main(*sys.argv[1:])
