"""Parameters of estimators, each written once: its type, default, allowed values and description.

A class decorated with :func:`estimator` gets from its annotated fields, and from those of its
bases, what scikit-learn wants in three places: ``__init__``, which only stores them;
``_parameter_constraints``, by which ``fit`` checks them; and their part of the docstring, in the
place of ``{parameters}``.

>>> @estimator
... class Model:
...     '''{parameters}'''
...
...     rate: float = parameter(POSITIVE, default=0.1, doc="Step length.")
>>> Model(rate=0.2).rate
0.2
>>> print(Model.__doc__)
rate : float, default=0.1
    Step length.
"""

import inspect
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from textwrap import fill
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, dataclass_transform, get_args, get_origin

from sklearn.utils._param_validation import Interval, StrOptions

POSITIVE = Interval(Real, 0, None, closed="neither")
NOT_NEGATIVE = Interval(Real, 0, None, closed="left")
SHARE = Interval(Real, 0, 1, closed="left")
COUNT = Interval(Integral, 1, None, closed="left")
JOBS = (COUNT, Interval(Integral, None, -1, closed="right"))

Class = TypeVar("Class", bound=type)


def parameter(
    *allowed: Any, default: Any, doc: str = "", like: Any = None, kw_only: bool = True
) -> Any:
    """A parameter of an estimator.

    Parameters
    ----------
    allowed : constraints of scikit-learn, one of which must hold. ``bool``, ``None`` and the values
        of a ``Literal`` need none: they follow from the annotation.
    default : what it is unless it is given.
    doc : its description. Without one, it and ``allowed`` are those of the base class.
    like : another estimator whose description and ``allowed`` of this name are used.
    kw_only : False if it may be given by position.
    """
    about = {"allowed": allowed, "doc": " ".join(doc.split())} if doc else None
    return field(default=default, kw_only=kw_only, metadata={"like": like} if like else about)


@dataclass_transform(kw_only_default=True, field_specifiers=(parameter,))
def estimator(cls: Class) -> Class:
    """Make ``__init__``, the constraints and the docstring; a base with parameters needs it too."""
    cls = dataclass(kw_only=True, eq=False, repr=False)(cls)  # type: ignore[assignment]
    bases = [base for base in cls.__mro__ if "__dataclass_fields__" in vars(base)]
    about = {f.name: f.metadata for base in reversed(bases) for f in fields(base) if f.metadata}
    likes = {name: one["like"] for name, one in about.items() if "like" in one}
    about |= {name: other._declarations[name] for name, other in likes.items()}
    found = {f.name: f for f in fields(cls)}
    # those of the class itself come first, then those of its bases
    names = dict.fromkeys(n for base in bases for n in base.__annotations__ if n in found)
    ordered = sorted((found[name] for name in names), key=lambda f: bool(f.kw_only))
    cls._declarations = about  # type: ignore[attr-defined]
    cls._parameter_constraints = {  # type: ignore[attr-defined]
        f.name: _constraints(f.type, about[f.name]["allowed"]) for f in ordered
    }
    if cls.__doc__:  # there is none under python -OO
        text = "\n".join(_entry(f.name, f.type, f.default, about[f.name]["doc"]) for f in ordered)
        cls.__doc__ = inspect.cleandoc(cls.__doc__).replace("{parameters}", text)
    return cls


def _kinds(hint: Any) -> tuple[Any, ...]:
    """The members of a union, or the type itself."""
    return get_args(hint) if isinstance(hint, UnionType) else (hint,)


def _constraints(hint: Any, allowed: tuple[Any, ...]) -> list[Any]:
    """What scikit-learn checks: what is given, and what follows from the type."""
    rules = list(allowed)
    for kind in _kinds(hint):
        if get_origin(kind) is Literal:
            rules.append(StrOptions(set(get_args(kind))))
        elif kind in (bool, NoneType):
            rules.append("boolean" if kind is bool else None)
    return rules


def _entry(name: str, hint: Any, default: Any, doc: str) -> str:
    """The lines of a parameter in a docstring."""
    kinds = " or ".join(map(_type_name, _kinds(hint)))
    body = fill(doc, width=96, initial_indent=" " * 4, subsequent_indent=" " * 4)
    return f"{name} : {kinds}, default={default!r}\n{body}"


def _type_name(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return ", ".join(repr(value) for value in get_args(kind))
    return "None" if kind is NoneType else str(getattr(kind, "__name__", kind))
