"""Precision from held-out tracks: the curve, its bounds, and the threshold that keeps a promise."""

import dataclasses
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from some_tracks import a_model
from tag_rows import written_from
from written_music import make_songs, predict

from harmonium.errors import DataError
from harmonium.estimators.model_files import from_bytes, to_bytes
from harmonium.library import Library
from harmonium.library.filetags import Rules
from harmonium.library.learning import scores
from harmonium.library.model.precision import (
    ELSEWHERE,
    TAUGHT_PRIOR,
    TagPrecision,
    curves_from_arrays,
    threshold_for,
)
from harmonium.library.writing.file_plans import plan_writes
from harmonium.library.writing.wanted import TagSources, wanted_tags
from harmonium.precision_bound import DOUBT


def curves_of(model):
    return curves_from_arrays(from_bytes(model.bytes)[0])


def reasons_not_to_write(library, precision):
    decisions = library.snapshot().tags.written(precision)
    return {tag: one.reason for tag, one in decisions.items() if one.reason is not None}


def draw(n, rng, sharpness=4.0, rate=-1.0):
    """Probabilities that are right: y is 1 with just that probability."""
    p = 1 / (1 + np.exp(-(rate + sharpness * rng.normal(size=n))))
    return (rng.random(n) < p).astype(np.float32), p.astype(np.float32)


def stored(curves):
    thresholds = np.array([0.3, np.nan], np.float32)
    return a_model(2, thresholds=thresholds, bytes=to_bytes(scores.curves_to_arrays(curves), {}))


def test_a_curve_counts_what_reaches_each_threshold():
    rng = np.random.default_rng(0)
    y, p = draw(500, rng)
    y[:30] = np.nan
    p = np.round(p, 2)
    curve = scores.make_curve(y, p)
    for threshold, chosen, right in zip(curve.thresholds, curve.chosen, curve.right, strict=True):
        reached = (p >= np.float32(threshold)) & ~np.isnan(y)
        assert (chosen, right) == (reached.sum(), (y[reached] == 1).sum())
    assert curve.chosen[-1] == 470
    assert curve.recall[-1] == 1
    assert (np.diff(curve.thresholds) < 0).all()


def test_tracks_of_one_artist_count_as_far_as_artists_differ():
    y, p = np.ones(12, np.float32), np.linspace(0.95, 0.6, 12, dtype=np.float32)
    alone = scores.make_curve(y, p)
    np.testing.assert_allclose(alone.effective, alone.chosen)
    np.testing.assert_allclose(alone.expected, [p[:n].mean() for n in alone.chosen], rtol=1e-6)
    names = list("abcabcabcabc")
    together = scores.make_curve(y, p, names)
    for n, effective in zip(together.chosen, together.effective, strict=True):
        _, sizes = np.unique(names[:n], return_counts=True)
        assert effective == pytest.approx(n**2 / (sizes**2).sum())
    assert threshold_for(alone, 0.8) == pytest.approx(p[-1])
    assert threshold_for(together, 0.8) == 0.8  # three artists prove nothing: the probability does


def test_few_tracks_promise_nothing():
    y = np.array([1] * 7 + [0] * 20, np.float32)
    p = np.linspace(0.95, 0.1, 27, dtype=np.float32)
    assert threshold_for(scores.make_curve(y, p), 0.8) == 0.8
    y[7:9] = 1
    assert threshold_for(scores.make_curve(y, p), 0.8) == pytest.approx(p[8])
    sure = np.linspace(0.99, 0.95, 12, dtype=np.float32)
    unsure = np.linspace(0.6, 0.4, 12, dtype=np.float32)
    y = np.ones(12, np.float32)
    assert threshold_for(scores.make_curve(y, unsure), 0.9) is None  # as all tags show
    assert threshold_for(scores.make_curve(y, sure), 0.9) == 0.9


def test_mistakes_end_a_promise():
    y = np.array([1] * 9 + [0] * 18, np.float32)
    p = np.linspace(0.95, 0.1, 27, dtype=np.float32)
    assert threshold_for(scores.make_curve(y, p), 0.8) == pytest.approx(p[8])
    y[[3, 5]] = 0
    assert threshold_for(scores.make_curve(y, p), 0.8) == 0.8
    y[:6] = 0
    assert threshold_for(scores.make_curve(y, p), 0.8) is None


