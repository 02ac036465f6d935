"""Parameters of estimators, each written once: its type, default, allowed values and description.

From the annotated fields of a class and its bases, :func:`estimator` makes what scikit-learn wants
in three places: ``__init__``, which only stores them; ``_parameter_constraints``, by which ``fit``
checks them; and their part of the docstring, which replaces ``{parameters}``. ``{attributes}``
stands for the class's or its bases' ``_attributes``. Type checkers see ``__init__``, too.

>>> @estimator
... class Model:
...     '''{parameters}'''
...
...     rate: Positive = parameter("Step length.", default=0.1)
>>> Model(rate=0.2).rate
0.2
>>> print(Model.__doc__)
rate : float, default=0.1
    Step length.
"""

import inspect
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from numbers import Integral, Real
from textwrap import fill, indent
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
)

import numpy as np

from harmonium.scikit_learn import Interval, StrOptions


class KeyOf(StrOptions):
    """A key of a table, or another word; the table may grow."""

    def __init__(self, table: Mapping[str, Any], *others: str) -> None:
        super().__init__({*table, *others})
        self.table = table
        self.others = others

    def is_satisfied_by(self, value: Any) -> bool:
        """Whether it is a key now."""
        self.options = {*self.table, *self.others}
        return bool(super().is_satisfied_by(value))


_AT_LEAST_ONE = Interval(Integral, 1, None, closed="left")

# A type, and scikit-learn's constraints; one of them must hold.
Positive = Annotated[float, Interval(Real, 0, None, closed="neither")]
NotNegative = Annotated[float, Interval(Real, 0, None, closed="left")]
Share = Annotated[float, Interval(Real, 0, 1, closed="left")]
Count = Annotated[int, _AT_LEAST_ONE]
Jobs = Annotated[int, _AT_LEAST_ONE, Interval(Integral, None, -1, closed="right")]
Verbosity = Annotated[int, "verbose"]
Seed = Annotated[int | np.random.RandomState | None, "random_state"]
ClassWeight = Annotated[
    dict[Any, float] | list[dict[Any, float]] | str, dict, list, StrOptions({"balanced"})
]

Class = TypeVar("Class", bound=type)

WIDTH = 92  # of a description


def parameter(doc: str = "", *, default: Any, like: Any = None, kw_only: bool = True) -> Any:
    """A parameter of an estimator, whose allowed values follow from the annotation.

    Without a description, it has the one from the base class, or from the estimator that it is
    ``like``. It may be given by position if not ``kw_only``.
    """
    metadata = {"doc": " ".join(doc.split()), "like": like}
    return field(default=default, kw_only=kw_only, metadata=metadata)


@dataclass_transform(kw_only_default=True, field_specifiers=(parameter,))
def estimator(cls: Class) -> Class:
    """Make ``__init__``, the constraints and the docstring; a base with parameters needs it too."""
    cls = dataclass(kw_only=True, eq=False, repr=False)(cls)  # type: ignore[assignment]
    cls.__init__.__annotations__.clear()  # type: ignore[misc]  # the docstring reads better
    parameters = _in_order(cls)
    descriptions = _descriptions(cls)
    cls._descriptions = descriptions  # type: ignore[attr-defined]
    cls._parameter_constraints = {  # type: ignore[attr-defined]
        name: _constraints(found.type) for name, found in parameters.items()
    }
    if cls.__doc__:  # it is None under python -OO
        entries = [_entry(found, descriptions[name]) for name, found in parameters.items()]
        doc = inspect.cleandoc(cls.__doc__)
        doc = doc.replace("{parameters}", "\n".join(entries))
        attributes = inspect.cleandoc(getattr(cls, "_attributes", ""))
        cls.__doc__ = doc.replace("{attributes}", attributes)
    return cls


def _bases(cls: type) -> list[type]:
    """The class and its bases that have parameters of their own, the class first."""
    return [base for base in cls.__mro__ if "__dataclass_fields__" in vars(base)]


def _in_order(cls: Any) -> dict[str, "Field[Any]"]:
    """The parameters by name: those by position, then the class's own, then its bases'."""
    by_name = {found.name: found for found in fields(cls)}
    names: dict[str, None] = {}  # an ordered set
    for base in _bases(cls):
        for name in base.__annotations__:
            if name in by_name:
                names[name] = None
    ordered = sorted(names, key=lambda name: bool(by_name[name].kw_only))
    return {name: by_name[name] for name in ordered}


def _descriptions(cls: type) -> dict[str, str]:
    """What each parameter is, in the words of the class that says it last."""
    descriptions: dict[str, str] = {}
    for base in reversed(_bases(cls)):
        for found in fields(base):
            name = found.name
            if found.metadata["doc"]:
                descriptions[name] = found.metadata["doc"]
            elif found.metadata["like"]:
                descriptions[name] = found.metadata["like"]._descriptions[name]
    return descriptions


def _entry(found: "Field[Any]", description: str) -> str:
    """A parameter's part of the docstring."""
    kinds = " or ".join(_type_name(kind) for kind in _kinds(found.type))
    return f"{found.name} : {kinds}, default={found.default!r}\n" + indent(
        fill(description, width=WIDTH), " " * 4
    )


def _constraints(hint: Any) -> list[Any]:
    """What scikit-learn checks for a type; one of them must hold."""
    constraints = []
    for kind in _kinds(hint):
        if get_origin(kind) is Annotated:
            constraints += kind.__metadata__
        elif get_origin(kind) is Literal:
            constraints.append(StrOptions(set(get_args(kind))))
        elif kind is bool:
            constraints.append("boolean")
        else:
            constraints.append(None)
    return constraints


def _kinds(hint: Any) -> tuple[Any, ...]:
    """The types of which a parameter has one."""
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _type_name(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return ", ".join(repr(value) for value in get_args(kind))
    if get_origin(kind) is Annotated:
        return " or ".join(_type_name(inner) for inner in _kinds(kind.__origin__))
    return "None" if kind is NoneType else str(getattr(kind, "__name__", kind))
