"""The routes that AudioMuse-AI's plugin for Navidrome calls, answered by sound.

A track goes by its id on the Subsonic server. Which track has which is read from there, and again
after ten minutes.
"""

import time
from collections import defaultdict
from typing import Annotated, Any, NamedTuple

import numpy as np
from fastapi import APIRouter, Query

from harmonium.arrays import Ids
from harmonium.connect.subsonic import Server, Song, matched
from harmonium.library import Library
from harmonium.library.paths import MAX_STOPS, smooth_order
from harmonium.library.search import similarity_matrix
from harmonium.library.snapshot import Question
from harmonium.library.store.tracks import update_sound_vectors
from harmonium.web.bodies import Problem
from harmonium.web.service import Service, UsedService

router = APIRouter(prefix="/api", include_in_schema=False)
SECONDS = 600  # after which the server's songs are read again
N_SONGS = 5  # of each of two artists
Number = Annotated[int, Query(ge=1, le=MAX_STOPS)]


class Pairs(NamedTuple):
    """Which track of the library is which song of the server."""

    songs: dict[int, Song]
    tracks: dict[str, int]


def _pairs(service: Service) -> Pairs:
    def read() -> Pairs:
        server: Server = service.settings.subsonic  # type: ignore[assignment]
        songs = matched(library.tracks.all(), server.songs(library.tracks.all()))
        return Pairs(songs, {song.id: number for number, song in songs.items()})

    library = service.library()
    with service.limited("reading the server's songs", 1, wait=60.0):
        now = library.version().tracks, int(time.monotonic() / SECONDS)
        return service.cached("audiomuse", now, read)


def _track(pairs: Pairs, item_id: str) -> int:
    if item_id not in pairs.tracks:
        raise Problem(404, f"No track of the library has the id {item_id!r} on the server.")
    return pairs.tracks[item_id]


def _item(song: Song, distance: float) -> dict[str, Any]:
    about = {"title": song.title, "author": song.artist, "album": song.album}
    return {"item_id": song.id, **about, "distance": max(distance, 0.0)}


@router.get("/similar_tracks")
def similar_tracks(
    service: UsedService,
    item_id: str,
    n: Number = 10,
    eliminate_duplicates: bool = True,
    radius_similarity: bool = False,
) -> list[dict[str, Any]]:
    """The tracks most like one; with ``radius_similarity``, in a smooth order."""
    pairs, snapshot = _pairs(service), service.snapshot()
    found = snapshot.find(Question(like=_track(pairs, item_id)))
    assert found.similarity is not None
    chosen: dict[Any, tuple[int, dict[str, Any]]] = {}
    for row in found.rows(0, len(found.ids)):
        if (song := pairs.songs.get(number := int(found.ids[row]))) is not None:
            name = (song.artist.casefold(), song.title.casefold())
            key = name if eliminate_duplicates and all(name) else song.id
            chosen.setdefault(key, (number, _item(song, 1 - float(found.similarity[row]))))
        if len(chosen) == n:
            break
    items = [*chosen.values()]
    if radius_similarity:
        ids = np.array([number for number, _ in items], np.int64)
        items = [items[i] for i in smooth_order(similarity_matrix(snapshot, snapshot.model, ids))]
    return [item for _, item in items]


@router.get("/find_path")
def find_path(
    service: UsedService, start_song_id: str, end_song_id: str, max_steps: Number = 25
) -> dict[str, Any]:
    """A path by sound from one track to another."""
    pairs, snapshot = _pairs(service), service.snapshot()
    start, end = _track(pairs, start_song_id), _track(pairs, end_song_id)
    found = snapshot.find(Question(start=start, end=end, stops=max(max_steps, 2)))
    assert found.similarity is not None
    steps = zip(found.ids.tolist(), (1 - found.similarity).tolist(), strict=True)
    path = [_item(pairs.songs[one], jump) for one, jump in steps if one in pairs.songs]
    return {"path": path, "total_distance": sum(item["distance"] for item in path)}


@router.get("/similar_artists")
def similar_artists(
    service: UsedService, artist: str, n: Number = 10, include_component_matches: bool = False
) -> list[dict[str, Any]]:
    """The artists whose mean sound is most like that of one, by its id or name."""
    pairs, library = _pairs(service), service.library()
    by_artist, ids = _by_artist(library, pairs)
    V = library.snapshot().sounds.at(ids)
    means = {one: V[rows].mean(axis=0) for one, rows in by_artist.items()}
    own = [one for one in by_artist if artist in one]
    if not own:
        raise Problem(404, f"No artist of the library has the id or name {artist!r}.")
    mine = means[own[0]]

    def songs(rows: list[int], of: np.ndarray[Any, Any]) -> list[dict[str, str]]:
        best = sorted(rows, key=lambda row: -float(V[row] @ of))[:N_SONGS]
        some = [pairs.songs[int(ids[row])] for row in best]
        return [{"item_id": song.id, "title": song.title} for song in some]

    def likeness(one: tuple[str, str]) -> float:
        lengths = np.linalg.norm(means[one]) * np.linalg.norm(mine)
        return float(means[one] @ mine / max(lengths, 1e-9))

    found = sorted((one for one in by_artist if one != own[0]), key=lambda one: -likeness(one))[:n]
    return [
        {"artist": one[1], "artist_id": one[0], "divergence": 1 - likeness(one)}
        | {
            "component_matches": [
                {
                    "artist1_representative_songs": songs(by_artist[own[0]], means[one]),
                    "artist2_representative_songs": songs(by_artist[one], mine),
                }
            ]
            if include_component_matches
            else []
        }
        for one in found
    ]


def _by_artist(library: Library, pairs: Pairs) -> tuple[dict[tuple[str, str], list[int]], Ids]:
    """(id, name) of an artist → places of tracks that have vectors in the second, (n,)."""
    update_sound_vectors(library)
    known = library.snapshot().sounds.ids
    ids = known[np.isin(known, [*pairs.songs])]
    found: dict[tuple[str, str], list[int]] = defaultdict(list)
    for row, number in enumerate(ids.tolist()):
        found[pairs.songs[number].artistId, pairs.songs[number].artist].append(row)
    return found, ids
