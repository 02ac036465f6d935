"""One contract over all loaders, on tiny samples of each public format."""

import dataclasses
import re

import numpy as np
import polars as pl
import pytest
from dataset_samples import CASES, write_samples
from places import DOCS

from harmonium.data import artist_key, datasets
from harmonium.data.datasets import Dataset, DatasetInfo
from harmonium.errors import DataError, DatasetNotFoundError


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    return write_samples(tmp_path_factory.mktemp("data"))


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]} {case[1] or ''}".strip())
def data(request, samples):
    name, options = request.param
    return datasets.load(name, samples, **options)


class TestContract:
    """What holds for every dataset."""

    def test_items_counts_and_tags_are_named_once_and_aligned(self, data):
        assert data.items.dtype == pl.String
        assert len(data) == data.items.n_unique() > 0
        assert data.items.null_count() == 0
        assert data.counts.items.equals(data.items)
        assert data.counts.matrix.shape == (len(data), data.tags.n_unique())
        assert data.counts.matrix.dtype == np.int32
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

    def test_triples_are_aligned_and_give_the_counts(self, data):
        if data.triples is not None:
            assert data.triples.items.equals(data.items)
            again = data.triples.counts()
            assert (again.matrix != data.counts.matrix).nnz == 0
            assert again.tags.equals(data.tags)
            assert len(data.triples.frame().unique()) == len(data.triples) > 0

    def test_labels_are_0_1_or_nan_by_the_dataset_s_rule(self, data):
        Y, tags = data.labels()
        assert (Y.dtype, Y.shape) == (np.float32, (len(data), len(tags)))
        counts = data.counts.matrix.toarray()
        assert (Y[counts == 0] == 0).all()
        if data.min_share is None:
            assert (Y[counts >= data.min_count] == 1).all()
            assert np.isnan(Y[(counts > 0) & (counts < data.min_count)]).all()
        else:
            share = counts / data.listeners[:, None]
            np.testing.assert_array_equal(Y == 1, share >= data.min_share)

    def test_the_most_popular_tags_come_first(self, data):
        Y, tags = data.labels(2)
        assert Y.shape == (len(data), 2)
        totals = dict(zip(data.tags, data.counts.matrix.sum(axis=0), strict=True))
        assert [totals[tag] for tag in tags] == sorted(totals.values(), reverse=True)[:2]

    def test_groups_have_a_label_for_each_item(self, data):
        for by, labels in [("track", data.tracks), ("artist", data.artists)]:
            if labels is None:
                with pytest.raises(DataError, match=f"which {by}"):
                    data.groups(by)
                continue
            assert labels.null_count() == 0
            groups = data.groups(by)
            keys = [artist_key(name) if by == "artist" else name for name in labels]
            same_label = [[key == other for other in keys] for key in keys]
            np.testing.assert_array_equal(groups[:, None] == groups, same_label)
        assert len(set(data.groups("item").tolist())) == len(data)

    def test_splits_are_disjoint_row_numbers_and_audio_files_exist(self, data):
        rows = np.concatenate([*data.splits.values(), []])
        assert len(np.unique(rows)) == len(rows)
        assert len(rows) in (0, len(data))
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

    def test_terms_are_stated(self, data):
        assert all(map(str.strip, (data.citation, data.licence, data.info.how_to_get)))
        assert data.homepage.startswith(("http://", "https://"))
        assert data.name == data.info.name


