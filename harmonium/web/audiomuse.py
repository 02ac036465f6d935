"""The routes that AudioMuse-AI's plugin for Navidrome calls, answered by sound.

Tracks are named by their ids on the Subsonic server. These are read from the server, and again
after ten minutes.
"""

import time
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from fastapi import APIRouter, Query
from numpy.typing import NDArray
from pydantic import AfterValidator, BaseModel

from harmonium.arrays import Places
from harmonium.connect.songs import Song, matched
from harmonium.connect.subsonic import Server
from harmonium.library.searching.likeness import similarity_matrix
from harmonium.library.searching.paths import MAX_STOPS, smooth_order
from harmonium.library.snapshot import Question
from harmonium.library.sound import try_to_update_sound_vectors
from harmonium.web.problems import Problem
from harmonium.web.service import Service, UsedService

router = APIRouter(prefix="/api", include_in_schema=False)
SECONDS = 600  # after this time the server's songs are read again
N_SONGS = 5  # for each of the two artists
Number = Annotated[int, Query(ge=1), AfterValidator(lambda n: min(n, MAX_STOPS))]


class Item(BaseModel):
    """A song, and its distance by sound."""

    item_id: str
    title: str
    author: str
    album: str
    distance: float


class ArtistSong(BaseModel):
    """A song of an artist."""

    item_id: str
    title: str


class ComponentMatch(BaseModel):
    """The songs of each of two artists that are most like the other artist."""

    artist1_representative_songs: list[ArtistSong]
    artist2_representative_songs: list[ArtistSong]


class SimilarArtist(BaseModel):
    """An artist, and how far their mean sound is from another's."""

    artist: str
    artist_id: str
    divergence: float
    component_matches: list[ComponentMatch]


class Path(BaseModel):
    """Songs on the way from one to another."""

    path: list[Item]
    total_distance: float


def _songs(service: Service) -> dict[int, Song]:
    """A track's number → its song on the server, if it has one."""

    def read() -> dict[int, Song]:
        server: Server = service.settings.subsonic  # type: ignore[assignment]
        return matched(library.tracks.all(), server.songs(library.tracks.all()))

    library = service.library()
    with service.limited("reading the server's songs", 1, wait=60.0):
        period = int(time.monotonic() / SECONDS)
        return service.cached("audiomuse", (library.version().tracks, period), read)


def _track(songs: dict[int, Song], item_id: str) -> int:
    """The number of a song's track."""
    for number, song in songs.items():
        if song.id == item_id:
            return number
    raise Problem(404, f"No track in the library has the id {item_id!r} on the server.")


def _item(song: Song, distance: float) -> Item:
    return Item(
        item_id=song.id,
        title=song.title,
        author=song.artist,
        album=song.album,
        distance=max(distance, 0.0),
    )


@router.get("/similar_tracks")
def similar_tracks(
    service: UsedService,
    item_id: str,
    n: Number = 10,
    eliminate_duplicates: bool = True,
    radius_similarity: bool = False,
) -> list[Item]:
    """The tracks most like one; with ``radius_similarity``, in a smooth order."""
    songs = _songs(service)
    snapshot = service.snapshot()
    similar = snapshot.find(Question(like=_track(songs, item_id)))
    assert similar.similarity is not None
    seen: set[object] = set()
    items: list[Item] = []
    numbers: list[int] = []
    for row in similar.rows(0, len(similar.ids)):
        number = int(similar.ids[row])
        song = songs.get(number)
        if song is None:
            continue
        name = (song.artist.casefold(), song.title.casefold())
        key = name if eliminate_duplicates and all(name) else song.id
        if key in seen:
            continue
        seen.add(key)
        numbers.append(number)
        items.append(_item(song, 1 - float(similar.similarity[row])))
        if len(items) == n:
            break
    if not radius_similarity:
        return items
    likeness = similarity_matrix(snapshot, snapshot.tags, np.array(numbers, np.int64))
    return [items[i] for i in smooth_order(likeness)]


@router.get("/find_path")
def find_path(
    service: UsedService, start_song_id: str, end_song_id: str, max_steps: Number = 25
) -> Path:
    """A path by sound from one track to another."""
    songs = _songs(service)
    search = Question(
        start=_track(songs, start_song_id),
        end=_track(songs, end_song_id),
        stops=max(max_steps, 2),
    )
    stops = service.snapshot().find(search)
    assert stops.similarity is not None
    path = []
    for number, similarity in zip(stops.ids.tolist(), stops.similarity.tolist(), strict=True):
        if number in songs:
            path.append(_item(songs[number], 1 - similarity))
    return Path(path=path, total_distance=sum(item.distance for item in path))


@dataclass(frozen=True, eq=False)
class _Artists:
    """The artists of the server's songs, by their sound."""

    songs: list[Song]
    sounds: NDArray[np.float64]  # (n_songs, n_dimensions)
    artist_of: Places  # (n_songs,) the place of each song's artist
    means: NDArray[np.float64]  # (n_artists, n_dimensions) unit vectors
    first: Places  # (n_artists,) a song of each

    @classmethod
    def of(cls, service: Service) -> "_Artists":
        """Those of the tracks that are on the server and have a sound."""
        numbered = _songs(service)
        library = service.library()
        try_to_update_sound_vectors(library)
        vectors = library.snapshot().sounds
        ids = vectors.ids[np.isin(vectors.ids, list(numbered))]
        songs = [numbered[number] for number in ids.tolist()]
        sounds = vectors.at(ids)
        names = [song.artistId for song in songs]
        _, first, artist_of = np.unique(names, return_index=True, return_inverse=True)
        means = np.zeros((len(first), sounds.shape[1]))
        np.add.at(means, artist_of, sounds)
        means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-9)
        return cls(songs=songs, sounds=sounds, artist_of=artist_of, means=means, first=first)

    def place(self, artist: str) -> int:
        """The place of an artist, given by id or name."""
        places = [
            int(place)
            for song, place in zip(self.songs, self.artist_of, strict=True)
            if artist in (song.artistId, song.artist)
        ]
        if not places:
            raise Problem(404, f"No artist in the library has the id or name {artist!r}.")
        return min(places)

    def nearest(self, artist: int, other: int) -> list[ArtistSong]:
        """The songs of an artist that are most like another artist."""
        rows = np.flatnonzero(self.artist_of == artist)
        likeness = self.sounds[rows] @ self.means[other]
        best = rows[np.argsort(-likeness, kind="stable")[:N_SONGS]]
        return [ArtistSong(item_id=self.songs[row].id, title=self.songs[row].title) for row in best]


@router.get("/similar_artists")
def similar_artists(
    service: UsedService, artist: str, n: Number = 10, include_component_matches: bool = False
) -> list[SimilarArtist]:
    """The artists whose mean sound is most like one artist's, given by id or name."""
    artists = _Artists.of(service)
    place = artists.place(artist)
    likeness = artists.means @ artists.means[place]
    order = [other for other in np.argsort(-likeness, kind="stable").tolist() if other != place]
    similar = []
    for other in order[:n]:
        matches = []
        if include_component_matches:
            match = ComponentMatch(
                artist1_representative_songs=artists.nearest(place, other),
                artist2_representative_songs=artists.nearest(other, place),
            )
            matches.append(match)
        song = artists.songs[artists.first[other]]
        similar.append(
            SimilarArtist(
                artist=song.artist,
                artist_id=song.artistId,
                divergence=1 - float(likeness[other]),
                component_matches=matches,
            )
        )
    return similar
