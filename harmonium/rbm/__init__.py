"""The conditional RBM in pure JAX: energy, inference, gradients, training. No I/O, no state.

For people who work in JAX; the estimators of :mod:`harmonium` are built on these functions. All of
them can be traced, differentiated and mapped, except :func:`infer`, :func:`log_likelihoods` and
:func:`train`, which take NumPy arrays and compile what they run. The names are loaded when they are
first used; the module ``forward`` predicts in NumPy and does not need JAX.

============  ================================================================================
the model     `Params`, `condition` (u and a become biases), `clamp` (so do known tags),
              `energy`, `free_energy`, `hidden_given_tags`, `tags_given_hidden`
inference     `mean_field`, `belief_propagation`, `gibbs`, `exact`; `infer` for any number of clips
decisions     `most_probable`, the most probable set of tags
likelihood    `log_likelihood` by enumeration; `annealed_log_z` and `annealed_log_likelihood` for
              larger models; `log_likelihoods` for any number of clips
gradients     `Exact`, `ContrastiveDivergence`, `PersistentContrastiveDivergence`, `MeanField`,
              `BeliefPropagation`, `PseudoLikelihood`, `MultiPrediction`, each called as
              ``gradient(params, Batch(u, a, y, w), noise)``
training      `train` one model or, with `train_stack`, many at once
============  ================================================================================

A model of three tags, two hidden units and one feature learns that the first two tags go together:

>>> import numpy as np
>>> from harmonium import rbm
>>> rng = np.random.default_rng(0)
>>> x = rng.normal(size=(300, 1)).astype(np.float32)
>>> first = rng.random(300) < 0.5
>>> y = np.column_stack([first, first, x[:, 0] > 0]).astype(np.float32)
>>> no_rows = np.zeros((300, 0), np.int32)
>>> start = rbm.Params(*(rng.normal(0, 0.1, shape).astype(np.float32)
...                      for shape in [(2, 3), (2, 1), (0, 3), (2,), (3,)]))
>>> result = rbm.train(
...     start, rbm.Batch(x, no_rows, y, np.ones(300, np.float32)),
...     gradient=rbm.PseudoLikelihood(), optimiser=rbm.Optimiser("adam"),
...     schedule=rbm.Schedule("constant", 0.05), penalty=rbm.Penalty.none(start),
...     batch_size=20, max_epochs=20, patience=20, seed=0)
>>> field = rbm.condition(result.params, x[:1], no_rows[:1])
>>> together, apart = (rbm.free_energy(field, np.float32([tags]))[0]
...                    for tags in ([1, 1, 0], [1, 0, 0]))
>>> bool(together < apart)
True
>>> observed = np.full((300, 3), np.nan, np.float32)
>>> observed[:, 0] = 1
>>> marginals = rbm.infer(result.params, x, no_rows, observed, rbm.InferenceOptions("lbp"))
>>> bool(marginals.y[:, 1].mean() > 0.8 > y[:, 1].mean())
True
"""

from typing import TYPE_CHECKING

from harmonium.lazy import lazy_names

if TYPE_CHECKING:
    from harmonium.rbm.annealing import Estimated as Estimated
    from harmonium.rbm.annealing import LogLikelihoods as LogLikelihoods
    from harmonium.rbm.annealing import annealed_log_likelihood as annealed_log_likelihood
    from harmonium.rbm.annealing import annealed_log_z as annealed_log_z
    from harmonium.rbm.annealing import log_likelihoods as log_likelihoods
    from harmonium.rbm.belief import belief_propagation as belief_propagation
    from harmonium.rbm.decisions import most_probable as most_probable
    from harmonium.rbm.descent import Optimiser as Optimiser
    from harmonium.rbm.descent import Penalty as Penalty
    from harmonium.rbm.gradients import Batch as Batch
    from harmonium.rbm.gradients import BeliefPropagation as BeliefPropagation
    from harmonium.rbm.gradients import ContrastiveDivergence as ContrastiveDivergence
    from harmonium.rbm.gradients import Exact as Exact
    from harmonium.rbm.gradients import MeanField as MeanField
    from harmonium.rbm.gradients import MultiPrediction as MultiPrediction
    from harmonium.rbm.gradients import (
        PersistentContrastiveDivergence as PersistentContrastiveDivergence,
    )
    from harmonium.rbm.gradients import PseudoLikelihood as PseudoLikelihood
    from harmonium.rbm.inference import Inference as Inference
    from harmonium.rbm.inference import InferenceOptions as InferenceOptions
    from harmonium.rbm.inference import exact as exact
    from harmonium.rbm.inference import gibbs as gibbs
    from harmonium.rbm.inference import infer as infer
    from harmonium.rbm.inference import log_likelihood as log_likelihood
    from harmonium.rbm.inference import mean_field as mean_field
    from harmonium.rbm.model import Field as Field
    from harmonium.rbm.model import Params as Params
    from harmonium.rbm.model import clamp as clamp
    from harmonium.rbm.model import condition as condition
    from harmonium.rbm.model import energy as energy
    from harmonium.rbm.model import free_energy as free_energy
    from harmonium.rbm.model import hidden_given_tags as hidden_given_tags
    from harmonium.rbm.model import tags_given_hidden as tags_given_hidden
    from harmonium.rbm.training import Result as Result
    from harmonium.rbm.training import Schedule as Schedule
    from harmonium.rbm.training import Stack as Stack
    from harmonium.rbm.training import train as train
    from harmonium.rbm.training import train_stack as train_stack

_NAMES = {
    "annealing": [
        "Estimated",
        "LogLikelihoods",
        "annealed_log_likelihood",
        "annealed_log_z",
        "log_likelihoods",
    ],
    "belief": ["belief_propagation"],
    "decisions": ["most_probable"],
    "descent": ["Optimiser", "Penalty"],
    "gradients": [
        "Batch",
        "BeliefPropagation",
        "ContrastiveDivergence",
        "Exact",
        "MeanField",
        "MultiPrediction",
        "PersistentContrastiveDivergence",
        "PseudoLikelihood",
    ],
    "inference": [
        "Inference",
        "InferenceOptions",
        "exact",
        "gibbs",
        "infer",
        "log_likelihood",
        "mean_field",
    ],
    "model": [
        "Field",
        "Params",
        "clamp",
        "condition",
        "energy",
        "free_energy",
        "hidden_given_tags",
        "tags_given_hidden",
    ],
    "training": [
        "Result",
        "Schedule",
        "Stack",
        "train",
        "train_stack",
    ],
}
__all__ = [name for names in _NAMES.values() for name in names]

if not TYPE_CHECKING:
    __getattr__ = lazy_names(__name__, _NAMES)
