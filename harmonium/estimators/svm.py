"""Linear ν-SVMs on balanced examples, one per tag, as in the paper."""

import warnings
from collections.abc import Sequence
from numbers import Real
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.special import expit, logit
from sklearn.svm import NuSVC
from sklearn.utils.validation import check_array

from harmonium.arrays import Arrays, Doubles, Floats, Numbers, Places, Rng
from harmonium.errors import DataError, DataWarning
from harmonium.estimators.classifier import random_generator
from harmonium.estimators.linear import LinearParams, LinearTagger
from harmonium.estimators.model_files import typed_array
from harmonium.estimators.tables import Table, in_blocks
from harmonium.estimators.targets import Targets, base_log_odds, is_soft
from harmonium.estimators.thresholds import decision_thresholds
from harmonium.parameters import ClassWeight, Count, Jobs, Seed, estimator, parameter
from harmonium.scikit_learn import Interval

MIN_MARGIN = 1e-2  # smaller ones, for examples of mean length 1, are rounding: libsvm's tolerance
BELOW_BOUND = 1 - 1e-9  # at the highest ν itself, libsvm finds no offset
N_TRIES = 10  # values of ν above the one asked for


class Examples(NamedTuple):
    """What a tag is learnt from: rows of the clips."""

    positives: Places
    negatives: Places


class Hyperplane(NamedTuple):
    """o = d + wx."""

    w: Doubles  # (D,)
    d: float
    nu: float  # the ν used; NaN for a constant score