def test_a_precision_above_1_is_refused():
    with pytest.raises(DataError, match=r"'precision' must be at least 0 and below 1\. Got 1\.5"):
        threshold_for(scores.make_curve(np.ones(3, np.float32), np.ones(3, np.float32)), 1.5)


def test_the_promise_is_kept_beyond_the_doubt():
    """The true precision above a chosen threshold is below the promise in few cases."""
    rng = np.random.default_rng(1)
    many, truth = draw(200_000, rng, 2.0)[::-1]
    kept, broken = 0, 0
    for _ in range(300):
        threshold = threshold_for(scores.make_curve(*draw(400, rng, 2.0)), 0.8)
        if threshold is not None:
            kept += truth[many >= threshold].mean() >= 0.8
            broken += truth[many >= threshold].mean() < 0.8
    assert kept > 150
    assert broken / 300 < DOUBT + 0.05


def test_a_stored_model_gives_the_curve_of_a_tag():
    rng = np.random.default_rng(3)
    curves = [scores.make_curve(*draw(n, rng)) for n in (200, 90)]
    model = stored(curves)
    first, found = curves_of(model)
    for name in ("chosen", "right", "positives", "thresholds", "effective"):
        expected = getattr(curves[1], name)
        np.testing.assert_allclose(getattr(found, name), expected, rtol=1e-6, atol=1e-7)
    written = written_from(model, 0.8)
    assert written == {"tag 0": max(threshold_for(first, 0.8), threshold_for(first, 0.5))}
    low, high, many = found.below(), found.below(1 - DOUBT), found.chosen >= 30
    assert (low < high).all()
    assert ((low <= found.precision) & (found.precision <= high))[many].all()


def test_without_a_curve_a_stored_model_promises_nothing():
    rng = np.random.default_rng(3)
    curves = [scores.make_curve(*draw(n, rng)) for n in (200, 90)]
    _, p = draw(400, rng)
    curves[1] = scores.make_curve(np.full(400, np.nan, np.float32), p)  # nobody was asked
    model = dataclasses.replace(stored(curves), thresholds=np.array([0.3, 0.2], np.float32))
    written = written_from(model, 0.5)
    assert written["tag 0"] < 1
    assert written["tag 1"] is None
    assert curves_of(model)[1].at(0.1) is None
    only_one = dataclasses.replace(model, bytes=stored(curves[:1]).bytes)
    assert written_from(only_one, 0.5) == written


def curve_of(right_from):
    """Held-out tracks of 0.99, 0.98, …: all have the tag down to a probability, and none below."""
    p = np.arange(0.99, 0, -0.01, dtype=np.float32)
    return scores.make_curve((p > right_from).astype(np.float32), p)


@given(
    st.lists(st.tuples(st.integers(1, 99), st.booleans()), min_size=1, max_size=200),
    st.floats(0, 0.99),
    st.floats(0, 0.99),
)
def test_a_lower_precision_never_writes_less(tracks, one, other):
    p, y = (np.array(column, np.float32) for column in zip(*tracks, strict=True))
    curve = scores.make_curve(y, p / 100)
    low, high = (threshold_for(curve, precision) for precision in sorted((one, other)))
    assert high is None or (low is not None and low <= high)


def test_good_tracks_do_not_make_up_for_bad_ones_near_the_threshold():
    p = np.append(np.linspace(0.99, 0.9, 100), np.linspace(0.35, 0.25, 20)).astype(np.float32)
    y = np.append(np.ones(100), np.zeros(20)).astype(np.float32)
    curve = scores.make_curve(y, p)
    assert curve.below()[-1] > 0.7
    assert threshold_for(curve, 0.7) > 0.3
    assert threshold_for(curve, 0.7) < 0.91


@pytest.fixture
def library(tmp_path):
    """Predictions: guitar 0.9, mellow 0.4, loud 0.2, hip hop 0.6, by thresholds 0.5, 0.3, 0.5."""
    with Library.open(tmp_path / "library.db") as library:
        make_songs(library, tmp_path, ["mp3"])
        # right from 0.8 on; nearly always; 0.5; and on five tracks, which prove nothing
        predict(library, curves=[curve_of(p) for p in (0.805, 0.105, 0.505, 0.945)])
        yield library


def wanted(library, precision):
    ids = library.tracks.ids().tolist()
    found = wanted_tags(library, ids, TagSources(people=False, precision=precision))
    return [tag for tags in found.values() for tag in tags.predicted]


