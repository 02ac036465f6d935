"""Who may import whom: the layers of docs/design.md."""

import ast
from pathlib import Path

import pytest
from places import PROJECT

PACKAGE = PROJECT / "harmonium"
LIBRARY = PACKAGE / "library"

# What every layer may import.
COMMON = {
    *("arrays", "errors", "files", "stopping", "lazy", "logistic", "parameters"),
    *("precision_bound", "scikit_learn", "spreadsheets"),
}

# A layer may import itself, what is common to all, and these.
ALLOWED = {
    **{key: set() for key in (*COMMON, "engine", "data", "rbm", "evaluation")},
    "synthetic": {"data"},
    "audio": {"engine"},
    "estimators": {"data", "rbm", "evaluation"},
    "experiments": {"engine", "data", "synthetic", "audio", "estimators", "evaluation"},
    "library": {"engine", "data", "audio", "rbm", "estimators", "evaluation"},
    "plots": {"estimators", "evaluation"},
    "demo": {"engine", "data", "synthetic", "audio", "estimators", "evaluation", "library"},
    "web": {"engine", "data", "audio", "library", "connect"},
    "connect": {"engine", "data", "audio", "library"},
    "commands": {
        *("engine", "data", "synthetic", "audio", "estimators", "evaluation"),
        *("experiments", "library", "web", "demo", "connect"),
    },
    "__main__": {"cli"},
    "cli": {"commands", "data", "audio", "experiments", "library", "web", "estimators", "demo"},
}

# A third-party package may be imported only in these layers.
RESERVED = {
    **{key: {"rbm", "estimators"} for key in ("jax", "optax")},
    **{key: {"web"} for key in ("fastapi", "starlette", "uvicorn")},
    **{key: {"engine"} for key in ("distributed", "dask")},
    "sqlalchemy": {"library"},
}

BELOW_SNAPSHOT = {"library", "search", "model", "sound", "verdicts"}
# What a room of the collection may import of the others, but for the names of types.
ROOMS = {
    **{key: set() for key in ("store", "filetags", "builtin")},
    "library": {"store"},
    "search": {"store", "model"},
    **{key: {"store"} for key in ("verdicts", "sound", "track_finder")},
    "vocabulary": {"store", "model", "tags"},
    "examine": {"store", "filetags"},
    "known_files": {"store", "examine"},
    "index": {"store", "library", "examine", "known_files", "sound"},
    "imports": {"store", "library", "filetags", "track_finder"},
    "__init__": {"library"},
    "model": {"store", "library", "sound"},
    "snapshot": {"store", "searching", *BELOW_SNAPSHOT},
    "tags": {"store", "snapshot", *BELOW_SNAPSHOT},
    "teaching": {"store", "snapshot", "learning", *BELOW_SNAPSHOT},
    "tagging": {"store", "library", "index", "snapshot", "model", "verdicts"},
    "edits": {"store", "library"},
    "models": {"store", "library", "model"},
    "learning": {"store", "tags", *BELOW_SNAPSHOT},
    "writing": {"store", "library", "filetags", "model", "verdicts"},
    "doctor": {"store", "library", "model", "verdicts"},
    "system_report": {"store", "library", "index"},
    "export": {"store", "model", "snapshot", "writing"},
    "searching": {"store", "export", "snapshot", *BELOW_SNAPSHOT},
}
ROOMS["library"] = set(ROOMS)  # its methods are the verbs of all the others


class _Run(ast.NodeTransformer):
    """Takes out what is there for type checkers alone."""

    def visit_If(self, node: ast.If) -> ast.AST | None:
        return None if "TYPE_CHECKING" in ast.dump(node.test) else self.generic_visit(node)


def imports(path: Path, *, types: bool = True) -> set[str]:
    names = set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree if types else _Run().visit(tree)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def layer_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def modules() -> list[Path]:
    """Every module; the recipes, which a wheel has in the package, are programs and not modules."""
    return sorted(path for path in PACKAGE.rglob("*.py") if layer_of(path) != "recipes")


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_module_imports_only_the_layers_below_it(path):
    layer = layer_of(path)
    if layer == "__init__":
        return
    for name in imports(path):
        top, *rest = name.split(".")
        if top == "harmonium" and rest:
            other = rest[0]
            assert other in {layer, "__version__"} | COMMON | ALLOWED[layer], f"{path}: {name}"
        assert layer in RESERVED.get(top, {layer}), f"{path}: {name}"


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_only_estimators_use_more_of_rbm_than_its_forward_pass(path):
    if layer_of(path) in {"rbm", "estimators"}:
        return
    for name in imports(path):
        if name.startswith("harmonium.rbm"):
            assert name.startswith("harmonium.rbm.forward."), f"{path}: {name}"


@pytest.mark.parametrize(
    "path", sorted(LIBRARY.rglob("*.py")), ids=lambda p: str(p.relative_to(LIBRARY))
)
def test_the_rooms_of_the_collection_are_in_order(path):
    room = path.relative_to(LIBRARY).parts[0].removesuffix(".py")
    inside = [
        name.split(".")[2]
        for name in imports(path, types=False)
        if name.startswith("harmonium.library.")
    ]
    assert {name for name in inside if name in ROOMS} <= {room} | ROOMS[room]


def test_every_room_of_the_collection_has_a_place_in_the_order():
    rooms = {path.name.removesuffix(".py") for path in LIBRARY.iterdir()} - {"__pycache__"}
    assert rooms == set(ROOMS)