class TestPaper:
    def test_rows_labels_and_splits(self, samples):
        data = datasets.load("mturk", samples, check_sizes=False)
        assert data.features.shape == (6, 389)
        assert len(data.tags) == 95
        assert {name: rows.tolist() for name, rows in data.splits.items()} == {
            "train": [0, 1, 2],
            "valid": [3],
            "test": [4, 5],
        }
        Y = data.labels().values
        assert [np.flatnonzero(row).tolist() for row in Y] == [[0, 3, 94], [], [7], [94], [3], []]
        assert data.features[0, [0, 388]].tolist() == pytest.approx([0.6, 0.8])
        assert data.features[5, 0] == 1

    def test_majmin_has_96_tags(self, samples):
        data = datasets.load("majmin", samples, check_sizes=False)
        assert len(data.tags) == 96
        assert np.flatnonzero(data.labels().values[0]).tolist() == [0, 95]

    def test_sizes_are_checked(self, samples):
        with pytest.raises(DataError, match=r"mturk_train\.libsvm has 3 rows .* has 597"):
            datasets.load("mturk", samples)


class TestMajorMiner:
    def test_features_follow_the_clips(self, samples):
        data = datasets.load("majorminer", samples, features="all")
        assert data.items.to_list() == ["clip-a", "clip-b", "clip-c", "clip-d"]
        assert data.features[:, 0].tolist() == [3000, 2000, 1000, 0]
        assert data.features.shape == (4, 106)
        mfcc = datasets.load("majorminer", samples)
        np.testing.assert_array_equal(mfcc.features, data.features[:, :104])

    def test_tracks_are_artist_and_title_and_artists_may_be_unknown(self, samples):
        data = datasets.load("majorminer", samples)
        assert data.tracks.n_unique() == 3
        assert data.tracks[0] == data.tracks[2] == "The Inventions: First Song"
        assert data.artists.to_list()[1] == "(unknown)"

    def test_features_none_needs_no_features_file(self, samples, tmp_path):
        text = (samples / "majorminer" / "majorminer.tsv").read_bytes()
        (tmp_path / "majorminer.tsv").write_bytes(text)
        assert len(datasets.load("majorminer", tmp_path, features=None)) == 4
        with pytest.raises(DatasetNotFoundError, match=r"no features\.npz in any of"):
            datasets.load("majorminer", tmp_path)


class TestEmotify:
    def test_excerpts_are_numbered_within_their_genre(self, samples):
        data = datasets.load("emotify", samples)
        assert data.items.to_list() == [
            "classical_1",
            "classical_2",
            "rock_1",
            "electronic_100",
            "pop_1",
        ]
        assert data.audio[3] == samples / "emotify" / "clips" / "electronic_100.ogg"
        assert data.listeners.tolist() == [1, 4, 2, 1, 1]

    def test_alike_listeners_of_one_excerpt_stay_two(self, samples):
        data = datasets.load("emotify", samples)
        users = data.seen.filter(pl.col("item") == "classical_2")["user"].to_list()
        assert users[:2] == [
            "age 30, gender 0, Dutch, mood 3",
            "age 30, gender 0, Dutch, mood 3, no. 2",
        ]
        counts = dict(zip(data.tags, data.counts.matrix.toarray()[1], strict=True))
        assert counts["calmness"] == 3
        assert counts["solemnity"] == 1

    def test_who_marked_nothing_is_still_a_listener(self, samples):
        data = datasets.load("emotify", samples)
        silent = "age 64, gender 1, Norwegian, Nynorsk, mood 5"
        assert silent in data.triples.users.to_list()
        assert silent not in data.triples.frame()["user"].to_list()

    def test_labels_by_share_and_by_count(self, samples):
        data = datasets.load("emotify", samples)
        by_share = dict(zip(data.tags, data.labels().values[1], strict=True))
        assert (by_share["calmness"], by_share["solemnity"], by_share["power"]) == (1, 1, 0)
        strict = dict(zip(data.tags, data.labels(min_share=0.26).values[1], strict=True))
        assert (strict["calmness"], strict["solemnity"]) == (1, 0)
        by_count = dict(zip(data.tags, data.labels(min_count=2).values[1], strict=True))
        assert (by_count["calmness"], by_count["power"]) == (1, 0)
        assert np.isnan(by_count["solemnity"])

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


