"""Fits many classifiers of one kind at once, for a GPU; see :mod:`harmonium.rbm.loop`."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from harmonium.arrays import Doubles, Floats, Ids
from harmonium.errors import DataError
from harmonium.estimators.calibration import half_observed
from harmonium.estimators.gradient_tagger import TIE_BREAKER, GradientTagger, LabelledClips, keep
from harmonium.estimators.tables import Scaling, standardising
from harmonium.rbm.compilation import compiled
from harmonium.rbm.gradients import Batch
from harmonium.rbm.loop import History, Scaled, Stack, part_of, stacked, train_stack
from harmonium.rbm.training import Optimiser, Schedule, Tree

MAX_MESSAGES = 2**27
"""Numbers in one array while models are scored: half a GiB. Belief propagation has several."""

DIFFERENT = (
    *("learning_rate", "init_scale", "l1", "l2", "l2_tags", "unit_norm"),
    *("random_state", "verbose", "n_jobs"),
)
"""Settings in which the models of a stack may differ."""


def signature(model: Any) -> tuple[Any, ...] | None:
    """What the models of one stack have in common; None for a model that is not trained in one."""
    if not isinstance(model, GradientTagger) or getattr(model, "solver", "") == "newton":
        return None
    settings = model.get_params()
    return type(model), *((k, v) for k, v in sorted(settings.items()) if k not in DIFFERENT)


def fit_stacked(
    models: Sequence[GradientTagger],
    X: Floats,
    Y: Floats,
    train: Sequence[Ids],
    valid: Sequence[Ids],
    *,
    targets: Floats | None = None,
    on_epoch: Callable[[Sequence[History]], None] | None = None,
) -> None:
    """``model.fit(X[train], targets[train], (X[valid], Y[valid]))`` for every model, at once.

    Parameters
    ----------
    models : untrained, of one class, equal in all settings but `DIFFERENT`; changed in place.
    X, Y : (n_clips, n_features) and (n_clips, n_tags) with 0, 1 and NaN.
    train, valid : for each model, the rows to learn from and those to stop early on.
    targets : (n_clips, n_tags) what to learn from, which may be probabilities; by default Y.
    on_epoch : called with the histories of the models.

    The models are those of ``fit`` up to rounding, and but for how clips fall into minibatches,
    which are as many for all of them.
    """
    if len({signature(model) for model in models}) != 1:
        raise DataError("models must be alike but for " + ", ".join(DIFFERENT) + ".")
    sizes = [len(rows) for rows in train]
    if min(sizes) < max(sizes) / 2:
        raise DataError(
            "The models of a stack take the same number of steps, so all must have about as many "
            f"clips to learn from; got {min(sizes):,} to {max(sizes):,}. Stack similar sizes."
        )
    first = models[0]
    T = Y if targets is None else targets
    prepared = [_prepared(m, X[rows], T[rows]) for m, rows in zip(models, train, strict=True)]
    starts = [start for start, _ in prepared]
    # the features are scaled alike in double precision first, then by each model in single
    alike = standardising(X)
    scaling = stacked([_after(alike, model._scaling) for model in models])
    n = len(X)
    predictor, rows = first._predictor(starts[0]), _padded(valid, -1)
    X_on_device, Y_on_device = jnp.asarray(alike(X)), jnp.asarray(Y)

    observed = None
    if first.get_params().get("training") == "multi_prediction":
        observed = _padded([half_observed(Y[own]) for own in valid], np.nan)
    at_once = max(1, MAX_MESSAGES // (rows.shape[1] * predictor.numbers_per_clip(starts[0])))

    @lru_cache(maxsize=1)
    def questions(numbers: tuple[int, ...]) -> Tree:
        """What these models are asked."""
        return jax.device_put(part_of((rows, observed, scaling), np.array(numbers)))

    def score(params: Tree, numbers: NDArray[np.intp]) -> Doubles:
        asked = questions(tuple(numbers))
        auc, likelihood = _stacked_auc(predictor, at_once, X_on_device, Y_on_device, *asked, params)
        return np.asarray(auc, np.float64) + TIE_BREAKER * np.asarray(likelihood, np.float64)

    results = train_stack(
        Stack(
            params=stacked(starts),
            rows=train,
            scaling=scaling,
            schedules=[Schedule(m.schedule, m.learning_rate, m.max_epochs) for m in models],
            penalties=[m._penalty(start) for m, start in zip(models, starts, strict=True)],
            seeds=[seed for _, seed in prepared],
        ),
        Batch(X_on_device, jnp.zeros((n, 0), jnp.int32), jnp.asarray(T), jnp.ones(n)),
        gradient=first._gradient(T),
        optimiser=Optimiser(first.optimizer, float(first.momentum)),
        batch_size=first.batch_size,
        max_epochs=first.max_epochs,
        patience=first.patience,
        averaging=first.averaging,
        score=score,
        on_epoch=on_epoch,
    )
    for model, result, own in zip(models, results, valid, strict=True):
        keep(model, result)
        held_out = LabelledClips(model._scaling(X[own]), Y[own])
        model._calibrate(held_out, held_out)


def _after(first: Scaling, then: Scaling) -> Scaled:
    """What is left of a scaling for features that another has scaled."""
    mean, scale = (then.mean - first.mean) / first.scale, then.scale / first.scale
    return Scaled(*(jnp.asarray(part, jnp.float32) for part in (mean, scale, then.unit_norm)))


def _prepared(model: GradientTagger, X: Floats, Y: Floats) -> tuple[Tree, int]:
    """Where training starts, and its seed, as in ``fit``."""
    model._validate_params()
    X, targets = model._read(X, Y, like=None)
    model._describe(X, targets)
    rng = model._generator()
    start = model._start(rng, LabelledClips(model._scaling(X), targets.Y))
    return start, int(rng.integers(2**31))


def _padded(arrays: Sequence[NDArray[Any]], filling: float) -> NDArray[Any]:
    """(S, longest, …), filled up at the end of the first axis."""
    padded = np.full((len(arrays), max(map(len, arrays)), *arrays[0].shape[1:]), filling)
    for row, array in zip(padded, arrays, strict=True):
        row[: len(array)] = array
    return padded.astype(arrays[0].dtype)


@compiled(static_argnames=("scores", "at_once"))
def _stacked_auc(
    scores: Callable[..., Array],
    at_once: int,
    X: Array,
    Y: Array,
    rows: Array,
    observed: Array | None,
    scaling: Scaled,
    params: Tree,
) -> tuple[Array, Array]:
    """Mean AUC and likelihood on the validation clips, for each model of a stack, (S,) each.

    With ``observed`` (S, N, C) the AUC is the mean of that without and that with these tags. So
    many models are scored ``at_once``, which bounds the memory.
    """

    def one(of_model: tuple[Array, Array | None, Scaled, Tree]) -> tuple[Array, Array]:
        rows, observed, scaling, params = of_model
        x = scaling(X[rows])
        P = scores(params, x)
        y = jnp.where((rows >= 0)[:, None], Y[rows], jnp.nan)
        auc = _mean_auc(y, P)
        if observed is not None:
            asked = jnp.where(jnp.isnan(observed), y, jnp.nan)
            auc = (auc + _mean_auc(asked, scores(params, x, observed))) / 2
        return auc, _log_likelihood(y, P)

    models = (rows, observed, scaling, params)
    if at_once >= len(rows):
        return jax.vmap(one)(models)
    return jax.lax.map(one, models, batch_size=at_once)


def _mean_auc(y: Array, P: Array) -> Array:
    """Mean over tags of the share of (positive, negative) pairs in the right order; a tie is half.

    A GPU compares all pairs in a few milliseconds. A program that sorts takes a second longer to
    compile, which is more than it saves in all epochs.
    """

    def in_order(y: Array, p: Array) -> tuple[Array, Array]:
        is_pair = (y == 1)[:, None] & (y == 0)
        right = (p[:, None] > p) + 0.5 * (p[:, None] == p)
        return jnp.sum(jnp.where(is_pair, right, 0.0)), jnp.sum(y == 1) * jnp.sum(y == 0)

    right, pairs = jax.vmap(in_order, in_axes=1)(y, P)
    return jnp.sum(jnp.where(pairs > 0, right / pairs, 0.0)) / jnp.sum(pairs > 0)


def _log_likelihood(y: Array, P: Array) -> Array:
    """Mean of log p(y_j) over the known labels."""
    tiny = jnp.finfo(P.dtype).tiny
    terms = jnp.where(y == 1, jnp.log(jnp.maximum(P, tiny)), jnp.log(jnp.maximum(1 - P, tiny)))
    return jnp.sum(jnp.where(jnp.isnan(y), 0.0, terms)) / jnp.sum(~jnp.isnan(y))
