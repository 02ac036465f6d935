"""The entrance to inference, and exact inference against the sum over all states."""

import enumeration as en
import jax
import numpy as np
import pytest

from harmonium.rbm import inference as module

N_HIDDEN, N_TAGS, N_FEATURES, N_ROWS = 6, 7, 5, 4
N_CLIPS = module.CHUNK + module.TILE - 3
DETERMINISTIC = ["lbp", "mean_field", "exact"]
METHODS = [*DETERMINISTIC, "gibbs"]
SIZES = N_HIDDEN, N_TAGS, N_FEATURES, N_ROWS
PARAMS = en.as_params(en.random_model(np.random.default_rng(0), *SIZES, scale=0.7))


def options(method):
    return module.InferenceOptions(method=method, steps=40)


@pytest.fixture(scope="module")
def clips():
    rng = np.random.default_rng(1)
    u = rng.normal(size=(N_CLIPS, N_FEATURES)).astype(np.float32)
    a = rng.integers(-1, N_ROWS, (N_CLIPS, 2)).astype(np.int32)
    return u, a, en.random_tags(rng, N_CLIPS, N_TAGS, unknown=0.7).astype(np.float32)


@pytest.fixture(scope="module")
def whole(clips):
    return {method: module.infer(PARAMS, *clips, options(method)) for method in METHODS}


def take(clips, rows):
    return tuple(array[rows] for array in clips)


@pytest.mark.parametrize("method", METHODS)
def test_every_clip_has_marginals(method, whole, clips):
    result = whole[method]
    assert result.y.shape == (N_CLIPS, N_TAGS)
    assert result.h.shape == (N_CLIPS, N_HIDDEN)
    assert ((result.y >= 0) & (result.y <= 1)).all()
    known = ~np.isnan(clips[2])
    np.testing.assert_array_equal(result.y[known], clips[2][known])


@pytest.mark.parametrize("method", METHODS)
def test_every_clip_has_diagnostics(method, whole):
    result = whole[method]
    for array in (*result.diagnostics, result.y, result.h):
        assert len(array) == N_CLIPS
    within = result.diagnostics.residual <= np.float32(module.InferenceOptions().tolerance)
    np.testing.assert_array_equal(result.diagnostics.converged, within)


@pytest.mark.parametrize("method", METHODS)
def test_no_clips_have_empty_marginals(method, clips):
    none = module.infer(PARAMS, *take(clips, slice(0, 0)), options(method))
    assert (none.y.shape, none.h.shape) == ((0, N_TAGS), (0, N_HIDDEN))
    assert all(array.shape == (0,) for array in none.diagnostics)


