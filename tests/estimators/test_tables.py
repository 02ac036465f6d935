"""Tables that are read by blocks give the models that tables in memory give."""

import numpy as np
import pytest

from harmonium.errors import DataError
from harmonium.estimators import DiscriminativeRBM, LogisticTagger, gradient_tagger, holdout
from harmonium.estimators.scaling import standardising
from harmonium.estimators.tables import ClipTable, TableRows, blocks
from harmonium.estimators.targets import base_log_odds, is_soft, read_targets
from harmonium.rbm import training

N, D, C = 90, 6, 3


@pytest.fixture(scope="module")
def arrays():
    rng = np.random.default_rng(0)
    X = rng.normal(3, 2, size=(N, D)).astype(np.float32)
    X[:, 5] = 7.0  # constant
    Y = (X[:, :C] + rng.normal(size=(N, C)) > 3).astype(np.float32)
    Y[::9, 1] = np.nan
    return X, Y


@pytest.fixture
def on_disk(arrays, tmp_path, monkeypatch):
    """The arrays mapped from files, and read a few rows at a time."""
    mapped = []
    for name, array in zip("XY", arrays, strict=True):
        np.save(tmp_path / f"{name}.npy", array)
        mapped.append(np.load(tmp_path / f"{name}.npy", mmap_mode="r"))
    monkeypatch.setattr("harmonium.estimators.tables.LARGE", 0)
    monkeypatch.setattr("harmonium.estimators.tables.BLOCK", 7 * D)
    monkeypatch.setattr(training, "BLOCK", 2)
    monkeypatch.setattr(training, "_in_runs", lambda rng, n: rng.permutation(n))
    return mapped


@pytest.mark.parametrize(
    "model",
    [
        DiscriminativeRBM(4, max_epochs=3, random_state=0, unit_norm=True),
        LogisticTagger(max_epochs=3, random_state=0, scale_features="none"),
        LogisticTagger(max_epochs=3, random_state=0, validation_fraction=0.0),
    ],
    ids=["drbm", "unscaled", "nothing held out"],
)
def test_a_model_learnt_from_files_is_that_of_the_arrays(model, arrays, on_disk, monkeypatch):
    def learnt(X, Y):
        # a large table is read in the order that it has on the disk
        monkeypatch.setattr(gradient_tagger, "is_large", lambda table: X is on_disk[0])
        held_out = (arrays[0][:20], arrays[1][:20]) if model.validation_fraction else None
        return model.fit(X, Y, held_out)._params, model.thresholds_.copy()

    (in_memory, thresholds), (from_files, again) = learnt(*arrays), learnt(*on_disk)
    for one, other in zip(in_memory, from_files, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
    np.testing.assert_allclose(thresholds, again, atol=1e-5)


def test_no_table_is_read_as_a_whole(on_disk, monkeypatch):
    monkeypatch.setattr(holdout, "MAX_HELD_OUT", 20)
    monkeypatch.setattr(gradient_tagger, "MAX_HELD_OUT", 20)
    monkeypatch.setattr(training, "WINDOW", 16)
    most = []
    read = TableRows.__getitem__

    def counted(self, rows):
        found = read(self, rows)
        most.append(len(found))
        return found

    monkeypatch.setattr(TableRows, "__getitem__", counted)
    options = {"n_models": 1, "max_epochs": 2, "batch_size": 5, "random_state": 0}
    model = DiscriminativeRBM(4, **options).fit(*on_disk)
    assert max(most) <= 20
    assert model.n_iter_ == 2


def test_clips_on_disk_are_learnt_from_in_their_order(on_disk, monkeypatch):
    monkeypatch.setattr(holdout, "MAX_HELD_OUT", 12)
    monkeypatch.setattr(holdout, "MIN_HELD_OUT", 1)
    X, Y = on_disk
    clips = ClipTable(X=TableRows(X), Y=TableRows(Y))
    rng = np.random.default_rng(0)
    split = holdout.split_at_random(rng, clips, 0.5, None, in_order=True)
    assert len(split.held_out[0]) == 12
    [rows] = split.rows
    assert len(rows) == N - 12
    assert (np.diff(rows) > 0).all()


class TestBlocks:
    @pytest.fixture
    def small_blocks(self, monkeypatch):
        """Called when the whole has been computed."""
        return lambda: monkeypatch.setattr("harmonium.estimators.tables.BLOCK", 4 * D)

    def test_have_all_rows(self, arrays, small_blocks):
        small_blocks()
        assert [len(block) for block in blocks(arrays[0])] == [4] * 22 + [2]

    def test_give_the_scaling_of_the_whole(self, arrays, small_blocks):
        X, _ = arrays
        whole = standardising(X)
        small_blocks()
        np.testing.assert_allclose(standardising(X).mean, whole.mean, rtol=1e-12)
        np.testing.assert_allclose(standardising(X).scale, whole.scale, rtol=1e-12)

    def test_give_the_log_odds_of_the_whole(self, arrays, small_blocks):
        _, Y = arrays
        whole = base_log_odds(Y)
        small_blocks()
        np.testing.assert_allclose(base_log_odds(Y), whole, rtol=1e-6)

    def test_are_all_looked_at_for_probabilities(self, arrays, small_blocks):
        small_blocks()
        soft = arrays[1].copy()
        assert not is_soft(soft)
        soft[-1, -1] = 0.5
        assert is_soft(soft)

    def test_are_all_looked_at_for_wrong_labels(self, arrays, small_blocks):
        small_blocks()
        wrong = arrays[1].copy()
        wrong[-1, -1] = 1.5
        with pytest.raises(DataError, match=r"y\[89, 2\] is 1.5, one of 1 such"):
            read_targets(wrong)
