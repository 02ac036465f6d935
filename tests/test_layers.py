"""Who may import whom: the layers of docs/design.md."""

import ast
from pathlib import Path

import pytest
from places import PROJECT

PACKAGE = PROJECT / "harmonium"

# What every layer may import.
COMMON = {"errors", "atomic_files", "file_locks", "nearest_names", "user_folders"}

# A layer may import itself, what is common to all, and these.
ALLOWED = {
    **{key: set() for key in COMMON},
    "engine": set(),
    "data": set(),
    "synthetic": {"data"},
    "audio": {"engine"},
    "rbm": set(),
    "evaluation": set(),
    "estimators": {"data", "rbm", "evaluation"},
    "experiments": {"engine", "data", "synthetic", "audio", "estimators", "evaluation"},
    "collection": {"engine", "data", "audio", "estimators", "evaluation"},
    "demo": {"engine", "data", "synthetic", "audio", "estimators", "evaluation", "collection"},
    "web": {"collection"},
    "commands": {
        *("engine", "data", "synthetic", "audio", "estimators", "evaluation"),
        *("experiments", "collection", "web", "demo"),
    },
    "cli": {"commands", "data", "audio", "experiments", "collection", "web", "estimators", "demo"},
}

# A third-party package may be imported only in these layers.
RESERVED = {
    "jax": {"rbm", "estimators"},
    "optax": {"rbm", "estimators"},
    "fastapi": {"web"},
    "sqlalchemy": {"collection"},
    "distributed": {"engine"},
    "dask": {"engine"},
}


def imports(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def layer_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: str(p.relative_to(PACKAGE))
)
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
