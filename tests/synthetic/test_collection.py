"""The generated collection: shape, truth, listeners, always the same; and on disk."""

import runpy
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from places import DOCS
from scipy.io import wavfile

from harmonium.data import Triples
from harmonium.errors import DataError
from harmonium.synthetic import collection, make_collection
from harmonium.synthetic.concepts import CONCEPTS

summary_of = runpy.run_path(str(DOCS / "figures" / "synthetic.py"))["summary"]


@pytest.fixture(scope="module", params=[0, 1])
def default(request):
    return make_collection(seed=request.param)


def column(collection, tag):
    return collection.truth[:, collection.tags.to_list().index(tag)]


def test_exactly_three_users_tag_a_clip(default):
    triples = default.triples
    pairs = np.unique(np.stack([triples.item, triples.user]), axis=1)
    np.testing.assert_array_equal(np.bincount(pairs[0], minlength=925), 3)


def test_each_triple_occurs_once(default):
    triples = default.triples
    distinct = np.unique(np.stack([triples.user, triples.item, triples.tag]), axis=1)
    assert distinct.shape[1] == len(triples)


def test_triples_have_the_clips_of_the_truth(default):
    triples = default.triples
    assert default.truth.shape == (len(default), len(default.tags))
    assert triples.counts().matrix.shape == default.truth.shape
    assert triples.items.equals(default.clips["item"])
    assert triples.tags.equals(default.tags)
    assert default.clips["item"].n_unique() == default.clips["path"].n_unique() == 925


def test_artists_keep_to_a_genre(default):
    artists = default.clips.group_by("artist").agg(pl.col("track", "genre").n_unique())
    assert artists["genre"].max() == 1
    assert artists["track"].max() >= 4
    assert 50 <= len(artists) <= 140
    assert default.clips["genre"].n_unique() >= 15


def test_synonyms_hold_together(default):
    for concept in CONCEPTS.values():
        first, *others = concept.words
        for other in others:
            np.testing.assert_array_equal(column(default, first), column(default, other))


def test_every_tag_holds_of_some_clips(default):
    share = default.truth.mean(axis=0)
    assert ((share > 0) & (share < 0.9)).all()


@pytest.mark.parametrize(
    ("tag", "opposite"),
    [("fast", "slow"), ("loud", "quiet"), ("calm", "energetic"), ("vocals", "instrumental")],
)
def test_opposites_never_hold_together(default, tag, opposite):
    assert not (column(default, tag) & column(default, opposite)).any()


def test_what_holds_is_what_plays():
    collection = make_collection(n_tracks=40, n_users=3)
    for index in range(len(collection)):
        played = {part.instrument for part in collection.clip(index).parts}
        roles = {part.role for part in collection.clip(index).parts}
        assert column(collection, "piano")[index] == ("piano" in played)
        assert column(collection, "drums")[index] == ("drums" in roles)
        assert column(collection, "vocals")[index] == ("voice" in roles)
        assert column(collection, "female")[index] == ("female voice" in played)


def test_how_much_users_omit_or_mistake(default):
    summary = summary_of(default)
    assert (summary["tracks"], summary["clips"], summary["users"]) == (185, 925, 210)
    assert 60 <= summary["tags"] <= 90
    assert 13_500 <= summary["triples"] <= 16_500
    assert 0.86 <= summary["precision"] <= 0.93
    assert 0.22 <= summary["recall"] <= 0.35
    assert 4.8 <= summary["tags_per_user_and_clip"] <= 6.0
    assert 0.5 <= summary["said"] <= 0.7


@settings(deadline=None, max_examples=12)
@given(
    seed=st.integers(0, 2**40),
    n_tracks=st.integers(1, 8),
    clips=st.integers(1, 7),
    n_users=st.integers(1, 9),
    data=st.data(),
)
def test_a_larger_collection_begins_with_the_smaller_one(seed, n_tracks, clips, n_users, data):
    users_per_clip = data.draw(st.integers(1, n_users))
    options = {"n_users": n_users, "users_per_clip": users_per_clip, "seed": seed}
    small = make_collection(n_tracks, clips, **options)
    large = make_collection(n_tracks + 2, clips, **options)
    assert make_collection(n_tracks, clips + 1, **options).clip(clips - 1) == small.clip(clips - 1)
    n = len(small)
    assert small.truth.any(axis=1).all()
    np.testing.assert_array_equal(small.truth, large.truth[:n])
    assert small.clips.equals(large.clips[:n])
    rows = small.triples.frame().rows()
    assert rows == large.triples.frame().rows()[: len(rows)]
    assert len({(user, item) for user, item, _ in rows}) == n * users_per_clip


