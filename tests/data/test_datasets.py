"""One contract over all loaders, on tiny samples of each public format."""

import dataclasses
import hashlib
import re
import warnings

import numpy as np
import polars as pl
import pytest
from dataset_samples import CASES, as_arff, write_msd_tags, write_samples
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from places import DOCS

from harmonium.data import artist_key, datasets
from harmonium.data.datasets import Dataset
from harmonium.data.datasets.dataset import DIGESTS
from harmonium.data.datasets.loaders import SIZES
from harmonium.data.datasets.mulan import Attribute, read_arff
from harmonium.errors import DataError, DatasetNotFoundError, DataWarning


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    return write_samples(tmp_path_factory.mktemp("data"))


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]} {case[1] or ''}".strip())
def data(request, samples):
    name, options = request.param
    return datasets.load(name, samples, **options)


def rows_of(data):
    return {name: rows.tolist() for name, rows in data.splits.items()}


class TestContract:
    """What holds for every dataset."""

    def test_counts_belong_to_the_items(self, data):
        assert len(data) == data.items.n_unique() > 0
        assert data.items.null_count() == 0
        assert data.counts.items.equals(data.items)
        assert data.counts.matrix.shape == (len(data), data.tags.n_unique())
        assert data.counts.matrix.has_canonical_format
        assert (data.counts.matrix.data > 0).all()

    def test_features_are_an_aligned_read_only_float32_matrix(self, data):
        if data.features is None:
            assert data.feature_names is None
            return
        assert (data.features.dtype, data.features.ndim) == (np.float32, 2)
        assert len(data.features) == len(data)
        assert data.feature_names is None or len(data.feature_names) == data.features.shape[1]
        with pytest.raises(ValueError, match="read-only"):
            data.features[0, 0] = 1

    def test_triples_give_the_counts(self, data):
        if data.triples is not None:
            assert data.triples.items.equals(data.items)
            again = data.triples.counts()
            assert (again.matrix != data.counts.matrix).nnz == 0
            assert again.tags.equals(data.tags)
            assert len(data.triples.frame().unique()) == len(data.triples) > 0

    def test_labels_are_0_1_or_nan_by_the_dataset_s_rule(self, data):
        Y, tags = data.labels()
        assert (Y.dtype, Y.shape) == (np.float32, (len(data), len(tags)))
        assert repr(data) == f"Dataset('{data.name}': {data.counts})"
        counts = data.counts.matrix.toarray()
        assert (Y[counts == 0] == 0).all()
        if data.info.min_share is None:
            assert (Y[counts >= data.info.min_count] == 1).all()
            assert np.isnan(Y[(counts > 0) & (counts < data.info.min_count)]).all()
        else:
            share = counts / data.listeners[:, None]
            np.testing.assert_array_equal(Y == 1, share >= data.info.min_share)

    def test_the_most_popular_tags_come_first(self, data):
        Y, tags = data.labels(2)
        assert Y.shape == (len(data), 2)
        totals = dict(zip(data.tags, data.counts.matrix.sum(axis=0), strict=True))
        assert [totals[tag] for tag in tags] == sorted(totals.values(), reverse=True)[:2]

    @pytest.mark.parametrize("by", ["track", "artist"])
    def test_groups_have_a_label_for_each_item(self, data, by):
        labels = data.tracks if by == "track" else data.artists
        if labels is None:
            with pytest.raises(DataError, match=f"which {by}"):
                data.groups(by)
            return
        assert labels.null_count() == 0
        groups = data.groups(by)
        keys = [artist_key(name) if by == "artist" else name for name in labels]
        same_label = [[key == other for other in keys] for key in keys]
        np.testing.assert_array_equal(groups[:, None] == groups, same_label)

    def test_each_item_is_a_group_of_its_own(self, data):
        assert len(set(data.groups("item").tolist())) == len(data)

    def test_splits_are_disjoint(self, data):
        rows = np.concatenate([*data.splits.values(), []])
        assert len(np.unique(rows)) == len(rows)
        assert len(rows) in (0, len(data))

    def test_audio_files_exist(self, data):
        if data.audio is not None:
            assert len(data.audio) == len(data)
            assert all(path.is_file() for path in data.audio)

    def test_listeners_are_those_who_judged_the_item(self, data):
        if data.seen is None:
            assert data.listeners is None
            return
        per_item = dict(data.seen.group_by("item").len().iter_rows())
        assert data.listeners.tolist() == [per_item[item] for item in data.items]
        marked = data.triples.frame().select("user", "item").unique()
        assert len(marked.join(data.seen, on=["user", "item"], how="anti")) == 0
        assert data.seen.n_unique() == len(data.seen)
        assert set(data.triples.users) == set(data.seen["user"])


