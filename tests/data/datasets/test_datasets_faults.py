"""A malformed file is a DataError that names the file and, where there are lines, the line."""

import re
import shutil

import numpy as np
import pytest
from dataset_samples import (
    write_majorminer_features,
    write_msd_features,
    write_msd_tags,
    write_samples,
)

from harmonium.data import datasets
from harmonium.errors import DataError, DataWarning

# (dataset, file): what is replaced by what, and the message after the path of the file
FAULTS = {
    ("mturk", "mturk/mturk_train.libsvm"): [
        (b"0,3,94", b"0,95", "line 1: a label must be a number from 0 to 94, got '95'."),
        (b"7 3", b"x 3", "line 3: a label must be a number from 0 to 94, got 'x'."),
        (b"7 3", b"-7 3", "line 3: a label must be a number from 0 to 94, got '-7'."),
        (b" 2:1", b" 0:1", "line 2: a feature must be a number from 1 to 389, got 0."),
        (b" 2:1", b" 390:1", "line 2: a feature must be a number from 1 to 389, got 390."),
        (b" 2:1", b" 2:one", "line 2: '2:one' is not of the form feature:value."),
        (b" 2:1", b" 2:1:1", "line 2: '2:1:1' is not of the form feature:value."),
        (b" 2:1", b" 2:1 7", "line 2: '7' is not of the form feature:value."),
        (b" 2:1", b" 2:nan", "line 2: feature 2 is not a finite number."),
        (b" 2:1", b" 2:1 2:1", "line 2: feature 2 is given twice."),
        (b" 2:1", b"", "line 2: the line is empty."),
        (b" 2:1", b" 2:\xff", "line 2: byte 0xff is not utf-8 text."),
    ],
    ("majorminer", "majorminer/majorminer.tsv"): [
        (
            b"\tslow\t5",
            b"\tslow",
            "line 5: 6 fields where there should be 7",
        ),
        (b"slow\t5", b"slow\tfive", "line 5: count must be a whole number from 1 up, got 'five'."),
        (b"slow\t5", b"slow\t0", "line 5: count must be a whole number from 1 up, got '0'."),
        (b"\tslow\t5", b"\t \t5", "line 5: tag is empty."),
        (
            b"\tguitar",
            b"\tdrums",
            "line 1: the tag 'drums' is given to clip 'clip-c' more than once.",
        ),
        (
            b"clip-d",
            b"clip-a",
            "line 3: clip 'clip-a' has another title or artist in another line.",
        ),
    ],
    ("emotify", "emotify/data.csv"): [
        (b"genre, ", b"style, ", "line 1: the columns must be track id, genre, amazement"),
        (
            b"2,classical,0,1",
            b"2,classical,0,2",
            "line 2: solemnity must be a whole number from 0 to 1, got '2'.",
        ),
        (b"300,elec", b"400,elec", "line 9: track 400 must be pop, got 'electronic'."),
        (
            b"300,elec",
            b"401,elec",
            "line 9: track id must be a whole number from 1 to 400, got '401'.",
        ),
        (
            b'"Norwegian, Nynorsk"',
            b"Norwegian, Nynorsk",
            "line 4: 18 fields where there should be 17",
        ),
    ],
    ("hetrec", "hetrec-lastfm/user_taggedartists.dat"): [
        (b"2\t10\t6", b"2\t10\t66", "line 4: tag 66 is not in tags.dat."),
        (b"2\t10\t6", b"2\t\t6", "line 4: artistID must be a whole number from 0 up, got ''."),
    ],
    ("hetrec", "hetrec-lastfm/user_taggedartists_2.dat"): [
        (
            b"userID",
            b"user",
            "line 1: the columns must be userID, artistID, tagID, day, month, year",
        ),
    ],
    ("hetrec", "hetrec-lastfm/tags.dat"): [
        (b"8\trock", b"8\t", "line 5: tagValue is empty."),
    ],
    ("hetrec", "hetrec-lastfm/artists.dat"): [
        (b"Zo\xc3\xab", b"Zo\xeb", "line 4: byte 0xeb is not utf-8 text."),
    ],
    ("hetrec-msd", "hetrec-lastfm/artist_to_msd_tracks.tsv"): [
        (b"TRD", b"TRX", "track 'TRX' is not in the MSD subset's features.npz."),
        (b"13\tZo", b"z\tZo", "line 3: artist must be a whole number from 0 up, got 'z'."),
    ],
    ("mulan:toy", "mulan/toy/toy-train.arff"): [
        (b"0.5,0,1,120,1", b"0.5,0,1,120", "line 11: 4 values for 5 attributes."),
        (
            b"0.5,0,1,120,1",
            b"0.5,0,1,fast,1",
            "line 11: 'tempo' must be a finite number, got 'fast'.",
        ),
        (
            b"0.5,0,1,120,1",
            b"0.5,0,1,inf,1",
            "line 11: 'tempo' must be a finite number, got 'inf'.",
        ),
        (b"0.5,0,1,120,1", b"0.5,0,1,120,2", "line 11: 'loud' must be one of 0, 1; got '2'."),
        (b"0.5,0,1,120,1", b"0.5,?,1,120,1", "line 11: label 'calm' is missing."),
        (b"0.5,0,1,120,1", b"0.5,'0,1,120,1", "line 11: a quote is not closed"),
        (
            b"tempo real",
            b"tempo complex",
            "line 7: attribute 'tempo' has the unknown type 'complex'.",
        ),
        (b"tempo real", b"tempo", "line 7: '@attribute tempo' is not '@attribute name type'."),
        (b"@relation", b"relation", "line 2: 'relation toy' is not an ARFF declaration."),
        (b"@data", b"%", "line 11: '0.5,0,1,120,1' is not an ARFF declaration."),
    ],
    ("mulan:toy", "mulan/toy/toy-test.arff"): [
        (b"?,0,0,90,1", b"", "it has no rows after @data."),
        (b"energy", b"power", "its attributes are not those of the training file."),
    ],
    ("mulan:toy", "mulan/toy/toy.xml"): [
        (b"</labels>", b"", "line 6: it is not well-formed XML"),
        (
            b'name="calm"',
            b'name="loud"',
            "it must hold <label name=...> elements with different names.",
        ),
    ],
    ("mulan:words", "mulan/words/words.arff"): [
        (
            b"{0 3,",
            b"{9 3,",
            "line 9: a sparse value needs an attribute from 0 to 5 before it, got '9 3'.",
        ),
        (b"{0 3,", b"{0 3, 0 4,", "line 9: attribute 0 is given twice."),
        (b"5 1}", b"5 1", "line 9: the sparse row does not end with '}'."),
        (b"2 yes", b"2 maybe", "line 11: 'has_voice' must be one of no, yes; got 'maybe'."),
        (b"a {1, 0}", b"a {1, 0, 2}", "label 'a' must have the values 0 and 1."),
    ],
}
CASES = [(*where, *fault) for where, faults in FAULTS.items() for fault in faults]