@estimator
class SVMTagger(LinearTagger):
    """A linear ν-SVM for each tag, trained on equally many positive and negative clips.

    As positives it takes the clips to which users applied the tag most often, and as negatives
    those to which they applied it least often (generally never), up to ``max_examples`` of each.
    Its scores rank clips and say yes or no; they are not probabilities.

    ν bounds the share of examples inside the margin from above, and of support vectors from below.
    Not every ν is possible: above 2 min(n₊, n₋) / (n₊ + n₋), with n₊ positive and n₋ negative
    examples, the problem has no solution, and ν is lowered to that; if the classes overlap so much
    that there is no margin at ν, it is raised towards that bound, by tenths of the way, until there
    is a margin. ``nu_`` says what was used.

    A tag without positives or negatives, or whose positives and negatives have the same mean, gets
    a constant score, 1 if most of its labels are 1, else -1. A warning says how many there were.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    coef_, intercept_ : (n_tags, n_features) and (n_tags,) for features as given to ``fit``.
    nu_ : (n_tags,), the ν of each tag; NaN for a constant score.
    tags_ : names of the tags. thresholds_ : score from which ``predict`` gives a tag, by tag.
    n_features_in_, feature_names_in_, classes_ : as in scikit-learn.

    References
    ----------
    Schölkopf, Smola, Williamson, Bartlett (2000). New support vector algorithms. Neural
    Computation 12(5), 1207-1245.

    Examples
    --------
    >>> import numpy as np
    >>> from harmonium.estimators import SVMTagger
    >>> X = np.array([[-2.0], [-1.0], [0.0], [1.0], [2.0]])
    >>> Y = np.array([[0.0], [0.0], [np.nan], [1.0], [1.0]])
    >>> SVMTagger().fit(X, Y).decision_function([[-3.0], [3.0]]).ravel().round(1).tolist()
    [-2.0, 2.0]
    """

    nu: Annotated[float, Interval(Real, 0, 1, closed="right")] = parameter(
        "ν, in (0, 1].", default=0.5, kw_only=False
    )
    max_examples: Count = parameter("Maximum positives, and negatives, per tag.", default=200)
    balanced: bool = parameter(
        "Use as many positives as negatives; if False, up to ``max_examples`` of each.",
        default=True,
    )
    class_weight: ClassWeight | None = parameter(
        """Weights of absent and present labels among the examples: a mapping such as {0: 1, 1: 5}
        for all tags, a list with one for each tag, or "balanced".""",
        default=None,
    )
    n_jobs: Jobs | None = parameter("Threads that train; None: 1; -1: all cores.", default=None)
    random_state: Seed = parameter("Seed of the choice between equal counts.", default=None)

    _scores_are_probabilities = False

    def fit(
        self,
        X: Any,
        y: Any,
        eval_set: tuple[Any, Any] | None = None,
        *,
        counts: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Learn from clips and their tags.

        Parameters
        ----------
        X : (n_clips, n_features) features; array, pandas or polars frame.
        y : (n_clips, n_tags) labels: 0 absent, 1 present, NaN unknown. A frame's columns name the
            tags. Or (n_clips,) with two classes, for one tag. Examples have the labels of ``y``; an
            unknown label is never chosen. If ``y`` holds probabilities, as smoothed tags do, their
            ranking decides: the clips with the highest probabilities are the positives, those with
            the lowest the negatives, at most half of the known ones each.
        eval_set : (X, y) to set thresholds with, without probabilities; without it they are 0.
        counts : (n_clips, n_tags) how often users applied the tag to the clip, or the probability
            that they would: positives are chosen from the highest down, negatives from the lowest
            up. Without it, positives and negatives are chosen at random, as among equal counts.
            With it, ``y`` must not hold probabilities.
        sample_weight : (n_clips,) how much each clip counts as an example, in libsvm's sense: it
            bounds the example's coefficient. A clip with the weight 0 is never chosen; for all
            others, the choice does not depend on the weights.
        """
        self._validate_params()
        if self.decisions == "precision":
            raise DataError(
                "decisions='precision' needs probabilities, which an SVM does not have. Use 'f1' "
                "or 'prevalence', or another model."
            )
        rng = random_generator(self.random_state)
        X, targets, ranks = self._read_with_counts(X, y, counts, rng)
        validation = None if eval_set is None else self._read_eval_set(eval_set, targets)
        weights = self._weights(sample_weight, targets)
        counting = weights.of_clips(targets.Y)
        if counting is None:
            counting = np.ones((1, 1), np.float32)
        counting = np.broadcast_to(counting, targets.Y.shape)
        self._describe(X, targets, weights)
        may_be_chosen = np.where(counting > 0, targets.Y, np.float32(np.nan))
        examples = [
            choose_examples(labels, counts, self.max_examples, rng, balanced=self.balanced)
            for labels, counts in zip(may_be_chosen.T, ranks.T, strict=True)
        ]
        scaled = self._scaled(X)
        planes = Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(fit_hyperplane)(scaled, of_tag, self.nu, of_labels)
            for of_tag, of_labels in zip(examples, counting.T, strict=True)
        )
        self._keep(planes, may_be_chosen)
        n_constant = int(np.isnan(self.nu_).sum())
        if n_constant:
            warnings.warn(
                f"{n_constant} of {len(planes)} tags have no positive, no negative, or no "
                "difference between them: their scores are the same for every clip.",
                DataWarning,
                stacklevel=2,
            )
        self.thresholds_ = np.zeros(len(self.tags_))
        if validation is not None and not self._one_column:
            X_valid, Y_valid = validation
            valid_weights = weights.of_others(Y_valid)
            self.thresholds_ = self._matching_thresholds(X_valid, Y_valid, valid_weights)
        return self

    def _scores(self, X: Floats) -> Floats:
        return self._params.scores(X).astype(np.float32)

    def _read_with_counts(
        self, X: Any, y: Any, counts: Any, rng: Rng
    ) -> tuple[Numbers, Targets, Floats]:
        """Features, ternary labels, and the ranks of each tag's clips."""
        X, targets = self._read(X, y, like=None)
        if counts is None:
            ranks = targets.Y
            if is_soft(ranks):
                targets = targets._replace(Y=labels_by_count(ranks, self.max_examples, rng))
            return X, targets, ranks
        ranks = check_array(counts, dtype=np.float32, input_name="counts", accept_sparse="csr")
        if not isinstance(ranks, np.ndarray):
            ranks = ranks.toarray()
        if is_soft(targets.Y):
            raise DataError(
                "y must hold 0 (absent), 1 (present) or NaN (unknown) where counts are given. "
                "Got probabilities; pass them without counts."
            )
        if ranks.shape != targets.Y.shape:
            raise DataError(
                f"counts must have the shape of y, {targets.Y.shape}. Got {ranks.shape} instead."
            )
        return X, targets, ranks

    def _keep(self, planes: Sequence[Hyperplane], Y: Floats) -> None:
        """Store the hyperplanes; a tag without one gets a constant score of 1 or -1."""
        W = np.array([plane.w for plane in planes])
        d = np.array([plane.d for plane in planes])
        self.nu_ = np.array([plane.nu for plane in planes])
        constant = np.isnan(self.nu_)
        d[constant] = np.where(base_log_odds(Y[:, constant]) > 0, 1, -1)
        self._params = LinearParams(W=W.astype(np.float32), d=d.astype(np.float32))

    def _matching_thresholds(self, X: Numbers, Y: Floats, weights: Floats | None) -> Doubles:
        """As ``decisions`` says; found for σ(score), which is from 0 to 1."""
        scores = in_blocks(self._scores, self._scaled(X))
        P = expit(scores.astype(np.float64))
        return logit(decision_thresholds(self.decisions, self.precision, Y, P, weights))

    def _learnt(self) -> tuple[Arrays, dict[str, Any]]:
        arrays, about = super()._learnt()
        return {**arrays, "nu": self.nu_}, about

    def _restore(self, arrays: Arrays, about: dict[str, Any]) -> None:
        super()._restore(arrays, about)
        self.nu_ = typed_array(arrays, "nu")  # NaN for a constant
        if self.nu_.shape != self.tags_.shape or (~(self.nu_ > 0) & ~np.isnan(self.nu_)).any():
            raise ValueError("nu must be above 0, one for each tag")


def choose_examples(
    labels: Floats, counts: Floats, max_examples: int, rng: Rng, *, balanced: bool
) -> Examples:
    """Clips labelled 1 by falling count and clips labelled 0 by rising count; ties at random."""
    order = _by_falling_count(counts, rng)
    positives = order[labels[order] == 1][:max_examples]
    negatives = order[labels[order] == 0][::-1][:max_examples]
    if balanced:
        n = min(len(positives), len(negatives))
        return Examples(positives=positives[:n], negatives=negatives[:n])
    return Examples(positives=positives, negatives=negatives)


def labels_by_count(counts: Floats, max_examples: int, rng: Rng) -> Floats:
    """Ternary labels (N, C): 1 for the highest counts, 0 for the lowest, NaN for the others.

    A label 1 needs a count above the lowest, and a label 0 one below all those of label 1. A count
    of NaN is unknown and gets neither.
    """
    labels = np.full(counts.shape, np.nan, np.float32)
    for label, count in zip(labels.T, counts.T, strict=True):
        order = _by_falling_count(count, rng)
        order = order[~np.isnan(count[order])]
        n = min(max_examples, len(order) // 2)
        highest = order[:n]
        positives = highest[count[highest] > count[order].min(initial=np.inf)]
        lowest = order[len(order) - n :]
        negatives = lowest[count[lowest] < count[positives].min(initial=np.inf)]
        label[positives] = 1
        label[negatives] = 0
    return labels


def _by_falling_count(counts: Floats, rng: Rng) -> Places:
    order = rng.permutation(len(counts))
    return order[np.argsort(-counts[order], kind="stable")]


def fit_hyperplane(
    X: Table, examples: Examples, nu: float, weights: Floats | None = None
) -> Hyperplane:
    """The ν-SVM for these examples; a constant if no ν gives a margin.

    ``weights`` (N,) are what the labels of the tag count; without, all count alike.
    """
    n_positive = len(examples.positives)
    n_negative = len(examples.negatives)
    if n_positive and n_negative:
        chosen = np.concatenate(examples)
        rows = X[chosen].astype(np.float64)
        counts = np.ones(len(rows)) if weights is None else weights[chosen].astype(np.float64)
        signs = np.repeat([1, -1], [n_positive, n_negative])
        smaller_side = min(counts[:n_positive].sum(), counts[n_positive:].sum())
        highest = 2 * smaller_side / counts.sum() * BELOW_BOUND
        lowest = min(nu, highest)
        for nu_tried in lowest + (highest - lowest) * np.arange(N_TRIES + 1) / N_TRIES:
            plane = _nu_svm(rows, signs, nu_tried, counts)
            if plane is not None:
                return plane
    return Hyperplane(w=np.zeros(X.shape[1]), d=0.0, nu=np.nan)


def _nu_svm(X: Doubles, signs: NDArray[np.int_], nu: float, weights: Doubles) -> Hyperplane | None:
    """w = Σ_i α_i s_i x_i with s_i = ±1; None if there is no margin.

    The offset is free, so the examples may be centred; and they are scaled to unit length on
    average, because libsvm's tolerance is absolute. Precomputed products give the same solution as
    libsvm's own linear kernel, but faster.
    """
    mean = X.mean(axis=0)
    centred = X - mean
    scale = np.mean(centred**2) * X.shape[1]
    if scale == 0:
        return None
    try:
        svm = NuSVC(nu=nu, kernel="precomputed")
        svm.fit(centred @ centred.T / scale, signs, sample_weight=weights)
    except ValueError:  # coefficients that are not finite: the margin is 0
        return None
    coefficients = svm.dual_coef_[0]  # divided by the margin, so that Σ|·| = ν n / margin
    if nu * weights.sum() < MIN_MARGIN * np.abs(coefficients).sum():
        return None
    w = coefficients @ centred[svm.support_] / scale
    return Hyperplane(w=w, d=float(svm.intercept_[0] - w @ mean), nu=nu)