def test_the_paper_s_files(samples):
    data = datasets.load("mturk", samples, check_sizes=False)
    assert data.features.shape == (6, 389)
    assert len(data.tags) == 95
    assert rows_of(data) == {"train": [0, 1, 2], "valid": [3], "test": [4, 5]}
    Y = data.labels().values
    assert [np.flatnonzero(row).tolist() for row in Y] == [[0, 3, 94], [], [7], [94], [3], []]
    assert data.features[0, [0, 388]].tolist() == pytest.approx([0.6, 0.8])
    assert data.features[5, 0] == 1
    assert len(datasets.load("majmin", samples, check_sizes=False).tags) == 96


def test_files_of_another_size_than_published(samples):
    with pytest.raises(DataError, match=r"mturk_train\.libsvm has 3 rows .* has 597"):
        datasets.load("mturk", samples)


def test_majorminer_s_features_are_those_of_the_clips(samples):
    data = datasets.load("majorminer", samples, features="all")
    assert data.items.to_list() == ["clip-a", "clip-b", "clip-c", "clip-d"]
    assert data.features[:, 0].tolist() == [3000, 2000, 1000, 0]
    assert data.features.shape == (4, 106)
    assert data.tracks.n_unique() == 3
    assert data.tracks[0] == data.tracks[2] == "The Inventions: First Song"
    assert data.artists.to_list()[1] == "(unknown)"
    mfcc = datasets.load("majorminer", samples)
    np.testing.assert_array_equal(mfcc.features, data.features[:, :104])


def test_majorminer_without_features(samples, tmp_path):
    text = (samples / "majorminer" / "majorminer.tsv").read_bytes()
    (tmp_path / "majorminer.tsv").write_bytes(text)
    assert len(datasets.load("majorminer", tmp_path, features=None)) == 4
    with pytest.raises(DatasetNotFoundError, match=r"no features\.npz in any of"):
        datasets.load("majorminer", tmp_path)


class TestEmotify:
    def test_excerpts(self, samples):
        data = datasets.load("emotify", samples)
        names = ["classical_1", "classical_2", "rock_1", "electronic_100", "pop_1"]
        assert data.items.to_list() == names
        assert data.audio[3] == samples / "emotify" / "clips" / "electronic_100.ogg"
        assert data.listeners.tolist() == [1, 4, 2, 1, 1]

    def test_a_listener_who_marked_nothing_is_a_user(self, samples):
        data = datasets.load("emotify", samples)
        silent = "age 64, gender 1, Norwegian, Nynorsk, mood 5"
        assert silent in data.triples.users.to_list()
        assert silent not in data.triples.frame()["user"].to_list()

    def test_listeners_of_one_profile_are_numbered(self, samples):
        data = datasets.load("emotify", samples)
        users = data.seen.filter(pl.col("item") == "classical_2")["user"].to_list()
        profile = "age 30, gender 0, Dutch, mood 3"
        assert users[:2] == [profile, f"{profile}, no. 2"]

    @pytest.mark.parametrize(
        ("rule", "labels"),
        [
            ({}, [1, 1, 0]),
            ({"min_share": 0.26}, [1, 0, 0]),
            ({"min_count": 2}, [1, np.nan, 0]),
        ],
        ids=["own", "share", "count"],
    )
    def test_labels_by_rule(self, samples, rule, labels):
        data = datasets.load("emotify", samples)
        columns = [data.tags.to_list().index(tag) for tag in ("calmness", "solemnity", "power")]
        assert data.counts.matrix.toarray()[1, columns].tolist() == [3, 1, 0]
        np.testing.assert_array_equal(data.labels(**rule).values[1, columns], labels)

    def test_published_layout_of_the_sound(self, samples, tmp_path):
        (tmp_path / "data.csv").write_bytes((samples / "emotify" / "data.csv").read_bytes())
        assert datasets.load("emotify", tmp_path).audio is None
        for path in ("classical/1", "classical/2", "rock/1", "electronic/100", "pop/1"):
            file = tmp_path / "emotifymusic" / f"{path}.mp3"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
        audio = datasets.load("emotify", tmp_path).audio
        assert audio[2] == tmp_path / "emotifymusic" / "rock" / "1.mp3"
        audio[2].unlink()
        with pytest.raises(DataError, match=r"1\.mp3 is missing"):
            datasets.load("emotify", tmp_path)


