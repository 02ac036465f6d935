"""The public names, and that importing them costs little until a model is used."""

import subprocess
import sys

import pytest

import harmonium

HEAVY = ["jax", "sklearn", "scipy", "polars", "matplotlib"]


def loaded_by(code: str) -> set[str]:
    """The heavy packages that a fresh interpreter has imported after running ``code``."""
    code += f"\nimport sys\nprint('loaded:', *[m for m in {HEAVY} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.splitlines()[-1].split()[1:])


def test_the_public_names_are_these():
    assert harmonium.__all__ == [
        "__version__",
        "load",
        "Library",
        "AudioFeatures",
        "ClipNormaliser",
        "ChainTagger",
        "CooccurrenceTagger",
        "DiscriminativeRBM",
        "GenerativeRBM",
        "LogisticTagger",
        "MLPTagger",
        "NaiveBayesTagger",
        "SVMTagger",
        "TagSmoother",
    ]


def test_every_public_name_is_there_and_listed():
    for name in harmonium.__all__:
        assert getattr(harmonium, name) is not None
        assert name in dir(harmonium)
    with pytest.raises(AttributeError, match="module 'harmonium' has no attribute 'Harmonica'"):
        _ = harmonium.Harmonica


def test_importing_the_package_loads_nothing_heavy():
    assert loaded_by("import harmonium") == set()


def test_help_loads_no_model_code():
    code = (
        "import sys\n"
        "from harmonium.cli import main\n"
        "sys.argv = ['harmonium', '--help']\n"
        "try:\n    main()\n"
        "except SystemExit as end:\n    assert not end.code"
    )
    assert {"jax", "sklearn"}.isdisjoint(loaded_by(code))


def test_features_need_no_model_code():
    code = "from harmonium import AudioFeatures"
    assert "jax" not in loaded_by(code)
    # and workers, which only extract them, need even less
    assert {"jax", "sklearn", "matplotlib"}.isdisjoint(loaded_by("import harmonium.audio"))


def test_a_models_description_is_read_without_model_code():
    code = "from harmonium.estimators.model_files import from_bytes"
    assert {"jax", "sklearn", "scipy"}.isdisjoint(loaded_by(code))


def test_a_model_loads_what_it_needs():
    assert {"jax", "sklearn"} <= loaded_by("from harmonium import DiscriminativeRBM")
