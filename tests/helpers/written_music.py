"""A library of a few songs with people's tags and predictions, for tests of writing to files."""

import resource
from contextlib import contextmanager
from pathlib import Path

import mutagen
import numpy as np
import polars as pl
from tagged_files import name_of, tagged

from harmonium.estimators.model_files import to_bytes
from harmonium.library.filetags import audio_digest, read_tags
from harmonium.library.index import index
from harmonium.library.learning.scores import curves_to_arrays
from harmonium.library.store.models import StoredModel
from harmonium.library.store.reports import ModelReport
from harmonium.library.store.tracks import Track

VOCABULARY = ["guitar", "mellow", "loud", "hip hop"]
THRESHOLDS = np.array([0.5, 0.3, 0.5, 0.5], np.float32)
PREDICTED = {"guitar": 0.9, "mellow": 0.4, "loud": 0.2, "hip hop": 0.6}


def make_songs(library, folder: Path, kinds) -> dict[str, Path]:
    """A song of each kind in a folder of its own, as tracks; their files."""
    paths = {}
    for kind in kinds:
        path = folder / kind / name_of(kind)
        path.parent.mkdir(parents=True)
        path.write_bytes(tagged(kind))
        about = read_tags(path).of_track
        library.tracks.put([Track(str(path), audio_digest(path), **about)])
        paths[kind] = path
    return paths


def say(library, said, *, kind="person") -> int:
    """Let people say of all tracks: [(person, tag, value)]; the number of the change."""
    ids = library.tracks.ids().tolist()
    rows = [(person, number, tag, value) for number in ids for person, tag, value in said]
    frame = pl.DataFrame(rows, schema=["person", "track_id", "tag", "value"], orient="row")
    with library.begin():
        change = library.changes.begin("say", f"{len(rows)} tags")
        library.opinions.add_triples(frame, change=change, kind=kind)
    return change


def predict(
    library, predicted=PREDICTED, *, curves=None, own=None, more=(), thresholds=None
) -> None:
    """A model that says the same of all tracks, with the precision curves of its tags or none.

    ``own``: how many of its tags were learnt from the library; by default all.
    ``more``: further tags, without a threshold, or with these.
    """
    data = b"" if curves is None else to_bytes(curves_to_arrays(curves), {})
    precision = {} if own is None else dict.fromkeys(VOCABULARY, 0.9)
    report = ModelReport(own=own, precision=precision)
    others = np.full(len(more), np.nan) if thresholds is None else thresholds
    thresholds = np.append(THRESHOLDS, np.array(others, np.float32))
    about = {"name": "a model", "vocabulary": [*VOCABULARY, *more], "thresholds": thresholds}
    number = library.models.add(StoredModel(**about, extractor="none", bytes=data, report=report))
    ids = library.tracks.ids()
    row = np.array([predicted[tag] for tag in (*VOCABULARY, *more)], np.float32)
    library.predictions.put(number, ids, np.tile(row, (len(ids), 1)))


def reindex(library, *folders):
    """Index folders, by default those of before; the report."""
    return index(library, folders, extractor="timbre", engine="serial")


@contextmanager
def files_limited_to(size):
    """No file can have more bytes, as if the disk were full then."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def change_title(path) -> None:
    """What another program does to a file."""
    file = mutagen.File(path)
    file["title"] = ["Another title"]
    file.save()
