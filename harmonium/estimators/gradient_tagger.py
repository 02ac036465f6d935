"""What every classifier trained by gradient shares: holding out, early stopping, going on."""

from abc import abstractmethod
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from harmonium.errors import DataError
from harmonium.estimators.classifier import ProbabilisticTagClassifier
from harmonium.estimators.gradient_training import GradientTrained, equal_batch
from harmonium.estimators.labels import Targets, base_log_odds
from harmonium.estimators.large_tables import TableRows, blocks, is_large
from harmonium.estimators.model_files import Arrays
from harmonium.estimators.parameters import COUNT, NOT_NEGATIVE, SHARE, estimator, parameter
from harmonium.estimators.recalibration import (
    Question,
    Recalibration,
    fit_recalibration,
    stored_recalibration,
)
from harmonium.estimators.validation import (
    is_rankable,
    log_likelihood,
    matching_thresholds,
    mean_auc,
)
from harmonium.rbm.gradients import Gradient
from harmonium.rbm.loop import Result
from harmonium.rbm.training import Optimiser, Penalty, Tree

# Few validation clips may be ranked perfectly long before their probabilities are right: among
# epochs of equal AUC the likelihood decides. It is far below what one pair of clips changes.
TIE_BREAKER = 1e-9

MOST_TO_CALIBRATE = 5000
"""Held-out clips by which probabilities are corrected, at most."""


MOST_HELD_OUT = 50_000
"""Clips to stop early on and to set thresholds by, at most, unless they are given."""


class LabelledClips(NamedTuple):
    """Checked and scaled training or validation data; if there is much of it, not read yet."""

    X: Any  # (N, D), an array of single precision or rows of a table
    Y: Any  # (N, C), the same: 0, 1, a probability between, or NaN

    def take(self, rows: NDArray[np.intp]) -> "LabelledClips":
        """Some of the clips."""
        return LabelledClips(*(p.take(rows) if isinstance(p, TableRows) else p[rows] for p in self))

    def read(self, at_most: int) -> "LabelledClips":
        """Some of the clips, by chance, or all if they are not more; as arrays."""
        if len(self.X) <= at_most:
            return LabelledClips(self.X[:], self.Y[:])
        some = np.random.default_rng(0).permutation(len(self.X))[:at_most]
        return LabelledClips(self.X[np.sort(some)], self.Y[np.sort(some)])


