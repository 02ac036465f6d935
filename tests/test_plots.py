"""The plots show the numbers that the metrics give."""

import subprocess
import sys
from itertools import product

import matplotlib as mpl
import numpy as np
import pytest
from tagging_data import quick

from harmonium import MLPTagger, TagRBM, plots
from harmonium.errors import DataError
from harmonium.evaluation import auc_per_tag

mpl.use("Agg")


@pytest.fixture(autouse=True)
def close_figures():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.fixture(scope="module")
def predictions():
    rng = np.random.default_rng(0)
    P = rng.random((200, 3))
    Y = (rng.random((200, 3)) < P).astype(float)
    Y[::5, 1] = np.nan
    Y[:, 2] = 0
    return Y, P


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    Y = (X[:, :2] + rng.normal(size=(120, 2)) > 0).astype(float)
    return quick(max_epochs=6, n_models=2).fit(X, np.column_stack([Y, Y[:, 0]]))


def test_curves_of_tags_that_have_both_kinds_of_labels(predictions):
    ax = plots.plot_roc(*predictions, tags=["sad", "calm", "never"])
    curves = [line for line in ax.get_lines() if line.get_gid()]
    aucs = auc_per_tag(*predictions).values
    areas = [np.trapezoid(line.get_ydata(), line.get_xdata()) for line in curves]
    np.testing.assert_allclose(areas, aucs[:2])
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == [f"sad, AUC {aucs[0]:.2f}", f"calm, AUC {aucs[1]:.2f}"]
    ax = plots.plot_precision_recall(*predictions)
    first = next(line for line in ax.get_lines() if line.get_gid() == "0")
    Y, P = predictions
    said = P[:, 0] >= np.median(P[:, 0])
    point = (Y[said, 0].sum() / Y[:, 0].sum(), Y[said, 0].mean())
    assert np.min(np.abs(first.get_xydata() - point).sum(axis=1)) < 1e-9


def test_reliability_is_drawn_on_the_axes_given(predictions):
    import matplotlib.pyplot as plt

    _, ax = plt.subplots()
    assert plots.plot_reliability(*predictions, ax=ax) is ax
    [points] = ax.collections
    assert np.abs(np.diff(points.get_offsets(), axis=1)).max() < 0.4


@pytest.mark.filterwarnings("ignore:Training ended")
def test_the_history_has_a_point_for_each_epoch(model):
    ax = plots.plot_history(model)
    np.testing.assert_array_equal(ax.get_lines()[0].get_ydata(), model.history_["auc"])
    assert f"epoch {model.best_epoch_}" in ax.texts[0].get_text()
    unscored = quick(max_epochs=3, validation_fraction=0.0).fit(np.eye(30), np.eye(30)[:, :2])
    assert "training" in plots.plot_history(unscored).get_ylabel()
    tags = TagRBM(n_hidden=3, max_epochs=2, random_state=0)
    assert plots.plot_history(tags.fit(np.eye(40)[:, :4])).get_ylabel()


def test_dependence_is_the_change_of_log_odds_by_enumeration(model):
    """Of an average clip whose other tags are absent."""
    dependence = plots.tag_dependence(model)
    expected = np.zeros((3, 3))
    for params in model._member_params():
        U, c, d = (np.asarray(a, float) for a in (params.U, params.c, params.d))
        weight = {}
        for y in product([0, 1], repeat=3):
            hidden = [np.array(h) for h in product([0, 1], repeat=len(c))]
            weight[y] = np.log(sum(np.exp(h @ U @ y + d @ np.array(y) + c @ h) for h in hidden))
        for j, k in product(range(3), repeat=2):
            if j != k:
                on = [
                    tuple(np.eye(3, dtype=int)[list(set_)].sum(axis=0))
                    for set_ in ([j, k], [j], [k])
                ]
                expected[j, k] += weight[on[0]] - weight[on[1]] - weight[on[2]] + weight[0, 0, 0]
    np.testing.assert_allclose(dependence, expected / 2, atol=1e-4)
    ax = plots.plot_dependence(model, most=2)
    assert ax.images[0].get_array().shape == (2, 2)
    assert len(ax.get_xticklabels()) == 2


def test_only_an_rbm_has_dependences(predictions):
    with pytest.raises(DataError, match="MLPTagger"):
        plots.tag_dependence(MLPTagger(3))


def test_matplotlib_is_loaded_when_a_plot_is_drawn():
    program = "import sys, harmonium.plots; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.strip() == b"False"
