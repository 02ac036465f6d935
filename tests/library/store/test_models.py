"""The rows of models and of what they predict."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from some_tracks import a_model

from harmonium.errors import LibraryError
from harmonium.library.store.models import CURRENT
from harmonium.library.store.predictions import STEP
from harmonium.library.store.schema import BLOCK

# Models


def test_a_model_comes_back_whole(library):
    assert library.models.current() is None
    stored = a_model()
    number = library.models.add(stored)
    found = library.models.current()
    np.testing.assert_array_equal(found.thresholds, stored.thresholds)
    assert replace(found, thresholds=0) == replace(stored, id=number, thresholds=0)
    with pytest.raises(LibraryError, match="'thresholds'"):
        library.models.add(a_model(thresholds=np.zeros(2)))


def test_the_last_model_is_used_whatever_the_clock_said_or_the_one_chosen(library):
    first, second = (
        library.models.add(a_model(name=name, made_at=datetime.now(UTC) + timedelta(days)))
        for name, days in (("one", 999), ("two", -999))
    )
    assert library.models.current().name == "two"
    library.settings.set(CURRENT, first)
    assert library.models.current().name == "one"
    found = [(one.id, one.name, one.bytes) for one in library.models.list()]
    assert found == [(first, "one", b""), (second, "two", b"")]
    with pytest.raises(LibraryError, match=r"no model 9 in the library. There are 1, 2"):
        library.models.get(9)


# Predictions


def test_the_predictions_of_a_tag_are_side_by_side_in_memory(library):
    model = library.models.add(a_model())
    for ids in ([1, 3, 2 * BLOCK], [2]):  # with gaps between them
        library.predictions.put(model, ids, np.full((len(ids), 3), 0.5))
        assert library.predictions.matrix(model).steps.flags.c_contiguous


def test_predictions_of_any_tracks_in_any_order(library):
    model = library.models.add(a_model())
    rng = np.random.default_rng(1)
    ids = np.array([5, 1, BLOCK + 3, BLOCK - 1, BLOCK, 7 * BLOCK + 12])
    probabilities = rng.random((6, 3)).astype(np.float32)
    library.predictions.put(model, ids[:4], 1 - probabilities[:4])
    library.predictions.put(model, ids[:3], probabilities[:3])  # in place of those before
    library.predictions.put(model, ids[3:], probabilities[3:])
    order = np.argsort(ids)
    numbers, columns = library.predictions.columns(model, [2, 0])
    np.testing.assert_array_equal(numbers, ids[order])
    np.testing.assert_allclose(columns, probabilities[order][:, [2, 0]], rtol=0, atol=STEP / 2)
    np.testing.assert_array_equal(
        library.predictions.probabilities(model, ids)[order][:, [2, 0]], columns
    )
    assert np.isnan(library.predictions.probabilities(model, [2, BLOCK + 1])).all()
    assert len(library.predictions.columns(model, [0])[0]) == 6


def test_predictions_of_different_models_are_kept_apart(library):
    one, two = library.models.add(a_model()), library.models.add(a_model(1))
    library.predictions.put(one, [1, 2], np.full((2, 3), 0.25))
    library.predictions.put(two, [2], [[0.75]])
    assert library.predictions.columns(two, [0])[0].tolist() == [2]
    library.predictions.forget_tracks([2])
    assert library.predictions.columns(one, [0])[0].tolist() == [1]
    assert library.predictions.columns(two, [0])[0].tolist() == []
    library.predictions.forget_tracks([1])
    assert library.predictions.columns(one, [0, 1])[1].shape == (0, 2)


def test_what_is_possible_is_stored_as_possible(library):
    model = library.models.add(a_model())
    given = np.array([[0.0, 1e-30, STEP / 3], [1.0, 1 - 1e-7, 1 - STEP / 3], [1.1, -0.1, np.nan]])
    library.predictions.put(model, [1, 2, 3], given)
    found = library.predictions.probabilities(model, [1, 2, 3])
    assert (found[0] > 0).tolist() == (found[1] < 1).tolist() == [False, True, True]
    np.testing.assert_allclose(found, np.clip(given, 0, 1), rtol=0, atol=STEP)
