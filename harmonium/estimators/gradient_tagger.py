"""What every estimator trained by gradient shares: holding out, early stopping, going on.

JAX is loaded when something is trained, so that a model that is solved in another way needs none.
"""

import sys
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from harmonium.arrays import Arrays, Floats
from harmonium.errors import TrainingInterrupted
from harmonium.estimators.calibration import (
    Question,
    Recalibration,
    fit_recalibration,
    is_rankable,
    log_likelihood,
    mean_auc,
    stored_recalibration,
)
from harmonium.estimators.classifier import TagClassifier
from harmonium.estimators.labels import Targets
from harmonium.estimators.model_files import typed_array
from harmonium.estimators.parameters import (
    COUNT,
    NOT_NEGATIVE,
    POSITIVE,
    SHARE,
    estimator,
    parameter,
)
from harmonium.estimators.tables import TableRows, is_large

# Few validation clips may be ranked perfectly long before their probabilities are right: among
# epochs of equal AUC the likelihood decides. It is far below what one pair of clips changes.
TIE_BREAKER = 1e-9

MAX_TO_CALIBRATE = 5000
"""Held-out clips by which probabilities are corrected, at most."""

MAX_HELD_OUT = 50_000
"""Clips to stop early on and to set thresholds by, at most, unless they are given."""


class LabelledClips(NamedTuple):
    """Checked and scaled training or validation data; if there is much of it, not read yet."""

    X: Any  # (N, D), an array of single precision or rows of a table
    Y: Any  # (N, C), the same: 0, 1, a probability between, or NaN

    def take(self, rows: NDArray[np.intp]) -> "LabelledClips":
        """Some of the clips."""
        return LabelledClips(*(p.take(rows) if isinstance(p, TableRows) else p[rows] for p in self))

    def read(self, at_most: int) -> "LabelledClips":
        """A random choice of the clips, or all if they are not more; as arrays."""
        if len(self.X) <= at_most:
            return LabelledClips(self.X[:], self.Y[:])
        some = np.random.default_rng(0).permutation(len(self.X))[:at_most]
        return LabelledClips(self.X[np.sort(some)], self.Y[np.sort(some)])