@pytest.fixture
def samples(tmp_path):
    return write_samples(tmp_path)


def options_of(name):
    return {"check_sizes": False} if name == "mturk" else {}


@pytest.mark.parametrize(("name", "file", "old", "new", "message"), CASES)
def test_a_malformed_text_file(samples, name, file, old, new, message):
    path = samples / file
    raw = path.read_bytes()
    assert old in raw
    path.write_bytes(raw.replace(old, new, 1))
    with pytest.raises(DataError) as caught:
        datasets.load(name, samples, **options_of(name))
    assert str(path) in str(caught.value)
    assert message in str(caught.value)


def test_a_label_of_the_xml_that_the_arff_does_not_have(samples):
    path = samples / "mulan" / "toy" / "toy.xml"
    path.write_bytes(path.read_bytes().replace(b'name="calm"', b'name="calmer"'))
    with pytest.raises(DataError, match="label 'calmer' of the XML file is no attribute in it"):
        datasets.load("mulan:toy", samples)


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("mturk", "mturk/mturk_valid.libsvm"),
        ("majorminer", "majorminer/majorminer.tsv"),
        ("emotify", "emotify/data.csv"),
        ("hetrec", "hetrec-lastfm/tags.dat"),
        ("hetrec", "hetrec-lastfm/user_taggedartists.dat"),
        ("mulan:toy", "mulan/toy/toy-train.arff"),
        ("mulan:toy", "mulan/toy/toy.xml"),
        ("majorminer", "majorminer/features.npz"),
        ("msd", "msd-subset/features.npz"),
        ("msd", "msd-subset/lastfm_top500.npz"),
    ],
)
def test_an_empty_file(samples, name, file):
    (samples / file).write_bytes(b"")
    with pytest.raises(DataError, match=re.escape(str(samples / file))):
        datasets.load(name, samples, **options_of(name))


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9, 0.99])
@pytest.mark.parametrize(
    ("name", "file"),
    [("majorminer", "majorminer/features.npz"), ("msd", "msd-subset/lastfm_top500.npz")],
)
def test_a_truncated_npz_file(samples, name, file, share):
    raw = (samples / file).read_bytes()
    (samples / file).write_bytes(raw[: int(share * len(raw))])
    with pytest.raises(DataError, match=r"it is not a complete \.npz file .* Copy it again"):
        datasets.load(name, samples)


