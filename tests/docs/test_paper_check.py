"""docs/paper-check.md names functions, tests and recipes that exist."""

import re
from importlib import import_module

import pytest
from places import DOCS, PROJECT

PAGE = (DOCS / "paper-check.md").read_text(encoding="utf-8")
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ")]


def cells(row):
    return [cell.strip() for cell in row.strip("|").split(" | ")]


def names(pattern):
    return sorted(set(re.findall(pattern, PAGE)))


def resolve(path):
    """The object of a dotted path below the package."""
    *parents, name = path.split(".")
    try:
        module = import_module(".".join(["harmonium", *parents]))
    except ModuleNotFoundError:
        module = resolve(".".join(parents))
    return getattr(module, name)


FUNCTIONS = names(r"`((?:audio|data|estimators|evaluation|experiments|rbm)\.[\w.]+)`")
TESTS = names(r"`(test_\w+)`")
RECIPES = {name for row in ROWS for name in re.findall(r"recipe `(\w+)`", row)}


def test_the_page_names_all_that_it_promises():
    assert len(FUNCTIONS) > 40
    assert len(TESTS) > 50
    for row in ROWS:
        assert len(cells(row)) in (3, 4), row


@pytest.mark.parametrize("path", FUNCTIONS)
def test_a_function_of_the_page_exists(path):
    assert callable(resolve(path))


def test_the_tests_of_the_page_exist():
    text = "".join(file.read_text(encoding="utf-8") for file in (PROJECT / "tests").rglob("*.py"))
    missing = [name for name in TESTS if f"def {name}(" not in text]
    assert not missing


def test_the_recipes_of_the_page_exist():
    recipes = {cells(row)[1].strip("`") for row in ROWS if "experiments.report" in cells(row)[-1]}
    assert {"table1", "table2", "figure2", "figure3", "figure5"} <= recipes
    for name in recipes | RECIPES:
        assert (PROJECT / "recipes" / f"{name}.toml").is_file()
