"""Published files are checked by their digest and parsed; Mulan's may be one's own."""

import hashlib
import re
import warnings

import numpy as np
import pytest
from dataset_samples import write_msd_tags, write_samples
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.io import arff as scipy_arff

from harmonium.data import datasets
from harmonium.data.datasets.dataset import DIGESTS
from harmonium.data.datasets.mulan import read_arff
from harmonium.errors import DataError, DataWarning

VALUES = st.floats(-1e6, 1e6, width=32).map(lambda value: value + 0.0)  # no -0.0
SHAPES = st.tuples(st.integers(1, 6), st.integers(1, 8))
MATRICES = SHAPES.flatmap(lambda shape: arrays(np.float32, shape, elements=VALUES))


@pytest.fixture
def samples(tmp_path):
    return write_samples(tmp_path / "data")


class TestPublishedFiles:
    def test_another_version_of_a_file_gets_one_warning(self, samples, monkeypatch):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            datasets.load("majorminer", samples)
        (warning,) = caught
        assert issubclass(warning.category, DataWarning)
        assert str(samples / "majorminer" / "majorminer.tsv") in str(warning.message)
        for name in ("majorminer.tsv", "features.npz"):
            content = (samples / "majorminer" / name).read_bytes()
            monkeypatch.setitem(DIGESTS, hashlib.sha256(content).hexdigest(), name)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            datasets.load("majorminer", samples)

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
    def test_a_file_that_cannot_be_parsed_is_named(self, samples, name, file, content):
        (samples / file).write_bytes(content)
        options = {"check_sizes": False} if name == "mturk" else {}
        with pytest.raises(DataError, match=re.escape(str(samples / file))):
            datasets.load(name, samples, **options)

    @pytest.mark.parametrize("share", [0.3, 0.9])
    def test_a_truncated_npz_file(self, samples, share):
        path = samples / "msd-subset" / "lastfm_top500.npz"
        path.write_bytes(path.read_bytes()[: int(share * len(path.read_bytes()))])
        with pytest.raises(DataError, match="not the published file"):
            datasets.load("msd", samples)

    def test_a_table_with_other_columns_names_the_dataset(self, samples):
        (samples / "emotify" / "data.csv").write_text("track id,genre\n1,rock\n")
        with pytest.raises(DataError, match="Dataset 'emotify' cannot be read"):
            datasets.load("emotify", samples)

    def test_files_that_do_not_belong_together(self, samples):
        ids = np.array(["TRA", "TRB", "TRC", "TRD", "TRX"])
        write_msd_tags(samples / "msd-subset" / "lastfm_top500.npz", track_id=ids)
        with pytest.raises(DataError, match="different tracks"):
            datasets.load("msd", samples)
        join = samples / "hetrec-lastfm" / "artist_to_msd_tracks.tsv"
        join.write_bytes(join.read_bytes().replace(b"TRD", b"TRX"))
        with pytest.raises(DataError, match="'TRX'"):
            datasets.load("hetrec-msd", samples)


def as_arff(X, Y, *, sparse):
    lines = ["@relation generated"]
    lines += [f"@attribute x{column} numeric" for column in range(X.shape[1])]
    lines += [f"@attribute y{column} {{0,1}}" for column in range(Y.shape[1])]
    lines += ["@data"]
    for x, y in zip(X, Y, strict=True):
        cells = [repr(value) for value in x.tolist()] + [str(int(value)) for value in y]
        if sparse:
            kept = [f"{i} {cell}" for i, cell in enumerate(cells) if float(cell)]
            lines.append("{" + ",".join(kept) + "}")
        else:
            lines.append(",".join(cells))
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("parsers") / "x.arff"


