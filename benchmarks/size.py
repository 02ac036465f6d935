"""How large Harmonium is, how dense its code is, and how many modules a newcomer walks through.

    make size
    python benchmarks/size.py --tree ../older-checkout      counts and density of another checkout
    python benchmarks/size.py --list                        also names the modules of each walk

The columns of density are symptoms to watch, not targets: lines broken in two without a thought win
nothing. A code line is a line on which a token starts, apart from comments, docstrings and strings
of several lines. The peers are beets, blackjax, datasette, equinox, mir_eval, mirdata, optax and
sqlite-utils.

Records are classes that carry values: dataclasses, NamedTuples, TypedDicts and Pydantic models. A
walk is the set of Harmonium's modules whose functions run while something is done through the
Python API or over HTTP, in this process; what runs at import time is left out:

1. from an mp3 file to its tags on the page: index one file, predict its tags, answer the page;
2. from a CSV of tags to a trained model: import the tags and train, on a small library;
3. from a click on "yes" to the other tags moving, and saved: the page's request and its answer.
"""

import argparse
import ast
import subprocess
import sys
import tempfile
import threading
import time
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "harmonium"
N_TRACKS = 30
"""The tracks of the small library that the second and third walk train on."""
MIN_CODE_LINES = 30
"""A module with fewer code lines is not named among the densest."""


def modules_of(tree: Path) -> dict[str, Path]:
    """The modules of the package in a checkout, by their dotted name."""
    modules = {}
    for path in sorted((tree / PACKAGE).rglob("*.py")):
        parts = path.relative_to(tree).with_suffix("").parts
        if parts[-1] == "__init__":
            parts = parts[:-1]
        modules[".".join(parts)] = path
    return modules


def imported_names(code: ast.Module) -> Iterator[tuple[str, str, str]]:
    """(module, name in it or "", name here) of every import in a module."""
    for node in ast.walk(code):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "", alias.asname or alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                yield node.module, alias.name, alias.asname or alias.name


def n_single_importers(codes: dict[str, ast.Module]) -> int:
    """The number of modules that one other module imports."""
    importers: dict[str, set[str]] = defaultdict(set)
    for name, code in codes.items():
        for module, inner, _ in imported_names(code):
            target = f"{module}.{inner}" if f"{module}.{inner}" in codes else module
            importers[target].add(name)
    return sum(len(importers[name] - {name}) == 1 for name in codes)


def n_records(codes: dict[str, ast.Module]) -> tuple[int, int]:
    """The number of records without Pydantic, and of Pydantic models."""
    bases: dict[str, list[str]] = {}
    plain = 0
    for name, code in codes.items():
        here = {own: f"{module}.{inner}" for module, inner, own in imported_names(code) if inner}
        for node in ast.walk(code):
            if not isinstance(node, ast.ClassDef):
                continue
            names = [ast.unparse(base).split("[")[0] for base in node.bases]
            bases[f"{name}.{node.name}"] = [here.get(base, f"{name}.{base}") for base in names]
            marks = [ast.unparse(mark).split("(")[0].split(".")[-1] for mark in node.decorator_list]
            ends = {base.split(".")[-1] for base in names}
            plain += "dataclass" in marks or bool(ends & {"NamedTuple", "TypedDict"})
    models = {"pydantic.BaseModel", "pydantic_settings.BaseSettings"}
    while more := {name for name, own in bases.items() if models & set(own)} - models:
        models |= more
    return plain, len(models) - 2


