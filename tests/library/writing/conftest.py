"""Songs that people and a model have tagged, and copies of a file."""

import pytest
from noise_files import write as write_noise
from tagged_files import tagged
from written_music import make_songs, predict, reindex, say


@pytest.fixture
def songs(library, tmp_path):
    """Three songs, of which people say "dreamy" and the model "guitar", "mellow" and "hip hop"."""
    paths = make_songs(library, tmp_path / "music", ["mp3", "flac", "m4a"])
    say(library, [("ann", "dreamy", 1)])
    predict(library)
    return paths


@pytest.fixture
def changed(songs):
    """A function that gives the kinds of the songs that are not as they were at first."""
    return lambda: [kind for kind, path in songs.items() if path.read_bytes() != tagged(kind)]


@pytest.fixture
def copies(library, tmp_path):
    """A copy that comes first in the alphabet, and the album's own file; people say "rock"."""
    paths = [
        tmp_path / "music" / name for name in ("Downloads/copy of a song.flac", "Zappa/song.flac")
    ]
    for path in paths:
        write_noise(path, 1, seconds=1)
    reindex(library, tmp_path / "music")
    assert library.tracks.count() == 1
    library.say(1, "rock")
    return paths
