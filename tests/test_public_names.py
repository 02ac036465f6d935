"""The public names, and that importing them costs little until a model is used."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import harmonium

MUSICNN = "from harmonium.audio import get_extractor as get\nget('musicnn')"
TAG_A_FILE = """
from harmonium.library.model.builtin import builtin_model
from harmonium.library.model.tagger import Tagger
import numpy as np
tagger = Tagger(builtin_model())
tagger.probabilities(np.zeros((1, tagger.n_features), np.float32))
"""
HEAVY = ["jax", "sklearn", "scipy", "polars", "matplotlib"]


def loaded_by(code: str) -> set[str]:
    """The heavy packages that a fresh interpreter has imported after running ``code``."""
    code += f"\nimport sys\nprint('loaded:', *[m for m in {HEAVY} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.splitlines()[-1].split()[1:])


def test_the_public_names_are_these():
    models = ["Chain", "Cooccurrence", "Logistic", "MLP", "NaiveBayes", "SVM"]
    names = [
        "__version__",
        "load",
        "paper_options",
        "Library",
        "AudioFeatures",
        "ClipNormaliser",
        "TagSmoother",
        "TagRBM",
    ]
    names += ["DiscriminativeRBM", "GenerativeRBM", *(f"{name}Tagger" for name in models)]
    assert sorted(harmonium.__all__) == sorted(names)


@pytest.mark.parametrize("name", harmonium.__all__)
def test_every_public_name_is_listed(name):
    assert getattr(harmonium, name) is not None
    assert name in dir(harmonium)


def test_a_name_that_is_not_public_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'harmonium' has no attribute 'Harmonica'"):
        _ = harmonium.Harmonica


@pytest.mark.parametrize("package", ["harmonium", "harmonium.estimators", "harmonium.rbm"])
def test_type_checkers_see_the_names_that_are_loaded_when_first_used(package):
    module = import_module(package)
    (for_types,) = (
        node
        for node in ast.parse(Path(module.__file__).read_text()).body
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name)
    )
    seen = {alias.asname for node in for_types.body for alias in node.names}
    assert seen == set(module.__all__) - {"__version__", "load"}
    for name in seen:
        assert getattr(module, name).__name__ == name


@pytest.mark.parametrize(
    ("code", "spared"),
    [
        ("import harmonium", set(HEAVY)),
        ("from harmonium import AudioFeatures", {"jax"}),
        ("import harmonium.audio", {"jax", "sklearn", "matplotlib"}),  # all that workers need
        (f"import numpy as np\n{MUSICNN}(np.zeros(64_000, 'f4'), 16_000)", {"jax", "sklearn"}),
        ("from harmonium.estimators.model_files import from_bytes", {"jax", "sklearn", "scipy"}),
        ("from harmonium.rbm.forward import tag_probabilities", {"jax", "sklearn", "scipy"}),
        ("import harmonium.rbm, harmonium.estimators", set(HEAVY)),
        (TAG_A_FILE, {"jax", "sklearn"}),
    ],
)
def test_what_needs_no_model_loads_no_model_code(code, spared):
    assert spared.isdisjoint(loaded_by(code))