def mro_of_the_model(tree: Path) -> int:
    """The number of Harmonium's classes that DiscriminativeRBM is made of, itself included."""
    program = (
        f"import sys; sys.path.insert(0, {str(tree)!r})\n"
        f"from {PACKAGE} import DiscriminativeRBM as model\n"
        f"print(sum(cls.__module__.startswith({PACKAGE!r}) for cls in model.__mro__))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return int(done.stdout)


def counts(tree: Path) -> dict[str, int]:
    """What can be counted without running anything."""
    modules = modules_of(tree)
    codes = {name: ast.parse(path.read_text("utf-8")) for name, path in modules.items()}
    records, models = n_records(codes)
    tests = list((tree / "tests").rglob("*.py"))
    pages = [tree / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    pages += (tree / "docs").rglob("*.md")
    return {
        f"lines in {PACKAGE}/": sum(map(n_lines, modules.values())),
        "modules": len(modules),
        "modules with a single importer": n_single_importers(codes),
        "record types": records,
        "Pydantic models": models,
        "records and Pydantic models": records + models,
        "classes in the MRO of DiscriminativeRBM": mro_of_the_model(tree),
        "lines of tests": sum(map(n_lines, tests)),
        "files of tests": len(tests),
        "words of documentation": sum(len(page.read_text("utf-8").split()) for page in pages),
    }


def n_lines(path: Path) -> int:
    """The lines of a file."""
    return path.read_bytes().count(b"\n")


# Density

LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
    tokenize.ENCODING,
}
"""The kinds of tokens that are no code."""
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
PEERS = {
    "tokens per code line": "5.7 - 7.6",
    "`a, b = x, y` per 1,000 code lines": "0.2 - 2.3",
    "conditional expressions per 1,000": "0.2 - 10",
    "comprehensions per 1,000": "2 - 30",
    "lines of JavaScript above 160 characters": "formatted",
    "lines of JavaScript above 120 characters": "formatted",
}
"""What the same count gives for the peers."""


@dataclass(frozen=True)
class Density:
    """What a piece of code holds."""

    code_lines: int = 0
    tokens: int = 0
    tuple_assignments: int = 0
    conditional_expressions: int = 0
    comprehensions: int = 0

    @property
    def tokens_per_line(self) -> float:
        return self.tokens / max(1, self.code_lines)

    def per_thousand_lines(self, count: int) -> float:
        return 1000 * count / max(1, self.code_lines)


def density_of(path: Path) -> Density:
    """The density of one module."""
    tokens_of_line: dict[int, int] = defaultdict(int)
    for line in _code_tokens(path):
        tokens_of_line[line] += 1
    tuple_assignments = 0
    conditional_expressions = 0
    comprehensions = 0
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple):
            tuple_assignments += any(isinstance(target, ast.Tuple) for target in node.targets)
        conditional_expressions += isinstance(node, ast.IfExp)
        comprehensions += isinstance(node, COMPREHENSIONS)
    return Density(
        code_lines=len(tokens_of_line),
        tokens=sum(tokens_of_line.values()),
        tuple_assignments=tuple_assignments,
        conditional_expressions=conditional_expressions,
        comprehensions=comprehensions,
    )


def _code_tokens(path: Path) -> Iterator[int]:
    """The line of each token of code; an f-string is one token in every version of Python."""
    fstring_start = getattr(tokenize, "FSTRING_START", None)
    fstring_end = getattr(tokenize, "FSTRING_END", None)
    depth = 0
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type == fstring_end:
                depth -= 1
                continue
            is_outside = depth == 0
            if token.type == fstring_start:
                depth += 1
            is_docstring = token.type == tokenize.STRING and (
                token.line.lstrip().startswith(('"""', 'r"""')) or token.start[0] != token.end[0]
            )
            if is_outside and token.type not in LAYOUT and not is_docstring:
                yield token.start[0]


def total_density(modules: Iterable[Density]) -> Density:
    """The density of several modules together."""
    modules = list(modules)
    return Density(
        code_lines=sum(module.code_lines for module in modules),
        tokens=sum(module.tokens for module in modules),
        tuple_assignments=sum(module.tuple_assignments for module in modules),
        conditional_expressions=sum(module.conditional_expressions for module in modules),
        comprehensions=sum(module.comprehensions for module in modules),
    )


def javascript_lines(tree: Path, longer_than: int) -> int:
    """The number of long lines in the page's own JavaScript."""
    count = 0
    for path in (tree / PACKAGE).rglob("*.js"):
        if "vendor" not in path.parts:
            lines = path.read_text("utf-8").splitlines()
            count += sum(len(line) > longer_than for line in lines)
    return count


def print_density(tree: Path, n_densest: int) -> None:
    """The symptoms beside the peers', and the densest modules."""
    modules = {name: density_of(path) for name, path in modules_of(tree).items()}
    total = total_density(modules.values())
    values = [
        f"{total.tokens_per_line:.1f}",
        f"{total.per_thousand_lines(total.tuple_assignments):.0f}",
        f"{total.per_thousand_lines(total.conditional_expressions):.0f}",
        f"{total.per_thousand_lines(total.comprehensions):.0f}",
        f"{javascript_lines(tree, longer_than=160)}",
        f"{javascript_lines(tree, longer_than=120)}",
    ]
    print("\nDensity: symptoms to watch, not targets.\n")
    width = max(map(len, PEERS))
    print(f"| {'':<{width}} | {'here':>6} | {'peers':<9} |")
    print(f"|{'-' * (width + 2)}|-------:|-----------|")
    for (symptom, peers), value in zip(PEERS.items(), values, strict=True):
        print(f"| {symptom:<{width}} | {value:>6} | {peers:<9} |")

    print("\nThe densest modules, with the same four columns:\n")
    print(
        "| module                                   | tokens | tuples | if-else | comprehensions |"
    )
    print(
        "|------------------------------------------|-------:|-------:|--------:|---------------:|"
    )
    large = [item for item in modules.items() if item[1].code_lines >= MIN_CODE_LINES]
    large.sort(key=lambda item: item[1].tokens_per_line, reverse=True)
    for name, module in large[:n_densest]:
        print(
            f"| {name:<40} | {module.tokens_per_line:>6.1f} "
            f"| {module.per_thousand_lines(module.tuple_assignments):>6.0f} "
            f"| {module.per_thousand_lines(module.conditional_expressions):>7.0f} "
            f"| {module.per_thousand_lines(module.comprehensions):>14.0f} |"
        )


