"""Every test that docs/reliability.md names is there, and every row names one."""

import ast
import re

import pytest
from places import DOCS, PROJECT

TEXT = (DOCS / "reliability.md").read_text(encoding="utf-8")
NAMED = re.findall(r"`(tests/[\w/]+\.py)::([\w:]+)`", TEXT)


def names(file: str) -> set[str]:
    """The tests of a file, with their classes as pytest writes them."""
    found = set()
    for node in ast.parse((PROJECT / file).read_text(encoding="utf-8")).body:
        inside = node.body if isinstance(node, ast.ClassDef) else [node]
        before = f"{node.name}::" if isinstance(node, ast.ClassDef) else ""
        found |= {before + one.name for one in inside if isinstance(one, ast.FunctionDef)}
    return found


@pytest.mark.parametrize(("file", "name"), NAMED, ids=[name for _, name in NAMED])
def test_the_test_exists(file, name):
    assert (PROJECT / file).is_file()
    assert name.rpartition("::")[2].startswith("test_")
    assert name in names(file)


def test_every_row_has_a_test():
    rows = [line for line in TEXT.splitlines() if line.startswith("|")]
    rows = [line for line in rows if not line.startswith(("| fault |", "|---"))]
    assert len(rows) > 50
    assert [line for line in rows if "::test_" not in line.split("|")[-2]] == []
