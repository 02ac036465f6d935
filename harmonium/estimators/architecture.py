"""What a model is without its parameters: all that training and prediction need to know of it.

An estimator makes one from its settings. Parameters come as arguments, so that the same functions
serve a fitted model, its members, and parameters in the middle of training. JAX is loaded when it
is first needed.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from harmonium.arrays import Floats, Rng
from harmonium.estimators.tables import ClipTable, Table

if TYPE_CHECKING:
    from harmonium.rbm.descent import Penalty
    from harmonium.rbm.gradients import Gradient

Parameters: TypeAlias = Any  # a NamedTuple of arrays, such as `harmonium.rbm.Params`

Predictor: TypeAlias = tuple[Callable[..., Any], Any]
"""A function of options, parameters, X and observed tags that JAX can trace; and its options."""


@dataclass(frozen=True, kw_only=True)
class Architecture(ABC):
    """A model without its parameters."""

    l1: float  # strength of the ℓ1 penalty on U and W
    l2: float  # and of ℓ2
    l2_tags: float | None = None  # of ℓ2 on U; None: as on W

    completes: ClassVar[bool] = False  # whether it predicts tags from other tags, too

    @property
    def judged_by_completion(self) -> bool:
        """Whether early stopping also asks with half of the tags observed."""
        return False

    @abstractmethod
    def start(self, rng: Rng, clips: ClipTable) -> Parameters:
        """Parameters to start training from, in single precision."""

    @abstractmethod
    def gradient(self, *, soft: bool) -> "Gradient":
        """What to descend; ``soft`` if some labels are probabilities."""

    @abstractmethod
    def probabilities(
        self, params: Parameters, X: Floats, observed: Floats | None = None
    ) -> Floats:
        """p(y_j = 1 | x, the observed tags), (N, C), from scaled features."""

    @abstractmethod
    def quick_probabilities(
        self, params: Parameters, X: Floats, observed: Floats | None = None
    ) -> Floats:
        """The same during training, only as exact as a ranking needs."""

    @abstractmethod
    def predictor(self) -> Predictor | None:
        """The quick probabilities as a function that JAX can trace; None if they have no such."""

    @abstractmethod
    def log_odds(self) -> Predictor:
        """The log-odds of the tags as a function that JAX can differentiate."""

    def inputs(self, X: Table) -> tuple[Table, Any]:
        """u and a, what conditions the hidden units and the tags; None: nothing does the tags."""
        return X, None

    def check(self, params: Parameters) -> None:  # noqa: B027  # most models can
        """Refuse, before training, a model that could not predict."""

    def numbers_per_clip(self, params: Parameters) -> int:
        """Numbers in the largest array that prediction needs for one clip."""
        return len(params.d)

    def penalty(self, params: Parameters) -> "Penalty":
        """ℓ1 and ℓ2 on the weights U and W."""
        from harmonium.rbm.descent import Penalty

        l2_of_u = self.l2 if self.l2_tags is None else self.l2_tags

        def strengths(*, u: float, w: float) -> Parameters:
            by_name = {"U": u, "W": w}
            return type(params)(*(np.float32(by_name.get(name, 0)) for name in params._fields))

        return Penalty(
            l1=strengths(u=self.l1, w=self.l1),
            l2=strengths(u=l2_of_u, w=self.l2),
        )


@dataclass(frozen=True, kw_only=True)
class NetworkArchitecture(Architecture):
    """A network whose tags are independent given x: only the features predict them."""

    @abstractmethod
    def logits(self) -> Callable[..., Any]:
        """(params, x) → log-odds (B, C), which JAX can trace."""

    def gradient(self, *, soft: bool) -> "Gradient":
        """Of the cross-entropy."""
        from harmonium.rbm.other_models import CrossEntropy

        return CrossEntropy(self.logits())

    def predictor(self) -> Predictor:
        """σ of the logits."""
        from harmonium.rbm.other_models import network_probabilities

        return network_probabilities, self.logits()

    def log_odds(self) -> Predictor:
        """The logits."""
        from harmonium.rbm.slopes import network_log_odds

        return network_log_odds, self.logits()

    def quick_probabilities(
        self, params: Parameters, X: Floats, observed: Floats | None = None
    ) -> Floats:
        """p(y_j = 1 | x), in single precision."""
        from harmonium.rbm.inference import predicted

        return np.asarray(predicted(self.predictor(), params, X))


def single_precision(kind: Any, *arrays: Any) -> Parameters:
    """A named tuple of these arrays in single precision."""
    return kind(*(np.asarray(array, np.float32) for array in arrays))


def numpy_params(params: Parameters) -> Parameters:
    """The parameters copied to NumPy arrays."""
    return type(params)(*(np.array(array) for array in params))


def stacked_members(members: list[Parameters]) -> Parameters:
    """The parameters of several members, as arrays with an additional first axis."""
    arrays = zip(*members, strict=True)
    return type(members[0])(*(np.stack(of_members) for of_members in arrays))


def member_of(stack: Parameters, number: int) -> Parameters:
    """The parameters of one member."""
    return type(stack)(*(array[number] for array in stack))
