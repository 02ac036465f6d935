"""Estimators trained by gradient: validation, early stopping, cross-fitting, resuming.

Cross-fitting trains K members, each on all folds but one, and stops each on its held-out fold. The
model is the mean of their log-odds. So all clips are used for training, and all have held-out
probabilities, which give the correction and the thresholds.

JAX is loaded only for training, so models with other solvers do not need it.
"""

from abc import abstractmethod
from collections.abc import Sequence
from copy import copy
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from harmonium.arrays import Arrays, Floats, Ids, Numbers, Places, Rng
from harmonium.errors import DataError, did_you_mean
from harmonium.estimators.architecture import (
    Architecture,
    Parameters,
    member_of,
    numpy_params,
    stacked_members,
)
from harmonium.estimators.calibration import (
    Question,
    Recalibration,
    ask,
    ask_by_features,
    correct_folds,
    fit_recalibration,
    stored_recalibration,
)
from harmonium.estimators.classifier import TagClassifier, random_generator
from harmonium.estimators.early_stopping import (
    OF_WORDS,
    TIE_BREAKER,
    HostJudge,
    ValidationScore,
)
from harmonium.estimators.history import EpochCallback, EpochHistory
from harmonium.estimators.holdout import (
    MAX_HELD_OUT,
    Split,
    all_clips,
    choose_folds,
    split_at_random,
    split_by_folds,
)
from harmonium.estimators.importance import Importances, importances_of
from harmonium.estimators.model_files import rounded_to_half
from harmonium.estimators.tables import (
    ClipTable,
    LabelledClips,
    Table,
    TableRows,
    in_blocks,
    is_large,
)
from harmonium.estimators.targets import Targets, is_soft, read_more_targets
from harmonium.estimators.weights import ALIKE, BALANCED, Weights
from harmonium.evaluation.folds import group_index
from harmonium.files import PathLike, check_writable, write_atomically
from harmonium.logistic import mean_probabilities
from harmonium.parameters import (
    ClassWeight,
    Count,
    NotNegative,
    Positive,
    Seed,
    Share,
    Verbosity,
    estimator,
    parameter,
)

if TYPE_CHECKING:
    from harmonium.estimators.trainer import Member, Trainer
    from harmonium.rbm.training import Result

LEARNING_RATE = 0.01
MIN_PATIENCE = 20  # epochs
MAX_TO_CALIBRATE = 5000  # the most held-out clips used to correct probabilities
MAX_ROUNDING = 0.001  # change of a probability at which parameters stay in full precision
MAX_TO_ROUND = 200  # the most held-out clips of each member that decide this


