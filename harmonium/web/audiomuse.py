"""The routes that AudioMuse-AI's plugin for Navidrome calls, answered by sound.

Tracks are named by their ids on the Subsonic server. These are read from the server, and again
after ten minutes.
"""

import time
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query
from pydantic import AfterValidator

from harmonium.connect.subsonic import Server, Song, matched
from harmonium.library.paths import MAX_STOPS, smooth_order
from harmonium.library.search import similarity_matrix
from harmonium.library.snapshot import Question
from harmonium.library.store.tracks import update_sound_vectors
from harmonium.web.bodies import Problem
from harmonium.web.service import Service, UsedService

router = APIRouter(prefix="/api", include_in_schema=False)
SECONDS = 600  # after this time the server's songs are read again
N_SONGS = 5  # for each of the two artists
Number = Annotated[int, Query(ge=1), AfterValidator(lambda n: min(n, MAX_STOPS))]


def _songs(service: Service) -> dict[int, Song]:
    """A track's number → its song on the server, if it has one."""

    def read() -> dict[int, Song]:
        server: Server = service.settings.subsonic  # type: ignore[assignment]
        return matched(library.tracks.all(), server.songs(library.tracks.all()))

    library = service.library()
    with service.limited("reading the server's songs", 1, wait=60.0):
        now = library.version().tracks, int(time.monotonic() / SECONDS)
        return service.cached("audiomuse", now, read)


def _track(songs: dict[int, Song], item_id: str) -> int:
    for number, song in songs.items():
        if song.id == item_id:
            return number
    raise Problem(404, f"No track in the library has the id {item_id!r} on the server.")


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
    songs, snapshot = _songs(service), service.snapshot()
    found = snapshot.find(Question(like=_track(songs, item_id)))
    assert found.similarity is not None
    chosen: dict[Any, tuple[int, dict[str, Any]]] = {}
    for row in found.rows(0, len(found.ids)):
        if (song := songs.get(number := int(found.ids[row]))) is not None:
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
    songs, snapshot = _songs(service), service.snapshot()
    start, end = _track(songs, start_song_id), _track(songs, end_song_id)
    found = snapshot.find(Question(start=start, end=end, stops=max(max_steps, 2)))
    assert found.similarity is not None
    steps = zip(found.ids.tolist(), (1 - found.similarity).tolist(), strict=True)
    path = [_item(songs[one], jump) for one, jump in steps if one in songs]
    return {"path": path, "total_distance": sum(item["distance"] for item in path)}


@router.get("/similar_artists")
def similar_artists(
    service: UsedService, artist: str, n: Number = 10, include_component_matches: bool = False
) -> list[dict[str, Any]]:
    """The artists whose mean sound is most like one artist's, given by id or name."""
    known, library = _songs(service), service.library()
    update_sound_vectors(library)
    sounds = library.snapshot().sounds
    ids = sounds.ids[np.isin(sounds.ids, [*known])]
    songs, V = [known[number] for number in ids.tolist()], sounds.at(ids)
    _, first, of = np.unique([song.artistId for song in songs], True, True)
    means = np.zeros((len(first), V.shape[1]))  # by artist
    np.add.at(means, of, V)
    means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-9)
    own = {int(k) for k, x in zip(of, songs, strict=True) if artist in (x.artistId, x.artist)}
    if not own:
        raise Problem(404, f"No artist in the library has the id or name {artist!r}.")
    mine = min(own)

    def nearest(one: int, to: int) -> list[dict[str, str]]:
        """The songs of one artist that are most like another."""
        rows = np.flatnonzero(of == one)
        best = rows[np.argsort(-(V[rows] @ means[to]), kind="stable")[:N_SONGS]]
        return [{"item_id": songs[row].id, "title": songs[row].title} for row in best]

    def match(k: int) -> dict[str, Any]:
        names = ("artist1_representative_songs", "artist2_representative_songs")
        return dict(zip(names, (nearest(mine, k), nearest(k, mine)), strict=True))

    likeness = means @ means[mine]
    order = [int(k) for k in np.argsort(-likeness, kind="stable") if k != mine][:n]
    return [
        {"artist": songs[first[k]].artist, "artist_id": songs[first[k]].artistId}
        | {"divergence": 1 - float(likeness[k])}
        | {"component_matches": [match(k)] if include_component_matches else []}
        for k in order
    ]
