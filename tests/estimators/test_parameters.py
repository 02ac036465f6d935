"""Parameters of estimators: written once, and known to the constructor, the checks and help()."""

import inspect
from typing import Annotated

import pytest
from sklearn.base import BaseEstimator, clone

from harmonium import estimators
from harmonium.estimators.parameters import Count, Positive, estimator, parameter


@estimator
class Base(BaseEstimator):
    """A base."""

    rate: Positive = parameter("Step length.", default=0.1)
    kind: Annotated[str, str] = parameter("Its kind.", default="a")


@estimator
class Model(Base):
    """A model.

    {parameters}
    """

    size: Count | None = parameter("Its size.", default=3, kw_only=False)
    rate: Positive = parameter(default=0.5)


EVERY = [getattr(estimators, name) for name in estimators.__all__]
each = pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind.__name__)


def test_a_class_may_change_a_default_alone():
    assert Base().rate == 0.1
    model = Model(5)
    assert (model.size, model.rate, model.kind) == (5, 0.5, "a")
    assert clone(model.set_params(kind="b")).get_params() == {"kind": "b", "rate": 0.5, "size": 5}
    with pytest.raises(TypeError, match="positional"):
        Model(5, 0.5)
    with pytest.raises(ValueError, match="The 'rate' parameter of Model must be a float in"):
        Model(rate=-1)._validate_params()
    Model(None)._validate_params()
    assert Model.__doc__ == (
        "A model.\n\nsize : int or None, default=3\n    Its size.\n"
        "rate : float, default=0.5\n    Step length.\nkind : str, default='a'\n    Its kind."
    )


@each
def test_help_describes_every_parameter_with_its_default(kind):
    text = kind.__doc__
    for name, given in inspect.signature(kind).parameters.items():
        assert f"\n{name} : " in text
        line = next(line for line in text.splitlines() if line.startswith(f"{name} : "))
        assert line.endswith(f"default={given.default!r}")


@each
def test_every_parameter_is_checked(kind):
    for name in kind().get_params():
        with pytest.raises(ValueError, match=f"The '{name}' parameter of {kind.__name__} must be"):
            kind(**{name: object()})._validate_params()
    kind()._validate_params()


@each
def test_the_constructor_stores_what_it_is_given(kind):
    marks = {name: object() for name in inspect.signature(kind).parameters}
    assert vars(kind(**marks)) == marks
