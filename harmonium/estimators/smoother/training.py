"""How the smoother is trained: where it starts, what is penalised, what is hidden by chance."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from harmonium.data import Conditioning
from harmonium.estimators.gradient_training import equal_batch, single_precision
from harmonium.estimators.smoother.conditions import Conditions, tag_rates, without
from harmonium.rbm.gradients import Batch, Gradient, HiddenConditions
from harmonium.rbm.model import Params
from harmonium.rbm.training import Penalty


def penalties(
    conditions: Conditions,
    n_pairs: int,
    batch_size: int,
    *,
    l2: dict[str, float],
    rows_l1: float,
    others_l1: float,
) -> Penalty:
    """How strongly weights are drawn to 0, against the sum of the pairs' log-likelihoods.

    ``l2`` has the names tags (U), others (W), user, track and clip (rows of V): ½ λ θ². ``rows_l1``
    is λ |θ| on V. ``others_l1`` is a threshold of each step of Adam on W. The loss is the mean over
    pairs; V's rows take their share at every minibatch.
    """
    share = min(batch_size, n_pairs) / n_pairs
    parts = conditions.parts
    rows = parts.column({name: l2[name] * share for name in parts.names})
    thresholds = parts.column(dict.fromkeys(parts.names, rows_l1 * share))
    ridge = _strengths(U=l2["tags"] / n_pairs, W=l2["others"] / n_pairs)
    return Penalty(_strengths(V=thresholds, W=others_l1), _strengths(V=rows), ridge)


def _strengths(**values: Any) -> Params:
    """These, and 0 for the parameters not named."""
    return single_precision(Params, *(values.get(name, 0) for name in Params._fields))


def with_hiding(
    gradient: Gradient, conditions: Conditions, *, user: float, everything: float
) -> Gradient:
    """The gradient of pairs that lose their user, or all they are conditioned on, by chance."""
    a = tuple(user if name == "user" else 0.0 for name in conditions.parts.names)
    return HiddenConditions(gradient, u=0.0, a=a, all=everything)


def start(
    rng: np.random.Generator, data: Conditioning, conditions: Conditions, n_hidden: int
) -> Params:
    """Small random weights, no effect of user, track or clip, and d at the tags' log-odds."""
    n_tags = len(data.tags)
    rates = tag_rates(data)
    arrays = (
        rng.normal(0, 0.01, (n_hidden, n_tags)),
        rng.normal(0, 1, (n_hidden, 0 if conditions.others is None else n_tags)),
        np.zeros((conditions.parts.n_rows, n_tags)),
        np.zeros(n_hidden),
        np.log(rates / (1 - rates)),
    )
    return single_precision(Params, *arrays)


def training_data(data: Conditioning, conditions: Conditions) -> Batch:
    """The pairs as the model takes them."""
    u, a = conditions(data, data.user, data.item)
    return equal_batch(u, a, data.y.toarray().astype(np.float32))


def hold_out(
    rng: np.random.Generator, data: Conditioning, fraction: float, at_most: int
) -> NDArray[np.intp]:
    """Pairs to stop early on, (n,): at random, but one of each clip is kept to learn from."""
    order = rng.permutation(len(data))
    _, kept = np.unique(data.item[order], return_index=True)
    wanted = min(int(fraction * len(data)), at_most)
    return np.sort(np.delete(order, kept)[:wanted])


def rates_log_likelihood(data: Conditioning, held_out: NDArray[np.intp]) -> float:
    """Mean log-likelihood per tag of pairs held out, if all that is known is the tags' rates."""
    if not len(held_out):
        return float("nan")
    rates = tag_rates(without(data, held_out))
    share = np.asarray(data.y[held_out].mean(axis=0)).ravel()
    return float(np.mean(share * np.log(rates) + (1 - share) * np.log1p(-rates)))
