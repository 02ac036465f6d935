"""What the reference on the site needs to know beyond the source: how our docstrings are written.

Griffe, which reads the docstrings for mkdocstrings, loads this (``extensions`` in mkdocs.yml).
"""

import inspect
import re
from importlib import import_module
from textwrap import indent
from typing import Any

import griffe

ROLE = re.compile(r":\w+:`~?([^`]+)`")
SECTION = re.compile(
    r"^(Parameters|Attributes|Returns|Yields)\n-+\n(.*?)(?=^\w[^\n]*\n---|\Z)", re.M | re.S
)
ENTRY = re.compile(r"^(\S.*?) : (?!.*, default=)", re.M)
COMMENT = re.compile(r".*\S  # (.+)")


def readable(text: str) -> str:
    """The docstring in numpydoc's form.

    Ours describe a parameter after its name, where numpydoc has the type, and describe returns in
    sentences.
    """

    def section(found: re.Match[str]) -> str:
        name, body = found.groups()
        if name in ("Returns", "Yields"):  # a name without a type has that of the signature
            entries = f"result :\n{indent(body, '    ')}"
        else:
            entries = ENTRY.sub(r"\1\n    ", body)
        return f"{name}\n{'-' * len(name)}\n{entries}"

    return ROLE.sub(r"`\1`", SECTION.sub(section, text))


class OurDocstrings(griffe.Extension):
    """Docstrings as numpydoc has them; those of estimators as they are at run time."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite a docstring; an estimator's parameters are not also members.

        A record's field is described by the comment after it.
        """
        bare = obj.docstring is None and isinstance(obj, griffe.Attribute)
        if bare and (comment := COMMENT.fullmatch("".join(obj.lines[-1:]))):
            said = comment[1][0].upper() + comment[1][1:]
            obj.docstring = griffe.Docstring(f"{said}.", parent=obj)
        if obj.docstring is None:
            return
        text = obj.docstring.value
        if isinstance(obj, griffe.Class) and "estimator" in [str(d.value) for d in obj.decorators]:
            made = getattr(import_module(obj.module.path), obj.name)
            text = inspect.cleandoc(made.__doc__ or text)
            for name in made.__dataclass_fields__:
                obj.members.pop(name, None)
        obj.docstring.value = readable(text)
