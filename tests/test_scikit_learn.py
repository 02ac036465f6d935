"""scikit-learn's private parts are used in one module, and are as they were."""

import ast
from numbers import Integral, Real

import numpy as np
import pytest
from places import PROJECT
from sklearn.base import BaseEstimator

from harmonium.scikit_learn import Interval, StrOptions, parse_arff

PRIVATE = {"sklearn.utils._param_validation", "sklearn.externals"}


def imported_modules(path):
    """What a file imports, as full names; of `from a import b`, both a and a.b."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def is_private(name):
    parts = name.split(".")
    return parts[0] == "sklearn" and (
        "externals" in parts or any(part.startswith("_") for part in parts)
    )


def test_private_parts_are_used_in_one_module():
    users = set()
    for folder in ("harmonium", "beetsplug", "recipes", "benchmarks"):
        for path in (PROJECT / folder).rglob("*.py"):
            if any(is_private(name) for name in imported_modules(path)):
                users.add(path.relative_to(PROJECT).as_posix())
    assert users == {"harmonium/scikit_learn.py"}


@pytest.mark.parametrize(
    ("value", "allowed"), [(0, False), (1, True), (2.5, True), (np.float32(3), True), ("1", False)]
)
def test_intervals_of_numbers(value, allowed):
    assert Interval(Real, 0, None, closed="neither").is_satisfied_by(value) == allowed


def test_constraints_are_worded_by_scikit_learn():
    class Model(BaseEstimator):
        _parameter_constraints = {  # noqa: RUF012
            "size": [Interval(Integral, 1, None, closed="left")],
            "way": [StrOptions({"up", "down"})],
        }

        def __init__(self, size=1, way="up"):
            self.size = size
            self.way = way

    Model()._validate_params()
    with pytest.raises(ValueError, match=r"'size' parameter of Model must be .*\[1, inf\).*Got 0"):
        Model(size=0)._validate_params()
    with pytest.raises(ValueError, match=r"'way' parameter of Model must be a str among.*'left'"):
        Model(way="left")._validate_params()


@pytest.mark.parametrize(
    ("data", "is_sparse", "rows"),
    [
        ("1.5,b\n?,a", False, [[1.5, 1], [None, 0]]),
        ("{0 1.5, 1 b}\n{}", True, [{0: 1.5, 1: 1}, {}]),
    ],
)
def test_arff_files(data, is_sparse, rows):
    text = f"@relation r\n@attribute x numeric\n@attribute c {{a,b}}\n@data\n{data}\n"
    parsed = parse_arff(text, is_sparse=is_sparse)
    assert parsed["attributes"] == [("x", "NUMERIC"), ("c", ["a", "b"])]
    assert parsed["data"] == rows
