"""The page's JavaScript, as far as it can be checked without Node; `make lint` runs Prettier."""

import re
from pathlib import Path

import pytest

import harmonium.web

STATIC = Path(harmonium.web.__file__).with_name("static")
MODULES = sorted(path for path in STATIC.rglob("*.js") if "vendor" not in path.parts)
MAX_LINE = 120
IMPORT = re.compile(r'^import \{([^}]*)\} from "([^"]+)";', re.MULTILINE)
EXPORT = re.compile(r"^export (?:async )?(?:function|const|class) (\w+)", re.MULTILINE)


def name(path):
    return str(path.relative_to(STATIC))


def test_there_are_modules():
    assert STATIC / "app.js" in MODULES


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_no_line_is_too_long(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    long = [number for number, line in enumerate(lines, 1) if len(line) > MAX_LINE]
    assert long == []


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_imported_names_are_exported(path):
    for names, source in IMPORT.findall(path.read_text(encoding="utf-8")):
        if "vendor" in source:
            continue
        exported = EXPORT.findall((path.parent / source).read_text(encoding="utf-8"))
        imported = re.findall(r"\w+", names)
        assert set(imported) <= set(exported), source


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_imported_names_are_used(path):
    text = path.read_text(encoding="utf-8")
    body = IMPORT.sub("", text)
    for names, _ in IMPORT.findall(text):
        unused = [word for word in re.findall(r"\w+", names) if not re.search(rf"\b{word}\b", body)]
        assert unused == []
