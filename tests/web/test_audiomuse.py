"""What AudioMuse-AI's plugin for Navidrome asks for, as its source sends it, and what it reads."""

import time
from types import SimpleNamespace

import httpx
import pytest
from mutagen.flac import FLAC
from noise_files import write
from subsonic_server import ODD, PASSWORD, answering, supysonic
from web_server import root, serving

from harmonium.connect.subsonic import Server
from harmonium.library import Library
from harmonium.web import audiomuse

TOKEN = "a token that is long enough"


@pytest.fixture(scope="module")
def plugin(tmp_path_factory):
    """The plugin's requests; a server with nine songs by three artists, one of them twice."""
    folder = tmp_path_factory.mktemp("audiomuse")
    for i in range(9):
        path = write(folder / "music" / f"{i % 3}" / f"{i}.flac", i, seconds=1.5)
        tags = FLAC(path)
        tags["artist"], tags["title"] = f"Artist {i % 3}", "Song 5" if i == 8 else f"Song {i}"
        tags.save()
    write(folder / "elsewhere.flac", 20, seconds=1.5)
    with Library.open(folder / "library.db") as library:
        library.index(folder, extractor="timbre", engine="serial", cache=False)
    with supysonic(folder / "music", folder) as (address, _):
        server = Server(address, lambda _: PASSWORD)
        songs = {song.title: song for song in server.songs() if "2/8" not in song.path}
        with serving(folder / "library.db", token=TOKEN, subsonic=server) as client:

            def ask(path, **values):
                headers = {"Authorization": f"Bearer {TOKEN}"}
                return httpx.get(f"{root(client)}/api/{path}", params=values, headers=headers)

            yield SimpleNamespace(ask=ask, songs=songs, client=client, place=folder / "library.db")


def test_similar_tracks(plugin):
    asked = {"item_id": plugin.songs["Song 4"].id, "n": "2000"}
    ways = {"eliminate_duplicates": "true", "radius_similarity": "true"}
    found = plugin.ask("similar_tracks", **asked, **ways).json()
    assert all(item.keys() == {"item_id", "title", "author", "album", "distance"} for item in found)
    others = {*plugin.songs} - {"Song 4"}
    assert sorted(item["title"] for item in found) == sorted(others)  # Song 5 once
    songs = {song.id: song for song in plugin.songs.values()}
    known = [item for item in found if item["item_id"] in songs]
    assert all(songs[item["item_id"]].artist == item["author"] for item in known)
    ways = {"eliminate_duplicates": "false", "radius_similarity": "false"}
    found = plugin.ask("similar_tracks", **asked, **ways, server="main").json()
    assert len(found) == 8
    distances = [item["distance"] for item in found]
    assert distances == sorted(distances)
    assert all(0 <= distance <= 2 for distance in distances)
    with Library.open(plugin.place) as library:
        like = library.search(like="4.flac", limit=20)
    assert [item["title"] for item in found] == [h.track.title for h in like if h.track.title]


def test_a_path_between_two_songs(plugin):
    ends = {"start_song_id": plugin.songs["Song 0"].id, "end_song_id": plugin.songs["Song 7"].id}
    more = {"count": "5", "max_steps": "5", "path_fix_size": "false", "mood_pct": "100"}
    path = plugin.ask("find_path", **ends, **more).json()["path"]
    assert [path[0]["item_id"], path[-1]["item_id"]] == [*ends.values()]
    assert 3 <= len({item["item_id"] for item in path}) == len(path) <= 5


def test_similar_artists(plugin):
    mine = plugin.songs["Song 0"]
    asked = {"artist": mine.artistId, "n": "10"}
    found = plugin.ask("similar_artists", **asked, include_component_matches="true").json()
    ids = {song.artist: song.artistId for song in plugin.songs.values()}
    assert {one["artist"]: one["artist_id"] for one in found} == {
        name: number for name, number in ids.items() if name != mine.artist
    }
    for one in found:
        (match,) = one["component_matches"]
        own, theirs = (match[f"artist{k}_representative_songs"] for k in (1, 2))
        assert {song["title"] for song in own} == {"Song 0", "Song 3", "Song 6"}
        assert len(theirs) == 3
        assert all(song["item_id"] for song in theirs)
    found = plugin.ask("similar_artists", artist=mine.artist, n=1).json()
    assert [one["component_matches"] for one in found] == [[]]


def test_what_is_refused(plugin, tmp_path, monkeypatch):
    assert plugin.ask("similar_tracks", item_id="unknown").status_code == 404
    assert plugin.ask("similar_artists", artist="unknown").status_code == 404
    assert plugin.ask("similar_tracks").status_code == 400
    address = f"{root(plugin.client)}/api/similar_tracks"
    assert httpx.get(address, params={"item_id": "x"}).status_code == 401
    with serving(plugin.place) as client:  # not asked for
        assert httpx.get(f"{root(client)}/api/similar_tracks?item_id=x").status_code == 404
    later = time.monotonic() + 2 * audiomuse.SECONDS  # the songs are read again
    monkeypatch.setattr(audiomuse.time, "monotonic", lambda: later)
    with answering(lambda *_: (500, {}, b"")) as gone:
        broken = Server(gone, lambda _: "x")
        service = plugin.client.server.config.app.state.service
        monkeypatch.setattr(service, "settings", SimpleNamespace(subsonic=broken))
        answer = plugin.ask("similar_tracks", item_id=plugin.songs["Song 0"].id)
    assert answer.status_code == 503
    assert "answers 500" in answer.json()["error"]["message"]


@pytest.mark.parametrize("kind", ODD)
def test_an_odd_server_is_no_error_of_this_one(plugin, monkeypatch, kind):
    """Either it has no such song, or its answer cannot be used."""
    service = plugin.client.server.config.app.state.service
    service._cache.pop("audiomuse", None)
    with answering(lambda *_: ODD[kind]) as odd:
        settings = SimpleNamespace(subsonic=Server(odd, lambda _: "x"))
        monkeypatch.setattr(service, "settings", settings)
        answer = plugin.ask("similar_tracks", item_id="1")
    service._cache.pop("audiomuse", None)
    assert answer.status_code in (404, 503), answer.text
    assert answer.json()["error"]["message"]
