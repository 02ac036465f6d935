"""Saving and loading: what comes back, what is in the file, and every way it can be damaged."""

import json
import pickle
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from sklearn.base import clone
from tagging_data import altered, quick

from harmonium import DiscriminativeRBM
from harmonium.errors import DataError, ModelFileError
from harmonium.estimators import (
    ChainTagger,
    CooccurrenceTagger,
    GenerativeRBM,
    LogisticTagger,
    MLPTagger,
    SVMTagger,
)
from harmonium.estimators.model_files import from_bytes

KEY = "harmonium"


@pytest.fixture(scope="module")
def named(train, held_out):
    X = pd.DataFrame(train.X, columns=list("abcdef"))
    Y = pd.DataFrame(train.Y, columns=["rock", "jazz", "piano", "süß"])
    return quick(max_epochs=3).fit(X, Y)


@pytest.fixture(scope="module")
def content(fitted, tmp_path_factory) -> bytes:
    path = tmp_path_factory.mktemp("models") / "model.safetensors"
    fitted.save(path)
    return path.read_bytes()


@pytest.fixture
def path(tmp_path, content) -> Path:
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    return path


def parts(path: Path) -> tuple[dict[str, np.ndarray], dict]:
    with safe_open(path, framework="numpy") as file:
        return load_file(path), json.loads(file.metadata()[KEY])


def rewrite(path: Path, arrays, about) -> None:
    save_file(arrays, path, metadata={KEY: about if isinstance(about, str) else json.dumps(about)})


@pytest.fixture
def loaded(named, tmp_path):
    named.save(tmp_path / "model.safetensors")
    return DiscriminativeRBM.load(tmp_path / "model.safetensors")


def test_everything_learnt_comes_back(named, loaded, train):
    X = pd.DataFrame(train.X, columns=list("abcdef"))
    np.testing.assert_array_equal(loaded.predict_proba(X), named.predict_proba(X))
    np.testing.assert_array_equal(loaded.predict(X), named.predict(X))
    assert loaded.get_params() == named.get_params()
    for name in ("tags_", "classes_", "thresholds_", "feature_names_in_"):
        old, new = getattr(named, name), getattr(loaded, name)
        assert old.dtype == new.dtype
        np.testing.assert_array_equal(old, new)
    for name in ("history_", "best_epoch_", "n_iter_", "n_features_in_"):
        assert getattr(loaded, name) == getattr(named, name)
    learnt = {name for name in vars(named) if name.endswith("_") or name.startswith("_")}
    assert learnt <= set(vars(loaded))
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(X[list("fedcba")])


def test_a_loaded_model_goes_on_training(named, loaded, train):
    X = pd.DataFrame(train.X, columns=list("abcdef"))
    assert loaded.partial_fit(X, train.Y).n_iter_ == named.n_iter_ + 1


@pytest.mark.parametrize("dtype", [str, object, bool, np.int8, np.float64])
def test_classes_come_back_as_they_were(train, tmp_path, dtype):
    classes = np.array(["no", "yes"], object) if dtype is object else np.array([0, 1]).astype(dtype)
    y = classes[train.Y[:, 0].astype(int)]
    model = quick(max_epochs=1).fit(train.X, y)
    model.save(tmp_path / "model")
    again = DiscriminativeRBM.load(tmp_path / "model")
    assert again.classes_.dtype == model.classes_.dtype
    np.testing.assert_array_equal(again.predict(train.X), model.predict(train.X))
    np.testing.assert_array_equal(again.predict_proba(train.X), model.predict_proba(train.X))


def test_settings_that_are_numbers_of_numpy_or_generators(train, tmp_path):
    model = quick(
        max_epochs=np.int64(1),
        learning_rate=np.float32(0.5),
        warm_start=np.True_,
        random_state=np.random.RandomState(0),
        validation_fraction=0,  # so that the history holds NaN
    ).fit(*train)
    model.save(tmp_path / "model")
    again = DiscriminativeRBM.load(tmp_path / "model")
    assert again.get_params() == {**model.get_params(), "random_state": None}
    np.testing.assert_array_equal(again.history_["auc"], [np.nan])


