"""Sound vectors, and how similar they are."""

import numpy as np
import pytest
import small_library
from small_library import fill

from harmonium.library import sound
from harmonium.library.sound import (
    MAX_DEVIATIONS,
    SoundSpace,
    SoundVectors,
    update_sound_vectors,
)
from harmonium.library.store.tracks import Track


def cosines(library, track_id):
    sounds = SoundVectors.of(library)
    return sounds.ids, sounds.cosines(track_id)


def directly(X, row):
    """The cosines by hand, in all dimensions and full precision."""
    Z = np.clip((X - X.mean(axis=0)) / X.std(axis=0), -MAX_DEVIATIONS, MAX_DEVIATIONS)
    Z = Z - Z.mean(axis=0)
    return Z @ Z[row] / np.linalg.norm(Z, axis=1) / np.linalg.norm(Z[row])


def count_fits(monkeypatch):
    fits = []
    fit = SoundSpace.fitted
    monkeypatch.setattr(SoundSpace, "fitted", lambda X: fits.append(len(X)) or fit(X))
    return fits


def test_likeness_is_the_cosine_of_present_features_in_units_of_their_deviations(library):
    ids, X, _ = fill(library, 30)
    X = X * np.logspace(-2, 2, X.shape[1], dtype=np.float32) + 5
    library.tracks.put_features(ids, X, extractor=small_library.EXTRACTOR)
    update_sound_vectors(library)
    found, near = cosines(library, int(ids[7]))
    np.testing.assert_array_equal(found, ids)
    np.testing.assert_allclose(near, directly(X.astype(float), 7), atol=0.02)
    assert near[7] == pytest.approx(1, abs=1e-5)
    library.tracks.put_features(ids[4:5], X[9:10], extractor=small_library.EXTRACTOR)
    found, _ = cosines(library, int(ids[9]))
    assert int(ids[4]) not in found  # dropped with what it was made of
    update_sound_vectors(library)
    assert cosines(library, int(ids[9]))[1][4] == pytest.approx(1, abs=1e-5)
    library.tracks.drop_features(int(ids[4]))
    assert int(ids[4]) not in cosines(library, int(ids[9]))[0]


def test_of_many_features_the_axes_on_which_tracks_differ_are_kept():
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(300, 20)) @ rng.normal(size=(20, 389))).astype(np.float32)
    X[:, 5] = 3.0  # constant: says nothing
    vectors = SoundSpace.fitted(X).vectors(X).astype(float)
    near = vectors @ vectors[0] / np.linalg.norm(vectors, axis=1) / np.linalg.norm(vectors[0])
    np.testing.assert_allclose(near, directly(np.delete(X, 5, axis=1), 0), atol=0.03)


def add_same_sounds(library, X, n):
    """Add so many tracks that sound like the first ones; the number of the first of them."""
    files = [Track(f"/more/{n} {i}.ogg", f"{n} {i}") for i in range(n)]
    new = library.tracks.put(files)
    library.tracks.put_features(new, X[:n], extractor=small_library.EXTRACTOR)
    update_sound_vectors(library)
    return new[0]


def test_new_tracks_join(library, monkeypatch):
    fits = count_fits(monkeypatch)
    ids, X, _ = fill(library, 40)
    update_sound_vectors(library)
    update_sound_vectors(library)
    assert fits == [40]
    new = add_same_sounds(library, X, 2)
    assert fits == [40]
    found, near = cosines(library, int(ids[0]))
    assert near[np.searchsorted(found, new)] == pytest.approx(1, abs=1e-5)


def test_a_grown_library_is_measured_anew(library, monkeypatch):
    fits = count_fits(monkeypatch)
    ids, X, _ = fill(library, 40)
    update_sound_vectors(library)
    add_same_sounds(library, X, 2)
    new = add_same_sounds(library, X, 10)
    assert fits == [40, 52]
    found, near = cosines(library, int(ids[0]))
    assert near[np.searchsorted(found, new)] == pytest.approx(1, abs=1e-5)
    assert len(SoundVectors.of(library).ids) == 52


def test_a_large_library_is_measured_by_a_choice_of_its_tracks(library, monkeypatch):
    monkeypatch.setattr(sound, "MAX_TRACKS", 20)
    monkeypatch.setattr(sound, "_PAGE", 7)
    fits, calls = count_fits(monkeypatch), []
    ids, _, _ = fill(library, 30)
    update_sound_vectors(library, lambda *call: calls.append(call))
    assert fits == [20]
    assert calls[-1] == (30, 30)
    assert len(cosines(library, int(ids[0]))[0]) == 30


def test_a_single_track_is_like_nothing(library):
    fill(library, 1, tagged=0)
    update_sound_vectors(library)
    ids, near = cosines(library, 1)
    assert (ids.tolist(), near.tolist()) == ([1], [0])
