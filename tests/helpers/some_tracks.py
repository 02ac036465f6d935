"""Tracks and people's tags for tests of the store."""

import os

import numpy as np
import polars as pl

from harmonium.library.store.models import StoredModel
from harmonium.library.store.reports import ModelReport
from harmonium.library.store.tracks import Track


def add_tracks(library, n, *, start=0):
    """Tracks /music/000.mp3 … with an artist and a title each; their numbers."""
    tracks = []
    for i in range(start, start + n):
        about = {"size": i, "modified": i, "title": f"Song {i}", "artist": f"Artist {i % 3}"}
        tags = {"genre": ["Rock", f"Genre {i % 2}"], "mood": []}
        tracks.append(Track(f"/music/{i:03d}.mp3", f"sound {i}", file_tags=tags, **about))
    return library.tracks.put(tracks)


def a_model(n_tags=3, **values):
    """A stored model that nothing can be asked of, unless its bytes are given."""
    about = {"name": "m", "extractor": "paper@1", "bytes": os.urandom(100)}
    about |= {"report": ModelReport(mean_auc=0.75)}
    about |= {"vocabulary": [f"tag {k}" for k in range(n_tags)]}
    about |= {"thresholds": np.linspace(0, 1, n_tags, dtype=np.float32)}
    return StoredModel(**about | values)


def say(library, person, track_id, present=(), absent=(), retract=()):
    """One change in which a person says something of a track; its number."""
    with library.begin():
        change = library.changes.begin("say", f"{person} of {track_id}")
        library.opinions.say(person, track_id, present, absent, retract, change=change)
    return change


def in_force(library):
    """{(person, track_id, tag): value}"""
    rows = library.opinions.triples().select("person", "track_id", "tag", "value").rows()
    return {row[:3]: row[3] for row in rows}


def triples(*rows):
    """A frame for add_triples, of (person, track_id, tag, value)."""
    schema = {"person": pl.String, "track_id": pl.Int64, "tag": pl.String, "value": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def write_table(folder, n_rows, n_tracks, ending="mp3"):
    """A table of tags that three people gave tracks of `add_tracks`."""
    rows = [f"u{i % 3},/music/{i % n_tracks:03}.{ending},tag {i}" for i in range(n_rows)]
    (folder / "tags.csv").write_text("\n".join(["user,path,tag", *rows]))
    return folder / "tags.csv"
