"""Changes the package in small ways, one at a time, and sees whether a test notices.

    python tests/mutation/run.py                    every group of GROUPS
    python tests/mutation/run.py undo --most 20     at most 20 changes of each file of a group
    python tests/mutation/run.py undo --file changes --line 41

A change is killed if a test fails or hangs with it. One that survives is printed: it needs a test,
or it changes nothing that anybody could notice (see CONTRIBUTING.md). The file on the disk is left
alone: each change lives in a process of its own, forked from one that has loaded the libraries.
"""

import argparse
import ast
import copy
import importlib
import importlib.abc
import importlib.util
import os
import random
import select
import signal
import sys
import time
import traceback
from itertools import islice
from pathlib import Path

PROJECT = Path(__file__).parents[2]
UNDO = "harmonium/library"
GROUPS: dict[str, dict[str, list[str]]] = {
    "evaluation": {
        f"harmonium/evaluation/{name}.py": ["tests/evaluation"]
        for name in ("folds", "metrics", "significance")
    },
    "undo": {
        f"{UNDO}/store/changes.py": ["tests/library/store", "tests/library/writing"],
        **{
            f"{UNDO}/writing/{name}.py": ["tests/library/writing"]
            for name in ("plan", "outline", "undoable", "restore")
        },
        f"{UNDO}/filetags/write.py": ["tests/library/filetags"],
    },
    "rbm": {
        f"harmonium/rbm/{name}.py": [f"tests/rbm/test_rbm_{test}.py" for test in tests]
        for name, tests in {
            "model": ["model", "gradients"],
            "belief": ["belief", "gradients"],
            "inference": ["infer", "sampling", "model", "objectives"],
            "gradients": ["gradients", "objectives", "multi_prediction", "pseudolikelihood",
                          "rows"],
            "forward": ["forward"],
            "other_models": ["other_models"],
            "training": ["training", "rows"],
        }.items()
    },
}  # fmt: skip
GROUPS["rbm"]["harmonium/rbm/training.py"] += ["tests/estimators/test_tables.py"]
LIBRARIES = ("hypothesis", "jax", "optax", "polars", "pytest", "scipy.stats", "sklearn")
QUICK = (
    *("-x", "-q", "-k", "not postgresql", "-m", "not long"),
    *("-p", "no:cacheprovider", "-p", "no:schemathesis"),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),  # libraries are loaded before
)
"""What the tests are run with: SQLite shows the same mistakes, and no server has to start."""

COMPARED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
COMPUTED = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.MatMult: ast.Add,
}  # fmt: skip
SWAPPED = {"min": "max", "max": "min", "any": "all", "all": "any", "minimum": "maximum",
           "maximum": "minimum"}  # fmt: skip


def changes_of(node: ast.AST):
    """Each small change of a node: a word for it, and a function that makes it."""
    if isinstance(node, ast.Compare):
        for i, op in enumerate(node.ops):
            if other := COMPARED.get(type(op)):
                yield f"{type(op).__name__} → {other.__name__}", _set_item("ops", i, other)
    elif isinstance(node, ast.BinOp | ast.AugAssign):
        if other := COMPUTED.get(type(node.op)):
            yield f"{type(node.op).__name__} → {other.__name__}", _set("op", other)
    elif isinstance(node, ast.BoolOp):
        other = ast.Or if isinstance(node.op, ast.And) else ast.And
        yield f"{type(node.op).__name__} → {other.__name__}", _set("op", other)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield "- → +", _set("op", ast.UAdd)
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield f"{node.value} → {not node.value}", _set("value", lambda: not node.value)
        elif isinstance(node.value, int | float):
            yield f"{node.value} → {node.value + 1}", _set("value", lambda: node.value + 1)
    elif isinstance(node, ast.If | ast.While | ast.IfExp):
        turned = ast.UnaryOp(ast.Not(), node.test)
        yield "the condition → its opposite", _set("test", lambda: turned)
    elif isinstance(node, ast.Call):
        name = getattr(node.func, "id", getattr(node.func, "attr", None))
        if name in SWAPPED:
            field = "id" if isinstance(node.func, ast.Name) else "attr"
            yield f"{name} → {SWAPPED[name]}", lambda one: setattr(one.func, field, SWAPPED[name])
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield "a call → nothing", _set("value", lambda: ast.Constant(None))