def test_4q_with_features_of_both_kinds(samples):
    data = datasets.load("4q", samples, features="both")
    assert data.features.shape == (3, 500)
    assert data.feature_names[399:401].to_list() == ["MTT 199", "MSD: rock"]
    assert data.feature_names[433] == "MSD: hip-hop"
    assert set(data.tags) == {"laid back", "vocal", "calm", "rap"}
    assert data.groups("artist").tolist() == [0, 0, 1]


def test_the_splits_of_gtzan(samples):
    data = datasets.load("gtzan", samples)
    assert rows_of(data) == {"train": [1, 2], "valid": [0]}
    assert data.artists is None


class TestHetRec:
    def test_artists_of_both_parts(self, samples):
        data = datasets.load("hetrec", samples)
        assert data.items.to_list() == ["10", "11", "12", "13"]
        assert data.artists.to_list() == ['The "Quotes"', "Quotes", "artist 12", "Zoë"]
        assert set(data.tags) == {"música", "pop", "rock", "trip hop", "trip-hop"}
        assert len(data.triples) == 7

    def test_normalised_tags(self, samples):
        merged = datasets.load("hetrec", samples, normalise=True)
        assert set(merged.tags) == {"música", "pop", "rock", "trip hop"}
        assert len(merged.triples) == 6

    def test_one_part_alone(self, samples, tmp_path):
        for name in ("user_taggedartists.dat", "tags.dat", "artists.dat"):
            (tmp_path / name).write_bytes((samples / "hetrec-lastfm" / name).read_bytes())
        assert len(datasets.load("hetrec", tmp_path).triples) == 4

    def test_tracks_carry_the_tags_of_all_spellings_of_their_artist(self, samples):
        data = datasets.load("hetrec-msd", samples)
        assert data.items.to_list() == ["TRA", "TRB", "TRD"]
        assert data.artists.to_list() == ['The "Quotes"', 'The "Quotes"', "Zoë"]
        counts = data.counts.matrix.toarray()
        np.testing.assert_array_equal(counts[0], counts[1])
        expected = {"música": 1, "pop": 0, "trip hop": 1, "trip-hop": 3}
        assert dict(zip(data.tags, counts[0], strict=True)) == expected
        assert data.features[2].tolist() == [9, 10, 11]
        assert data.tracks[2] == "Zoë: Four"


def test_msd_has_only_tracks_with_tags(samples):
    data = datasets.load("msd", samples)
    assert data.items.to_list() == ["TRA", "TRB", "TRD", "TRE"]
    assert data.tracks[2] == data.tracks[3]  # one song in two recordings


def test_msd_with_the_most_frequent_tag(samples):
    data = datasets.load("msd", samples, n_tags=1)
    assert data.items.to_list() == ["TRA", "TRD", "TRE"]
    assert (data.tags[0], *data.counts.matrix.toarray().ravel()) == ("rock", 100, 5, 7)