@pytest.mark.parametrize("method", METHODS)
def test_threads_change_no_result(method, whole, clips):
    result = whole[method]
    threaded = module.infer(PARAMS, *clips, options(method)._replace(threads=3))
    np.testing.assert_array_equal(threaded.y, result.y)
    np.testing.assert_array_equal(threaded.h, result.h)
    for one, other in zip(threaded.diagnostics, result.diagnostics, strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_methods_agree_as_far_as_they_should(whole, clips):
    """Rows of every chunk are those of their clips: nothing is shifted or mixed up."""
    truth = whole["exact"].y
    unknown = np.isnan(clips[2])
    for method, tolerance in (("lbp", 0.02), ("gibbs", 0.1), ("mean_field", 0.12)):
        assert np.abs(whole[method].y - truth)[unknown].mean() < tolerance
        last = slice(module.CHUNK, None)
        assert np.abs(whole[method].y - truth)[last][unknown[last]].mean() < tolerance


@pytest.mark.parametrize("method", DETERMINISTIC)
@pytest.mark.parametrize(
    "rows", [[5], [module.CHUNK, 3, module.CHUNK + 7, 3], range(40, 40 + module.TILE)]
)
def test_a_clip_does_not_depend_on_its_neighbours(method, rows, whole, clips):
    rows = list(rows)
    part = module.infer(PARAMS, *take(clips, rows), options(method))
    # a product of another size is rounded otherwise: a few units in the last place of float32
    np.testing.assert_allclose(part.y, whole[method].y[rows], rtol=0, atol=5e-7)
    np.testing.assert_allclose(part.h, whole[method].h[rows], rtol=0, atol=5e-7)
    np.testing.assert_array_equal(part.diagnostics.method, whole[method].diagnostics.method[rows])


def test_seeds_of_gibbs_do_not_share_their_noise(whole, clips):
    other = module.infer(PARAMS, *clips, options("gibbs")._replace(seed=1))
    assert (other.y != whole["gibbs"].y).any()


def test_chunks_of_gibbs_do_not_share_their_noise(clips):
    same = take(clips, np.zeros(N_CLIPS, int))
    result = module.infer(PARAMS, same[0], same[1], np.full_like(same[2], np.nan), options("gibbs"))
    assert np.abs(result.y[0] - result.y[module.CHUNK]).max() > 0.001


def test_few_programs_serve_every_number_of_clips(clips):
    sizes = {module.padded(size) for size in range(1, module.CHUNK + 1)}
    assert sizes == {module.TILE * 2**i for i in range(6)}
    assert all(module.padded(size) >= size for size in range(1, module.CHUNK + 1))
    module.infer(PARAMS, *take(clips, slice(0, 1)), options("lbp"))
    before = module._program.__wrapped__._cache_size()
    for size in (2, 9, module.TILE):
        for damping in (0.4, 0.6):
            other = options("lbp")._replace(damping=damping, tolerance=damping / 100)
            module.infer(PARAMS, *take(clips, slice(0, size)), other._replace(retry=False))
    assert module._program.__wrapped__._cache_size() == before


def test_a_gpu_gets_larger_chunks(whole, clips, monkeypatch):
    """As many clips at once as have room, a power of two, and at least as many as a CPU."""
    sizes = []

    chunk = module._marginals

    def record(options, params, part, start):
        sizes.append((start, len(part[2])))
        return chunk(options, params, part, start)

    monkeypatch.setattr(module, "platform", lambda: "gpu")
    monkeypatch.setattr(module, "_marginals", record)
    for room, expected in (
        (1, [(0, module.CHUNK), (module.CHUNK, module.CHUNK)]),
        (2 * module.CHUNK + 9, [(0, 2 * module.CHUNK)]),
    ):
        monkeypatch.setattr(module, "MAX_MESSAGES", room * PARAMS.U.size)
        sizes.clear()
        result = module.infer(PARAMS, *clips, options("lbp")._replace(retry=False))
        assert sorted(sizes) == expected
        at_once = whole["lbp"].diagnostics.method == "lbp"
        assert at_once.mean() > 0.9
        np.testing.assert_allclose(result.y[at_once], whole["lbp"].y[at_once], rtol=0, atol=1e-6)


def frustrated(weight):
    """Signs of a Hadamard matrix: the units cannot agree, and undamped messages oscillate.

    The first clip has biases that centre every unit; in the second they decide all of them.
    """
    H = np.array([[1, 1], [1, -1]])
    U = weight * np.kron(H, H).astype(np.float64)
    model = en.Model(U, np.full((4, 1), 500.0), np.zeros((0, 4)), -U.sum(1) / 2, -U.sum(0) / 2)
    u = np.array([[0.0], [1.0]])
    return model, u, np.zeros((2, 0), np.int32), np.full((2, 4), np.nan)


def run(case, choice):
    model, u, a, y = case
    return module.infer(en.as_params(model), np.float32(u), a, np.float32(y), choice)


UNDAMPED = module.InferenceOptions(damping=0.0, steps=100)


@pytest.mark.parametrize(
    ("weight", "method", "again"),
    [
        (4.0, "lbp, damping 0.5", {"damping": 0.5}),
        (10.0, "mean_field", {"method": "mean_field"}),  # where damping does not help
    ],
)
def test_a_clip_that_oscillates_gets_another_method(weight, method, again):
    case = frustrated(weight)
    result, alone = run(case, UNDAMPED), run(case, UNDAMPED._replace(retry=False))
    assert list(result.diagnostics.method) == [method, "lbp"]
    assert result.diagnostics.converged.all()
    expected = run(case, UNDAMPED._replace(steps=1000, retry=False, **again))
    np.testing.assert_allclose(result.y[0], expected.y[0], rtol=0, atol=1e-7)
    np.testing.assert_allclose(result.h[0], expected.h[0], rtol=0, atol=1e-7)
    np.testing.assert_array_equal(result.y[1], alone.y[1])
    assert list(alone.diagnostics.method) == ["lbp", "lbp"]
    assert list(alone.diagnostics.converged) == [False, True]
    assert alone.diagnostics.residual[0] > 0.1


@pytest.mark.parametrize("method", METHODS)
def test_weights_of_50_give_no_nan(method):
    rng = np.random.default_rng(2)
    for _ in range(3):
        params = en.as_params(en.extreme_model(rng, 10, 12, 3, 4))
        u = rng.normal(size=(8, 3)).astype(np.float32)
        a = rng.integers(-1, 4, (8, 2)).astype(np.int32)
        y = en.random_tags(rng, 8, 12, unknown=0.7).astype(np.float32)
        result = module.infer(params, u, a, y, module.InferenceOptions(method=method))
        for array in (result.y, result.h):
            assert ((array >= 0) & (array <= 1)).all()
        assert np.isfinite(result.diagnostics.residual).all()


EXACT = module.InferenceOptions(method="exact")
jitted = jax.jit(module.exact, static_argnames="pairs")
jitted_log_likelihood = jax.jit(module.log_likelihood)
# (hidden units, tags): enumerated over the hidden units, over the tags, and at the smallest sizes
SHAPES = [(10, 12), (10, 8), (1, 12), (10, 1), (1, 1)]


def models(rng, n, C):
    yield from (en.random_model(rng, n, C, D=3, A=4, scale=scale) for scale in (0.3, 1.0, 3.0))
    yield en.extreme_model(rng, n, C, D=3, A=4)


def some_clips(rng, C):
    """One clip without known tags, two with a random half known, one with all known."""
    u = np.float32(rng.normal(size=(4, 3))).astype(np.float64)
    a = rng.integers(-1, 4, (4, 2)).astype(np.int32)
    y = en.random_tags(rng, 4, C, unknown=0.5)
    y[0] = np.nan
    y[3] = en.random_tags(rng, 1, C)[0]
    return u, a, y


@pytest.mark.parametrize(("n", "C"), SHAPES)
def test_marginals_are_right_to_1e_6_with_any_tags_known(n, C):
    rng = np.random.default_rng(n * C)
    for model in models(rng, n, C):
        u, a, y = some_clips(rng, C)
        result = module.infer(en.as_params(model), np.float32(u), a, np.float32(y), EXACT)
        truth = en.enumerate_clips(model, u, a, y)
        np.testing.assert_allclose(result.y, [t.y for t in truth], rtol=0, atol=1e-6)
        np.testing.assert_allclose(result.h, [t.h for t in truth], rtol=0, atol=1e-6)
        assert (result.diagnostics.method == "exact").all()
        assert result.diagnostics.converged.all()


@pytest.fixture(params=[(6, 8), (8, 6)], ids=["over hidden units", "over tags"])
def in_float64(request):
    """Models with the same biases for four clips, of which one has no known tag and one has all."""
    rng, (n, C) = np.random.default_rng(7), request.param
    return [(model, some_clips(rng, C)[2]) for model in models(rng, n, C)]


def field_of(model):
    return en.as_field(model.U, np.tile(model.c, (4, 1)), np.tile(model.d, (4, 1)), float)


def of_each_clip(model, y):
    """What is inferred of four clips, with the truth about each."""
    with jax.enable_x64(True):
        result = jitted(field_of(model), y, pairs=True)
    return result, [en.enumerate_clip(model.U, model.c, model.d, y[b]) for b in range(4)]


def test_log_z_in_float64(in_float64):
    for model, y in in_float64:
        result, truths = of_each_clip(model, y)
        for b, truth in enumerate(truths):
            np.testing.assert_allclose(result.log_z[b], truth.log_z, rtol=1e-12, atol=1e-12)


def test_pairs_in_float64(in_float64):
    for model, y in in_float64:
        result, truths = of_each_clip(model, y)
        for b, truth in enumerate(truths):
            np.testing.assert_allclose(result.pairs[:, :, b], truth.pairs, rtol=0, atol=1e-12)


def test_log_likelihood_sums_the_unknown_tags_out(in_float64):
    for model, y in in_float64:
        with jax.enable_x64(True):
            log_p = jitted_log_likelihood(field_of(model), y)
        truth = [en.enumerated_log_likelihood(model.U, model.c, model.d, row) for row in y]
        np.testing.assert_allclose(log_p, truth, rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize("scale", [1.0, 50.0])
def test_more_states_than_one_block(scale):
    """2^11 states of the smaller side stream in two blocks, whatever their order of magnitude."""
    rng = np.random.default_rng(11)
    model = en.random_model(rng, 11, 11, scale=scale)
    c, d = np.tile(model.c, (2, 1)), np.tile(model.d, (2, 1))
    # the last tag tells the blocks apart: make the first block the heavier, and then the second
    y = np.full((2, 11), np.nan)
    off, on = (np.append(y[0, :10], last) for last in (0.0, 1.0))
    log_z_off, log_z_on = (en.enumerate_clip(model.U, c[0], d[0], row).log_z for row in (off, on))
    d[:, 10] += np.array([-1.0, 1.0]) + log_z_off - log_z_on
    y[1, :3] = 1.0
    with jax.enable_x64(True):
        result = jitted(en.as_field(model.U, c, d, float), y)
    for b in range(2):
        truth = en.enumerate_clip(model.U, c[b], d[b], y[b])
        np.testing.assert_allclose(result.y[b], truth.y, rtol=0, atol=1e-10)
        np.testing.assert_allclose(result.h[b], truth.h, rtol=0, atol=1e-10)
        np.testing.assert_allclose(result.log_z[b], truth.log_z, rtol=1e-12)
