"""Estimators trained by gradient: validation, early stopping, cross-fitting, stacks, resuming.

Cross-fitting trains K members, each on all folds but one, and stops each on its held-out fold. The
model is the mean of their log-odds. So all clips are used for training, and all have held-out
probabilities, which give the correction and the thresholds.

JAX is loaded only for training, so models with other solvers do not need it.
"""

import sys
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from functools import lru_cache
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_consistent_length

from harmonium.arrays import Arrays, Doubles, Floats, Ids, Numbers, Places, Rng
from harmonium.errors import DataError, TrainingInterrupted
from harmonium.estimators import calibration, model_files
from harmonium.estimators.classifier import (
    TableRows,
    TagClassifier,
    Targets,
    read_more_targets,
)
from harmonium.evaluation.folds import group_index, grouped_folds
from harmonium.parameters import (
    Count,
    NotNegative,
    Positive,
    Seed,
    Share,
    Verbosity,
    estimator,
    parameter,
)

LARGE = 2**30  # tables above this many bytes are read in blocks instead of being copied

# A few validation clips may be ranked perfectly long before their probabilities are right: at equal
# AUC the likelihood decides. With words, overfitting begins before the ranking shows it, so there
# it counts.
TIE_BREAKER, OF_WORDS = 1e-9, 0.5

MAX_TO_CALIBRATE = 5000  # the most held-out clips used to correct probabilities
MIN_HELD_OUT = 20  # the fewest clips to stop early on by default: fewer are ranked well by chance
MAX_HELD_OUT = 50_000  # the most clips to stop early on and to set thresholds with, by default
MAX_ROUNDING = 0.001  # change of a probability at which parameters stay in full precision
MAX_TO_ROUND = 200  # the most held-out clips of each member that decide this
MAX_MESSAGES = 2**27  # numbers in an array for scoring: half a GiB. Belief propagation has several.

DIFFERENT = (  # settings in which the models of a stack may differ
    *("learning_rate", "init_scale", "l1", "l2", "l2_tags", "unit_norm"),
    *("scale_features", "random_state", "verbose", "n_jobs"),
)


class LabelledClips(NamedTuple):
    """Checked and scaled training or validation data; large data is not read yet."""

    X: Any  # (N, D), an array of single precision or rows of a table
    Y: Any  # (N, C), likewise: 0, 1, a probability between, or NaN

    def take(self, rows: Places) -> "LabelledClips":
        """Some of the clips."""
        return LabelledClips(*(p.take(rows) if isinstance(p, TableRows) else p[rows] for p in self))

    def read(self, at_most: int) -> "LabelledClips":
        """A random sample of at most this many clips, as arrays."""
        if len(self.X) <= at_most:
            return LabelledClips(self.X[:], self.Y[:])
        some = np.random.default_rng(0).permutation(len(self.X))[:at_most]
        return LabelledClips(self.X[np.sort(some)], self.Y[np.sort(some)])