class TestListening:
    def test_moods_and_genres_with_both_kinds_of_features(self, samples):
        data = datasets.load("4q", samples, features="both")
        assert data.features.shape == (3, 500)
        assert data.feature_names[399:401].to_list() == ["MTT 199", "MSD: rock"]
        assert data.feature_names[433] == "MSD: hip-hop"
        assert set(data.tags) == {"laid back", "vocal", "calm", "rap"}
        assert data.groups("artist").tolist() == [0, 0, 1]
        assert datasets.load("4q", samples, kind="genre").counts.matrix.sum() == 2

    def test_the_parts_of_gtzan_are_splits(self, samples):
        data = datasets.load("gtzan", samples)
        assert {name: rows.tolist() for name, rows in data.splits.items()} == {
            "train": [1, 2],
            "valid": [0],
        }
        assert data.artists is None


class TestHetRec:
    def test_both_parts_latin_1_and_artists_without_a_name(self, samples):
        data = datasets.load("hetrec", samples)
        assert data.items.to_list() == ["10", "11", "12", "13"]
        assert data.artists.to_list() == ['The "Quotes"', "Quotes", "artist 12", "Zoë"]
        assert set(data.tags) == {"música", "pop", "rock", "trip hop", "trip-hop"}
        assert len(data.triples) == 7

    def test_normalise_merges_spellings(self, samples):
        data = datasets.load("hetrec", samples, normalise=True)
        assert set(data.tags) == {"música", "pop", "rock", "trip hop"}
        assert len(data.triples) == 6
        counts = dict(zip(data.tags, data.counts.matrix.toarray()[0], strict=True))
        assert counts["trip hop"] == 2

    def test_a_single_file_is_enough(self, samples, tmp_path):
        for name in ("user_taggedartists.dat", "tags.dat", "artists.dat"):
            (tmp_path / name).write_bytes((samples / "hetrec-lastfm" / name).read_bytes())
        assert len(datasets.load("hetrec", tmp_path).triples) == 4

    def test_joined_keeps_artists_with_tracks(self, samples):
        assert datasets.load("hetrec", samples, joined=True).items.to_list() == ["10", "11", "13"]

    def test_tracks_carry_the_tags_of_all_spellings_of_their_artist(self, samples):
        data = datasets.load("hetrec-msd", samples)
        assert data.items.to_list() == ["TRA", "TRB", "TRD"]
        assert data.artists.to_list() == ['The "Quotes"', 'The "Quotes"', "Zoë"]
        counts = data.counts.matrix.toarray()
        np.testing.assert_array_equal(counts[0], counts[1])
        assert dict(zip(data.tags, counts[0], strict=True)) == {
            "música": 1,
            "pop": 0,
            "trip hop": 1,
            "trip-hop": 3,
        }
        assert data.features[2].tolist() == [9, 10, 11]
        assert data.tracks[2] == "Zoë: Four"

    def test_untagged_tracks_on_demand(self, samples):
        data = datasets.load("hetrec-msd", samples, untagged=True)
        assert data.items.to_list() == ["TRA", "TRB", "TRC", "TRD"]
        assert data.counts.matrix.toarray()[2].sum() == 0


class TestMsd:
    def test_tracks_without_tags_are_left_out(self, samples):
        assert datasets.load("msd", samples).items.to_list() == ["TRA", "TRB", "TRD", "TRE"]
        assert len(datasets.load("msd", samples, untagged=True)) == 5

    def test_n_tags_takes_those_on_most_tracks(self, samples):
        data = datasets.load("msd", samples, n_tags=1)
        assert data.tags.to_list() == ["rock"]
        assert data.items.to_list() == ["TRA", "TRD", "TRE"]
        assert data.counts.matrix.toarray().ravel().tolist() == [100, 5, 7]

    def test_normalise_keeps_the_larger_weight(self, samples):
        data = datasets.load("msd", samples, normalise=True)
        assert data.tags.to_list() == ["rock", "hip hop", "slow"]
        assert data.counts.matrix.toarray()[:, 1].tolist() == [0, 90, 60, 0]

    def test_one_song_in_two_recordings_is_one_track(self, samples):
        data = datasets.load("msd", samples)
        assert data.tracks[2] == data.tracks[3]