def test_bytes_are_what_a_file_holds(fitted, path, train):
    assert fitted.to_bytes() == path.read_bytes()
    from_file = DiscriminativeRBM.load(str(path))
    path.write_bytes(b"\0" * path.stat().st_size)  # a loaded model does not depend on its file
    for again in (from_file, DiscriminativeRBM.from_bytes(fitted.to_bytes({"more": np.arange(3)}))):
        np.testing.assert_array_equal(again.predict_proba(train.X), fitted.predict_proba(train.X))
    arrays, _ = from_bytes(fitted.to_bytes({"more": np.arange(3)}))
    np.testing.assert_array_equal(arrays["more"], np.arange(3))
    with pytest.raises(ModelFileError, match="The model is not a Harmonium model, or is damaged"):
        DiscriminativeRBM.from_bytes(b"nothing")


def test_what_cannot_be_saved(fitted, tmp_path):
    with pytest.raises(DataError, match=r"there is no folder '.*missing'. Create it first"):
        fitted.save(tmp_path / "missing" / "model")
    with pytest.raises(DataError, match=r"is a folder. Give the name of a file in it"):
        fitted.save(tmp_path)
    # nor where the size of the model was changed after fit
    with pytest.raises(ValueError, match=r"\'U\': \(8, 4\).*but .*\'U\': \(5, 4\)"):
        altered(fitted, n_hidden=5).save(tmp_path / "model")


def assert_refused(path, message, kind=DiscriminativeRBM):
    with pytest.raises(ModelFileError, match=message) as caught:
        kind.load(path)
    assert str(path) in str(caught.value)


