"""Inference in NumPy: equal to the JAX one, and to enumeration."""

import enumeration as en
import numpy as np
import pytest

from harmonium.logistic import log_odds, sigmoid
from harmonium.rbm import forward
from harmonium.rbm.forward import ConditionalRBM, PlainRBM
from harmonium.rbm.inference import InferenceOptions, infer
from harmonium.rbm.model import Params

NAN = np.nan
FINE = {"steps": 200, "tolerance": 1e-9}


def random_rbm(rng, n_hidden, n_tags, scale=1.0):
    U = scale * rng.normal(size=(n_hidden, n_tags))
    return PlainRBM(U, rng.normal(size=n_hidden), rng.normal(size=n_tags))


def random_member(rng, n_hidden=6, n_tags=5, n_features=4):
    model = en.random_model(rng, n_hidden, n_tags, n_features)
    return ConditionalRBM(U=model.U, W=model.W, c=model.c, d=model.d)


def infer_by_jax(member, x, y, options):
    U, W, c, d = (np.asarray(array, np.float32) for array in member[:4])
    params = Params(U, W, np.zeros((0, len(d)), np.float32), c, d)
    no_rows = np.zeros((len(x), 0), np.int32)
    return infer(params, np.float32(x), no_rows, np.float32(y), options)


def infer_tags_by_jax(rbm, y):
    """What `infer` says about one clip y (C,), without features."""
    without_features = ConditionalRBM(rbm.U, np.zeros((len(rbm.c), 0)), rbm.c, rbm.d)
    return infer_by_jax(without_features, np.zeros((1, 0)), y[None], InferenceOptions())


@pytest.mark.parametrize("steps", [1, 3, 20])
def test_mean_field_is_that_of_jax(steps):
    rng = np.random.default_rng(steps)
    member = random_member(rng)
    x, y = rng.normal(size=(7, 4)), en.random_tags(rng, 7, 5, unknown=0.6)
    by_numpy = forward.mean_field(member.condition(x), y, steps=steps)
    by_jax = infer_by_jax(member, x, y, InferenceOptions("mean_field", steps))
    np.testing.assert_allclose(by_numpy, by_jax.y, atol=1e-6)


def test_mean_field_keeps_known_tags():
    rng = np.random.default_rng(0)
    y = en.random_tags(rng, 7, 5, unknown=0.5)
    found = forward.mean_field(random_rbm(rng, 6, 5), y, steps=3)
    known = ~np.isnan(y)
    np.testing.assert_array_equal(found[known], y[known])


def test_mean_field_of_untied_units_is_exact():
    rbm = PlainRBM(np.zeros((2, 3)), np.zeros(2), np.array([-1.0, 0.0, 2.0]))
    found = forward.mean_field(rbm, np.full((1, 3), NAN), steps=3)[0]
    np.testing.assert_allclose(found, sigmoid(rbm.d))


def test_members_answer_by_the_mean_of_their_log_odds():
    rng = np.random.default_rng(1)
    members = [random_member(rng) for _ in range(3)]
    x, y = rng.normal(size=(4, 4)), np.full((4, 5), NAN)
    answers = [forward.mean_field(m.condition(x), y, steps=2) for m in members]
    expected = sigmoid(np.mean([log_odds(answer) for answer in answers], axis=0))
    found = forward.mean_of_members(members, x, y, steps=2)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_the_conditionals_are_those_of_enumeration():
    rng = np.random.default_rng(2)
    rbm = random_rbm(rng, 3, 4)
    y = en.random_tags(rng, 1, 4)
    truth = en.enumerate_clip(*rbm, y[0])
    np.testing.assert_allclose(forward.hidden_given_tags(rbm, y)[0], truth.h, atol=1e-12)
    h = rng.integers(0, 2, (1, 3)).astype(float)
    swapped = en.enumerate_clip(rbm.U.T, rbm.d, rbm.c, h[0])
    np.testing.assert_allclose(forward.tags_given_hidden(rbm, h)[0], swapped.h, atol=1e-12)


@pytest.mark.parametrize("unknown", [1.0, 0.7])
def test_belief_propagation_is_exact_on_a_tree(unknown):
    """One hidden unit makes the graph a tree."""
    rng = np.random.default_rng(3)
    for _ in range(5):
        rbm = random_rbm(rng, 1, 4, scale=2.0)
        y = en.random_tags(rng, 1, 4, unknown=unknown)[0]
        truth = en.enumerate_clip(*rbm, y)
        np.testing.assert_allclose(forward.tag_probabilities(rbm, y, **FINE), truth.y, atol=1e-7)


def test_belief_propagation_finds_the_hidden_units_of_a_tree():
    rbm = random_rbm(np.random.default_rng(4), 1, 4, scale=2.0)
    truth = en.enumerate_clip(*rbm, np.full(4, NAN))
    found = forward.belief_propagation(rbm, damping=0.5, **FINE)
    np.testing.assert_allclose(found.h, truth.h, atol=1e-7)
    assert found.residual <= 1e-9


def test_belief_propagation_is_that_of_jax():
    rng = np.random.default_rng(5)
    for _ in range(4):
        rbm = random_rbm(rng, 8, 8)
        y = en.random_tags(rng, 1, 8, unknown=0.7)[0]
        by_jax = infer_tags_by_jax(rbm, y)
        assert by_jax.diagnostics.method[0] == "lbp"
        np.testing.assert_allclose(forward.tag_probabilities(rbm, y), by_jax.y[0], atol=2e-5)


def test_belief_propagation_takes_more_damping_where_jax_does():
    rng = np.random.default_rng(6)
    nothing_known = np.full(8, NAN)
    methods = set()
    for _ in range(30):
        rbm = random_rbm(rng, 8, 8, scale=2.0)
        by_jax = infer_tags_by_jax(rbm, nothing_known)
        methods.add(str(by_jax.diagnostics.method[0]))
        found = forward.tag_probabilities(rbm, nothing_known)
        np.testing.assert_allclose(found, by_jax.y[0], atol=1e-4)
    assert methods == {"lbp", "lbp, damping 0.75"}


@pytest.mark.parametrize("scale", [20.0, 100.0, 1000.0])
def test_weights_of_any_size_give_probabilities(scale):
    rbm = random_rbm(np.random.default_rng(7), 6, 5, scale)
    with np.errstate(over="ignore", invalid="ignore"):
        p = forward.tag_probabilities(rbm, np.full(5, NAN))
    assert np.all((p >= 0) & (p <= 1))


def test_what_never_converges_is_left_to_mean_field(monkeypatch):
    rbm = random_rbm(np.random.default_rng(7), 5, 4)
    dampings = []

    def never_converges(free, *, steps, damping, tolerance):
        dampings.append(damping)
        return forward.Marginals(free.d, free.c, np.inf)

    monkeypatch.setattr(forward, "belief_propagation", never_converges)
    y = np.array([1.0, NAN, NAN, 0.0])
    found = forward.tag_probabilities(rbm, y)
    assert dampings == [0.5, 0.75]
    expected = forward.mean_field(rbm, y[None], steps=1000)[0]
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_known_tags_alone_need_no_inference():
    rbm = random_rbm(np.random.default_rng(8), 3, 2)
    np.testing.assert_array_equal(forward.tag_probabilities(rbm, np.array([1.0, 0.0])), [1, 0])