class TestMulan:
    def test_labels_are_those_of_the_xml_in_its_order(self, samples):
        data = datasets.load("mulan:toy", samples)
        assert data.tags.to_list() == ["loud", "very loud", "calm"]
        assert data.labels().values.tolist() == [[1, 1, 0], [0, 0, 1], [1, 0, 0]]
        assert data.feature_names.to_list() == ["energy", "tempo"]
        np.testing.assert_array_equal(
            data.features, np.array([[0.5, 120], [-0.1, 60.5], [np.nan, 90]], dtype=np.float32)
        )
        assert {name: rows.tolist() for name, rows in data.splits.items()} == {
            "train": [0, 1],
            "test": [2],
        }

    def test_sparse_rows_words_and_quotes(self, samples):
        data = datasets.load("mulan:words", samples)
        assert data.splits == {}
        assert data.feature_names.to_list() == [
            "count",
            "key=C major",
            "key=A minor",
            "key=it's",
            "has_voice",
            "stars",
        ]
        np.testing.assert_array_equal(
            data.features,
            [
                [3, 0, 1, 0, 0, 5],
                [0, 1, 0, 0, 0, 1],
                [0, 1, 0, 0, 1, 1],
                [4, 0, 0, 1, np.nan, 2],
            ],
        )
        # What a sparse row leaves out is the first value of the list, and that of "a" is 1.
        assert data.labels().values.tolist() == [[1, 1], [0, 1], [0, 0], [0, 0]]


class TestRegistry:
    def test_every_name_has_an_info_of_that_name(self):
        for name in datasets.names("nowhere"):
            info = datasets.info(name)
            assert isinstance(info, DatasetInfo)
            assert info.name == name
            assert info.items > 0
            assert info.tags > 0

    def test_mulan_sets_in_the_folder_are_listed(self, samples):
        assert datasets.names(samples)[-2:] == ["mulan:toy", "mulan:words"]

    @pytest.mark.parametrize(
        ("name", "keyword"),
        [
            ("majorminner", "Did you mean 'majorminer'?"),
            ("zzz", "Known are mturk, majmin"),
            ("mulan:", "no dataset 'mulan:'"),
            ("mulan:../x", "no dataset 'mulan:../x'"),
        ],
    )
    def test_an_unknown_name(self, name, keyword):
        with pytest.raises(DataError, match=re.escape(keyword)):
            datasets.load(name)

    @pytest.mark.parametrize(
        ("name", "options", "keyword"),
        [
            ("majorminer", {"feature": "all"}, "Its options: features"),
            ("mulan:toy", {"which": "x"}, "Its options: none"),
            ("majorminer", {"features": "mel"}, "'features'"),
            ("4q", {"features": "all"}, "'features'"),
            ("4q", {"kind": "era"}, "'kind'"),
            ("msd", {"n_tags": 0}, "'n_tags'"),
        ],
    )
    def test_a_wrong_option(self, samples, name, options, keyword):
        with pytest.raises(DataError, match=keyword):
            datasets.load(name, samples, **options)

    def test_labels_and_groups_refuse_what_makes_no_sense(self, samples):
        data = datasets.load("majorminer", samples)
        with pytest.raises(DataError, match="not both"):
            data.labels(min_count=2, min_share=0.5)
        with pytest.raises(DataError, match="Use 'min_count'"):
            data.labels(min_share=0.5)
        with pytest.raises(DataError, match=r"'min_share' .* got 25"):
            datasets.load("emotify", samples).labels(min_share=25)
        with pytest.raises(DataError, match=r"'by' .* got 'song'"):
            data.groups("song")


PAGE = DOCS / "datasets.md"