@estimator
class GradientTagger(EpochHistory, TagClassifier):
    """Base of the classifiers trained by gradient. A subclass gives the architecture."""

    learning_rate: Positive | None = parameter(
        "Step length; None means 0.01.", default=LEARNING_RATE
    )
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
    class_weight: ClassWeight | None = parameter(
        """Weights of absent and present labels, beside the ``sample_weight`` of ``fit``: a mapping
        such as {0: 1, 1: 5} for all tags, a list with one for each tag, or "balanced", by which
        both classes of a tag count the same. The probabilities are then those of clips weighted so.
        A likelihood of whole sets of tags, such as that of ``training="cd"``, has no weights for
        single labels.""",
        default=None,
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
    callback: EpochCallback | None = parameter(
        """Called after each epoch with its ``number``, ``log_likelihood``, ``score`` and
        ``seconds``; if it returns true, this was the last one.""",
        default=None,
    )

    _network: ClassVar[str]  # what kind of graph it is: "rbm", "mlp" or "logistic"
    _score_name: ClassVar[str] = "auc"
    _score_label: ClassVar[str] = "AUC"
    _attributes: ClassVar[str] = """
    tags_ : names of the tags. thresholds_ : probability from which ``predict`` gives a tag, by tag.
    recalibration_ : the correction of the probabilities, or None.
    history_ : per epoch "log_likelihood" (a proxy, per tag), "auc" and "seconds".
    best_epoch_ : the epoch whose parameters were kept, counted from 1.
    folds_, held_out_ : of several members, the fold of each clip, (n_clips,), and what the member
        without it says, (n_clips, n_tags); they are not saved.
    n_features_in_, feature_names_in_, classes_, n_iter_ : as in scikit-learn.
    """

    @abstractmethod
    def _architecture(self) -> Architecture:
        """The model that the settings ask for, with the features and tags of the data."""

    def fit(
        self,
        X: Any,
        y: Any,
        eval_set: tuple[Any, Any] | None = None,
        groups: Any = None,
        eval_y: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Learn from clips and their tags.

        Parameters
        ----------
        X : (n_clips, n_features) features; array, pandas or polars frame, or a sparse matrix. A
            large array, such as a ``numpy.memmap`` of a file, is read in blocks and never copied as
            a whole; of a sparse matrix, only the rows in use become dense.
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
        sample_weight : (n_clips,) how much each clip counts in training, in the scaling of the
            features, and where it is held out; None: all alike. For the strength of penalties, only
            the ratios matter.
        """
        self._validate_params()
        fresh = not (self.warm_start and self.__sklearn_is_fitted__())
        X, targets = self._read(X, y, like=None if fresh else self._targets())
        labels = targets.Y  # to judge by
        if eval_y is not None:
            labels = read_more_targets(eval_y, targets, name="eval_y").Y
            check_consistent_length(X, labels)
        group_of_clip = None if groups is None else group_index(groups, len(X))
        validation = None if eval_set is None else self._read_eval_set(eval_set, targets)
        weights = self._weights(sample_weight, targets)
        if fresh:
            self._describe(X, targets, weights)

        folds = None
        if validation is None:
            folds = self._folds(labels, group_of_clip)
        rng = random_generator(self.random_state)
        clips = self._training_clips(X, targets.Y, weights, folds, group_of_clip)
        judged = ClipTable(
            X=clips.X, Y=labels, weights=weights.of_clips(labels), groups=group_of_clip
        )
        if folds is not None:
            split = split_by_folds(judged, folds)
        elif validation is not None:
            X_valid, Y_valid = validation
            held_out = LabelledClips(
                X=self._inputs(X_valid), Y=Y_valid, weights=weights.of_others(Y_valid)
            )
            split = all_clips(len(clips), held_out)
        else:
            split = split_at_random(
                rng, judged, self.validation_fraction, group_of_clip, in_order=is_large(X)
            )

        self._check_decisions(held_out=split.held_out is not None)
        result = self._train(rng, clips, split, fresh=fresh, mean_weight=weights.mean_of_clips)
        if folds is not None:
            self._calibrate_by_folds(judged, folds)
        elif split.held_out is not None:
            self._calibrate(split.held_out[0])
        else:
            self._leave_uncalibrated(clips.read(MAX_HELD_OUT))
        ends_early = split.held_out is not None and self.schedule != "cosine"
        self._warn_if_interrupted(result.interrupted, f" in epoch {self.n_iter_ + 1}")
        self._warn_if_not_converged(result, stops_early=ends_early)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more clips in one pass over them, starting from what was learnt.

        The features' scaling and the tags are those of the first call, or of ``fit``.
        ``classes`` names the two classes of one-dimensional labels, on the first call.
        ``sample_weight`` is (n_clips,), and a weight of 1 counts as much in each call.
        """
        self._validate_params()
        first = not self.__sklearn_is_fitted__()
        X, targets = self._read(X, y, like=None if first else self._targets(), classes=classes)
        if self.class_weight == BALANCED:
            raise DataError(
                "class_weight='balanced' needs all clips at once, and partial_fit has only these. "
                "Give weights for the two classes, such as {0: 1, 1: 5}."
            )
        weights = self._weights(sample_weight, targets)
        if first:
            self._describe(X, targets, weights)
            self.thresholds_ = np.full(len(self.tags_), 0.5)
        if first:
            clips = self._training_clips(X, targets.Y, weights, None, None)
        else:
            clips = self._clips(X, targets.Y, weights)
        split = all_clips(len(clips))
        rng = random_generator(self.random_state)
        result = self._train(rng, clips, split, fresh=first, max_epochs=1)
        self._warn_if_interrupted(result.interrupted, f" in epoch {self.n_iter_ + 1}")
        return self

    # Before training

    def _describe(self, X: Numbers, targets: Targets, weights: Weights = ALIKE) -> None:
        super()._describe(X, targets, weights)
        self.recalibration_: Recalibration | None = None
        self._begin_history()

    def _clips(self, X: Numbers, Y: Floats, weights: Weights) -> ClipTable:
        """Scaled clips; a large table is scaled as it is read."""
        of_labels = weights.of_clips(Y)
        if is_large(X):
            rows = TableRows(X, change=self._scaling.__call__)
            return ClipTable(X=rows, Y=TableRows(Y), weights=of_labels)
        return ClipTable(X=self._inputs(X), Y=Y, weights=of_labels)

    def _training_clips(
        self, X: Numbers, Y: Floats, weights: Weights, folds: Ids | None, groups: Ids | None
    ) -> ClipTable:
        """The clips that ``fit`` learns from, in these folds, if there are several members."""
        return self._clips(X, Y, weights)

    def _folds(self, labels: Floats, groups: Ids | None) -> Ids | None:
        """The fold of each clip, (N,); None for a single model."""
        n_models = getattr(self, "n_models", 1)  # for models that can be cross-fitted
        if n_models == 1:
            return None
        seed = int(random_generator(self.random_state).integers(2**31))
        return choose_folds(labels, groups, n_folds=n_models, seed=seed)

    # Training

    def _train(
        self,
        rng: Rng,
        clips: ClipTable,
        split: Split,
        *,
        fresh: bool,
        mean_weight: float = 1.0,
        max_epochs: int | None = None,
    ) -> "Result":
        """Train the members, afresh or further; returns the first one's result.

        Clips with the ``mean_weight`` count as clips without a weight do.
        """
        architecture = self._architecture()
        self._check_label_weights(architecture, clips)
        if fresh:
            members = [self._fresh_member(architecture, rng, clips, rows) for rows in split.rows]
        else:
            members = self._continued_members(architecture, rng, split)
        split = split.for_members(len(members))
        architecture.check(members[0].start)

        score = None
        if split.held_out is not None:
            judge = HostJudge(architecture, split.held_out)
            weights = [self._likelihood_weight] * len(members)
            score = ValidationScore(judge, models=[0] * len(members), weights=weights)
        trainer = self._trainer(architecture, soft=is_soft(clips.Y), max_epochs=max_epochs)
        results = trainer.train(members, _batch_of(architecture, clips, mean_weight), score)
        if score is not None:
            score.write_aucs(results)
        self._keep(results)
        return results[0]

    def _check_label_weights(self, architecture: Architecture, clips: ClipTable) -> None:
        """Refuse class weights of several tags if the loss is not a sum over labels."""
        differ = clips.weights is not None and clips.weights.shape[1] > 1
        if differ and not architecture.gradient(soft=False).weighs_labels:
            training = getattr(self, "training", "cd")
            raise DataError(
                f"class_weight has a weight for each label, but training={training!r} maximises "
                "the likelihood of a clip's tags together. Use training='multi_prediction' with "
                "likelihood_weight=0, or sample_weight."
            )

    def _fresh_member(
        self, architecture: Architecture, rng: Rng, clips: ClipTable, rows: Ids
    ) -> "Member":
        """A member that learns from these rows of the clips."""
        own = clips if len(rows) == len(clips) else clips.take(rows)
        return self._member(architecture, rng, architecture.start(rng, own), rows)

    def _continued_members(
        self, architecture: Architecture, rng: Rng, split: Split
    ) -> "list[Member]":
        """The members that there are, to be trained on."""
        self._check_shapes()
        starts = self._member_params()
        split = split.for_members(len(starts))
        if len(split.rows) != len(starts):
            raise DataError(
                f"The model has {len(starts)} members, but the data has folds for "
                f"{len(split.rows)}. Fit a new model, or restore n_models and the clips."
            )
        return [
            self._member(architecture, rng, start, rows)
            for start, rows in zip(starts, split.rows, strict=True)
        ]

    def _member(
        self, architecture: Architecture, rng: Rng, start: Parameters, rows: Ids
    ) -> "Member":
        from harmonium.estimators.trainer import Member
        from harmonium.rbm.training import Schedule

        return Member(
            start=start,
            rows=rows,
            seed=int(rng.integers(2**31)) + self.n_iter_,  # another when training goes on
            penalty=architecture.penalty(start),
            schedule=Schedule(self.schedule, self._step_length, self.max_epochs),
        )

    def _trainer(
        self, architecture: Architecture, *, soft: bool, max_epochs: int | None = None
    ) -> "Trainer":
        from harmonium.estimators.trainer import Trainer
        from harmonium.rbm.descent import Optimiser

        return Trainer(
            gradient=architecture.gradient(soft=soft),
            optimiser=Optimiser(self.optimizer, float(self.momentum)),
            batch_size=self.batch_size,
            max_epochs=max_epochs or self.max_epochs,
            patience=self.patience,
            min_patience=self._min_patience,
            averaging=self.averaging,
            verbose=self.verbose,
            title=type(self).__name__,
            score_label=self._score_label,
            callback=self.callback,
        )

    @property
    def _step_length(self) -> float:
        """The learning rate in the first epoch."""
        return LEARNING_RATE if self.learning_rate is None else self.learning_rate

    @property
    def _min_patience(self) -> int:
        """The fewest epochs without a better score after which training stops by default."""
        return MIN_PATIENCE

    @property
    def _likelihood_weight(self) -> float:
        """Of the log-likelihood, beside the AUC, when the best epoch is chosen."""
        return OF_WORDS if self._scaling.is_bag_of_words else TIE_BREAKER

    def _keep(self, results: "Sequence[Result]") -> None:
        """Store the parameters of all members, and the history, which they share."""
        params = [numpy_params(result.params) for result in results]
        self._params = params[0] if len(params) == 1 else stacked_members(params)
        self._extend_history(results[0])

    # After training

    def _calibrate(self, held_out: LabelledClips) -> None:
        """Set the correction and the thresholds by held-out clips."""
        self.recalibration_ = None
        if self.calibrate:
            sample = np.random.default_rng(0).permutation(len(held_out))[:MAX_TO_CALIBRATE]
            questions = self._questions(self._member_params(), held_out.take(sample))
            self.recalibration_ = fit_recalibration(questions)
        P = in_blocks(self._scores, held_out.X)
        self._set_thresholds(held_out, P, held_out=True)

    def _leave_uncalibrated(self, clips: LabelledClips) -> None:
        """Without held-out clips, set the thresholds by those learnt from."""
        self.recalibration_ = None
        self._set_thresholds(clips, in_blocks(self._scores, clips.X), held_out=False)

    def _calibrate_by_folds(self, clips: ClipTable, folds: Ids) -> None:
        """Set the correction and the thresholds by what each member says about its fold."""
        held_out = [np.flatnonzero(folds == fold) for fold in range(int(folds.max()) + 1)]
        sample_size = MAX_TO_CALIBRATE // len(held_out)
        samples = [clips.take(rows[:MAX_HELD_OUT]).read(sample_size) for rows in held_out]
        self._round_params(samples)

        self.folds_ = folds
        self.held_out_ = self._held_out_probabilities(clips, held_out)
        self.recalibration_ = None
        if self.calibrate:
            members = zip(self._member_params(), samples, strict=True)
            asked = [self._questions([params], sample) for params, sample in members]
            self.recalibration_ = correct_folds(asked, held_out, self.held_out_)
        nothing = np.zeros((len(clips), 0), np.float32)  # features that nothing reads
        judged = LabelledClips(X=nothing, Y=clips.Y[:], weights=clips.weights, groups=clips.groups)
        self._set_thresholds(judged, self.held_out_, held_out=True)

    def _round_params(self, samples: Sequence[LabelledClips]) -> None:
        """Round the parameters to half precision, which takes half the space on disk.

        But not if that changes a probability by `MAX_ROUNDING` or more.
        """
        architecture = self._architecture()

        def answers() -> list[Floats]:
            members = zip(self._member_params(), samples, strict=True)
            return [
                architecture.probabilities(params, sample.X[:MAX_TO_ROUND])
                for params, sample in members
            ]

        exact = self._params
        before = answers()
        self._params = type(exact)(*(rounded_to_half(array) for array in exact))
        changes = [np.abs(a - b) for a, b in zip(before, answers(), strict=True)]
        if not all(np.all(change < MAX_ROUNDING) for change in changes):
            self._params = exact

    def _held_out_probabilities(self, clips: ClipTable, held_out: Sequence[Places]) -> Floats:
        """What each member says about its fold, before any correction, (N, C)."""
        architecture = self._architecture()
        P = np.empty(clips.Y.shape, np.float32)
        for params, rows in zip(self._member_params(), held_out, strict=True):
            for first in range(0, len(rows), MAX_HELD_OUT):
                block = rows[first : first + MAX_HELD_OUT]
                own = clips.take(block).read(len(block))
                P[block] = in_blocks(partial(architecture.probabilities, params), own.X)
        return P

    def _questions(self, members: list[Parameters], clips: LabelledClips) -> list[Question]:
        """What members say together about clips when asked as users will ask."""
        if not self._architecture().completes:
            P = self._probabilities(members, clips.X)
            return ask_by_features(P, clips.Y, clips.weights)

        def complete(observed: Floats) -> Floats:
            return self._probabilities(members, clips.X, observed)

        return ask(complete, clips.Y, clips.weights)

    # The fitted model

    def importances(self, X: Any, tag: Any, y: Any = None) -> Importances:
        """What made a tag likely or unlikely for each clip: features, and other known tags.

        The gradient of the tag's log-odds, exact through the steps that predict it, times how far
        each scaled feature is from its mean (for words: from 0), and each known tag from the
        probability that the features alone give it. A sum over features is, to first order, what
        the clip's features add to the log-odds of an average clip. ``calibrate`` has no part in it;
        of several members, the mean counts.

        ``tag`` is one of ``tags_``, ``y`` as for :meth:`DiscriminativeRBM.complete`; what it says
        of the tag itself is ignored. Networks do not use other tags: theirs are 0.
        """
        features = self._feature_table(X)
        place = self._place_of(tag)
        known = np.full((len(features), len(self.tags_)), np.nan, np.float32)
        if y is not None:
            known = self._known(features, y).copy()
            known[:, place] = np.nan
        log_odds = self._architecture().log_odds()
        members = self._member_params()
        by_features = mean_probabilities(
            [
                in_blocks(partial(self._architecture().quick_probabilities, params), features)
                for params in members
            ]
        )
        surprise = np.nan_to_num(known - by_features)
        parts = [
            in_blocks(partial(importances_of, log_odds, params, place), features, known, surprise)
            for params in members
        ]
        return Importances(
            features=np.mean([part.features for part in parts], axis=0),
            tags=np.mean([part.tags for part in parts], axis=0),
        )

    def predict_std(self, X: Any) -> Floats:
        """How much the members differ: the standard deviation of their p(y_j = 1 | x).

        Shape (n_clips, n_tags). Each member is calibrated as the model is. Members share most
        of their clips: the spread shows where the data decides little, but is no confidence
        interval.
        """
        features = self._feature_table(X)
        members = self._member_params()
        if len(members) == 1:
            raise DataError(
                "The spread of members needs several, and this model has one. Fit with n_models "
                "above 1, and without an eval_set."
            )
        answers = []
        for params in members:
            P = self._probabilities([params], features)
            answers.append(P if self.recalibration_ is None else self.recalibration_(P))
        return np.std(answers, axis=0, ddof=1)

    def save_onnx(self, path: PathLike) -> None:
        """Write :meth:`predict_proba` as an ONNX model, from ``features`` to ``probabilities``.

        Both are in single precision. The steps of mean field are unrolled; other ways to predict
        cannot be exported. Needs the package `onnx`, which ``harmonium[onnx]`` installs.
        """
        from harmonium.estimators.onnx_export import onnx_model

        check_is_fitted(self)
        self._check_shapes()
        _, options = self._architecture().log_odds()
        model = onnx_model(
            self._scaling,
            self._member_params(),
            self.recalibration_,
            kind=self._network,
            steps=options if self._network == "rbm" else 1,
            one_column=self._one_column,
        )
        check_writable(path)
        write_atomically(Path(path), model.SerializeToString())

    def _place_of(self, tag: Any) -> int:
        places = np.flatnonzero(self.tags_ == tag)
        if not len(places):
            hint = did_you_mean(str(tag), [str(name) for name in self.tags_])
            raise DataError(f"The model has no tag {tag!r}.{hint}")
        return int(places[0])

    def _member_params(self) -> list[Parameters]:
        """The parameters of each member, whose log-odds are averaged."""
        if self._params.d.ndim == 1:
            return [self._params]
        return [member_of(self._params, number) for number in range(len(self._params.d))]

    def _members(self) -> list[Self]:
        """Each member as a model of its own."""
        members = []
        for params in self._member_params():
            member = copy(self)
            member._params = params
            members.append(member)
        return members

    def _probabilities(
        self, members: list[Parameters], X: Table, observed: Floats | None = None
    ) -> Floats:
        """What members say together, (N, C): the mean of their log-odds."""
        architecture = self._architecture()
        answers = [
            in_blocks(partial(architecture.probabilities, params), X, observed)
            for params in members
        ]
        return mean_probabilities(answers)

    def _scores(self, X: Floats) -> Floats:
        P = self._probabilities(self._member_params(), X)
        return P if self.recalibration_ is None else self.recalibration_(P)

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        a_clip = ClipTable(
            X=np.zeros((1, self._n_inputs), np.float32),
            Y=np.zeros((1, len(self.tags_)), np.float32),
        )
        start = self._architecture().start(np.random.default_rng(0), a_clip)
        members = self._params.d.shape[:-1]  # (K,) of K members, () of one model
        return {name: (*members, *array.shape) for name, array in start._asdict().items()}

    @property
    def _n_inputs(self) -> int:
        """How many numbers of each clip the model computes with."""
        return len(self._scaling.mean)

    def _learnt(self) -> tuple[Arrays, dict[str, Any]]:
        arrays, about = super()._learnt()
        if self.recalibration_ is not None:
            arrays |= self.recalibration_.arrays()
        arrays |= self._history_arrays()
        return arrays, {**about, "best_epoch": self.best_epoch_}

    def _restore(self, arrays: Arrays, about: dict[str, Any]) -> None:
        super()._restore(arrays, about)
        self.recalibration_ = stored_recalibration(arrays, len(self.tags_))
        self._restore_history(arrays, about)


def _batch_of(architecture: Architecture, clips: ClipTable, mean_weight: float) -> Any:
    from harmonium.estimators.trainer import batch_of

    weights = clips.weights
    if weights is not None:
        weights = weights / np.float32(mean_weight)
    u, a = architecture.inputs(clips.X)
    return batch_of(u, clips.Y, a, weights=weights)
