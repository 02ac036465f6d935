"""Importing features from tables."""

import numpy as np
import polars as pl
import pytest
from command_line import run
from small_library import fill

from harmonium.audio import get_extractor
from harmonium.errors import DataError
from harmonium.library import Library
from harmonium.library.imports import (
    import_features,
)

X = np.arange(12, dtype=np.float32).reshape(4, 3) ** 2
PATHS = ["/music/003.ogg", "001", "#5", "nowhere.ogg"]


def write(path):
    frame = pl.DataFrame({"path": PATHS, **{f"x{j}": X[:, j] for j in range(3)}})
    if path.suffix == ".npz":
        np.savez(path, item=np.array(PATHS), embedding=X)
    elif path.name == "lists.parquet":
        pl.DataFrame({"file": PATHS, "embedding": X.tolist()}).write_parquet(path)
    elif path.suffix == ".parquet":
        frame.write_parquet(path)
    else:
        frame.write_csv(path)
    return path


@pytest.mark.parametrize("name", ["e.csv", "e.parquet", "lists.parquet", "e.npz"])
def test_rows_become_the_features_of_the_tracks_that_they_name(library, tmp_path, name):
    ids, _, _ = fill(library, 20)
    before = library.settings.get("extractor")
    assert import_features(library, write(tmp_path / name), dry_run=True).n_tracks == 3
    assert library.settings.get("extractor") == before
    report = import_features(library, tmp_path / name)
    assert (report.n_rows, report.n_tracks, report.n_features) == (4, 3, 3)
    assert report.unmatched == {"nowhere.ogg": "no such track"}
    key = library.settings.get("extractor")
    assert key.startswith(f"imported:{name.partition('.')[0]}@")
    have, found = library.tracks.features(ids, extractor=key)
    order = [PATHS.index(path) for path in ("001", "/music/003.ogg", "#5")]
    np.testing.assert_array_equal(have, [ids[1], ids[3], 5])
    np.testing.assert_array_equal(found, X[order])
    assert {hit.track.id for hit in library.search(like=5).hits} == {int(ids[1]), int(ids[3])}
    with pytest.raises(DataError, match="were imported"):
        get_extractor(key)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ({"path": ["/music/001.ogg"], "x": [float("nan")]}, "must be finite numbers; 1 rows"),
        ({"path": ["/music/001.ogg"], "x": ["a"]}, "no columns of numbers"),
        ({"who": ["/music/001.ogg"], "x": [1.0]}, "not clear which column"),
        ({"path": ["elsewhere"], "x": [1.0]}, "No row of e.parquet"),
    ],
)
def test_what_cannot_be_used_is_refused(library, tmp_path, frame, message):
    fill(library, 20)
    before = library.settings.get("extractor")
    pl.DataFrame(frame).write_parquet(tmp_path / "e.parquet")
    with pytest.raises(DataError, match=message):
        import_features(library, tmp_path / "e.parquet")
    assert library.settings.get("extractor") == before


def test_the_command_reports_the_import(tmp_path):
    place = tmp_path / "library.db"
    with Library.open(place) as library:
        fill(library, 20)
    table = write(tmp_path / "e.parquet")
    done = run("import", "--features", table, "-L", place)
    assert done.exit_code == 1
    assert "The features of 3 tracks are imported:e, 3 numbers each." in done.stdout
    assert done.stderr == "nowhere.ogg: no such track\n"
