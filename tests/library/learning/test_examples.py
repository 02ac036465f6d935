"""Training data: groups of tracks, and tables that are larger than memory."""

import shutil
from types import SimpleNamespace

import numpy as np
import pytest

from harmonium.errors import DataError
from harmonium.library.learning import examples as examples_module
from harmonium.library.learning.examples import TrackNames, by_columns, group_tracks, new_table


@pytest.mark.parametrize(
    ("about", "by", "n"),
    [
        (lambda i: (f"Artist {i // 3}", "Best of", None), "artist", 20),
        (lambda i: (f"Artist {i % 2}", f"Album {i // 4}", None), "album", 30),  # of each artist
        (lambda i: (None, None, None), "track", 60),
        (lambda i: ("Ann", None, "Song"), "track", 60),
    ],
)
def test_tracks_that_sound_alike_stay_together(about, by, n):
    groups, grouped_by = group_tracks([TrackNames(i, *about(i)) for i in range(60)])
    assert (grouped_by, len(set(groups))) == (by, n)


def test_a_full_disk_is_said_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10))
    with pytest.raises(DataError, match=r"5 tracks needs 0.0 GB in .* TMPDIR"):
        new_table(tmp_path / "X.npy", 5, 3)
    assert not (tmp_path / "X.npy").exists()


def test_columns_are_handled_a_few_at_a_time(monkeypatch):
    monkeypatch.setattr(examples_module, "MAX_NUMBERS", 400)
    Y = np.zeros((200, 7), np.float32)
    assert by_columns(lambda y: np.array([y.shape[1]]), Y).tolist() == [2, 2, 2, 1]