def test_merged_tags_of_msd_keep_the_larger_weight(samples):
    data = datasets.load("msd", samples, normalise=True)
    assert data.tags.to_list() == ["rock", "hip hop", "slow"]
    assert data.counts.matrix.toarray()[:, 1].tolist() == [0, 90, 60, 0]


def test_a_mulan_set_of_numbers(samples):
    data = datasets.load("mulan:toy", samples)
    assert data.tags.to_list() == ["loud", "very loud", "calm"]
    assert data.labels().values.tolist() == [[1, 1, 0], [0, 0, 1], [1, 0, 0]]
    assert data.feature_names.to_list() == ["energy", "tempo"]
    rows = np.array([[0.5, 120], [-0.1, 60.5], [np.nan, 90]], dtype=np.float32)
    np.testing.assert_array_equal(data.features, rows)
    assert rows_of(data) == {"train": [0, 1], "test": [2]}


def test_a_mulan_set_of_sparse_rows_with_words(samples):
    data = datasets.load("mulan:words", samples)
    assert data.splits == {}
    keys = ["key=C major", "key=A minor", "key=it's"]
    assert data.feature_names.to_list() == ["count", *keys, "has_voice", "stars"]
    rows = [[3, 0, 1, 0, 0, 5], [0, 1, 0, 0, 0, 1], [0, 1, 0, 0, 1, 1], [4, 0, 0, 1, np.nan, 2]]
    np.testing.assert_array_equal(data.features, rows)
    # What a sparse row leaves out is the first value of the list, and that of "a" is 1.
    assert data.labels().values.tolist() == [[1, 1], [0, 1], [0, 0], [0, 0]]


class TestRegistry:
    @pytest.mark.parametrize(
        ("name", "options", "keyword"),
        [
            ("majorminner", {}, "Did you mean 'majorminer'?"),
            ("zzz", {}, "mturk, majmin"),
            ("mulan:", {}, "no dataset 'mulan:'"),
            ("mulan:../x", {}, "no dataset 'mulan:../x'"),
            ("majorminer", {"feature": "all"}, "Its options: features"),
            ("mulan:toy", {"which": "x"}, "Its options: none"),
            ("majorminer", {"features": "mel"}, "'features'"),
            ("4q", {"features": "all"}, "'features'"),
            ("msd", {"n_tags": 0}, "'n_tags'"),
        ],
    )
    def test_a_wrong_name_or_option(self, samples, name, options, keyword):
        with pytest.raises(DataError, match=keyword):
            datasets.load(name, samples, **options)

    @pytest.mark.parametrize(
        ("name", "rule", "keyword"),
        [
            ("majorminer", {"min_count": 2, "min_share": 0.5}, "not both"),
            ("majorminer", {"min_share": 0.5}, "Use 'min_count'"),
            ("emotify", {"min_share": 25}, r"'min_share' .* got 25"),
        ],
    )
    def test_a_rule_for_labels_that_makes_no_sense(self, samples, name, rule, keyword):
        data = datasets.load(name, samples)
        with pytest.raises(DataError, match=keyword):
            data.labels(**rule)

    def test_groups_that_do_not_exist(self, samples):
        with pytest.raises(DataError, match=r"'by' .* got 'song'"):
            datasets.load("majorminer", samples).groups("song")


PAGE = DOCS / "datasets.md"


class TestDocs:
    @pytest.mark.parametrize("name", datasets.names("nowhere"))
    def test_every_dataset_is_documented(self, name):
        text = PAGE.read_text(encoding="utf-8")
        info = datasets.info(name)
        assert all(map(str.strip, (info.citation, info.licence, info.how_to_get)))
        assert info.homepage.startswith(("http://", "https://"))
        assert f"| `{name}` | {info.items:,} " in text
        for option in datasets.options_of(name):
            assert f"`{option}`" in text or f"`{option}=" in text, option

    @pytest.mark.parametrize("field", dataclasses.fields(Dataset), ids=lambda field: field.name)
    def test_every_field_of_a_dataset_is_documented(self, field):
        assert f"`{field.name}`" in PAGE.read_text(encoding="utf-8")


