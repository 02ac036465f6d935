"""Damaged weights that come along, and damaged programs that were compiled before."""

import random

import numpy as np
import pytest
from processes_in_tests import PATIENCE, start

from harmonium.errors import ModelFileError
from harmonium.library import tagger

FIT = """
import sys
import numpy as np
from harmonium import DiscriminativeRBM
rng = np.random.default_rng(0)
X = rng.normal(size=(40, 5)).astype(np.float32)
Y = (X[:, :3] > 0).astype(np.float32)
model = DiscriminativeRBM(n_hidden=4, max_epochs=3, validation_fraction=0.0, random_state=0)
print(model.fit(X, Y).predict_proba(X).tobytes().hex())
"""


@pytest.mark.parametrize("damage", ["cut", "changed", "another", "empty"])
def test_a_damaged_model_that_comes_along_is_one_clear_error(tmp_path, monkeypatch, damage):
    data = bytearray(tagger.BUILTIN_FILE.read_bytes())
    if damage == "changed":
        data[20] ^= 0xFF
    elif damage == "another":
        from harmonium.estimators.model_files import to_bytes

        data = bytearray(to_bytes({"x": np.ones(2)}, {"class": "DiscriminativeRBM"}))
    else:
        del data[len(data) // 2 if damage == "cut" else 0 :]
    file = tmp_path / "model.safetensors"
    file.write_bytes(data)
    monkeypatch.setattr(tagger, "BUILTIN_FILE", file)
    tagger.builtin_model.cache_clear()
    try:
        with pytest.raises(ModelFileError, match=r"built-in model.*Install Harmonium again"):
            tagger.builtin_model()
    finally:
        tagger.builtin_model.cache_clear()


@pytest.mark.long
def test_damaged_compiled_programs_are_made_again(tmp_path):
    folder = tmp_path / "compiled"
    folder.mkdir()
    settings = {
        "JAX_COMPILATION_CACHE_DIR": str(folder),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }

    def fit():
        process = start("-c", FIT, env=settings)
        said, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, errors
        return said

    first = fit()
    chance = random.Random(1)
    programs = [path for path in folder.rglob("*") if path.is_file()]
    assert programs
    for number, path in enumerate(programs):
        data = bytearray(path.read_bytes())
        if number % 3 == 0:
            data = data[: len(data) // 2]
        elif number % 3 == 1:
            for _ in range(50):
                data[chance.randrange(len(data))] = chance.randrange(256)
        else:
            data.clear()
        path.write_bytes(data)
    assert fit() == first
