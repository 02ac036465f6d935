"""Many models trained at once as one program, which keeps a GPU busy."""

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jax import Array, device_put
from numpy.typing import NDArray

from harmonium.arrays import Floats, Ids, Places
from harmonium.errors import DataError
from harmonium.estimators.architecture import Architecture, Parameters, Predictor
from harmonium.estimators.base_classifier import ClassifiersBelow
from harmonium.estimators.calibration import half_observed
from harmonium.estimators.classifier import random_generator
from harmonium.estimators.early_stopping import HostJudge, Judge, Judgement, ValidationScore
from harmonium.estimators.gradient_tagger import GradientTagger
from harmonium.estimators.over_classifier import OverClassifier
from harmonium.estimators.tables import ClipTable, LabelledClips
from harmonium.estimators.targets import is_soft
from harmonium.estimators.trainer import Member, batch_of
from harmonium.rbm.inference import stacked_auc
from harmonium.rbm.stacks import part_of

MAX_MESSAGES = 2**27  # numbers in an array for scoring: half a GiB. Belief propagation has several.

# settings in which the models of a stack may differ
DIFFERENT = (
    "learning_rate",
    "init_scale",
    "l1",
    "l2",
    "l2_tags",
    "unit_norm",
    "scale_features",
    "random_state",
    "verbose",
    "n_jobs",
)


def signature(model: Any) -> Hashable:
    """What the models of one stack share; None for a model that cannot be in a stack."""
    if not isinstance(model, GradientTagger) or getattr(model, "solver", "") == "newton":
        return None
    if model.class_weight is not None or model.callback is not None:  # these are its own
        return None
    settings = model.get_params()
    shared = [(name, settings[name]) for name in sorted(settings) if name not in DIFFERENT]
    size: Hashable = settings.get("n_hidden", 1)
    if size is None:  # the scaling decides
        size = model.scale_features
    return type(model), size, *shared


class _Learner(NamedTuple):
    """A member of one of the models."""

    model: int  # its number
    member: Member  # its rows are of the table of all scaled features
    held_out: Places  # rows of that table, to stop early on


def fit_stacked(
    models: Sequence[GradientTagger],
    X: Floats,
    Y: Floats,
    train: Sequence[Ids],
    valid: Sequence[Ids],
    *,
    targets: Sequence[Floats] | None = None,
    folds: Ids | None = None,
) -> None:
    """``model.fit(X[train], its_targets[train], (X[valid], Y[valid]))`` for every model, at once.

    Parameters
    ----------
    models : untrained, of one class, equal in all settings except `DIFFERENT`; fitted in place.
    X, Y : (n_clips, n_features) and (n_clips, n_tags) with 0, 1 and NaN.
    train, valid : for each model, the rows to learn from and those to stop early on.
    targets : for each model, (n_clips, n_tags) what to learn from; by default Y. Probabilities if
        those of another model are.
    folds : (n_clips,) numbers of folds: the models are cross-fitted over those of their training
        clips, as ``fit`` does with ``groups=folds[train]``, and ``valid`` is not used.

    The models equal those of ``fit``, except for rounding and for how clips fall into minibatches:
    all models have the same number of those. Models that predict by Gibbs sampling or enumeration
    are judged one after the other, as in ``fit``.
    """
    if len({signature(model) for model in models}) != 1:
        raise DataError("models may differ only in " + ", ".join(DIFFERENT) + ".")
    if targets is None:
        targets = [Y] * len(models)
    table = _Clips(X)
    learners: list[_Learner] = []
    inputs: list[Floats] = []
    for number, (model, rows, labels) in enumerate(zip(models, train, targets, strict=True)):
        model._validate_params()
        model._describe(*model._read(X[rows], labels[rows], like=None))
        if folds is None:
            parts = [(rows, valid[number])]
        else:
            of_rows = folds[rows]
            parts = [(rows[of_rows != f], rows[of_rows == f]) for f in np.unique(of_rows)]
        own_folds = None if folds is None else folds[rows]
        clips, first_row = table.of_model(model, rows, labels, own_folds)
        inputs.append(clips.X[:])
        learners += _learners(number, model, parts, clips, first_row)
    _check_sizes([len(learner.member.rows) for learner in learners])

    architecture = models[0]._architecture()
    architecture.check(learners[0].member.start)
    scaled = table.features()
    on_device = device_put(scaled)
    to_judge_by = np.tile(Y, (table.n_copies, 1))
    score = ValidationScore(
        _judge(architecture, learners, scaled, to_judge_by, on_device),
        models=[learner.model for learner in learners],
        weights=[models[learner.model]._likelihood_weight for learner in learners],
    )
    trainer = models[0]._trainer(architecture, soft=any(map(is_soft, targets)))
    u, a = architecture.inputs(on_device)
    data = batch_of(u, table.targets(), a)
    results = trainer.train([learner.member for learner in learners], data, score)
    score.write_aucs(results)

    for number, (model, rows) in enumerate(zip(models, train, strict=True)):
        of_learners = zip(learners, results, strict=True)
        model._keep([result for learner, result in of_learners if learner.model == number])
        if folds is None:
            own = valid[number]
            model._calibrate(LabelledClips(X=inputs[number][own], Y=Y[own]))
        else:
            _, places = np.unique(folds[rows], return_inverse=True)
            own_clips = ClipTable(X=inputs[number][rows], Y=Y[rows])
            model._calibrate_by_folds(own_clips, places)