class TestFolders:
    def test_where_datasets_are_searched(self, samples, monkeypatch, tmp_path):
        (tmp_path / "harmonium").symlink_to(samples)
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
        monkeypatch.setenv("HARMONIUM_DATA", str(tmp_path / "nothing"))
        assert datasets.data_folders() == [tmp_path / "nothing", tmp_path / "harmonium"]
        assert isinstance(datasets.load("hetrec"), Dataset)
        monkeypatch.delenv("HARMONIUM_DATA")
        assert isinstance(datasets.load("mulan:toy"), Dataset)

    def test_other_mulan_sets_in_the_folder_are_listed(self, samples):
        assert datasets.names(samples)[-2:] == ["mulan:toy", "mulan:words"]

    @pytest.mark.parametrize(
        ("name", "folder"),
        [("hetrec", "hetrec-lastfm"), ("mulan:toy", "mulan/toy"), ("mulan:toy", "mulan")],
    )
    def test_the_folder_of_a_dataset_itself(self, samples, name, folder):
        assert isinstance(datasets.load(name, samples / folder), Dataset)

    def test_missing_files(self, tmp_path):
        (tmp_path / "mturk").mkdir()
        (tmp_path / "mturk" / "mturk_train.libsvm").touch()
        with pytest.raises(DatasetNotFoundError) as caught:
            datasets.load("mturk", tmp_path)
        text = str(caught.value)
        assert "no mturk_valid.libsvm, mturk_test.libsvm in any of" in text
        assert str(tmp_path / "mturk") in text
        assert "Download its three files" in text
        assert "HARMONIUM_DATA" in text

    def test_a_missing_file_of_which_either_of_two_would_do(self, tmp_path):
        with pytest.raises(DatasetNotFoundError, match=r"x\.arff or x-train\.arff"):
            datasets.load("mulan:x", tmp_path)


# Files

VALUES = st.floats(-1e6, 1e6, width=32).map(lambda value: value + 0.0)  # no -0.0
SHAPES = st.tuples(st.integers(1, 6), st.integers(1, 8))
MATRICES = SHAPES.flatmap(lambda shape: arrays(np.float32, shape, elements=VALUES))


@pytest.fixture
def own(tmp_path):
    return write_samples(tmp_path / "data")


class TestPublishedFiles:
    def test_another_version_of_a_file_gets_one_warning(self, own, monkeypatch):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            datasets.load("majorminer", own)
        (warning,) = caught
        assert issubclass(warning.category, DataWarning)
        assert str(own / "majorminer" / "majorminer.tsv") in str(warning.message)

    def test_the_published_version_gets_no_warning(self, own, monkeypatch):
        for name in ("majorminer.tsv", "features.npz"):
            content = (own / "majorminer" / name).read_bytes()
            monkeypatch.setitem(DIGESTS, hashlib.sha256(content).hexdigest(), name)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            datasets.load("majorminer", own)

    @pytest.mark.parametrize(
        ("name", "file", "content"),
        [
            ("mturk", "mturk/mturk_valid.libsvm", b"x 1:1\n"),
            ("mturk", "mturk/mturk_valid.libsvm", b"95 1:1\n"),
            ("mturk", "mturk/mturk_valid.libsvm", b"0 390:1\n"),
            ("majorminer", "majorminer/majorminer.tsv", b""),
            ("majorminer", "majorminer/features.npz", b"PK"),
            ("hetrec", "hetrec-lastfm/tags.dat", b""),
            ("msd", "msd-subset/lastfm_top500.npz", b""),
            ("mulan:toy", "mulan/toy/toy.xml", b"<labels>"),
            ("mulan:toy", "mulan/toy/toy-train.arff", b"\xff"),
        ],
    )
    def test_a_file_that_cannot_be_parsed_is_named(self, own, name, file, content):
        (own / file).write_bytes(content)
        options = {"check_sizes": False} if name == "mturk" else {}
        with pytest.raises(DataError, match=re.escape(str(own / file))):
            datasets.load(name, own, **options)

    def test_other_columns(self, own):
        (own / "emotify" / "data.csv").write_text("track id,genre\n1,rock\n")
        with pytest.raises(DataError, match="Dataset 'emotify' cannot be read"):
            datasets.load("emotify", own)

    def test_files_that_do_not_belong_together(self, own):
        ids = np.array(["TRA", "TRB", "TRC", "TRD", "TRX"])
        write_msd_tags(own / "msd-subset" / "lastfm_top500.npz", track_id=ids)
        with pytest.raises(DataError, match="different tracks"):
            datasets.load("msd", own)

    def test_a_join_with_an_unknown_track(self, own):
        join = own / "hetrec-lastfm" / "artist_to_msd_tracks.tsv"
        join.write_bytes(join.read_bytes().replace(b"TRD", b"TRX"))
        with pytest.raises(DataError, match="'TRX'"):
            datasets.load("hetrec-msd", own)


