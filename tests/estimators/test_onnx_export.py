"""The exported graph gives the probabilities that the model gives."""

import sys

import numpy as np
import pytest
from tagging_data import quick

from harmonium import DiscriminativeRBM, GenerativeRBM, LogisticTagger, MLPTagger
from harmonium.errors import DataError

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

FEW = {"max_epochs": 4, "random_state": 0, "learning_rate": 0.05}
MODELS = {
    "default": DiscriminativeRBM(8, **FEW),
    "one member": DiscriminativeRBM(8, n_models=1, calibrate=False, **FEW),
    "quantiles": DiscriminativeRBM(8, n_models=2, scale_features="quantile", **FEW),
    "norm of 1": quick(unit_norm=True, max_epochs=4, inference_steps=9),
    "words": MLPTagger(8, n_models=2, scale_features="idf", **FEW),
    "one step": quick(training="multi_prediction", training_steps=1, scale_features="none"),
    "generative": GenerativeRBM(8, inference="mean_field", inference_steps=4, **FEW),
    "logistic": LogisticTagger(**FEW),
    "newton": LogisticTagger(solver="newton"),
}


def said(path, X):
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(["probabilities"], {"features": X.astype(np.float32)})[0]


@pytest.mark.filterwarnings("ignore:Training ended")
@pytest.mark.parametrize("name", MODELS)
def test_the_probabilities_are_the_same(name, train, held_out, tmp_path):
    X = np.float32(train.X)
    X[:, 1] = np.maximum(X[:, 1].round(), 0)  # equal quantiles
    model = MODELS[name].fit(X, train.Y)
    model.save_onnx(tmp_path / "model.onnx")
    new = np.float32(held_out.X)
    new[:, 1] = np.maximum(new[:, 1].round(), 0)
    new[0] = 0
    new[1] = 1e4
    found = said(tmp_path / "model.onnx", new)
    np.testing.assert_allclose(found, model.predict_proba(new), atol=2e-5)
    assert np.ptp(found, axis=0).max() > 0.05
    assert said(tmp_path / "model.onnx", new[:1]).shape == (1, train.Y.shape[1])


@pytest.mark.filterwarnings("ignore:Training ended")
def test_one_column_has_both_classes(train, tmp_path):
    labels = np.array(["no", "yes"])[train.Y[:, 0].astype(int)]
    model = DiscriminativeRBM(8, n_models=2, **FEW).fit(train.X, labels)
    model.save_onnx(tmp_path / "model.onnx")
    found = said(tmp_path / "model.onnx", train.X)
    np.testing.assert_allclose(found, model.predict_proba(np.float32(train.X)), atol=2e-5)


def test_what_cannot_be_exported(train, tmp_path, monkeypatch):
    model = quick(inference="lbp", max_epochs=1, validation_fraction=0).fit(*train)
    with pytest.raises(DataError, match="inference='mean_field'"):
        model.save_onnx(tmp_path / "model.onnx")
    model.set_params(inference="mean_field").save_onnx(tmp_path / "model.onnx")
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(DataError, match=r"harmonium\[onnx\]"):
        model.save_onnx(tmp_path / "other.onnx")
    assert not (tmp_path / "other.onnx").exists()