def elsewhere(content: bytes, fitted) -> dict[str, bytes]:
    """What may lie where a model was, and is none."""
    header = 8 + int.from_bytes(content[:8], "little")
    ends = (0, 1, 7, 8, 9, header // 2, header - 1, header, header + 1, len(content) - 1)
    about = {KEY: json.dumps({"format": 1, "class": "DiscriminativeRBM"})}
    weight = {"dtype": "BF16", "shape": [1], "data_offsets": [0, 2]}  # which NumPy lacks
    odd = json.dumps({"weight": weight, "__metadata__": about}).encode()
    return {
        **{f"cut at {end}": content[:end] for end in ends},
        "longer": content + b"\0",
        **{text[:9]: text.encode() for text in ("rock,jazz\n1,0\n", "x" * 10_000, "{}")},
        "pickle": pickle.dumps(fitted),
        "odd type": len(odd).to_bytes(8, "little") + odd + b"\0\0",
    }


def test_what_is_no_model_or_another_is_refused(path, content, fitted, train):
    for data in elsewhere(content, fitted).values():
        path.write_bytes(data)
        assert_refused(path, "not a Harmonium model, or is damaged|does not hold a complete model")
    for metadata in (None, {"format": "pt"}):
        save_file({"weight": np.zeros(3)}, path, metadata=metadata)
        assert_refused(path, "is a safetensors file, but not a Harmonium model")
    for missing in (path.parent / "nothing", path.parent):
        assert_refused(missing, "There is no model file at")
    MLPTagger(n_hidden=2, max_epochs=1, random_state=0).fit(*train).save(path)
    assert_refused(path, "holds a MLPTagger, not a DiscriminativeRBM")


KEYS = ["format", "class", "parameters", "tags", "classes", "classes_dtype", "features"]
WRONG_VALUES = [None, [], {}, "x", -1, 1.5, [None], [1, "x"], [[1]], [{}] * 4]
WHOLE = "does not hold a complete model"
NEWER = r"newer version of Harmonium \(9.1, format 2; this one reads up to 1\)"


@pytest.mark.parametrize("key", [*KEYS, "best_epoch"])
def test_descriptions_that_lack_a_key_or_have_a_wrong_value(path, key):
    arrays, about = parts(path)
    rewrite(path, arrays, {name: value for name, value in about.items() if name != key})
    assert_refused(path, "complete model|does not name its model format|holds a None")
    # the type of the classes is not read where there are none, as here
    wrong = [] if key == "classes_dtype" else WRONG_VALUES
    for value in wrong[1:] if key in ("classes", "features") else wrong:
        rewrite(path, arrays, {**about, key: value})
        assert_refused(path, ".")


def test_descriptions_that_are_none_or_of_another_model_or_have_wrong_classes(path, train):
    arrays, about = parts(path)
    for text in ("", "null", "[]", "5", '"model"', "{", "[" * 100_000, '{"format": 1e999}', "{}"):
        rewrite(path, arrays, text)
        assert_refused(path, ".")
    rewrite(path, arrays, {**about, "format": 2, "version": "9.1"})
    assert_refused(path, NEWER)
    wrong = {"n_hidden": 9, "training": "x", "damping": None, "colour": "red", "n_jobs": 0}
    for name, value in [*wrong.items(), ("n_hidden", 0)]:
        rewrite(path, arrays, {**about, "parameters": {**about["parameters"], name: value}})
        assert_refused(path, WHOLE)
    quick(max_epochs=1).fit(train.X, train.Y[:, 0]).save(path)
    arrays, about = parts(path)
    wrong = [([0, 300], "|i1"), ([0, 1, 2], "<i8"), (["a"], "<U1"), ("ab", "<U2")]
    for classes, dtype in [*wrong, ([0, 1], "no"), (5, 5)]:
        rewrite(path, arrays, {**about, "classes": classes, "classes_dtype": dtype})
        assert_refused(path, WHOLE)


ARRAYS = ["params.U", "params.W", "params.V", "params.c", "params.d", "scaling.mean"]
ARRAYS += ["scaling.scale", "thresholds", "history.auc", "history.seconds"]


@pytest.mark.parametrize("name", [*ARRAYS, "history.log_likelihood"])
def test_arrays_that_are_missing_or_of_another_type_or_shape(path, name):
    arrays, about = parts(path)
    rewrite(path, {k: v for k, v in arrays.items() if k != name}, about)
    assert_refused(path, f"does not hold a complete model .*{name}")
    rewrite(path, {**arrays, name: arrays[name].astype(np.int32)}, about)
    assert_refused(path, f"does not hold a complete model .*{name} must hold float.*, not int32")
    array = arrays[name]
    for other in (array[..., None], np.concatenate([array, np.ones_like(array[:1])])):
        if other.shape != array.shape and name != "history.log_likelihood":
            rewrite(path, {**arrays, name: np.ascontiguousarray(other)}, about)
            assert_refused(path, WHOLE)


@pytest.mark.parametrize(
    "model",
    [
        quick(max_epochs=1),
        GenerativeRBM(8, max_epochs=1, random_state=0),
        MLPTagger(8, max_epochs=1, random_state=0),
        LogisticTagger(max_epochs=1, random_state=0),
        LogisticTagger(solver="newton"),
        SVMTagger(random_state=0),
        ChainTagger(2, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_not_finite(model, value, train, tmp_path):
    path = tmp_path / "model"
    clone(model).fit(*train).save(path)
    arrays, about = parts(path)
    for name in ("params.W", "params.d", "scaling.mean", "scaling.scale"):
        damaged = arrays[name].copy()
        damaged.flat[-1] = value
        rewrite(path, {**arrays, name: damaged}, about)
        assert_refused(path, f"{WHOLE} .*{name} .*finite", type(model))
    for name, factor in (("thresholds", np.nan), ("scaling.scale", 0)):
        rewrite(path, {**arrays, name: factor * arrays[name]}, about)
        assert_refused(path, name, type(model))


@pytest.mark.parametrize(
    ("model", "name", "value"),
    [
        (CooccurrenceTagger(), "params.rates", -1e20),
        (CooccurrenceTagger(), "params.beside", 1.5),
        (SVMTagger(random_state=0), "nu", -1.0),
    ],
    ids=["rates", "beside", "nu"],
)
def test_numbers_out_of_range(model, name, value, train, tmp_path):
    path = tmp_path / "model"
    clone(model).fit(*train).save(path)
    arrays, about = parts(path)
    for damaged in (np.full_like(arrays[name], value), arrays[name][:0]):
        rewrite(path, {**arrays, name: damaged}, about)
        assert_refused(path, WHOLE, type(model))


@pytest.mark.parametrize("steps", [10**7, 10**30])
def test_steps_that_would_take_for_ever(path, train, steps):
    arrays, about = parts(path)
    about["parameters"]["inference_steps"] = steps
    rewrite(path, arrays, about)
    with pytest.raises(DataError, match="inference_steps"):
        DiscriminativeRBM.load(path).predict_proba(train[0])


@given(position=st.integers(0, 3000), byte=st.integers(0, 255))
@settings(
    deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_a_changed_byte_gives_a_model_or_a_model_file_error(path, content, position, byte):
    damaged = bytearray(content)
    damaged[position % len(content)] = byte
    path.write_bytes(damaged)
    with suppress(ModelFileError):
        assert isinstance(DiscriminativeRBM.load(path), DiscriminativeRBM)
