"""Which clips a member learns from, and which it is judged by."""

import numpy as np
import pytest

from harmonium.estimators import holdout
from harmonium.estimators.holdout import choose_folds, split_at_random, split_by_folds
from harmonium.estimators.tables import ClipTable, LabelledClips

N = 150
GROUPS = np.arange(N) // 3


@pytest.fixture
def clips():
    """Each clip's feature is its number, and its tag is random."""
    rng = np.random.default_rng(0)
    numbers = np.arange(N, dtype=np.float32)[:, None]
    return ClipTable(X=numbers, Y=(rng.random((N, 1)) < 0.4).astype(np.float32))


def split_of(clips, fraction=0.2, groups=None, *, seed=0, in_order=False):
    return split_at_random(np.random.default_rng(seed), clips, fraction, groups, in_order=in_order)


def numbers_of(part):
    return part.X[:, 0].astype(int)


def test_every_clip_is_learnt_from_or_held_out(clips):
    split = split_of(clips)
    [rows], [held_out] = split.rows, split.held_out
    assert len(held_out) == 30
    assert sorted([*rows, *numbers_of(held_out)]) == list(range(N))


def test_held_out_clips_keep_their_labels(clips):
    [held_out] = split_of(clips).held_out
    np.testing.assert_array_equal(held_out.Y, clips.Y[numbers_of(held_out)])


def test_groups_are_held_out_as_a_whole(clips):
    split = split_of(clips, groups=GROUPS)
    [rows], [held_out] = split.rows, split.held_out
    assert not set(GROUPS[rows]) & set(GROUPS[numbers_of(held_out)])
    assert len(held_out) == 30


@pytest.mark.parametrize("n_groups", [1, 2])
def test_nothing_is_held_out_of_groups_that_are_too_large(clips, n_groups):
    groups = np.where(np.arange(N) < 100, 0, n_groups - 1)
    split = split_of(clips, groups=groups, seed=1)
    held_out = [] if split.held_out is None else numbers_of(split.held_out[0])
    assert len(held_out) <= N // 2


def test_nothing_is_held_out_if_that_were_too_few(clips):
    split = split_of(clips, fraction=0.1)  # 15 clips
    assert split.held_out is None
    np.testing.assert_array_equal(split.rows[0], np.arange(N))


def test_nothing_is_held_out_that_could_not_tell_tags_apart(clips):
    split = split_of(ClipTable(X=clips.X, Y=np.ones((N, 1), np.float32)))
    assert split.held_out is None


def test_clips_on_disk_are_learnt_from_in_their_order(clips):
    [rows] = split_of(clips, in_order=True).rows
    assert (np.diff(rows) > 0).all()


def test_no_more_is_held_out_than_needed(clips, monkeypatch):
    monkeypatch.setattr(holdout, "MAX_HELD_OUT", 25)
    [held_out] = split_of(clips).held_out
    assert len(held_out) == 25


def test_a_member_is_judged_by_its_fold(clips):
    folds = np.arange(N) % 3
    split = split_by_folds(clips, folds)
    for fold, (rows, held_out) in enumerate(zip(split.rows, split.held_out, strict=True)):
        np.testing.assert_array_equal(rows, np.flatnonzero(folds != fold))
        np.testing.assert_array_equal(numbers_of(held_out), np.flatnonzero(folds == fold))


def test_what_is_for_one_member_is_for_each(clips):
    held_out = LabelledClips(X=clips.X[:20], Y=clips.Y[:20])
    split = holdout.all_clips(N, held_out).for_members(3)
    assert [len(rows) for rows in split.rows] == [N] * 3
    assert split.held_out == [held_out] * 3


def test_an_eval_set_that_cannot_tell_tags_apart_is_not_used(clips):
    held_out = LabelledClips(X=clips.X[:20], Y=np.zeros((20, 1), np.float32))
    assert holdout.all_clips(N, held_out).held_out is None


def test_folds_keep_groups_together(clips):
    folds = choose_folds(clips.Y, GROUPS, n_folds=4, seed=0)
    assert set(folds) == {0, 1, 2, 3}
    assert all(len(set(folds[group == GROUPS])) == 1 for group in set(GROUPS))


def test_there_are_as_many_folds_as_a_rare_tag_allows():
    labels = np.zeros((12, 1), np.float32)
    labels[[0, 5]] = 1
    folds = choose_folds(labels, None, n_folds=5, seed=0)
    assert set(folds) == {0, 1}


def test_there_are_no_folds_of_one_group(clips):
    assert choose_folds(clips.Y, np.zeros(N, int), n_folds=5, seed=0) is None


def test_folds_of_soft_labels_are_those_of_the_likelier_answer(clips):
    soft = np.where(clips.Y == 1, np.float32(0.9), np.float32(0.2))
    np.testing.assert_array_equal(
        choose_folds(soft, GROUPS, n_folds=3, seed=0),
        choose_folds(clips.Y, GROUPS, n_folds=3, seed=0),
    )
