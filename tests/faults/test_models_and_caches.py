"""A damaged built-in model, and damaged programs that were compiled before."""

import random

import numpy as np
import pytest
from processes_in_tests import PATIENCE, start

from harmonium.errors import ModelFileError
from harmonium.estimators.model_files import to_bytes
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


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[: len(data) // 2],
        lambda data: data[:20] + bytes([data[20] ^ 0xFF]) + data[21:],
        lambda data: to_bytes({"x": np.ones(2)}, {"class": "DiscriminativeRBM"}),
        lambda data: b"",
    ],
    ids=["cut", "changed", "another", "empty"],
)
def test_a_damaged_built_in_model_is_one_clear_error(tmp_path, monkeypatch, damage):
    file = tmp_path / "model.safetensors"
    file.write_bytes(damage(tagger.BUILTIN_FILE.read_bytes()))
    monkeypatch.setattr(tagger, "BUILTIN_FILE", file)
    tagger.builtin_model.cache_clear()
    try:
        with pytest.raises(ModelFileError, match="Install Harmonium again"):
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
        data = path.read_bytes()
        noise = bytearray(data)
        for _ in range(50):
            noise[chance.randrange(len(data))] = chance.randrange(256)
        path.write_bytes((data[: len(data) // 2], noise, b"")[number % 3])
    assert fit() == first
