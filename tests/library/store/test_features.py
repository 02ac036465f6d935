"""The rows of features."""

import numpy as np
import pytest
from some_tracks import add_tracks

from harmonium.errors import LibraryError


def test_features_come_back_in_the_order_asked(library):
    ids = add_tracks(library, 4)
    matrix = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
    library.tracks.put_features(ids[:3], matrix, extractor="paper@1")
    have, found = library.tracks.features([ids[2], ids[3], ids[0]], extractor="paper@1")
    assert have.tolist() == [ids[2], ids[0]]
    np.testing.assert_array_equal(found, matrix[[2, 0]])
    library.tracks.put_features(ids[:1], 0 * matrix[:1], extractor="paper@1")
    assert (library.tracks.features(ids[:1], extractor="paper@1")[1] == 0).all()


def test_the_features_of_extractors_are_kept_apart(library):
    ids = add_tracks(library, 4)
    matrix = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
    library.tracks.put_features(ids[:3], matrix, extractor="paper@1")
    library.tracks.put_features(ids[2:], [[1, 2], [3, 4]], extractor="paper@new")
    np.testing.assert_array_equal(
        library.tracks.features(ids, extractor="paper@1")[1][2], matrix[2]
    )
    assert library.tracks.features(ids, extractor="paper")[1].tolist() == [[1, 2], [3, 4]]
    assert library.tracks.features(ids, extractor="other")[0].tolist() == []


def test_features_of_another_shape_are_refused(library):
    ids = add_tracks(library, 4)
    library.tracks.put_features(ids[2:], [[1, 2], [3, 4]], extractor="paper@new")
    with pytest.raises(LibraryError, match="'paper@new' gives 2 features per track, got 3"):
        library.tracks.put_features(ids[:1], [[1, 2, 3]], extractor="paper@new")
    with pytest.raises(LibraryError, match="'matrix' must have a row for each"):
        library.tracks.put_features(ids[:1], [[1], [2]], extractor="x")
