"""How features are scaled before a model sees them: learnt from the training clips, and stored.

NumPy is enough to import this, and to scale.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np

from harmonium.arrays import Arrays, Doubles, Floats, Numbers
from harmonium.errors import DataError
from harmonium.estimators.model_files import finite_array
from harmonium.estimators.tables import blocks, is_sparse

ScaleFeatures = Literal["auto", "standard", "quantile", "idf", "none"]

NORMAL = np.linspace(-3.0, 3.0, 61)  # standard normal values that quantiles are mapped to
MAX_SCALED = 1e30  # of a feature; sums of larger ones would overflow single precision
MAX_TO_SCALE_BY = 10_000  # the most clips used to choose a scaling and its quantiles
MAX_DENSE = 2**24  # numbers of a sparse table that quantiles are taken from
MOSTLY_ZERO = 0.8  # share of zeros above which features count as words
HEAVY_TAILS = 5.0  # median kurtosis above which features go through their quantiles; normal: 3
ROUNDING = 1e-9  # relative deviation up to which a feature counts as constant


class Scaling(NamedTuple):
    """x ← (x - mean) / scale, by feature; then x ← x / ‖x‖, by clip, if the norm should be 1.

    With knots, the quantiles of each feature are first mapped to those of the normal distribution:
    a feature at ``knots[i]`` becomes ``NORMAL[i]``, with linear interpolation in between. Mean and
    scale then apply to the mapped features.
    """

    mean: Doubles  # (D,)
    scale: Doubles  # (D,), never 0
    unit_norm: bool = False
    knots: Doubles | None = None  # (Q, D), rising

    @property
    def linear(self) -> bool:
        """Whether weights for scaled features can be turned into weights for raw features."""
        return not self.unit_norm and self.knots is None

    @property
    def is_bag_of_words(self) -> bool:
        """Whether features are weighted like words: not centred, and some more than others."""
        return self.unit_norm and not self.mean.any() and bool((self.scale != 1).any())

    def __call__(self, X: Any) -> Floats:
        """Scaled in double precision, returned in single; shape (N, D). A row of zeros stays.

        The result is an array even if X is sparse.
        """
        result = np.empty(X.shape, np.float32)
        first = 0
        for block in blocks(X):  # all of it in double precision would take four times the memory
            dense = block.toarray() if is_sparse(block) else block
            scaled = (self.mapped(dense) - self.mean) / self.scale
            self._refuse_extreme(scaled, dense, first)
            if self.unit_norm:
                norm = np.linalg.norm(scaled, axis=1, keepdims=True)
                scaled /= np.where(norm > 0, norm, 1.0)
            result[first : first + len(dense)] = scaled
            first += len(dense)
        return result

    def _refuse_extreme(self, scaled: Numbers, block: Numbers, first: int) -> None:
        """An error if a number is too far from the training data to compute with."""
        extreme = np.argwhere(~(np.abs(scaled) <= MAX_SCALED))
        if len(extreme):
            row, column = extreme[0]
            raise DataError(
                f"X[{first + row}, {column}] is {block[row, column]:g}, too far from the "
                f"training data (mean {self.mean[column]:g}, scale {self.scale[column]:g}) to "
                "compute with. Check the units of the features, or scale them."
            )

    def mapped(self, X: Numbers) -> Numbers:
        """The features mapped by their quantiles, (N, D); equal quantiles map to their middle."""
        if self.knots is None:
            return X
        mapped = np.empty(X.shape)
        for j, knots in enumerate(self.knots.T):
            from_below = np.interp(X[:, j], knots, NORMAL)
            from_above = -np.interp(-X[:, j], -knots[::-1], NORMAL)
            mapped[:, j] = (from_below + from_above) / 2
        return mapped

    def inverse(self, X: Floats) -> Doubles:
        """Features from scaled ones, except for their norm."""
        features = X.astype(np.float64) * self.scale + self.mean
        if self.knots is None:
            return features
        columns = zip(features.T, self.knots.T, strict=True)
        return np.stack([np.interp(x, NORMAL, knots) for x, knots in columns], axis=1)

    def arrays(self) -> Arrays:
        """The scaling in the form of a model file; the description says whether the norm is 1."""
        arrays: Arrays = {"scaling.mean": self.mean, "scaling.scale": self.scale}
        if self.knots is not None:
            arrays["scaling.knots"] = self.knots
        return arrays


def stored_scaling(arrays: Arrays, about: Mapping[str, Any]) -> Scaling:
    """The scaling among the arrays of a model file."""
    mean = finite_array(arrays, "scaling.mean")
    scale = finite_array(arrays, "scaling.scale")
    knots = None
    if "scaling.knots" in arrays:
        knots = finite_array(arrays, "scaling.knots")
        if knots.shape != (len(NORMAL), *mean.shape) or (np.diff(knots, axis=0) < 0).any():
            raise ValueError("scaling.knots must be rising quantiles of each feature")
    if mean.ndim != 1 or scale.shape != mean.shape:
        raise ValueError(f"the scaling has the shapes {mean.shape} and {scale.shape}")
    if not (scale > 0).all():
        raise ValueError("scaling.scale must be above 0")
    return Scaling(
        mean=mean,
        scale=scale,
        unit_norm=about.get("unit_norm", False) is True,
        knots=knots,
    )


def scaling_of(X: Any, kind: ScaleFeatures, weights: Doubles | None = None) -> Scaling:
    """The scaling of this kind for these features; "auto" chooses one.

    ``weights`` of the clips count in means, variances and words. Quantiles are those of the clips
    with a weight above 0.
    """
    n_features = X.shape[1]
    if kind == "none" or n_features == 0:
        return _unscaled(n_features)
    if kind == "standard":
        return standardising(X, weights)
    rows = np.arange(X.shape[0]) if weights is None else np.flatnonzero(weights)
    rows = np.sort(np.random.default_rng(0).permutation(rows)[:MAX_TO_SCALE_BY])
    sample = X[rows]
    of_rows = np.ones(len(rows)) if weights is None else weights[rows]
    if kind == "idf" or (kind == "auto" and are_words(sample)):
        return _by_rarity(sample, of_rows)
    if is_sparse(sample):
        sample = sample[: max(2, MAX_DENSE // n_features)].toarray()
    sample = sample.astype(np.float64)
    if kind == "auto":
        kind = best_scaling(sample)
    if kind == "quantile":
        return _by_quantiles(sample)
    return standardising(X, weights)


def are_words(X: Any) -> bool:
    """Whether most numbers are 0 and none is negative; X may be sparse."""
    values = X.data if is_sparse(X) else X
    share_of_zeros = 1 - np.count_nonzero(values) / (X.shape[0] * X.shape[1])
    return bool(share_of_zeros > MOSTLY_ZERO and values.min(initial=0.0) >= 0)


def best_scaling(X: Doubles) -> Literal["standard", "quantile", "idf"]:
    """What "auto" means for these features.

    Most numbers 0 and none negative: words. Heavy tails, a median kurtosis above `HEAVY_TAILS`:
    quantiles. docs/model.md compares this with what searches chose on validation folds.
    """
    if are_words(X):
        return "idf"
    centred = X - X.mean(axis=0)
    centred /= np.maximum(np.abs(centred).max(axis=0), np.finfo(np.float64).tiny)
    variance = np.square(centred).mean(axis=0)
    varies = variance > 0
    if not varies.any():
        return "standard"
    kurtosis = np.mean(centred[:, varies] ** 4, axis=0) / variance[varies] ** 2
    return "quantile" if np.median(kurtosis) > HEAVY_TAILS else "standard"


def standardising(X: Any, weights: Doubles | None = None) -> Scaling:
    """Zero mean, and a variance of 1 / D for each of the D features.

    A clip's vector then has a norm of about 1 whatever D is, as in the paper: the input to a hidden
    unit, and how much one step changes it, do not grow with the number of features.
    """

    if is_sparse(X):
        return _standardising_sparse(X, weights)

    def mean_of(function: Callable[[Doubles], Doubles]) -> Doubles:
        total = np.zeros(X.shape[1])
        first = 0
        for block in blocks(X):
            values = function(block.astype(np.float64))
            if weights is not None:
                values *= weights[first : first + len(block), None]
            total = total + values.sum(axis=0)
            first += len(block)
        return total / (len(X) if weights is None else weights.sum())

    first_clip = 0 if weights is None else int(np.flatnonzero(weights)[0])

    peak = np.max([np.abs(block).max(axis=0) for block in blocks(X)], axis=0).astype(np.float64)
    peak[peak == 0] = 1.0
    middle = mean_of(lambda x: x / peak)  # the squares of x itself could over- or underflow
    deviation = np.sqrt(mean_of(lambda x: np.square(x / peak - middle)))
    mean = mean_of(lambda x: x)
    return _from_moments(mean, deviation, peak, first_clip=X[first_clip])


def _from_moments(
    mean: Doubles, deviation: Doubles, peak: Doubles, *, first_clip: Numbers
) -> Scaling:
    """By means, and deviations relative to the largest absolute values."""
    # a feature that is constant except for rounding must not be blown up: it becomes 0
    constant = deviation <= ROUNDING
    return Scaling(
        mean=np.where(constant, first_clip, mean),
        scale=peak * np.where(constant, 1.0, deviation) * np.sqrt(len(mean)),
    )


def _standardising_sparse(X: Any, weights: Doubles | None) -> Scaling:
    """The same from the numbers that are stored; all others are 0."""
    n_features = X.shape[1]
    if weights is None:
        weights = np.ones(X.shape[0])
    of_numbers = np.repeat(weights, np.diff(X.indptr))
    total = weights.sum()

    def sums(values: Doubles) -> Doubles:
        totals = np.bincount(X.indices, of_numbers * values, minlength=n_features)
        return totals.astype(np.float64)

    peak = np.zeros(n_features)
    np.maximum.at(peak, X.indices, np.abs(X.data))
    peak[peak == 0] = 1.0
    relative = X.data / peak[X.indices]
    middle = sums(relative) / total
    of_zeros = (total - sums(np.ones(X.nnz))) * middle**2
    variance = (sums((relative - middle[X.indices]) ** 2) + of_zeros) / total
    first_clip = X[[int(np.flatnonzero(weights)[0])]].toarray()[0]
    deviation = np.sqrt(np.maximum(variance, 0.0))
    return _from_moments(middle * peak, deviation, peak, first_clip=first_clip)


def _unscaled(n_features: int) -> Scaling:
    return Scaling(mean=np.zeros(n_features), scale=np.ones(n_features))


def _by_rarity(X: Any, weights: Doubles) -> Scaling:
    """Inverse document frequency: the rarer a word, the more it counts; clips have a norm of 1."""
    holders = np.maximum(weights @ (X != 0), 1)
    scale = 1 / np.log1p(weights.sum() / holders)
    return Scaling(mean=np.zeros(X.shape[1]), scale=scale, unit_norm=True)


def _by_quantiles(X: Doubles) -> Scaling:
    """Normal by quantiles, then standardised."""
    from scipy.special import ndtr

    knots = np.quantile(X, ndtr(NORMAL), axis=0)
    mapped = _unscaled(X.shape[1])._replace(knots=knots).mapped(X)
    return standardising(mapped)._replace(knots=knots)
