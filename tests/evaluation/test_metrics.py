"""All metrics together: what they give, what they refuse, and whether their examples run."""

import doctest
import importlib
import pkgutil
import re

import numpy as np
import pandas as pd
import pytest
from places import DOCS

import harmonium.evaluation as evaluation
from harmonium.errors import DataError
from harmonium.evaluation import MetricResult, evaluate, precision_at_k_per_tag
from harmonium.evaluation.metrics import ternary

NAN = float("nan")
PAGE = DOCS / "evaluation.md"
NAMES = {
    "auc": "auc_per_tag",
    "average_precision": "average_precision_per_tag",
    "precision_at_k": "precision_at_k_per_tag",
    "auc_per_clip": "auc_per_clip",
    "calibration_error": "calibration_error_per_tag",
    "brier": "brier_per_tag",
    "log_loss": "log_loss_per_tag",
}


def case():
    rng = np.random.default_rng(0)
    Y = (rng.random((40, 5)) < 0.4).astype(float)
    Y[rng.random(Y.shape) < 0.1] = np.nan
    Y[:, 4] = np.nan
    return Y, rng.random((40, 5))


@pytest.mark.parametrize("options", [{}, {"k": 3, "n_bins": 4}], ids=["usual", "others"])
def test_evaluate_gives_what_each_metric_gives(options):
    Y, S = case()
    results = evaluate(Y, S, **options)
    assert list(results) == list(NAMES)
    for name, result in results.items():
        own = {"precision_at_k": "k", "calibration_error": "n_bins"}.get(name)
        given = {key: value for key, value in options.items() if key == own}
        expected = getattr(evaluation, NAMES[name])(Y, S, **given)
        np.testing.assert_array_equal(result, expected)
        assert result.reasons == expected.reasons
        assert set(result.reasons) == set(np.flatnonzero(np.isnan(result)).tolist())


def test_scores_that_are_not_probabilities_are_ranked_but_not_judged_as_such():
    Y, S = case()
    ranked, scaled = evaluate(Y, S), evaluate(Y, 3 * S - 1)
    for name in ("auc", "average_precision", "precision_at_k"):
        np.testing.assert_array_equal(scaled[name], ranked[name])
    for name in ("calibration_error", "brier", "log_loss"):
        assert scaled[name].reasons == dict.fromkeys(range(5), "scores are not probabilities")
        assert np.isnan(scaled[name].mean)


GOOD_Y, GOOD_S = np.array([[1, 0], [0, 1.0]]), np.array([[0.5, 0.1], [0.2, 0.9]])
BAD_CASES = [
    (GOOD_Y, GOOD_S[:, :1], r"same shape.* Y \(2, 2\) and S \(2, 1\)"),
    (GOOD_Y[:, 0], GOOD_S[:, 0], r"Y must have two dimensions.*shape \(2,\).*Y\[:, None\]"),
    (GOOD_Y, GOOD_S[0], r"S must have two dimensions.*shape \(2,\)"),
    ([[1, 2], [0, 0]], GOOD_S, r"Got 1 other values.*clip 0, tag 1: 2\.0"),
    ([[1, 0.5], [-1, 0]], GOOD_S, r"Got 2 other values.*clip 0, tag 1: 0\.5"),
    ([[1, np.inf], [0, 0]], GOOD_S, r"clip 0, tag 1: inf"),
    (GOOD_Y, [[0.5, 0.1], [NAN, 0.9]], r"S must hold finite.*Got 1 .*clip 1, tag 0: nan"),
    (GOOD_Y, [[0.5, np.inf], [NAN, 0.9]], r"S must hold finite.*Got 2 .*clip 0, tag 1: inf"),
    ([["yes", "no"], ["no", "yes"]], GOOD_S, r"Y must be a matrix of numbers"),
    (GOOD_Y, [[0.5, 0.1], [0.2]], r"S must be a matrix of numbers"),
    (pd.DataFrame({"a": [1, pd.NA], "b": [0, 1]}), GOOD_S, r"Y must be a matrix of numbers"),
    (None, GOOD_S, r"Y must have two dimensions"),
]


@pytest.mark.parametrize("metric", ["evaluate", *NAMES.values()])
@pytest.mark.parametrize(("Y", "S", "message"), BAD_CASES)
def test_every_metric_refuses_bad_input_in_the_same_words(metric, Y, S, message):
    with pytest.raises(DataError, match=message):
        getattr(evaluation, metric)(Y, S)


@pytest.mark.parametrize("k", [0, -1, 2.5, "3"])
def test_k_is_a_whole_number(k):
    with pytest.raises(DataError, match=f"k must be a whole number.*Got {k!r}"):
        precision_at_k_per_tag(GOOD_Y, GOOD_S, k=k)


def test_a_result_is_an_array_to_numpy():
    result = MetricResult(np.array([0.5, NAN, 1.0]), {1: "no positive"})
    assert len(result) == 3
    assert result.mean == 0.75
    np.testing.assert_array_equal(np.asarray(result), [0.5, NAN, 1])
    np.testing.assert_array_equal(result - np.ones(3), [-0.5, NAN, 0])
    assert np.asarray(result, dtype=np.float32).dtype == np.float32
    copied = np.array(result)
    copied[0] = 0
    assert result.values[0] == 0.5


def test_labels_that_are_all_known_need_no_mask():
    assert ternary([[0, 1], [1, 0]]).known is None
    np.testing.assert_array_equal(ternary([[0, NAN]]).known, [[True, False]])


def test_the_examples_of_the_page_run(capsys):
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    assert len(blocks) >= 4
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    # What the page says that its first example prints.
    assert names["results"]["auc"].reasons == {}
    assert names["tests"].n_better > names["tests"].n_worse
    assert capsys.readouterr().out.count("{}") >= 2


@pytest.mark.parametrize("name", [m.name for m in pkgutil.iter_modules(evaluation.__path__)])
def test_the_examples_of_the_docstrings_run(name):
    module = importlib.import_module(f"harmonium.evaluation.{name}")
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize("name", evaluation.__all__)
def test_every_public_name_is_described(name):
    assert getattr(evaluation, name).__doc__
    assert not name[0].islower() or f"`{name}" in PAGE.read_text(encoding="utf-8")