@pytest.mark.parametrize(
    ("options", "keyword"),
    [
        ({"n_tracks": 0}, "'n_tracks'"),
        ({"n_tracks": 2.5}, "got 2.5"),
        ({"users_per_clip": 0}, "'users_per_clip'"),
        ({"users_per_clip": 4, "n_users": 3}, "got 4 and 3"),
        ({"clip_seconds": 0.1}, "'clip_seconds'"),
        ({"clip_seconds": float("nan")}, "got nan"),
        ({"seed": -1}, "'seed'"),
    ],
)
def test_bad_arguments_are_named(options, keyword):
    with pytest.raises(DataError, match=keyword):
        make_collection(**options)


# On disk


@pytest.fixture
def small():
    return make_collection(n_tracks=3, clips_per_track=2, n_users=4, clip_seconds=1)


def contents(folder):
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_what_is_written_is_the_collection(small, tmp_path):
    assert small.write(tmp_path / "a") == tmp_path / "a"
    clips = pl.read_csv(tmp_path / "a/clips.csv")
    assert clips.columns[0] == "item"
    for index, path in enumerate(clips["path"]):
        rate, samples = wavfile.read(tmp_path / "a" / path)
        assert rate == small.rate
        np.testing.assert_allclose(samples / 32_767, small.samples(index), atol=1 / 32_767)
    rows = pl.read_csv(tmp_path / "a/triples.csv")
    triples = Triples.from_columns(rows["user"], rows["item"], rows["tag"])
    assert sorted(triples.frame().rows()) == sorted(small.triples.frame().rows())
    truth = pl.read_csv(tmp_path / "a/truth.csv")
    assert truth.columns == ["item", *small.tags]
    assert truth["item"].to_list() == clips["item"].to_list()
    np.testing.assert_array_equal(truth.drop("item").to_numpy(), small.truth)
    assert len(contents(tmp_path / "a")) == 6 + 4


def test_the_number_of_processes_does_not_matter(small, tmp_path):
    alone = contents(small.write(tmp_path / "a"))
    assert contents(small.write(tmp_path / "b", jobs=2)) == alone


def test_progress_counts_every_clip(small, tmp_path):
    reports = []
    small.write(tmp_path, progress=lambda done, total: reports.append((done, total)))
    assert reports == [(done, 6) for done in range(7)]


def test_a_complete_collection_is_not_rendered_again(small, tmp_path, monkeypatch):
    before = contents(small.write(tmp_path))
    monkeypatch.setattr(collection, "render", None)
    small.write(tmp_path)
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    "change", [{"seed": 1}, {"clip_seconds": 2}, {"n_tracks": 2}, {"clips_per_track": 1}]
)
def test_another_collection_in_the_folder_is_left_alone(small, tmp_path, change):
    before = contents(small.write(tmp_path))
    with pytest.raises(DataError, match="different collection"):
        replace(small, **change).write(tmp_path)
    assert contents(tmp_path) == before


def test_a_collection_of_another_generator_is_left_alone(small, tmp_path, monkeypatch):
    small.write(tmp_path)
    monkeypatch.setattr(collection, "GENERATOR", collection.GENERATOR + 1)
    with pytest.raises(DataError, match="different collection"):
        small.write(tmp_path)


@pytest.mark.parametrize("index", [-1, 6])
def test_a_clip_that_does_not_exist(small, index):
    with pytest.raises(DataError, match=f"got {index}"):
        small.samples(index)


def test_writing_needs_a_job(small, tmp_path):
    with pytest.raises(DataError, match="'jobs'"):
        small.write(tmp_path, jobs=0)


def test_an_interrupted_write_leaves_whole_files(small, tmp_path, monkeypatch):
    whole = contents(small.write(tmp_path / "whole"))
    render = collection.render
    calls = []

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return render(*arguments)

    monkeypatch.setattr(collection, "render", interrupted)
    with pytest.raises(KeyboardInterrupt):
        small.write(tmp_path / "part")
    part = contents(tmp_path / "part")
    assert len(part) == 2
    assert part.items() <= whole.items()
    small.write(tmp_path / "part")
    assert contents(tmp_path / "part") == whole