@estimator
class GradientTagger(TagClassifier):
    """Base of the classifiers trained by gradient. A subclass gives the model and its objective."""

    learning_rate: float = parameter(POSITIVE, default=0.01, doc="Step length.")
    schedule: Literal["constant", "inverse", "cosine"] = parameter(
        default="constant", doc="How the step length changes with the epochs."
    )
    batch_size: int = parameter(COUNT, default=20, doc="Clips per step.")
    max_epochs: int = parameter(COUNT, default=200, doc="Passes over the clips at most.")
    patience: int = parameter(
        COUNT,
        default=20,
        doc="""Epochs without a better validation AUC, or as good a one with a better likelihood,
        after which training stops; the best parameters are kept.""",
    )
    validation_fraction: float = parameter(
        SHARE,
        default=0.1,
        doc="""Share of the clips to stop early on when ``fit`` is given no ``eval_set``; 0 trains
        on all clips for ``max_epochs``.""",
    )
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
    l2: float | None = parameter(
        NOT_NEGATIVE, default=0.0, doc="Strength of the ℓ2 penalty on the weights; None means 0."
    )
    warm_start: bool = parameter(
        default=False,
        doc="""Let ``fit`` continue from the parameters of the last. With a number as
        ``random_state`` it holds out the same clips again, if they are given in the same order.""",
    )
    calibrate: bool = parameter(
        default=True,
        doc="""Correct the probabilities by what is true of the validation clips (see
        ``harmonium.estimators.calibration``). For each tag the order of the clips stays as it
        is. Nothing is corrected where there are no validation clips.""",
    )
    random_state: Any = parameter(
        "random_state",
        default=None,
        doc="Seed; the same seed, data and machine give the same model to the bit.",
    )
    verbose: int = parameter("verbose", default=0, doc="1 shows a progress bar.")

    _score_name: ClassVar[str] = "auc"  # of the validation score, in ``history_``
    _score_label: ClassVar[str] = "AUC"  # and beside the progress bar

    # What a subclass defines. ----------------------------------------------------------------

    @abstractmethod
    def _start(self, rng: np.random.Generator, clips: LabelledClips) -> Any:
        """Parameters to start training from."""

    @abstractmethod
    def _objective(self) -> Any:
        """The gradient to descend, a `harmonium.rbm.gradients.Gradient`."""

    @abstractmethod
    def _penalised(self) -> tuple[str, ...]:
        """Names of the parameter arrays that ℓ1 and ℓ2 act on."""

    @abstractmethod
    def _probabilities(self, X: Floats) -> Floats:
        """p(y_j = 1 | x) under the fitted parameters, (N, C), of scaled features."""

    @abstractmethod
    def _validation_scores(self, params: Any, X: Floats) -> Floats:
        """Scores for early stopping: as predicted, but cheaply."""

    @abstractmethod
    def _predictor(self, params: Any) -> Any:
        """The same for programs that JAX compiles: a function of params, X and observed tags."""

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
        interrupted = self._learn(X, targets, valid, fresh=fresh)
        warn_if_interrupted(self, interrupted, f" in epoch {self.n_iter_ + 1}")
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
        rng = self._generator()
        clips = self._clips(X, targets.Y)
        start = self._start(rng, clips) if first else self._resume()
        interrupted = self._train(start, clips, None, int(rng.integers(2**31)), max_epochs=1)
        warn_if_interrupted(self, interrupted, f" in epoch {self.n_iter_ + 1}")
        return self

    def _describe(self, X: NDArray[np.floating], targets: Targets) -> None:
        super()._describe(X, targets)
        self.recalibration_: Recalibration | None = None
        begin_history(self)

    def _generator(self) -> np.random.Generator:
        return np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))

    def _learn(
        self,
        X: NDArray[np.floating],
        targets: Targets,
        valid: tuple[NDArray[np.floating], Targets] | None,
        *,
        fresh: bool,
    ) -> bool:
        """Train and calibrate; gives whether training was interrupted."""
        rng = self._generator()
        known, held_out = self._hold_out(rng, X, targets, valid)
        start = self._start(rng, known) if fresh else self._resume()
        interrupted = self._train(start, known, held_out, int(rng.integers(2**31)))
        self._calibrate(known, held_out)
        return interrupted

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
        n_valid = min(int(self.validation_fraction * len(X)), MAX_HELD_OUT)
        held_out = clips.take(order[:n_valid]).read(n_valid)
        if not is_rankable(held_out.Y):
            return clips, None
        rest = order[n_valid:]
        return clips.take(np.sort(rest) if is_large(X) else rest), held_out

    def _clips(self, X: NDArray[np.floating], Y: Floats) -> LabelledClips:
        """Scaled clips; a large table is scaled as it is read."""
        if is_large(X):
            return LabelledClips(
                TableRows(X, change=lambda rows: self._scaling(rows)), TableRows(Y)
            )
        return LabelledClips(self._scaling(X), Y)

    def _train(
        self,
        start: Any,
        clips: LabelledClips,
        valid: LabelledClips | None,
        seed: int,
        max_epochs: int | None = None,
    ) -> bool:
        from harmonium.rbm.training import Optimiser

        self._predictor(start)  # refuses, before training, a model that could not predict
        aucs: list[float] = []

        def score(params: Any) -> float:
            assert valid is not None
            auc, likelihood = self._judge(params, valid)
            aucs.append(auc)
            return auc + TIE_BREAKER * likelihood

        result = descend(
            self,
            start,
            equal_batch(clips.X, np.zeros((len(clips.X), 0), np.int32), clips.Y),
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
        keep(self, result)
        return result.interrupted

    def _judge(self, params: Any, valid: LabelledClips) -> tuple[float, float]:
        """The AUC and the log-likelihood of validation clips."""
        P = self._validation_scores(params, valid.X)
        return mean_auc(valid.Y, P), log_likelihood(valid.Y, P)

    def _gradient(self, Y: Floats) -> Any:
        """The objective for these labels, of which some may be probabilities."""
        return self._objective()

    def _penalty(self, params: Any) -> Any:
        from harmonium.rbm.training import Penalty

        names = self._penalised()

        def strengths(value: float) -> Any:
            return type(params)(*(np.float32(value * (f in names)) for f in params._fields))

        return Penalty(strengths(self.l1), strengths(self.l2 or 0.0))

    def _calibrate(self, known: LabelledClips, held_out: LabelledClips | None) -> None:
        """Set the correction by held-out clips, and the thresholds by them or by all others."""
        self.recalibration_ = None
        clips = known.read(MAX_HELD_OUT) if held_out is None else held_out
        if self.calibrate and held_out is not None:
            some = np.random.default_rng(0).permutation(len(clips.X))[:MAX_TO_CALIBRATE]
            self.recalibration_ = fit_recalibration(self._questions(clips.take(some)))
        self._set_thresholds(clips.X, clips.Y)

    def _questions(self, clips: LabelledClips) -> list[Question]:
        """What the model says of clips, as it will be asked."""
        n = len(clips.X)
        return [Question(self._probabilities(clips.X), clips.Y, np.zeros(n), np.ones(n))]

    def _scores(self, X: Floats) -> Floats:
        P = self._probabilities(X)
        return P if self.recalibration_ is None else self.recalibration_(P)

    def _resume(self) -> Any:
        """Parameters to continue training from."""
        self._check_shapes()
        return self._params

    # Files. ----------------------------------------------------------------------------------

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        n_features, n_tags = len(self._scaling.mean), len(self.tags_)
        one = LabelledClips(*(np.zeros((1, n), np.float32) for n in (n_features, n_tags)))
        start = self._start(np.random.default_rng(0), one)
        return {name: array.shape for name, array in start._asdict().items()}

    def _learnt(self) -> tuple[Arrays, dict[str, Any]]:
        arrays, about = super()._learnt()
        if self.recalibration_ is not None:
            arrays |= self.recalibration_.arrays()
        return arrays | history_arrays(self), about | {"best_epoch": self.best_epoch_}

    def _restore(self, arrays: Arrays, about: dict[str, Any]) -> None:
        super()._restore(arrays, about)
        self.recalibration_ = stored_recalibration(arrays, len(self.tags_))
        restore_history(self, arrays, about)


# Training any estimator that has the parameters above, and what is recorded of it. ---------------


def begin_history(model: Any) -> None:
    """Begin a new account of training."""
    model.history_ = {name: [] for name in ("log_likelihood", model._score_name, "seconds")}
    model.n_iter_ = model.best_epoch_ = 0


def descend(
    model: Any, start: Any, batch: Any, *, max_epochs: int, title: str = "", **options: Any
) -> Any:
    """Train with the model's settings, and show the progress if asked to."""
    from harmonium.rbm.loop import train
    from harmonium.rbm.training import Schedule

    name = type(model).__name__ + title
    with epoch_progress(
        max_epochs, shown=bool(model.verbose), name=name, measure=model._score_label
    ) as on_epoch:
        return train(
            start,
            batch,
            schedule=Schedule(model.schedule, model.learning_rate, model.max_epochs),
            batch_size=model.batch_size,
            patience=model.patience,
            max_epochs=max_epochs,
            on_epoch=on_epoch,
            **options,
        )


def keep(model: Any, result: Any) -> None:
    """Take what training gave, after what was there."""
    model._params = numpy_params(result.params)
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
    """The history as a model file has it."""
    return {f"history.{name}": np.array(v, np.float64) for name, v in model.history_.items()}


def restore_history(model: Any, arrays: Arrays, about: dict[str, Any]) -> None:
    """Take the history from a model file."""
    begin_history(model)
    columns = {name: typed_array(arrays, f"history.{name}") for name in model.history_}
    model.history_ = {name: column.tolist() for name, column in columns.items()}
    model.n_iter_, model.best_epoch_ = len(model.history_["seconds"]), about["best_epoch"]
    shapes = {column.shape for column in columns.values()}
    if shapes != {(model.n_iter_,)} or model.best_epoch_ not in range(model.n_iter_ + 1):
        raise ValueError("its history is not one of whole epochs")


def equal_batch(u: Any, a: Any, y: Any) -> Any:
    """Clips that all have the same weight."""
    from harmonium.rbm.gradients import Batch

    weights: Any = np.ones(len(y), np.float32)
    return Batch(u, a, y, weights)


def numpy_params(params: Any) -> Any:
    """The parameters as NumPy arrays of their own."""
    return type(params)(*(np.array(array) for array in params))


def single_precision(kind: Any, *arrays: Any) -> Any:
    """A tuple of that kind, such as parameters, of these arrays in single precision."""
    return kind(*(np.asarray(array, np.float32) for array in arrays))


@contextmanager
def epoch_progress(
    max_epochs: int, *, shown: bool, name: str, measure: str
) -> Iterator[Callable[[Any], None]]:
    """A progress bar over epochs, with the best validation score so far; a no-op unless shown."""
    if not shown:
        yield lambda history: None
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
        task = progress.add_task(name, total=max_epochs, score="")

        def update(history: Any) -> None:
            best = np.nanmax(history.score) if np.isfinite(history.score).any() else None
            last = history.score[-1]
            score = f"{measure} {last:.3f}, best {best:.3f}" if best is not None else ""
            progress.update(task, completed=len(history), score=score)

        yield update
