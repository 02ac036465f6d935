"""The libsvm and ARFF parsers on generated files."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.io import arff as scipy_arff

from harmonium.data.datasets.arff import read_arff
from harmonium.data.datasets.paper_files import read_libsvm

VALUES = st.floats(-1e6, 1e6, width=32).map(lambda value: value + 0.0)  # no -0.0
SHAPES = st.tuples(st.integers(1, 6), st.integers(1, 8))
MATRICES = SHAPES.flatmap(lambda shape: arrays(np.float32, shape, elements=VALUES))
SETTINGS = settings(deadline=None, max_examples=40)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("parsers")


def as_libsvm(X, Y, *, keep_zeros):
    lines = []
    for x, y in zip(X, Y, strict=True):
        pairs = [
            f"{column + 1}:{value!r}"
            for column, value in enumerate(x.tolist())
            if value or keep_zeros
        ]
        lines.append(" ".join([",".join(str(label) for label in np.flatnonzero(y)), *pairs]))
    return "\n".join(lines)


@given(X=MATRICES, seed=st.integers(0, 2**32 - 1), ending=st.sampled_from(["", "\n", "\r\n"]))
@SETTINGS
def test_libsvm_gives_back_what_was_written(folder, X, seed, ending):
    rng = np.random.default_rng(seed)
    Y = rng.random((len(X), 5)) < 0.4
    text = as_libsvm(X, Y, keep_zeros=True) + ending
    if ending == "\r\n":
        text = text.rstrip().replace("\n", "\r\n") + ending
    (folder / "x.libsvm").write_text(text, newline="")
    features, labels = read_libsvm(folder / "x.libsvm", n_features=X.shape[1], n_labels=5)
    np.testing.assert_array_equal(features, X)
    np.testing.assert_array_equal(labels, Y)


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


@given(X=MATRICES, seed=st.integers(0, 2**32 - 1))
@SETTINGS
def test_dense_and_sparse_arff_give_back_what_was_written(folder, X, seed):
    Y = np.random.default_rng(seed).random((len(X), 3)) < 0.5
    for sparse in (False, True):
        path = folder / "x.arff"
        path.write_text(as_arff(X, Y, sparse=sparse))
        read = read_arff(path)
        np.testing.assert_array_equal(read.rows, np.hstack([X, Y]))
        assert [attribute.name for attribute in read.attributes[: X.shape[1]]] == [
            f"x{column}" for column in range(X.shape[1])
        ]


def test_dense_arff_equals_scipy_s_reader(folder):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(20, 7)).astype(np.float32), rng.random((20, 4)) < 0.3
    path = folder / "x.arff"
    path.write_text(as_arff(X, Y, sparse=False))
    theirs, _ = scipy_arff.loadarff(path)
    ours = read_arff(path).rows
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
def test_values_of_every_kind(folder, declared, cell, value):
    head = f"@relation r\n@attribute 'the first' {declared}\n@attribute second numeric\n@data\n"
    for row in (f"{cell},2", f"{{0 {cell}, 1 2}}"):
        (folder / "x.arff").write_text(f"% a comment\n{head}\n{row}\n")
        read = read_arff(folder / "x.arff")
        assert read.attributes[0].name == "the first"
        np.testing.assert_array_equal(read.rows, np.array([[value, 2]], dtype=np.float32))