class TestArff:
    @given(X=MATRICES, seed=st.integers(0, 2**32 - 1))
    @settings(deadline=None, max_examples=40)
    def test_dense_and_sparse_give_back_what_was_written(self, path, X, seed):
        Y = np.random.default_rng(seed).random((len(X), 3)) < 0.5
        for sparse in (False, True):
            path.write_text(as_arff(X, Y, sparse=sparse))
            attributes, rows = read_arff(path)
            np.testing.assert_array_equal(rows, np.hstack([X, Y]))
            assert attributes[0] == ("x0", ())
            assert attributes[-1] == ("y2", ("0", "1"))

    def test_dense_equals_scipy_s_reader(self, path):
        rng = np.random.default_rng(0)
        X, Y = rng.normal(size=(20, 7)).astype(np.float32), rng.random((20, 4)) < 0.3
        path.write_text(as_arff(X, Y, sparse=False))
        theirs, _ = scipy_arff.loadarff(path)
        ours = read_arff(path)[1]
        for column, name in enumerate(theirs.dtype.names):
            np.testing.assert_array_equal(ours[:, column], theirs[name].astype(np.float32))

    @pytest.mark.parametrize(
        ("declared", "cell", "value"),
        [
            ("numeric", "?", np.nan),
            ("REAL", " 1e-3 ", 1e-3),
            ("{low, high}", "high", 1),
            ("{'very low', \"so high\"}", "'very low'", 0),
            ("{'very low', \"so high\"}", '"so high"', 1),
            ("{'a,b', 'it\\'s'}", "'it\\'s'", 1),
            ("{'a,b', 'it\\'s'}", "'a,b'", 0),
            ("{5, 7}", "7", 1),
            ("date yyyy-MM-dd", "2001-02-03", np.nan),
        ],
    )
    def test_values_of_every_kind(self, path, declared, cell, value):
        head = f"@relation r\n@attribute 'the first' {declared}\n@attribute second numeric\n@data\n"
        for row in (f"{cell},2", f"{{0 {cell}, 1 2}}"):
            path.write_text(f"% a comment\n{head}\n{row}\n")
            attributes, rows = read_arff(path)
            assert attributes[0][0] == "the first"
            np.testing.assert_array_equal(rows, np.array([[value, 2]], dtype=np.float32))


# (file, what is replaced by what, a part of the message)
FAULTS = [
    ("toy/toy-train.arff", b"0.5,0,1,120,1", b"0.5,0,1,120", "line 11: 4 values"),
    ("toy/toy-train.arff", b"0.5,0,1,120,1", b"0.5,0,1,fast,1", "line 11: .*'fast'"),
    ("toy/toy-train.arff", b"0.5,0,1,120,1", b"0.5,0,1,1e39,1", "line 11: 'tempo'"),
    ("toy/toy-train.arff", b"0.5,0,1,120,1", b"0.5,0,1,120,2", "line 11: 'loud'"),
    ("toy/toy-train.arff", b"0.5,0,1,120,1", b"0.5,?,1,120,1", "label 'calm'"),
    ("toy/toy-train.arff", b"0.5,0,1,120,1", b"0.5,'0,1,120,1", "line 11: a quote"),
    ("toy/toy-train.arff", b"tempo real", b"tempo complex", "line 7: .*'complex'"),
    ("toy/toy-train.arff", b"tempo real", b"tempo", "line 7: '@attribute tempo'"),
    ("toy/toy-train.arff", b"@relation", b"relation", "line 2: 'relation toy'"),
    ("toy/toy-test.arff", b"?,0,0,90,1", b"", "no rows"),
    ("toy/toy-test.arff", b"energy", b"power", "attributes .* differ"),
    ("toy/toy.xml", b'name="calm"', b'name="loud"', "different names"),
    ("toy/toy.xml", b'name="calm"', b'name="calmer"', "'calmer'"),
    ("words/words.arff", b"{0 3,", b"{9 3,", "line 9: '9 3'"),
    ("words/words.arff", b"5 1}", b"5 1", "line 9: the sparse row"),
    ("words/words.arff", b"a {1, 0}", b"a {1, 0, 2}", "label 'a'"),
]


@pytest.mark.parametrize(("file", "old", "new", "keyword"), FAULTS)
def test_a_fault_in_a_mulan_set_of_one_s_own(samples, file, old, new, keyword):
    path = samples / "mulan" / file
    assert old in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(old, new, 1))
    with pytest.raises(DataError, match=keyword):
        datasets.load("mulan:" + file.split("/")[0], samples)


def test_a_text_attribute_is_left_out_with_a_warning(samples):
    path = samples / "mulan" / "words" / "words.arff"
    path.write_text(path.read_text().replace("count integer", "title string"))
    with pytest.warns(DataWarning, match="'title'"):
        data = datasets.load("mulan:words", samples)
    assert "title" not in data.feature_names.to_list()
    assert data.features.shape == (4, 5)


def test_a_set_with_labels_only(samples):
    path = samples / "mulan" / "words" / "words.arff"
    path.write_text("@relation x\n@attribute a {0,1}\n@attribute b {0,1}\n@data\n0,1\n")
    with pytest.raises(DataError, match="no features"):
        datasets.load("mulan:words", samples)