@estimator
class GradientTagger(TagClassifier):
    """Base of the classifiers trained by gradient. A subclass gives the model and its objective."""

    learning_rate: Positive = parameter("Step length.", default=0.01)
    schedule: Literal["constant", "inverse", "cosine"] = parameter(
        "How the step length changes over the epochs.", default="constant"
    )
    batch_size: Count = parameter("Clips per step.", default=20)
    max_epochs: Count = parameter("Maximum number of passes over the clips.", default=200)
    patience: Count | None = parameter(
        """Training stops after this many epochs without a better validation AUC, or an equal one
        with a better likelihood; the best parameters are kept. None means 20, or more if there are
        so few clips that 20 epochs are fewer than 500 steps.""",
        default=None,
    )
    validation_fraction: Share = parameter(
        """Share of the clips held out for early stopping, with one model and no ``eval_set``. If it
        is 0, or less than 20 clips, training uses all clips, for ``max_epochs``.""",
        default=0.1,
    )
    optimizer: Literal["adam", "sgd"] = parameter(
        "Adam, or stochastic gradient descent.", default="adam"
    )
    momentum: Share = parameter("Decay of the optimizer's running mean of gradients.", default=0.9)
    averaging: NotNegative = parameter(
        "Number of epochs, roughly, over which parameters are averaged; 0 turns it off.",
        default=5.0,
    )
    l1: NotNegative = parameter(
        "Strength of the ℓ1 penalty on the weights. Zeros are exact if ``averaging=0``.",
        default=0.0,
    )
    l2: NotNegative | None = parameter("Strength of ℓ2 on the weights; None means 0.", default=0.0)
    warm_start: bool = parameter(
        """Let ``fit`` continue from the last parameters. With a number as ``random_state``
        it holds out the same clips again, if they are given in the same order.""",
        default=False,
    )
    calibrate: bool = parameter(
        """Calibrate the probabilities on the validation clips (see
        ``harmonium.estimators.calibration``). For each tag, the order of the clips stays as it is.
        Without validation clips, nothing is corrected.""",
        default=True,
    )
    random_state: Seed = parameter(
        "Seed; the same seed, data and machine give the same model to the bit.", default=None
    )
    verbose: Verbosity = parameter("1 shows a progress bar.", default=0)

    _score_name: ClassVar[str] = "auc"  # the validation score's name in ``history_``
    _score_label: ClassVar[str] = "AUC"  # and next to the progress bar
    _attributes: ClassVar[str] = """
    tags_ : names of the tags. thresholds_ : probability at which ``predict`` says yes, by tag.
    recalibration_ : the correction of the probabilities, or None.
    history_ : per epoch "log_likelihood" (a proxy, per tag), "auc" and "seconds".
    best_epoch_ : the epoch whose parameters were kept, counted from 1.
    folds_, held_out_ : of several members, the fold of each clip, (n_clips,), and what the member
        without it says, (n_clips, n_tags); they are not saved.
    n_features_in_, feature_names_in_, classes_, n_iter_ : as in scikit-learn.
    """

    @abstractmethod
    def _start(self, rng: Rng, clips: LabelledClips) -> Any:
        """Parameters to start training from."""

    def _logits(self) -> Callable[..., Any]:
        """(params, x) → log-odds (B, C), for a network whose tags are independent given x."""
        raise NotImplementedError

    @abstractmethod
    def _probabilities(self, X: Floats) -> Floats:
        """p(y_j = 1 | x) under the fitted parameters, (N, C), from scaled features."""

    def _gradient(self, Y: Floats) -> Any:
        """The `harmonium.rbm.Gradient` to descend with these labels; some may be probabilities."""
        from harmonium.rbm.other_models import CrossEntropy

        return CrossEntropy(self._logits())

    def _predictor(self, params: Any) -> tuple[Callable[..., Any], Any]:
        """How the model predicts during training, only as exactly as a ranking needs.

        A function of options, params, X and observed tags that JAX can trace; and the options.
        """
        from harmonium.rbm.other_models import network_probabilities

        return network_probabilities, self._logits()

    def _validation_scores(self, params: Any, X: Floats, observed: Floats | None = None) -> Floats:
        """The same, compiled, for one model."""
        from harmonium.rbm.inference import predicted

        return np.asarray(predicted(self._predictor(params), params, X))

    def _numbers_per_clip(self, params: Any) -> int:
        """Numbers in the largest array that prediction needs for one clip."""
        return len(params.d)

    @property
    def _likelihood_weight(self) -> float:
        return OF_WORDS if self._scaling.of_words else TIE_BREAKER

    @property
    def _judged_by_completion(self) -> bool:
        """Whether early stopping also asks with half of the tags observed."""
        return False

    def fit(
        self,
        X: Any,
        y: Any,
        eval_set: tuple[Any, Any] | None = None,
        groups: Any = None,
        eval_y: Any = None,
    ) -> Self:
        """Learn from clips and their tags.

        Parameters
        ----------
        X : (n_clips, n_features) features; array, pandas or polars frame. A large array, such as a
            ``numpy.memmap`` of a file, is read in blocks and never copied as a whole.
        y : (n_clips, n_tags) labels: 0 absent, 1 present, NaN unknown; or a probability between,
            as in smoothed tags. A frame's columns name the tags. Or a list of tags for each
            clip. Or (n_clips,) with two classes, for one tag.
        eval_set : (X, y) to stop early on, to correct probabilities with and to set thresholds
            with. Its y has no probabilities: pass raw tags if ``y`` is smoothed. Without it, every
            member uses its held-out fold, and a model without members a random
            ``validation_fraction`` of the clips; there, a label p counts as p positives and 1 - p
            negatives.
        groups : (n_clips,) such as the artist: a group is learnt from or held out as a whole.
        eval_y : labels of the held-out clips, (n_clips, n_tags), if ``y`` is smoothed.
        """
        self._validate_params()
        fresh = not (self.warm_start and hasattr(self, "_params"))
        X, targets = self._read(X, y, like=None if fresh else self._targets())
        valid = None if eval_set is None else self._read_eval_set(eval_set, targets)
        if fresh:
            self._describe(X, targets)
        judged = targets if eval_y is None else read_more_targets(eval_y, targets, name="eval_y")
        check_consistent_length(X, labels := judged.Y)
        groups = None if groups is None else group_index(groups, len(labels))
        folds = None if valid is not None else self._folds(labels, groups)
        if folds is None:
            interrupted = self._learn(X, targets.Y, valid, labels, groups, fresh=fresh)
        else:
            interrupted = self._cross_fit(X, targets.Y, labels, folds, fresh=fresh)
        warn_if_interrupted(self, interrupted, f" in epoch {self.n_iter_ + 1}")
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learn from more clips in one pass over them, starting from what was learnt.

        The features' scaling and the tags are those of the first call, or of ``fit``.
        ``classes`` names the two classes of one-dimensional labels, on the first call.
        """
        self._validate_params()
        first = not hasattr(self, "_params")
        X, targets = self._read(X, y, like=None if first else self._targets(), classes=classes)
        if first:
            self._describe(X, targets)
            self.thresholds_ = np.full(len(self.tags_), 0.5)
        clips = self._clips(X, targets.Y)
        interrupted = self._descend(self._generator(), clips, None, fresh=first, max_epochs=1)
        warn_if_interrupted(self, interrupted, f" in epoch {self.n_iter_ + 1}")
        return self

    def _describe(self, X: Numbers, targets: Targets) -> None:
        super()._describe(X, targets)
        self.recalibration_: model_files.Recalibration | None = None
        begin_history(self)

    def _learn(self, X: Any, Y: Floats, valid: Any, *judged_by: Any, fresh: bool) -> bool:
        """Train and calibrate; returns whether training was interrupted."""
        rng = self._generator()
        known, held_out = self._hold_out(rng, X, Y, valid, *judged_by)
        interrupted = self._descend(rng, known, held_out and [held_out], fresh=fresh)
        self._calibrate(known, held_out)
        return interrupted

    def _folds(self, Y: Floats, groups: Ids | None) -> Ids | None:
        """The fold of each clip, (N,); None for a single model."""
        # There are fewer folds than ``n_models`` if one's clips could not tell tags apart.
        n_models = getattr(self, "n_models", 1)  # for models that can be cross-fitted
        if n_models == 1:
            return None
        groups = np.arange(len(Y)) if groups is None else groups
        labels = np.round(Y) if model_files.is_soft(Y) else Y
        seed = int(self._generator().integers(2**31))
        for n_folds in range(min(n_models, len(np.unique(groups))), 1, -1):
            folds = grouped_folds(groups, labels, n_folds=n_folds, seed=seed)
            if all(calibration.is_rankable(labels[folds == fold]) for fold in range(n_folds)):
                return folds
        return None

    def _cross_fit(self, X: Numbers, Y: Floats, labels: Floats, folds: Ids, *, fresh: bool) -> bool:
        """Train a member for each fold, on the others; returns whether that was interrupted.

        All stop at the epoch that is best on average: one fold may have few clips, ranked well by
        chance before anything is learnt.
        """
        rng, clips, n_folds = self._generator(), self._clips(X, Y), int(folds.max()) + 1
        judged = LabelledClips(clips.X, labels)
        rest = [np.flatnonzero(folds != fold) for fold in range(n_folds)]
        valid = [
            judged.take(np.flatnonzero(folds == fold)[:MAX_HELD_OUT]).read(MAX_HELD_OUT)
            for fold in range(n_folds)
        ]
        interrupted = self._descend(rng, clips, valid, rest, fresh=fresh)
        self._hold_out_folds(judged, folds)
        return interrupted

    def _hold_out_folds(self, clips: LabelledClips, folds: Ids) -> None:
        """Ask each member about its held-out fold; calibrate and set thresholds with the answers.

        Parameters are first rounded to half precision, which takes half the space on disk, unless
        that changes a probability by `MAX_ROUNDING` or more.
        """
        held = [np.flatnonzero(folds == fold) for fold in range(int(folds.max()) + 1)]
        some = [clips.take(own[:MAX_HELD_OUT]).read(MAX_TO_CALIBRATE // len(held)) for own in held]
        exact, before = self._params, self._asked(some)
        self._params = type(exact)(*map(model_files.rounded_to_half, exact))
        changes = (np.abs(a - b) for a, b in zip(before, self._asked(some), strict=True))
        if not all(np.all(change < MAX_ROUNDING) for change in changes):
            self._params = exact
        self.folds_, self.recalibration_, asked = folds, None, []
        self.held_out_ = np.empty(clips.Y.shape, np.float32)
        for member, own, few in zip(self._members(), held, some, strict=True):
            for first in range(0, len(own), MAX_HELD_OUT):
                rows = own[first : first + MAX_HELD_OUT]
                self.held_out_[rows] = member._probabilities(clips.X[rows])
            if self.calibrate:
                asked.append(member._questions(few))
        if asked:
            self.recalibration_ = calibration.correct_folds(asked, held, self.held_out_)
        self.thresholds_ = np.full(len(self.tags_), 0.5)
        if not self._one_column:
            self.thresholds_ = calibration.matching_thresholds(clips.Y, self.held_out_)

    def _asked(self, clips: Sequence[LabelledClips]) -> list[Floats]:
        """What each member says about its held-out clips."""
        members = zip(self._members(), clips, strict=True)
        return [member._probabilities(own.X[:MAX_TO_ROUND]) for member, own in members]

    def _members(self) -> list[Self]:
        """The models whose log-odds are averaged."""
        if self._params.d.ndim == 1:
            return [self]
        members = [copy(self) for _ in self._params.d]
        for number, member in enumerate(members):
            member._params = type(self._params)(*(array[number] for array in self._params))
        return members

    def _hold_out(
        self, rng: Rng, X: Numbers, Y: Floats, valid: Any, labels: Floats, groups: Ids | None
    ) -> tuple[LabelledClips, LabelledClips | None]:
        """Training and validation clips; None if validation clips could not tell tags apart."""
        clips = self._clips(X, Y)
        if valid is not None:
            held_out = LabelledClips(self._scaling(valid[0]), valid[1])
            return clips, held_out if calibration.is_rankable(held_out.Y) else None
        order = rng.permutation(len(X))
        n_valid = min(int(self.validation_fraction * len(X)), MAX_HELD_OUT)
        if groups is not None and n_valid:  # whole groups, of at most half of the clips
            turn = rng.permutation(max(groups) + 1)[groups]
            order = order[np.argsort(turn[order], kind="stable")]
            ends = np.flatnonzero(np.diff(turn[order][: len(X) // 2 + 1])) + 1
            n_valid = next((int(end) for end in ends if end >= n_valid), 0)
        held_out = LabelledClips(clips.X, labels).take(order[:n_valid]).read(n_valid)
        if n_valid < MIN_HELD_OUT or not calibration.is_rankable(held_out.Y):
            return clips, None
        rest = order[n_valid:]
        return clips.take(np.sort(rest) if is_large(X) else rest), held_out

    def _clips(self, X: Numbers, Y: Floats) -> LabelledClips:
        """Scaled clips; a large table is scaled as it is read."""
        if is_large(X):
            return LabelledClips(TableRows(X, change=self._scaling.__call__), TableRows(Y))
        return LabelledClips(self._scaling(X), Y)

    def _descend(
        self,
        rng: Rng,
        clips: LabelledClips,
        valid: Sequence[LabelledClips] | None,
        rows: Sequence[Ids] | None = None,
        *,
        fresh: bool,
        max_epochs: int | None = None,
    ) -> bool:
        """Train one model, or a member on each of the rows; returns whether that was interrupted.

        They start afresh or continue, and stop by the mean score on their validation clips.
        """
        if not fresh:
            self._check_shapes()
        members = [] if fresh else self._members()
        rows = rows or [np.arange(len(clips.X))] * max(1, len(members))
        starts, seeds = [member._params for member in members], []
        for own in rows:
            if fresh:
                some = clips if len(own) == len(clips.X) else clips.take(own)
                starts.append(self._start(rng, some))
            seeds.append(int(rng.integers(2**31)) + self.n_iter_)  # others when training goes on
        self._predictor(starts[0])  # before training, refuses a model that could not predict
        kind, aucs = type(starts[0]), []

        def score(params: Any, numbers: Any) -> Doubles:
            assert valid is not None
            arrays = numpy_params(params)  # JAX would be slow to take parts of it
            judged = [
                self._judge(kind(*(array[place] for array in arrays)), valid[number])
                for place, number in enumerate(numbers)
            ]
            auc, likelihood = np.mean(judged, axis=0)
            aucs.append(auc)
            return np.full(len(numbers), auc + self._likelihood_weight * likelihood)

        results = descend(
            [self] * len(starts),
            starts,
            (clips.X, np.zeros((len(clips.X), 0), np.int32), clips.Y),
            rows=rows,
            seeds=seeds,
            max_epochs=max_epochs,
            score=None if valid is None else score,
            penalties=[self._penalty(start) for start in starts],
            **self._training_options(clips.Y),
        )
        if valid is not None:
            for result in results:
                result.history.score[:] = aucs[: len(result.history)]
        keep(self, results)
        return bool(results[0].interrupted)

    def _judge(self, params: Any, valid: LabelledClips) -> tuple[float, float]:
        """The AUC and the log-likelihood of validation clips."""
        P = self._validation_scores(params, valid.X)
        auc = calibration.mean_auc(valid.Y, P)
        if self._judged_by_completion:
            observed = calibration.half_observed(valid.Y)
            asked = np.where(np.isnan(observed), valid.Y, np.nan)
            if calibration.is_rankable(asked):
                answers = self._validation_scores(params, valid.X, observed)
                auc = (auc + calibration.mean_auc(asked, answers)) / 2
        return auc, calibration.log_likelihood(valid.Y, P)

    def _training_options(self, Y: Floats) -> dict[str, Any]:
        """What to minimise, and how, for `train_stack`."""
        from harmonium.rbm.training import Optimiser

        return {
            "gradient": self._gradient(Y),
            "optimiser": Optimiser(self.optimizer, float(self.momentum)),
            "averaging": self.averaging,
        }

    def _penalty(self, params: Any) -> Any:
        """ℓ1 and ℓ2 on the weights U and W."""
        from harmonium.rbm.training import Penalty

        def strengths(value: float) -> Any:
            return type(params)(*(np.float32(value * (f in "UW")) for f in params._fields))

        return Penalty(strengths(self.l1), strengths(self.l2 or 0.0))

    def _calibrate(self, known: LabelledClips, held_out: LabelledClips | None) -> None:
        """Set the correction by held-out clips, and the thresholds by them or by all others."""
        self.recalibration_ = None
        clips = known.read(MAX_HELD_OUT) if held_out is None else held_out
        if self.calibrate and held_out is not None:
            some = np.random.default_rng(0).permutation(len(clips.X))[:MAX_TO_CALIBRATE]
            self.recalibration_ = calibration.fit_recalibration(self._questions(clips.take(some)))
        self._set_thresholds(clips.X, clips.Y)

    def _questions(self, clips: LabelledClips) -> list[calibration.Question]:
        """What the model says about clips when asked as users will ask."""
        n = len(clips.X)
        return [
            calibration.Question(self._probabilities(clips.X), clips.Y, np.zeros(n), np.ones(n))
        ]

    def _scores(self, X: Floats) -> Floats:
        P = model_files.mean_probabilities([member._probabilities(X) for member in self._members()])
        return P if self.recalibration_ is None else self.recalibration_(P)

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        n_features, n_tags = len(self._scaling.mean), len(self.tags_)
        one = LabelledClips(*(np.zeros((1, n), np.float32) for n in (n_features, n_tags)))
        start = self._start(np.random.default_rng(0), one)
        stack = self._params.d.shape[:-1]  # (K,) of K members, () of one model
        return {name: (*stack, *array.shape) for name, array in start._asdict().items()}

    def _learnt(self) -> tuple[Arrays, dict[str, Any]]:
        arrays, about = super()._learnt()
        if self.recalibration_ is not None:
            arrays |= self.recalibration_.arrays()
        return arrays | history_arrays(self), about | {"best_epoch": self.best_epoch_}

    def _restore(self, arrays: Arrays, about: dict[str, Any]) -> None:
        super()._restore(arrays, about)
        self.recalibration_ = model_files.stored_recalibration(arrays, len(self.tags_))
        restore_history(self, arrays, about)


def is_large(table: NDArray[Any]) -> bool:
    """Whether to read a table in blocks."""
    return table.nbytes > LARGE


def signature(model: Any) -> tuple[Any, ...] | None:
    """What the models of one stack share; None for a model that cannot be in a stack."""
    if not isinstance(model, GradientTagger) or getattr(model, "solver", "") == "newton":
        return None
    settings = model.get_params()
    shape = settings.get("n_hidden", 1) or model.scale_features  # this decides
    return type(model), shape, *((k, v) for k, v in sorted(settings.items()) if k not in DIFFERENT)


def fit_stacked(
    models: Sequence[GradientTagger],
    X: Floats,
    Y: Floats,
    train: Sequence[Ids],
    valid: Sequence[Ids],
    *,
    targets: Floats | None = None,
    folds: Ids | None = None,
) -> None:
    """``model.fit(X[train], targets[train], (X[valid], Y[valid]))`` for every model, at once.

    Parameters
    ----------
    models : untrained, of one class, equal in all settings except `DIFFERENT`; fitted in place.
    X, Y : (n_clips, n_features) and (n_clips, n_tags) with 0, 1 and NaN.
    train, valid : for each model, the rows to learn from and those to stop early on.
    targets : (n_clips, n_tags) what to learn from, which may be probabilities; by default Y.
    folds : (n_clips,) numbers of folds: the models are cross-fitted over those of their training
        clips, as ``fit`` does with ``groups=folds[train]``, and ``valid`` is not used.

    The models equal those of ``fit``, except for rounding and for how clips fall into minibatches:
    all models have the same number of those.
    """
    from jax import device_put

    from harmonium.rbm.inference import stacked_auc
    from harmonium.rbm.training import part_of

    if len({signature(model) for model in models}) != 1:
        raise DataError("models may differ only in " + ", ".join(DIFFERENT) + ".")
    first, T = models[0], Y if targets is None else targets
    copies: dict[Any, Floats] = {}  # the features as models scale them
    teams, starts, seeds, rest, held = [], [], [], [], []
    for number, (model, own) in enumerate(zip(models, train, strict=True)):
        model._validate_params()
        model._describe(*model._read(X[own], T[own], like=None))
        rng = model._generator()
        key = (own.tobytes(), model.scale_features, model.unit_norm)
        if key not in copies:
            copies[key] = model._scaling(X)
        start = list(copies).index(key) * len(X)
        fold = np.zeros_like(own) if folds is None else folds[own]
        parts = [(own[fold != one], own[fold == one]) for one in np.unique(fold)]
        for known, other in [(own, valid[number])] if folds is None else parts:
            starts.append(model._start(rng, LabelledClips(copies[key][known], T[known])))
            seeds.append(int(rng.integers(2**31)))
            teams.append(number)
            rest.append(start + known)
            held.append(start + other)
    sizes = [len(rows) for rows in rest]
    if min(sizes) < max(sizes) / 2:
        raise DataError(
            "The models of a stack take the same number of steps, so all need about the same "
            f"number of training clips; got {min(sizes):,} to {max(sizes):,}. Stack similar sizes."
        )
    predictor, rows, team = first._predictor(starts[0]), _padded(held, -1), np.array(teams)
    X_on_device = device_put(np.concatenate(list(copies.values())))
    Y_on_device = device_put(np.tile(Y, (len(copies), 1)))
    observed = None
    if first._judged_by_completion:
        observed = _padded([calibration.half_observed(Y[own % len(Y)]) for own in held], np.nan)
    at_once = max(1, MAX_MESSAGES // (rows.shape[1] * first._numbers_per_clip(starts[0])))

    @lru_cache(maxsize=1)
    def questions(numbers: tuple[int, ...]) -> Any:
        """What these models are asked."""
        return device_put(part_of((rows, observed), np.array(numbers)))

    def score(params: Any, numbers: Places) -> Doubles:
        """The mean of the members of each model."""
        asked = questions(tuple(numbers))
        scores = stacked_auc(predictor, at_once, X_on_device, Y_on_device, *asked, params)
        auc, likelihood = (np.asarray(part, np.float64) for part in scores)
        own = team[numbers]
        weight = np.array([models[i]._likelihood_weight for i in own])
        sums = np.bincount(own, auc + weight * likelihood)
        return (sums / np.maximum(np.bincount(own), 1))[own]

    results = descend(
        [models[number] for number in teams],
        starts,
        (X_on_device, np.zeros((len(X_on_device), 0), np.int32), np.tile(T, (len(copies), 1))),
        rows=rest,
        seeds=seeds,
        score=score,
        penalties=[models[i]._penalty(start) for i, start in zip(teams, starts, strict=True)],
        **first._training_options(T),
    )
    for number, (model, own) in enumerate(zip(models, train, strict=True)):
        keep(model, [result for i, result in zip(teams, results, strict=True) if i == number])
        if folds is None:
            held_out = LabelledClips(model._scaling(X[valid[number]]), Y[valid[number]])
            model._calibrate(held_out, held_out)
        else:
            _, places = np.unique(folds[own], return_inverse=True)
            model._hold_out_folds(LabelledClips(model._scaling(X[own]), Y[own]), places)


def _padded(arrays: Sequence[NDArray[Any]], filling: float) -> NDArray[Any]:
    """(S, longest, …), padded at the end of the second axis."""
    padded = np.full((len(arrays), max(map(len, arrays)), *arrays[0].shape[1:]), filling)
    for row, array in zip(padded, arrays, strict=True):
        row[: len(array)] = array
    return padded.astype(arrays[0].dtype)


def descend(
    models: Sequence[Any],
    starts: Sequence[Any],
    data: tuple[Any, Any, Any],
    *,
    penalties: Sequence[Any],
    seeds: Sequence[int],
    rows: Sequence[Ids] | None = None,
    max_epochs: int | None = None,
    title: str = "",
    **options: Any,
) -> list[Any]:
    """Train a stack of models with their settings; show the progress of the first if asked to.

    ``data`` is (u, a, y) of all clips; each model learns from its ``rows``, by default all.
    """
    from harmonium.rbm.training import Batch, Schedule, Stack, stacked, train_stack

    first, n = models[0], len(data[2])
    weights: Any = np.ones(n, np.float32)
    max_epochs = max_epochs or first.max_epochs
    stack = Stack(
        stacked(starts),
        rows or [np.arange(n)] * len(models),
        [Schedule(m.schedule, m.learning_rate, m.max_epochs) for m in models],
        penalties,
        seeds,
    )
    n_steps = max(-(-len(own) // first.batch_size) for own in stack.rows)
    # at least 500 steps, since with few clips a model learns nothing in fewer
    patience = first.patience or max(20, -(-500 // n_steps))
    options |= {"batch_size": first.batch_size, "patience": patience, "max_epochs": max_epochs}
    with epoch_progress(first, max_epochs, title) as progress:
        return train_stack(stack, Batch(*data, weights), on_epoch=progress, **options)


def begin_history(model: Any) -> None:
    """Start a new history of training."""
    model.history_ = {name: [] for name in ("log_likelihood", model._score_name, "seconds")}
    model.n_iter_ = model.best_epoch_ = 0


def keep(model: Any, results: Sequence[Any]) -> None:
    """Store the training result for the model or its members, after what was there."""
    result, *others = results
    model._params = numpy_params(result.params)
    if others:
        members = zip(*(numpy_params(one.params) for one in results), strict=True)
        model._params = type(result.params)(*map(np.stack, members))
    if result.best_epoch:
        model.best_epoch_ = model.n_iter_ + result.best_epoch
    history = result.history
    columns = (history.log_likelihood, history.score, history.seconds)
    for name, values in zip(list(model.history_), columns, strict=True):
        model.history_[name] = model.history_[name] + values
    model.n_iter_ = len(model.history_["seconds"])


def warn_if_interrupted(model: Any, interrupted: bool, when: str = "") -> None:
    """Warn the caller of ``fit``, which calls this."""
    if interrupted:
        kept = f"epoch {model.best_epoch_}" if model.best_epoch_ else "the start"
        warnings.warn(
            f"Training was interrupted{when}; the best parameters so far, those of {kept}, are "
            "kept.",
            TrainingInterrupted,
            stacklevel=3,
        )


def history_arrays(model: Any) -> Arrays:
    """The history in the form of a model file."""
    return {f"history.{name}": np.array(v, np.float64) for name, v in model.history_.items()}


def restore_history(model: Any, arrays: Arrays, about: dict[str, Any]) -> None:
    """Restore the history from a model file."""
    begin_history(model)
    columns = {name: model_files.typed_array(arrays, f"history.{name}") for name in model.history_}
    model.history_ = {name: column.tolist() for name, column in columns.items()}
    model.n_iter_, model.best_epoch_ = len(model.history_["seconds"]), about["best_epoch"]
    shapes = {column.shape for column in columns.values()}
    if shapes != {(model.n_iter_,)} or model.best_epoch_ not in range(model.n_iter_ + 1):
        raise ValueError("its history is not one of whole epochs")


def numpy_params(params: Any) -> Any:
    """The parameters copied to NumPy arrays."""
    return type(params)(*(np.array(array) for array in params))


def single_precision(kind: Any, *arrays: Any) -> Any:
    """A named tuple of these arrays in single precision."""
    return kind(*(np.asarray(array, np.float32) for array in arrays))


@contextmanager
def epoch_progress(
    model: Any, max_epochs: int, title: str
) -> Iterator[Callable[[Sequence[Any]], None] | None]:
    """A progress bar with the best validation score so far; nothing unless ``verbose``."""
    if not model.verbose:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("epoch {task.completed}/{task.total}"),
        TextColumn("{task.fields[score]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(file=sys.stderr)) as progress:
        task = progress.add_task(type(model).__name__ + title, total=max_epochs, score="")

        def update(histories: Sequence[Any]) -> None:
            scores = histories[0].score
            measured = ""
            if np.isfinite(scores).any():
                measured = f"{model._score_label} {scores[-1]:.3f}, best {np.nanmax(scores):.3f}"
            progress.update(task, completed=len(scores), score=measured)

        yield update