class TestDocs:
    @pytest.mark.parametrize("name", datasets.names("nowhere"))
    def test_every_dataset_and_option_is_documented(self, name):
        text = PAGE.read_text(encoding="utf-8")
        assert f"| `{name}` | {datasets.info(name).items:,} " in text
        for option in datasets.options_of(name):
            assert f"`{option}`" in text or f"`{option}=" in text, option

    def test_every_field_of_a_dataset_is_documented(self, samples):
        text = PAGE.read_text(encoding="utf-8")
        for field in dataclasses.fields(Dataset):
            assert f"`{field.name}`" in text, field.name


class TestAlignment:
    """A dataset whose parts do not fit together cannot be made."""

    @pytest.mark.parametrize(
        ("changes", "keyword"),
        [
            ({"items": pl.Series(["a", "b", "b", "d"])}, "item 'b'"),
            ({"items": pl.Series(["a", "b", "c", "d"])}, "'counts'"),
            ({"features": np.zeros((3, 2), np.float32)}, "'features'"),
            ({"features": np.zeros((4, 2))}, "'features'"),
            ({"feature_names": pl.Series(["x"])}, "'feature_names'"),
            ({"tracks": pl.Series(["x"])}, "'tracks'"),
            ({"artists": pl.Series(["x"])}, "'artists'"),
            ({"audio": []}, "'audio'"),
            ({"listeners": np.ones(5, np.int32)}, "'listeners'"),
            ({"splits": {"test": np.array([4])}}, "'splits'"),
        ],
    )
    def test_parts_that_do_not_fit(self, samples, changes, keyword):
        data = datasets.load("majorminer", samples)
        with pytest.raises(DataError, match=keyword):
            dataclasses.replace(data, **changes)

    def test_triples_of_other_items(self, samples):
        data = datasets.load("hetrec", samples)
        other = datasets.load("hetrec", samples, joined=True)
        with pytest.raises(DataError, match="'triples'"):
            dataclasses.replace(data, triples=other.triples)


class TestFolders:
    def test_the_environment_names_the_folder(self, samples, monkeypatch):
        monkeypatch.setenv("HARMONIUM_DATA", str(samples))
        assert isinstance(datasets.load("hetrec"), Dataset)

    def test_the_user_s_folder_is_searched_after_it(self, samples, monkeypatch, tmp_path):
        (tmp_path / "harmonium").symlink_to(samples)
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
        monkeypatch.setenv("HARMONIUM_DATA", str(tmp_path / "nothing"))
        assert datasets.data_folders() == [tmp_path / "nothing", tmp_path / "harmonium"]
        assert isinstance(datasets.load("hetrec"), Dataset)
        monkeypatch.delenv("HARMONIUM_DATA")
        assert isinstance(datasets.load("mulan:toy"), Dataset)

    def test_a_dataset_s_own_folder_may_be_given(self, samples):
        for name, sub in [("hetrec", "hetrec-lastfm"), ("mulan:toy", "mulan/toy")]:
            assert isinstance(datasets.load(name, samples / sub), Dataset)
        assert isinstance(datasets.load("mulan:toy", str(samples / "mulan")), Dataset)

    def test_missing_files_say_where_they_were_looked_for_and_how_to_get_them(self, tmp_path):
        (tmp_path / "mturk").mkdir()
        (tmp_path / "mturk" / "mturk_train.libsvm").touch()
        with pytest.raises(DatasetNotFoundError) as caught:
            datasets.load("mturk", tmp_path)
        text = str(caught.value)
        assert "no mturk_valid.libsvm, mturk_test.libsvm in any of" in text
        assert str(tmp_path / "mturk") in text
        assert "harmonium data download mturk" in text
        assert "HARMONIUM_DATA" in text

    def test_either_form_of_a_mulan_set_is_asked_for(self, tmp_path):
        with pytest.raises(DatasetNotFoundError, match=r"x\.arff or x-train\.arff"):
            datasets.load("mulan:x", tmp_path)