def test_a_tag_is_wanted_where_it_is_right_often_enough(library):
    assert wanted(library, None) == ["guitar", "hip hop", "mellow"]
    assert wanted(library, 0.8) == ["guitar", "mellow"]
    assert wanted(library, 0.95) == ["guitar"]  # a probability of 0.4 cannot be right so often
    assert wanted(library, 0.98) == []
    assert not reasons_not_to_write(library, 0.8)  # hip hop is written from 0.95
    found = [set(wanted(library, precision)) for precision in (None, 0.1, 0.5, 0.8, 0.9)]
    assert all(low >= high for low, high in pairwise(found))


def test_a_plan_says_how_many_tags_will_be_wrong(library):
    ids = library.tracks.ids().tolist()
    plan = plan_writes(library, ids, Rules(), TagSources(people=False, precision=0.8))
    assert plan.files[0].new_guesses == pytest.approx({"guitar": 0.9, "mellow": 0.4}, abs=1e-3)
    assert plan.n_guessed == 2
    right = [plan.precision[tag] for tag in ("guitar", "mellow")]
    assert min(right) > 0.8  # as was asked for, whatever the probability of one track
    assert plan.expected_wrong == pytest.approx(2 - sum(right))


def test_without_curves_thresholds_stay(library):
    ids = library.tracks.ids().tolist()
    predict(library)
    plan = plan_writes(library, ids, Rules(), TagSources(people=False, precision=0.8))
    assert plan.expected_wrong == pytest.approx(3 - (0.9 + 0.4 + 0.6), abs=1e-3)
    assert wanted(library, 0.8) == ["guitar", "hip hop", "mellow"]
    assert not reasons_not_to_write(library, 0.8)


def test_without_a_precision_each_prediction_counts_by_its_own_probability(library):
    """The likelier ones may have been written before: those above the threshold are no measure."""
    expected = 3 - (0.9 + 0.4 + 0.6)
    plan = library.writer.plan(people=False, precision=0)
    assert plan.expected_wrong == pytest.approx(expected, abs=1e-3)
    outline = library.writer.outline(precision=0)
    assert sum(tag.expected_wrong for tag in outline.tags) == pytest.approx(expected, abs=1e-3)
    rules = {"ignore": ["guitar", "hip hop"]}
    assert library.writer.plan(precision=0, rules=rules).expected_wrong == pytest.approx(
        0.6, abs=1e-3
    )


@pytest.mark.parametrize(
    ("share", "least", "most"),
    [(0.72, 0.77, 0.81), (0.55, 0.75, 0.9)],
    ids=["not right enough", "sure and wrong"],
)
def test_a_tag_that_says_nothing_seldom_passes(share, least, most):
    rng = np.random.default_rng(2)
    passed = 0
    for _ in range(300):
        y = (rng.random(300) < share).astype(np.float32)
        p = rng.uniform(least, most, 300).astype(np.float32)
        passed += threshold_for(scores.make_curve(y, p), 0.8) is not None
    assert passed / 300 < DOUBT + 0.07


def test_tracks_that_go_together_do_not_pass_as_many():
    """Three tracks of one artist are right or wrong together: nine of them are three examples."""
    rng = np.random.default_rng(4)
    artists = np.repeat(np.arange(100), 3)
    passed = np.zeros(2)
    for _ in range(300):
        y = (rng.random(100) < 0.79).astype(np.float32)[artists]
        p = (0.78 + 0.02 * rng.random(100)[artists]).astype(np.float32)
        p += 1e-5 * rng.random(300, np.float32)
        curves = [scores.make_curve(y, p, groups) for groups in (artists.tolist(), None)]
        passed += [threshold_for(curve, 0.8) is not None for curve in curves]
    assert passed[0] / 300 < DOUBT + 0.07
    assert passed[1] / 300 > 0.4


def sounding(share, n, probability=0.85):
    """Evenly so many of n tracks by different artists have the tag, nearly all as probable."""
    places = np.arange(n + 1) * share + 1e-9
    p = np.linspace(probability + 0.01, probability - 0.01, n, dtype=np.float32)
    return scores.make_curve(np.diff(np.floor(places)).astype(np.float32), p)


def known_elsewhere(share=0.95):
    """400 clips of another collection with probabilities from 0.99 down to 0.6."""
    places = np.arange(401) * share + 1e-9
    p = np.linspace(0.99, 0.6, 400, dtype=np.float32)
    return scores.make_curve(np.diff(np.floor(places))[::-1].astype(np.float32), p)