# Walks


class Walk:
    """The modules of the package whose functions run, in any thread, while it is recorded."""

    def __init__(self) -> None:
        self.modules: set[str] = set()
        self._names = {str(path): name for name, path in modules_of(ROOT).items()}
        self._recording = False

    def start(self) -> None:
        """Watch this thread and those that start from now on."""
        threading.setprofile(self._called)
        sys.setprofile(self._called)

    @contextmanager
    def recorded(self) -> Iterator[set[str]]:
        """Gives the modules that run inside."""
        self.modules, self._recording = set(), True
        yield self.modules
        self._recording = False

    def _called(self, frame: Any, event: str, _: Any) -> None:
        if self._recording and event == "call" and frame.f_code.co_name != "<module>":
            name = self._names.get(frame.f_code.co_filename)
            if name is not None:
                self.modules.add(name)


def walks() -> dict[str, set[str]]:
    """The modules of each walk."""
    import importlib

    for name in modules_of(ROOT):
        if not name.endswith("__main__"):
            importlib.import_module(name)  # so that nothing is imported on the way
    with tempfile.TemporaryDirectory() as folder:
        return _walk_in(Path(folder))


def _walk_in(folder: Path) -> dict[str, set[str]]:
    import soundfile
    from starlette.testclient import TestClient

    from harmonium import Library
    from harmonium.synthetic import make_collection
    from harmonium.web.app import create_app
    from harmonium.web.guard import ServerSettings

    collection = make_collection(N_TRACKS + 1, 1, n_users=20, clip_seconds=3.0)
    collection.write(folder / "music", jobs=1)
    last = folder / "music" / collection.clips["path"][-1]
    sound, rate = soundfile.read(last)
    soundfile.write(mp3 := folder / "new.mp3", sound, rate)
    last.unlink()
    clips = collection.clips.select("item", "path").head(N_TRACKS)
    said = collection.triples.frame().join(clips, on="item").select("user", "path", "tag")
    said.write_csv(folder / "tags.csv")
    place = str(folder / "library.db")
    walk = Walk()
    modules_of_walk = {}
    options: dict[str, Any] = {"engine": "serial", "cache": folder / "cache"}
    with Library.open(place) as library:
        library.index(folder / "music", **options)
    walk.start()
    with (
        walk.recorded() as modules_of_walk["a CSV of tags to a trained model"],
        Library.open(place) as library,
    ):
        library.import_tags(folder / "tags.csv")
        library.train(engine="serial")
    page = TestClient(create_app(ServerSettings(place=place)), base_url="http://localhost/api/v1")
    with walk.recorded() as modules_of_walk["an mp3 file to its tags on the page"]:
        with Library.open(place) as library:
            library.index(mp3, **options)
            number = library.track(mp3).id
            library.tag_all()
        tags = page.get(f"/tracks/{number}").raise_for_status().json()["tags"]
    yes = {"yes": [next(tag["tag"] for tag in tags if tag["said"] is None)], "no": []}
    with walk.recorded() as modules_of_walk['a click on "yes" to the other tags moving, and saved']:
        page.post(f"/tracks/{number}/complete", json=yes).raise_for_status()
        page.post(f"/tracks/{number}/say", json=yes | {"unknown": []}).raise_for_status()
        _wait_for_learning(walk)
    sys.setprofile(None)
    return modules_of_walk


def _wait_for_learning(walk: Walk) -> None:
    """Wait until the thread that learns from the answer reaches nothing new."""
    before = -1
    while before < len(walk.modules):
        before = len(walk.modules)
        time.sleep(5)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--tree", type=Path, help="another checkout, whose code is counted and not run"
    )
    parser.add_argument("--list", action="store_true", help="name the modules of each walk")
    parser.add_argument("--densest", type=int, default=20, help="how many modules to name (20)")
    options = parser.parse_args(arguments)
    tree = options.tree or ROOT
    modules_of_walk = {}
    if not options.tree:
        modules_of_walk = walks()
    rows = counts(tree)
    for name, modules in modules_of_walk.items():
        rows[f"modules from {name}"] = len(modules)
    width = max(map(len, rows))
    print(f"| {'':<{width}} |        |\n|{'-' * (width + 2)}|-------:|")
    for name, count in rows.items():
        print(f"| {name:<{width}} | {count:>6,} |")
    print_density(tree, options.densest)
    if options.list:
        for name, modules in modules_of_walk.items():
            print(f"\nFrom {name}:", *sorted(modules), sep="\n  ")


if __name__ == "__main__":
    main()
