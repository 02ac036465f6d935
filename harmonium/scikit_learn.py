"""scikit-learn's base classes and decorators, with types.

scikit-learn has no types. As far as type checkers and editors can tell, a class with an untyped
base takes any argument and has any attribute; so here is what they need to know of the bases.
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

    def available_if(check: Callable[[Any], bool]) -> Callable[[Function], Function]:
        """A method that exists only if the check holds."""

else:
    from sklearn.base import BaseEstimator as BaseEstimator
    from sklearn.base import ClassifierMixin as ClassifierMixin
    from sklearn.base import ClassNamePrefixFeaturesOutMixin as ClassNamePrefixFeaturesOutMixin
    from sklearn.base import OneToOneFeatureMixin as OneToOneFeatureMixin
    from sklearn.base import TransformerMixin as TransformerMixin
    from sklearn.utils.metaestimators import available_if as available_if