@given(X=MATRICES, seed=st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=40)
def test_arff_gives_back_what_was_written(tmp_path_factory, X, seed):
    path = tmp_path_factory.mktemp("parsers") / "x.arff"
    Y = np.random.default_rng(seed).random((len(X), 3)) < 0.5
    for sparse in (False, True):
        path.write_text(as_arff(X, Y, sparse=sparse).replace("y2", r"'y\'2'"))
        table = read_arff(path)
        np.testing.assert_array_equal(table.rows, np.hstack([X, Y]))
        assert table.attributes[0] == Attribute("x0", "number")
        assert table.attributes[-1] == Attribute("y'2", "nominal", ("0", "1"))


# (file, what is replaced by what, a part of the message)
FAULTS = [
    ("toy/toy-train.arff", b"0.5,0,1,120,1", b"0.5,0,1,120", "line 11"),
    ("toy/toy-train.arff", b"0.5,0,1,120,1", b"0.5,0,1,fast,1", "line 11"),
    ("toy/toy-train.arff", b"0.5,0,1,120,1", b"0.5,0,1,1e39,1", "row 1: 'tempo'"),
    ("toy/toy-train.arff", b"0.5,0,1,120,1", b"0.5,0,1,120,2", "2 .*line 11"),
    ("toy/toy-train.arff", b"0.5,0,1,120,1", b"0.5,?,1,120,1", "label 'calm'"),
    ("toy/toy-train.arff", b"0.5,0,1,120,1", b"0.5,'0,1,120,1", "line 11"),
    ("toy/toy-train.arff", b"tempo real", b"tempo complex", "line 7"),
    ("toy/toy-train.arff", b"tempo real", b"tempo", "line 7"),
    ("toy/toy-train.arff", b"@relation", b"relation", "line"),
    ("toy/toy-test.arff", b"?,0,0,90,1", b"", "no rows"),
    ("toy/toy-test.arff", b"energy", b"power", "attributes .* differ"),
    ("toy/toy.xml", b'name="calm"', b'name="loud"', "different names"),
    ("toy/toy.xml", b'name="calm"', b'name="calmer"', "'calmer'"),
    ("words/words.arff", b"{0 3,", b"{9 3,", "line 9"),
    ("words/words.arff", b"5 1}", b"5 1", "line 9"),
    ("words/words.arff", b"a {1, 0}", b"a {1, 0, 2}", "label 'a'"),
]


@pytest.mark.parametrize(("file", "old", "new", "keyword"), FAULTS)
def test_a_fault_in_a_mulan_set_of_one_s_own(own, file, old, new, keyword):
    path = own / "mulan" / file
    assert old in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(old, new, 1))
    with pytest.raises(DataError, match=keyword):
        datasets.load("mulan:" + file.split("/")[0], own)


