"""What mypy says about a user's script: mistakes are found, and right code is left alone."""

import os
import re
import subprocess
import sys

import pytest
from places import PROJECT

BEGINNING = """
import numpy as np
import harmonium
from harmonium import (
    AudioFeatures,
    ChainTagger,
    DiscriminativeRBM,
    LogisticTagger,
    MLPTagger,
    SVMTagger,
    TagRBM,
    TagSmoother,
)

X, Y = np.zeros((4, 2)), np.zeros((4, 1))
model = DiscriminativeRBM(3, training="cd", n_models=1, random_state=0).fit(X, Y)
P: "np.ndarray[tuple[int, ...], np.dtype[np.float32]]" = model.predict_proba(X)
MLPTagger(learning_rate=1).set_params(n_hidden=5).fit(X, Y, groups=[1, 1, 2, 2]).score(X, Y)
print(model.tags_, model.n_features_in_, model.params_.U, model.best_epoch_)
TagSmoother(auxiliary=("user", "clip"), n_tags=20)
""".lstrip()

MISTAKES = {
    "from harmonium import DiscriminativeRMB": "DiscriminativeRBM",
    "from harmonium.rbm import Gibs": "Gibs",
    "from harmonium.estimators import ForestTagger": "ForestTagger",
    "DiscriminativeRBM(n_hiden=3)": "n_hidden",
    'DiscriminativeRBM(training="cdd")': "'pcd'",
    'DiscriminativeRBM(n_hidden="many")': "int | None",
    'DiscriminativeRBM(random_state="seed")': "random_state",
    "MLPTagger(5, 0.1)": "positional",
    'MLPTagger(training="cd")': "training",
    'LogisticTagger(solver="newtn")': "'newton'",
    'SVMTagger(nu="half")': "float",
    'TagSmoother(conditioning="others")': "'other_users'",
    "TagRBM(5, hidden=3)": "hidden",
    "ChainTagger().fit(X, Y, groups=[1, 2, 3, 4])": "groups",
    "model.predct_proba(X)": "predct_proba",
    "model.decision_function(X).shapes": "shapes",
    "model.predict_proba(X).shapes": "shapes",
    'AudioFeatures(on_error="skip")': "'nan'",
}


@pytest.fixture(scope="module")
def complaints(tmp_path_factory, request):
    """The errors of a strict mypy about a script, by the number of their line."""
    script = tmp_path_factory.mktemp("types") / "script.py"
    script.write_text(BEGINNING + "\n".join(MISTAKES) + "\n")
    if request.config.pluginmanager.has_plugin("cacheprovider"):
        cache = request.config.cache.mkdir("mypy")
    else:
        cache = tmp_path_factory.mktemp("mypy")
    options = ["--strict", "--follow-imports=silent", f"--cache-dir={cache}", "--config-file="]
    run = subprocess.run(
        [sys.executable, "-m", "mypy", *options, str(script)],
        capture_output=True,
        text=True,
        cwd=script.parent,
        env={**os.environ, "MYPYPATH": str(PROJECT)},
    )
    found = re.findall(r"script\.py:(\d+): error: (.*)", run.stdout)
    assert found, run.stdout + run.stderr
    by_line: dict[int, str] = {}
    for line, message in found:
        by_line[int(line)] = by_line.get(int(line), "") + message
    return by_line


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_reported(complaints, mistake):
    line = BEGINNING.count("\n") + list(MISTAKES).index(mistake) + 1
    assert MISTAKES[mistake] in complaints[line]


def test_right_code_is_left_alone(complaints):
    assert min(complaints) > BEGINNING.count("\n")
