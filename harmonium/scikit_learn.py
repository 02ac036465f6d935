"""What is used of scikit-learn's base classes, decorators and private parts, with types.

scikit-learn has no types. As far as type checkers and editors can tell, a class with an untyped
base takes any argument and has any attribute; so here is what they need to know of the bases.

Three things used here are private, and any release of scikit-learn may change them: the constraints
of parameters (``sklearn.utils._param_validation``), ``BaseEstimator._validate_params``, which words
their errors, and its reader of ARFF files (``sklearn.externals._arff``). No other module uses a
private part; a test says so, and checks that these are still what they were.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal, Self, TypeVar

    from numpy.typing import NDArray

    Function = TypeVar("Function", bound=Callable[..., Any])

    class BaseEstimator:
        """What has parameters."""

        n_features_in_: int
        feature_names_in_: NDArray[Any]

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            """The parameters by name."""

        def set_params(self, **params: Any) -> Self:
            """Change parameters."""

        def set_fit_request(self, **requested: bool | str | None) -> Self:
            """Which metadata a pipeline passes on to ``fit``."""

        def __sklearn_tags__(self) -> Any:
            """What scikit-learn's checks expect."""

        def _validate_params(self) -> None:
            """Check the parameters against ``_parameter_constraints``."""

    class ClassifierMixin:
        """What classifies."""

    class TransformerMixin:
        """What transforms."""

        def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> NDArray[Any]:
            """``fit`` and ``transform``."""

        def set_output(
            self, *, transform: Literal["default", "pandas", "polars"] | None = None
        ) -> Self:
            """What ``transform`` returns."""

    class ClassNamePrefixFeaturesOutMixin:
        """What names its outputs by its class."""

        def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
            """The names of the outputs."""

    class OneToOneFeatureMixin(ClassNamePrefixFeaturesOutMixin):
        """What names its outputs by its inputs."""

    class Interval:
        """The numbers of a type between two limits."""

        def __init__(
            self,
            type: type,
            left: float | None,
            right: float | None,
            *,
            closed: Literal["left", "right", "both", "neither"],
        ) -> None:
            """The type, and the limits; None is no limit."""

    class StrOptions:
        """One of several strings."""

        options: set[str]

        def __init__(self, options: set[str], *, deprecated: set[str] | None = None) -> None:
            """The strings."""

        def is_satisfied_by(self, val: Any) -> bool:
            """Whether a value is one of them."""

    class HasMethods:
        """Objects with some methods."""

        def __init__(self, methods: list[str]) -> None:
            """The names of the methods."""

    def available_if(check: Callable[[Any], bool]) -> Callable[[Function], Function]:
        """A method that exists only if the check holds."""

else:
    from sklearn.base import BaseEstimator as BaseEstimator
    from sklearn.base import ClassifierMixin as ClassifierMixin
    from sklearn.base import ClassNamePrefixFeaturesOutMixin as ClassNamePrefixFeaturesOutMixin
    from sklearn.base import OneToOneFeatureMixin as OneToOneFeatureMixin
    from sklearn.base import TransformerMixin as TransformerMixin
    from sklearn.utils._param_validation import HasMethods as HasMethods
    from sklearn.utils._param_validation import Interval as Interval
    from sklearn.utils._param_validation import StrOptions as StrOptions
    from sklearn.utils.metaestimators import available_if as available_if


def parse_arff(text: str, *, is_sparse: bool) -> dict[str, Any]:
    """The ``attributes`` of an ARFF file, and its ``data``: a list per row, or a dict if sparse."""
    from sklearn.externals import _arff

    return_type = _arff.LOD if is_sparse else _arff.DENSE
    parsed: dict[str, Any] = _arff.load(text, encode_nominal=True, return_type=return_type)
    return parsed