def _set(field, make):
    return lambda node: setattr(node, field, make())


def _set_item(field, i, make):
    return lambda node: getattr(node, field).__setitem__(i, make())


def skipped(node: ast.AST) -> bool:
    """What is no behaviour: the words of errors, tables of what is exported, and ``strict``.

    Nothing is known of zip's ``strict`` but that what is zipped is equally long.
    """
    if isinstance(node, ast.Raise) or (isinstance(node, ast.keyword) and node.arg == "strict"):
        return True
    return isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__"


def places(node: ast.AST):
    """The nodes of the code, without annotations."""
    if skipped(node):
        return
    yield node
    for field, value in ast.iter_fields(node):
        if field not in ("annotation", "returns", "decorator_list"):
            for one in value if isinstance(value, list) else [value]:
                if isinstance(one, ast.AST):
                    yield from places(one)


def mutants(source: str):
    """(line, what is changed, the changed tree) of every small change."""
    tree = ast.parse(source)
    for i, node in enumerate(places(tree)):
        for k, (words, _) in enumerate(changes_of(node)):
            changed = copy.deepcopy(tree)
            other = next(islice(places(changed), i, None))
            list(changes_of(other))[k][1](other)
            yield node.lineno, words, ast.fix_missing_locations(changed)


class Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads one module of the package from a tree."""

    def __init__(self, name: str, path: Path, tree: ast.Module) -> None:
        self.name, self.path, self.tree = name, path, tree

    def find_spec(self, name, path=None, target=None):
        if name == self.name:
            return importlib.util.spec_from_file_location(name, self.path, loader=self)
        return None

    def exec_module(self, module):
        exec(compile(self.tree, str(self.path), "exec"), module.__dict__)


def passes(name: str, path: Path, tree: ast.Module, tests: list[str], seconds: float) -> bool:
    """Whether the tests pass with that module, in time."""
    child = os.fork()
    if not child:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nothing, descriptor)
        code = 2
        try:
            import pytest

            sys.meta_path.insert(0, Changed(name, path, tree))
            os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = "/tmp/hypothesis-of-mutants"
            code = int(pytest.main([*QUICK, *tests]))
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    watch = os.pidfd_open(child)
    ended = select.select([watch], [], [], seconds)[0]
    os.close(watch)
    if not ended:
        os.killpg(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1] == 0


def look_at(file: str, tests: list[str], most: int, seed: int, line: int | None) -> None:
    path = PROJECT / file
    source = path.read_text(encoding="utf-8")
    name = file.removesuffix(".py").replace("/", ".")
    began = time.monotonic()
    if not passes(name, path, ast.parse(source), tests, 1200):
        raise SystemExit(f"{file}: its tests do not pass as it is")
    seconds = 30 + 5 * (time.monotonic() - began)
    every = [one for one in mutants(source) if line is None or one[0] == line]
    chosen = sorted(random.Random(seed).sample(range(len(every)), min(most, len(every))))
    n_killed = len(chosen)
    for i in chosen:
        where, words, tree = every[i]
        if passes(name, path, tree, tests, seconds):
            n_killed -= 1
            print(f"  survived  {file}:{where}  {words}")
            print(f"            {source.splitlines()[where - 1].strip()}", flush=True)
    print(f"{file}: {n_killed} of {len(chosen)} killed ({len(every)} changes in all)", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("groups", nargs="*", default=list(GROUPS), metavar="GROUP")
    parser.add_argument("--most", type=int, default=10**6, help="changes of a file, at random")
    parser.add_argument("--file", default="", help="only files whose name has this in it")
    parser.add_argument("--line", type=int, help="only changes of this line")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    os.chdir(PROJECT)
    sys.path.insert(0, str(PROJECT))
    for library in LIBRARIES:  # loaded once, for all processes
        importlib.import_module(library)
    for group in asked.groups:
        for file, tests in GROUPS[group].items():
            if asked.file in file:
                look_at(file, tests, asked.most, asked.seed, asked.line)


if __name__ == "__main__":
    main()