class _Clips:
    """All clips as each model learns from them, one copy below the other."""

    def __init__(self, X: Floats) -> None:
        self.X = X
        self._copies: dict[Hashable, ClipTable] = {}
        self._below: dict[Hashable, tuple[ClassifiersBelow, Floats]] = {}

    @property
    def n_copies(self) -> int:
        """How many ways of scaling, targets, and classifiers below, there are."""
        return len(self._copies)

    def of_model(
        self, model: GradientTagger, rows: Ids, targets: Floats, folds: Ids | None
    ) -> tuple[ClipTable, int]:
        """All clips for a model that learns from these rows; and the first row of this copy.

        ``folds`` are those of the rows.
        """
        key: Hashable = (rows.tobytes(), model.scale_features, model.unit_norm, id(targets))
        said = None
        if isinstance(model, OverClassifier) and model.estimator is not None:
            said = self._log_odds_below(model, rows, targets, folds)
            key = (key, model.random_state)
        if key not in self._copies:
            scaled = model._scaling(self.X)
            inputs = scaled if said is None else np.hstack([scaled, said])
            self._copies[key] = ClipTable(X=inputs, Y=targets)
        number = list(self._copies).index(key)
        return self._copies[key], number * len(self.X)

    def _log_odds_below(
        self, model: OverClassifier, rows: Ids, targets: Floats, folds: Ids | None
    ) -> Floats:
        """What the classifiers below a model say about all clips, about ``rows`` out of fold.

        Models that learn the same from the same rows share them.
        """
        key = (rows.tobytes(), id(targets), model.random_state)
        if key not in self._below:
            out_of_fold = model._fit_below(self.X[rows], targets[rows], folds)
            said = model._below.log_odds(self.X)
            said[rows] = out_of_fold
            self._below[key] = (model._below, said)
        model._below, said = self._below[key]
        return said

    def features(self) -> Floats:
        """Those of all copies."""
        return np.concatenate([copy.X for copy in self._copies.values()])

    def targets(self) -> Floats:
        """Those of all copies."""
        return np.concatenate([copy.Y for copy in self._copies.values()])


def _learners(
    number: int,
    model: GradientTagger,
    parts: Sequence[tuple[Ids, Ids]],
    clips: ClipTable,
    first_row: int,
) -> list[_Learner]:
    """The members of a model, from the clips that each learns from and is judged by."""
    rng = random_generator(model.random_state)
    architecture = model._architecture()
    learners = []
    for known, held_out in parts:
        member = model._fresh_member(architecture, rng, clips, known)
        learner = _Learner(
            model=number,
            member=member._replace(rows=first_row + known),
            held_out=first_row + held_out,
        )
        learners.append(learner)
    return learners


def _check_sizes(sizes: Sequence[int]) -> None:
    if min(sizes) < max(sizes) / 2:
        raise DataError(
            "The models of a stack take the same number of steps, so all need about the same "
            f"number of training clips; got {min(sizes):,} to {max(sizes):,}. Stack similar sizes."
        )


def _judge(
    architecture: Architecture,
    learners: Sequence[_Learner],
    X: Floats,
    Y: Floats,
    X_on_device: Array,
) -> Judge:
    """Judges all members at once, if their way to predict can be compiled for that.

    ``X`` (N, D) and ``Y`` (N, C) are the clips of all members.
    """
    predictor = architecture.predictor()
    held_out = [learner.held_out for learner in learners]
    if predictor is None:
        clips = [LabelledClips(X=X[rows], Y=Y[rows]) for rows in held_out]
        return HostJudge(architecture, clips)
    observed = None
    if architecture.judged_by_completion:
        observed = _padded([half_observed(Y[rows]) for rows in held_out], np.nan)
    rows = _padded(held_out, -1)
    numbers_per_member = rows.shape[1] * architecture.numbers_per_clip(learners[0].member.start)
    return DeviceJudge(
        predictor,
        X_on_device,
        device_put(Y),
        rows,
        observed,
        at_once=max(1, MAX_MESSAGES // numbers_per_member),
    )


class DeviceJudge:
    """Judges many members at once on JAX's device."""

    def __init__(
        self,
        predictor: Predictor,
        X: Array,
        Y: Array,
        rows: Places,
        observed: Floats | None,
        *,
        at_once: int,
    ) -> None:
        """``X`` (N, D) and ``Y`` (N, C) are the clips of all members.

        ``rows`` (S, M) are the held-out clips of each, padded with -1; ``observed`` (S, M, C) the
        tags to observe for a second question, if it is asked. ``at_once`` members are scored at a
        time, which bounds the memory.
        """
        self._predictor = predictor
        self._X = X
        self._Y = Y
        self._asked = (rows, observed)
        self._at_once = at_once
        self._numbers: list[int] = []  # of the members that were asked last
        self._asked_last: Any = None  # what they were asked, on the device

    def __call__(self, params: Parameters, numbers: Places) -> Judgement:
        """For a stack of parameters, of the members with these numbers."""
        if self._asked_last is None or self._numbers != list(numbers):
            self._numbers = list(numbers)
            self._asked_last = device_put(part_of(self._asked, numbers))
        rows, observed = self._asked_last
        auc, likelihood = stacked_auc(
            self._predictor, self._at_once, self._X, self._Y, rows, observed, params
        )
        return Judgement(
            auc=np.asarray(auc, np.float64),
            log_likelihood=np.asarray(likelihood, np.float64),
        )


def _padded(arrays: Sequence[NDArray[Any]], filling: float) -> NDArray[Any]:
    """(S, longest, …), padded at the end of the second axis."""
    longest = max(len(array) for array in arrays)
    padded = np.full((len(arrays), longest, *arrays[0].shape[1:]), filling)
    for row, array in zip(padded, arrays, strict=True):
        row[: len(array)] = array
    return padded.astype(arrays[0].dtype)