@estimator
class GradientTagger(GradientTrained, ProbabilisticTagClassifier):
    """Base of the classifiers trained by gradient. A subclass gives the model and its objective."""

    optimizer: Literal["adam", "sgd"] = parameter(
        default="adam", doc="Adam, or stochastic gradient descent."
    )
    momentum: float = parameter(
        SHARE, default=0.9, doc="Decay of the mean gradient that the optimizer keeps."
    )
    averaging: float = parameter(
        NOT_NEGATIVE,
        default=5.0,
        doc="""The model is the mean of its parameters over about so many epochs; 0 turns it
        off.""",
    )
    l1: float = parameter(
        NOT_NEGATIVE,
        default=0.0,
        doc="Strength of the ℓ1 penalty on the weights. Zeros are exact if ``averaging=0``.",
    )
    l2: float = parameter(
        NOT_NEGATIVE, default=0.0, doc="Strength of the ℓ2 penalty on the weights."
    )
    warm_start: bool = parameter(
        default=False,
        doc="""Let ``fit`` continue from the parameters of the last. With a number as
        ``random_state`` it holds out the same clips again, if they are given in the same order.""",
    )

    calibrate: bool = parameter(
        default=True,
        doc="""Correct the probabilities by what is true of the validation clips (see
        ``harmonium.estimators.recalibration``). For each tag the order of the clips stays as it
        is. Nothing is corrected where there are no validation clips.""",
    )

    _score_name, _score_label = "auc", "AUC"

    # What a subclass defines. ----------------------------------------------------------------

    @abstractmethod
    def _start(self, rng: np.random.Generator, clips: LabelledClips) -> Tree:
        """Parameters to start training from."""

    @abstractmethod
    def _objective(self) -> Gradient:
        """The gradient to descend."""

    @abstractmethod
    def _penalised(self) -> tuple[str, ...]:
        """Names of the parameter arrays that ℓ1 and ℓ2 act on."""

    @abstractmethod
    def _validation_scores(self, params: Tree, X: NDArray[np.float32]) -> NDArray[np.float32]:
        """Scores for early stopping: as predicted, but cheaply."""

    # Fitting. --------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, eval_set: tuple[Any, Any] | None = None) -> Self:
        """Learn from clips and their tags.

        Parameters
        ----------
        X : (n_clips, n_features) features; array, pandas or polars frame. A large array, such as
            ``numpy.memmap`` gives of a file, is read by blocks and never copied as a whole.
        y : (n_clips, n_tags) labels: 0 absent, 1 present, NaN unknown; or a probability between,
            as smoothed tags have it. A frame's columns name the tags. Or (n_clips,) with two
            classes, for one tag.
        eval_set : (X, y) to stop early on, to correct probabilities by and to set thresholds with,
            without probabilities: pass raw tags where ``y`` is smoothed ones. Without it a random
            ``validation_fraction`` of the clips is held out, and a label p counts as p of a
            positive and 1 - p of a negative; pass one to keep the clips of a track or an artist
            together.

        Returns
        -------
        self
        """
        self._validate_params()
        fresh = not (self.warm_start and hasattr(self, "_params"))
        X, targets = self._read(X, y, like=None if fresh else self._targets())
        valid = None if eval_set is None else self._read_eval_set(eval_set, targets)
        if fresh:
            self._describe(X, targets)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        known, held_out = self._hold_out(rng, X, targets, valid)
        start = self._start(rng, known) if fresh else self._resume()
        result = self._train(start, known, held_out, int(rng.integers(2**31)))
        self._keep(result)
        self._settle(known, held_out)
        self._warn_if_interrupted(result, f" in epoch {self.n_iter_ + 1}")
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learn from more clips in one pass over them, without forgetting what was learnt.

        The features' scaling and the tags are those of the first call, or of ``fit``.
        ``classes`` names the two classes of one-dimensional labels, on the first call.
        """
        self._validate_params()
        first = not hasattr(self, "_params")
        X, targets = self._read(X, y, like=None if first else self._targets(), classes=classes)
        if first:
            self._describe(X, targets)
            self.thresholds_ = np.full(len(self.tags_), 0.5)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        clips = self._clips(X, targets.Y)
        start = self._start(rng, clips) if first else self._resume()
        result = self._train(start, clips, None, int(rng.integers(2**31)), max_epochs=1)
        self._keep(result)
        self._warn_if_interrupted(result, f" in epoch {self.n_iter_ + 1}")
        return self

    def _describe(self, X: NDArray[np.floating], targets: Targets) -> None:
        super()._describe(X, targets)
        self.recalibration_: Recalibration | None = None
        self._forget()

    def _settle(self, known: LabelledClips, held_out: LabelledClips | None) -> None:
        """Set the correction by held-out clips, and the thresholds by them or by all others."""
        self.recalibration_ = None
        clips = known.read(MOST_HELD_OUT) if held_out is None else held_out
        if self.calibrate and held_out is not None:
            some = np.random.default_rng(0).permutation(len(clips.X))[:MOST_TO_CALIBRATE]
            self.recalibration_ = fit_recalibration(self._questions(clips.take(some)))
        self.thresholds_ = np.full(len(self.tags_), 0.5)
        if not self._one_column:
            self.thresholds_ = matching_thresholds(clips.Y, self._scores(clips.X))

    def _questions(self, clips: LabelledClips) -> list[Question]:
        """What the model says of clips, as it will be asked."""
        n = len(clips.X)
        return [Question(self._probabilities(clips.X), clips.Y, np.zeros(n), np.ones(n))]

    def _scores(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        P = self._probabilities(X)
        return P if self.recalibration_ is None else self.recalibration_(P)

    def _learnt(self) -> tuple[Arrays, dict[str, Any]]:
        arrays, about = super()._learnt()
        if self.recalibration_ is not None:
            parts = self.recalibration_._asdict().items()
            arrays |= {f"recalibration.{name}": array for name, array in parts}
        return arrays, about

    def _restore(self, arrays: Arrays, about: dict[str, Any]) -> None:
        super()._restore(arrays, about)
        self.recalibration_ = stored_recalibration(arrays, len(self.tags_))

    def _hold_out(
        self,
        rng: np.random.Generator,
        X: NDArray[np.floating],
        targets: Targets,
        valid: tuple[NDArray[np.floating], Targets] | None,
    ) -> tuple[LabelledClips, LabelledClips | None]:
        """Training and validation clips; None where validation clips could not tell tags apart."""
        clips = self._clips(X, targets.Y)
        if valid is not None:
            held_out = LabelledClips(self._scaling(valid[0]), valid[1].Y)
            return clips, held_out if is_rankable(held_out.Y) else None
        order = rng.permutation(len(X))
        n_valid = min(int(self.validation_fraction * len(X)), MOST_HELD_OUT)
        held_out = clips.take(order[:n_valid]).read(n_valid)
        if not is_rankable(held_out.Y):
            return clips, None
        rest = order[n_valid:]
        return clips.take(np.sort(rest) if is_large(X) else rest), held_out

    def _clips(self, X: NDArray[np.floating], Y: NDArray[np.float32]) -> LabelledClips:
        """Scaled clips; a large table is scaled as it is read."""
        if is_large(X):
            return LabelledClips(
                TableRows(X, change=lambda rows: self._scaling(rows)), TableRows(Y)
            )
        return LabelledClips(self._scaling(X), Y)

    def _train(
        self,
        start: Tree,
        clips: LabelledClips,
        valid: LabelledClips | None,
        seed: int,
        max_epochs: int | None = None,
    ) -> Result:
        self._check_inference(start)
        none = np.zeros((len(clips.X), 0), np.int32)
        aucs: list[float] = []

        def score(params: Tree) -> float:
            assert valid is not None
            auc, likelihood = self._judge(params, valid)
            aucs.append(auc)
            return auc + TIE_BREAKER * likelihood

        result = self._descend(
            start,
            equal_batch(clips.X, none, clips.Y),
            gradient=self._gradient(clips.Y),
            optimiser=Optimiser(self.optimizer, float(self.momentum)),
            penalty=self._penalty(start),
            max_epochs=max_epochs or self.max_epochs,
            averaging=self.averaging,
            seed=seed + self.n_iter_,  # other random numbers when training goes on
            score=None if valid is None else score,
        )
        if valid is not None:
            result.history.score[:] = aucs[: len(result.history)]
        return result

    def _judge(self, params: Tree, valid: LabelledClips) -> tuple[float, float]:
        """The AUC and the log-likelihood of validation clips."""
        P = self._validation_scores(params, valid.X)
        return mean_auc(valid.Y, P), log_likelihood(valid.Y, P)

    def _gradient(self, Y: NDArray[np.float32]) -> Gradient:
        """The objective for these labels, of which some may be probabilities."""
        return self._objective()

    def _penalty(self, params: Tree) -> Penalty:
        names = self._penalised()

        def strengths(value: float) -> Tree:
            return type(params)(*(np.float32(value * (f in names)) for f in params._fields))

        return Penalty(strengths(self.l1), strengths(self.l2))

    def _resume(self) -> Tree:
        """Parameters to continue training from."""
        self._check_shapes(self._params)
        return self._params

    def _check_shapes(self, params: Tree) -> None:
        """Refuse parameters other than the settings ask for."""
        n_features, n_tags = len(self._scaling.mean), len(self.tags_)
        one = LabelledClips(
            np.zeros((1, n_features), np.float32), np.zeros((1, n_tags), np.float32)
        )
        wanted = self._start(np.random.default_rng(0), one)
        if params._fields != wanted._fields:
            raise DataError(
                f"The model's parameters are {', '.join(params._fields)}, but its settings ask "
                f"for {', '.join(wanted._fields)}. Fit a new model, or set them back."
            )
        for name, array, other in zip(params._fields, params, wanted, strict=True):
            if array.shape != other.shape:
                raise DataError(
                    f"The model's {name} has the shape {array.shape}, but its settings ask for "
                    f"{other.shape}. Fit a new model to change its size, or set it back."
                )

    def _check_inference(self, params: Tree) -> None:
        """Refuse, before training, a model that could not predict. By default none."""


@estimator
class HiddenUnits:
    """The part of a classifier that has hidden units: their number, and their first weights."""

    n_hidden: int = parameter(COUNT, default=100, doc="Number of hidden units, n.", kw_only=False)
    init_scale: float = parameter(
        NOT_NEGATIVE,
        default=1.0,
        doc="Standard deviation of W at the start of training, for features of unit norm.",
    )

    def _first_weights(
        self, rng: np.random.Generator, clips: LabelledClips
    ) -> tuple[NDArray[np.float64], ...]:
        """U and W, small and random, c = 0, and d at the tags' log-odds: p(y) is the base rate."""
        n, n_tags = self.n_hidden, clips.Y.shape[1]
        # nothing is learnt of a feature that is constant: its later values must not matter
        spans = [(block.min(axis=0), block.max(axis=0)) for block in blocks(clips.X)]
        varies = np.max([top for _, top in spans], axis=0) > np.min([s for s, _ in spans], axis=0)
        U = rng.normal(0, 0.01, (n, n_tags))
        W = rng.normal(0, self.init_scale, (n, clips.X.shape[1])) * varies
        return U, W, np.zeros(n), base_log_odds(clips.Y)

    def _penalised(self) -> tuple[str, ...]:
        return ("U", "W")