def test_text_attributes_are_left_out_with_a_warning(own):
    path = own / "mulan" / "words" / "words.arff"
    path.write_text(path.read_text().replace("count integer", "title string"))
    with pytest.warns(DataWarning, match="'title'"):
        data = datasets.load("mulan:words", own)
    assert "title" not in data.feature_names.to_list()
    assert data.features.shape == (4, 5)


def test_a_label_with_an_escaped_quotation_mark_in_both_files_as_delicious_has_them(own):
    path = own / "mulan" / "words"
    for file, old, new in (
        ("words.arff", "@attribute a ", r"@attribute '80\'s' "),
        ("words.xml", '"a"', r'"80\'s"'),
    ):
        text = (path / file).read_text()
        assert old in text
        (path / file).write_text(text.replace(old, new))
    assert datasets.load("mulan:words", own).counts.tags.to_list() == ["b", "80's"]


def test_a_mulan_set_needs_a_feature(own):
    path = own / "mulan" / "words" / "words.arff"
    path.write_text("@relation x\n@attribute a {0,1}\n@attribute b {0,1}\n@data\n0,1\n")
    with pytest.raises(DataError, match="no features"):
        datasets.load("mulan:words", own)


# The real files, where HARMONIUM_DATA names the folder that holds them.


def load_real(name, folder, **options):
    """The dataset, or a skip where this folder does not hold it; warnings are errors."""
    if datasets.is_found(datasets.info(name), folder) is None:
        pytest.skip(f"HARMONIUM_DATA holds no {name}")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return datasets.load(name, folder, **options)


@pytest.mark.parametrize("name", datasets.names("nowhere"))
def test_sizes_are_those_that_the_list_states(data_folder, name):
    data = load_real(name, data_folder)
    assert len(data) == data.info.items
    assert len(data.tags) == data.info.tags
    assert (data.features is not None and data.features.shape[1]) == (data.info.features or False)
    assert (data.triples is not None and len(data.triples)) == (data.info.triples or False)


@pytest.mark.parametrize(
    ("name", "n_train", "n_test"),
    [("emotions", 391, 202), ("yeast", 1500, 917), ("birds", 322, 323)],
)
def test_the_splits_of_mulan_sets(data_folder, name, n_train, n_test):
    splits = load_real(f"mulan:{name}", data_folder).splits
    assert (len(splits["train"]), len(splits["test"])) == (n_train, n_test)


def test_the_mean_number_of_labels_of_cal500(data_folder):
    cal500 = load_real("mulan:cal500", data_folder)
    # The mean number of labels per song that the benchmark's descriptions give.
    assert cal500.labels().values.sum(axis=1).mean() == pytest.approx(26.04382, abs=1e-5)


@pytest.mark.parametrize("name", ["mturk", "majmin"])
def test_genuine_rows_of_the_paper_s_files(data_folder, tmp_path, name):
    path = data_folder / "paper-rows" / f"{name}_60rows.npz"
    if not path.is_file():
        pytest.skip(f"HARMONIUM_DATA holds no {path.name}")
    with np.load(path) as rows:
        X, Y, split = rows["X"], rows["Y"], rows["split"]
    for which in SIZES[name]:
        kept = split == which
        lines = [
            ",".join(map(str, np.flatnonzero(y)))
            + "".join(f" {i}:{v!r}" for i, v in enumerate(x.tolist(), 1))
            for x, y in zip(X[kept], Y[kept], strict=True)
        ]
        (tmp_path / f"{name}_{which}.libsvm").write_text("\n".join(lines) + "\n")
    data = datasets.load(name, tmp_path, check_sizes=False)
    order = np.concatenate([np.flatnonzero(split == which) for which in SIZES[name]])
    np.testing.assert_array_equal(data.features, X[order].astype(np.float32))
    np.testing.assert_array_equal(data.labels().values, Y[order])
    np.testing.assert_allclose(np.linalg.norm(data.features, axis=1), 1, atol=1e-6)
    assert {len(rows) for rows in data.splits.values()} == {20}
