"""Parameters of estimators, each written once: its type, default, allowed values and description.

From the annotated fields of a class and its bases, :func:`estimator` makes what scikit-learn wants
in three places: ``__init__``, which only stores them; ``_parameter_constraints``, by which ``fit``
checks them; and their part of the docstring, which replaces ``{parameters}``. ``{attributes}``
stands for the class's or its bases' ``_attributes``.

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
from dataclasses import dataclass, field, fields
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

from sklearn.utils._param_validation import Interval, StrOptions

# A type, and scikit-learn's constraints; one of them must hold.
Positive = Annotated[float, Interval(Real, 0, None, closed="neither")]
NotNegative = Annotated[float, Interval(Real, 0, None, closed="left")]
Share = Annotated[float, Interval(Real, 0, 1, closed="left")]
Count = Annotated[int, Interval(Integral, 1, None, closed="left")]
Jobs = Annotated[int, *get_args(Count)[1:], Interval(Integral, None, -1, closed="right")]
Verbosity = Annotated[int, "verbose"]
Seed = Annotated[Any, "random_state"]

Class = TypeVar("Class", bound=type)


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
    bases = [base for base in cls.__mro__ if "__dataclass_fields__" in vars(base)]
    found = {f.name: f for f in fields(cls)}
    docs: dict[str, str] = {}
    for f in (f for base in reversed(bases) for f in fields(base)):
        like, doc = f.metadata["like"], f.metadata["doc"]
        docs[f.name] = doc or (like._descriptions[f.name] if like else docs[f.name])
    # the class's own come first, then its bases'
    names = dict.fromkeys(n for base in bases for n in base.__annotations__ if n in found)
    ordered = sorted((found[name] for name in names), key=lambda f: bool(f.kw_only))
    cls._descriptions = docs  # type: ignore[attr-defined]
    cls._parameter_constraints = {  # type: ignore[attr-defined]
        f.name: [rule for kind in _kinds(f.type) for rule in _rules(kind)] for f in ordered
    }
    if cls.__doc__:  # it is None under python -OO
        text = "\n".join(
            f"{f.name} : {' or '.join(map(_type_name, _kinds(f.type)))}, default={f.default!r}\n"
            + indent(fill(docs[f.name], width=92), " " * 4)
            for f in ordered
        )
        attributes = inspect.cleandoc(getattr(cls, "_attributes", ""))
        doc = inspect.cleandoc(cls.__doc__)
        cls.__doc__ = doc.replace("{parameters}", text).replace("{attributes}", attributes)
    return cls


def _kinds(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _rules(kind: Any) -> list[Any]:
    """What scikit-learn checks for a type."""
    if get_origin(kind) is Annotated:
        return list(kind.__metadata__)
    if get_origin(kind) is Literal:
        return [StrOptions(set(get_args(kind)))]
    return ["boolean" if kind is bool else None]


def _type_name(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return ", ".join(repr(value) for value in get_args(kind))
    kind = kind.__origin__ if get_origin(kind) is Annotated else kind
    return "None" if kind is NoneType else str(getattr(kind, "__name__", kind))