def test_the_expected_precision_is_of_the_probabilities_of_tracks():
    own, elsewhere = sounding(0.5, 12, 0.7), sounding(0.9, 400, 0.6)
    measured = TagPrecision(own=own, builtin=elsewhere, taught=True)
    right = TAUGHT_PRIOR * 0.7 + 6
    assert measured.expected[-1] == pytest.approx(right / (TAUGHT_PRIOR + 12))  # none reaches 0.7


def test_the_expected_precision_counts_the_other_collection():
    own, elsewhere = sounding(0.5, 12, 0.7), sounding(0.9, 400, 0.75)
    measured = TagPrecision(own=own, builtin=elsewhere, taught=True)
    right = TAUGHT_PRIOR * 0.7 + 6 + 0.9 * ELSEWHERE
    assert measured.expected[-1] == pytest.approx(right / (TAUGHT_PRIOR + 12 + ELSEWHERE))
    assert measured.expected_from(0.6) == pytest.approx(measured.expected[-1])


def test_a_tag_of_few_artists_is_written_where_its_calibrated_probability_is_as_high():
    few = TagPrecision(own=sounding(1, 3, 0.9), taught=True)
    assert few.threshold(0.8) <= 0.8
    wrong = sounding(0.2, 40, 0.9)
    threshold = TagPrecision(own=wrong, taught=True).threshold(0.8)
    assert threshold is None or (wrong.thresholds >= threshold).sum() < 5


def test_a_built_in_tag_keeps_its_threshold_until_the_librarys_tracks_contradict():
    elsewhere = known_elsewhere()
    before = threshold_for(elsewhere, 0.8)
    assert before < 0.62
    for taught in (False, True):
        agree = TagPrecision(own=sounding(0.8, 10, 0.7), builtin=elsewhere, taught=taught)
        assert agree.threshold(0.8) <= before
        assert not agree.is_contradicted(0.8)
        too_few = TagPrecision(own=sounding(0.5, 4, 0.7), builtin=elsewhere, taught=taught)
        assert too_few.threshold(0.8) <= before
        contradict = TagPrecision(own=sounding(0.2, 20, 0.7), builtin=elsewhere, taught=taught)
        assert contradict.threshold(0.8) is None or contradict.threshold(0.8) > before
        assert contradict.is_contradicted(0.8)


def test_tracks_of_one_artist_contradict_no_more_than_one_track():
    elsewhere, own = known_elsewhere(), sounding(0.2, 20, 0.7)
    album = dataclasses.replace(own, effective=np.ones_like(own.effective))
    assert TagPrecision(own=own, builtin=elsewhere, taught=False).is_contradicted(0.8)
    assert not TagPrecision(own=album, builtin=elsewhere, taught=False).is_contradicted(0.8)


@given(
    st.lists(st.tuples(st.integers(1, 99), st.booleans()), min_size=1, max_size=60),
    st.floats(0.05, 0.95),
    st.booleans(),
)
def test_a_threshold_is_the_built_in_models_the_precision_itself_or_a_tracks_probability(
    tracks, precision, taught
):
    p, y = (np.array(column, np.float32) for column in zip(*tracks, strict=True))
    own = scores.make_curve(y, p / 100)
    measured = TagPrecision(own=own, builtin=known_elsewhere(), taught=taught)
    threshold = measured.threshold(precision)
    start = threshold_for(measured.builtin, precision)
    if start is None and not taught:
        assert threshold is None
    elif threshold is not None:
        assert threshold in (start, precision, *own.thresholds.tolist())


def test_what_few_tracks_of_many_tags_write_is_right_as_often_as_promised():
    """Thirty libraries with 20 tags each: 60 tracks choose the thresholds, and 500 judge them."""
    rng = np.random.default_rng(5)
    n_right = n_written = 0
    for _ in range(600):
        y, p = draw(60, rng, sharpness=2.0)
        threshold = TagPrecision(own=scores.make_curve(y, p), taught=True).threshold(0.8)
        truth, probabilities = draw(500, rng, sharpness=2.0)
        if threshold is not None:
            written = probabilities >= threshold
            n_written += written.sum()
            n_right += truth[written].sum()
    assert n_written > 10_000
    assert n_right / n_written > 0.79