def test_a_damaged_npz_file(samples):
    path = samples / "majorminer" / "features.npz"
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 3] ^= 0xFF
    path.write_bytes(raw)
    with pytest.raises(DataError, match=r"it is not a complete \.npz file"):
        datasets.load("majorminer", samples)


X4 = np.zeros((4, 106), dtype=np.float32)
X5 = np.zeros((5, 106), dtype=np.float32)
NAN = np.full((5, 106), np.nan, dtype=np.float32)
CLIPS = np.array(["clip-x", "clip-c", "clip-b", "clip-a", "clip-u"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"X": X4}, "'X' has 4 rows where 'clip_id' has 5"),
        ({"X": X5[:, :9]}, "matrix of numbers with 106 columns, got float32 of shape (5, 9)"),
        ({"X": X5[:, 0]}, "got float32 of shape (5,)"),
        ({"X": X5.astype(str)}, "got <U32 of shape (5, 106)"),
        ({"X": NAN}, "row 0, column 0 of the features is not finite"),
        ({"X": X5.astype(object)}, "it is not a complete .npz file"),
        ({"clip_id": CLIPS}, "1 clips have no features, 'clip-d' first"),
    ],
)
def test_majorminer_features_that_do_not_fit(samples, changes, message):
    write_majorminer_features(samples / "majorminer" / "features.npz", **changes)
    with pytest.raises(DataError) as caught:
        datasets.load("majorminer", samples)
    assert message in str(caught.value)


def test_a_single_array_is_no_archive(samples):
    with (samples / "majorminer" / "features.npz").open("wb") as file:
        np.save(file, X5)
    with pytest.raises(DataError, match=r"it is not a complete \.npz file"):
        datasets.load("majorminer", samples)


def test_an_npz_file_without_an_array(samples):
    np.savez(samples / "majorminer" / "features.npz", X=X5)
    with pytest.raises(DataError, match="there is no array 'clip_id' in it, only X"):
        datasets.load("majorminer", samples)


IDS = np.array(["TRA", "TRB", "TRC", "TRD", "TRX"])
HEAVY = np.full((5, 4), 101, dtype=np.int16)


@pytest.mark.parametrize(
    ("write", "changes", "message"),
    [
        (write_msd_tags, {"track_id": IDS}, "its tracks are not those of features.npz"),
        (write_msd_tags, {"Y": HEAVY}, "row 0 has a weight that is not from 0 to 100"),
        (write_msd_tags, {"Y": HEAVY[:, :3]}, "whole numbers for 4 tags, got int16"),
        (write_msd_tags, {"Y": HEAVY[:4]}, "'Y' has 4 rows where 'track_id' has 5"),
        (write_msd_features, {"title": IDS[:2]}, "'title' has 2 rows where 'track_id' has 5"),
    ],
)
def test_msd_arrays_that_do_not_fit(samples, write, changes, message):
    name = "features.npz" if write is write_msd_features else "lastfm_top500.npz"
    write(samples / "msd-subset" / name, **changes)
    with pytest.raises(DataError) as caught:
        datasets.load("msd", samples)
    assert message in str(caught.value)


def test_a_track_that_occurs_twice(samples):
    twice = np.array(["TRA", "TRA", "TRC", "TRD", "TRE"])
    write_msd_features(samples / "msd-subset" / "features.npz", track_id=twice)
    write_msd_tags(samples / "msd-subset" / "lastfm_top500.npz", track_id=twice)
    with pytest.raises(DataError, match="item 'TRA' occurs more than once"):
        datasets.load("msd", samples)


def test_a_text_attribute_is_left_out_with_a_warning(samples):
    path = samples / "mulan" / "words" / "words.arff"
    path.write_text(path.read_text().replace("count integer", "title string"))
    with pytest.warns(DataWarning, match="the text attribute 'title' is left out"):
        data = datasets.load("mulan:words", samples)
    assert "title" not in data.feature_names.to_list()
    assert data.features.shape == (4, 5)


def test_a_set_with_labels_only(samples):
    path = samples / "mulan" / "only"
    shutil.copytree(samples / "mulan" / "words", path)
    (path / "words.xml").rename(path / "only.xml")
    (path / "words.arff").unlink()
    (path / "only.arff").write_text(
        "@relation x\n@attribute a {0,1}\n@attribute b {0,1}\n@data\n0,1\n"
    )
    with pytest.raises(DataError, match="it has no features, only labels"):
        datasets.load("mulan:only", samples)
