"""Playlists on Subsonic servers: on supysonic, read back by another client."""

import hashlib
import json
import socket
import ssl
import sys
import threading
import time
from contextlib import suppress
from types import SimpleNamespace
from urllib.error import URLError

import pytest
from command_line import run_main
from noise_files import write
from subsonic_server import ODD, PASSWORD, USER, answering, supysonic

from harmonium.commands import playlists as commands
from harmonium.commands.output import Output
from harmonium.connect import subsonic
from harmonium.connect.answers import Answer
from harmonium.connect.songs import Song
from harmonium.connect.subsonic import Server, find_password
from harmonium.errors import DataError, HarmoniumWarning, ServerError
from harmonium.library import Library
from harmonium.library.store.tracks import Track


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A library of four files, and a server that has three of them."""
    folder = tmp_path_factory.mktemp("subsonic")
    music = folder / "music"
    for i, name in enumerate(["A/one.flac", "B/one.flac", "B/two.flac"]):
        write(music / name, i, tags=["Rock"], seconds=1.5)
    other = write(folder / "elsewhere" / "three.flac", 7, tags=["Rock"], seconds=1.5)
    place, secret = folder / "library.db", folder / "password"
    secret.write_text(f"{PASSWORD}\n", encoding="utf-8")
    with Library.open(place) as library:
        library.index(folder, extractor="timbre", engine="serial", cache=False)
        library.import_file_tags()
    with supysonic(music, folder) as (address, port):
        common = ("-L", place, "--to", address, "--password-file", secret)
        yield SimpleNamespace(
            place=place, port=port, music=music, other=other, common=common, address=address
        )


@pytest.fixture
def client(served):
    """Another Subsonic client."""
    libsonic = pytest.importorskip("libsonic")
    return libsonic.Connection(
        "http://127.0.0.1", USER, PASSWORD, port=served.port, legacyAuth=True
    )


def playlists(client):
    """Name → paths, by another client."""
    paths = {}
    for listed in client.getPlaylists()["playlists"].get("playlist", []):
        playlist = client.getPlaylist(listed["id"])["playlist"]
        paths[playlist["name"]] = [entry["path"] for entry in playlist.get("entry", [])]
    return paths


def test_searches_as_playlists_on_a_server(served, client):
    """Made by push, refreshed by push, and all by playlists."""
    done = run_main("push", "rock", "--name", "Loud", *served.common)
    assert done.exit_code == 1  # one track is not on the server
    assert done.stdout == "Loud: made, 3 tracks\n"
    assert f"{served.other}: not on the server" in done.stderr.replace("\n", "")
    assert sorted(playlists(client)["Loud"]) == ["A/one.flac", "B/one.flac", "B/two.flac"]
    with Library.open(served.place) as library:
        library.say(str(served.music / "A" / "one.flac"), "-rock", "calm")
        library.save_search("Loud", "rock", min_probability=0.3)
        library.save_search("Ça/va", "calm", min_probability=0.3)
        library.save_search("Gone", "calm rock", min_probability=0.3)
        library.settings.set("search:Ro", {"text": "none such"})
        library.forget(str(served.other))
    done = run_main("push", "Loud", "--json", *served.common)
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout) == [
        {"name": "Loud", "n_tracks": 2, "is_new": False, "missing": []}
    ]
    assert sorted(playlists(client)["Loud"]) == ["B/one.flac", "B/two.flac"]
    done = run_main("playlists", *served.common)
    assert done.exit_code == 1
    assert "The playlist 'Gone' was not changed: it is empty." in " ".join(done.stderr.split())
    assert done.stderr.startswith("Saved search 'Ro': No track has the tag none")
    assert {name: len(paths) for name, paths in playlists(client).items()} == {
        "Loud": 2,
        "Ça/va": 1,
    }
    lists = served.place.with_name("lists")
    assert run_main("index", "--playlists", lists, "-L", served.place).exit_code == 1
    assert sorted(path.name for path in lists.iterdir()) == ["Gone.m3u8", "Loud.m3u8", "Ça_va.m3u8"]


def test_a_rescan_finds_new_files(served, monkeypatch):
    monkeypatch.setattr(subsonic.time, "sleep", lambda _: None)
    write(served.music / "C" / "four.flac", 9, seconds=1.5)
    done = run_main("push", "--rescan", *served.common)
    assert done.exit_code == 0, done.stderr
    assert "has scanned its folders" in done.stderr
    songs = Server(served.address, lambda _: PASSWORD).songs()
    assert "C/four.flac" in {song.path for song in songs}


def test_the_password_is_asked_for_before_any_progress_bar(served, monkeypatch):
    order = []
    bar = Output.bar
    monkeypatch.setattr(Output, "bar", lambda *how: order.append("bar") or bar(*how))
    monkeypatch.setattr(commands, "has_reader", lambda: True)
    monkeypatch.setattr(commands.getpass, "getpass", lambda _: order.append("asked") or PASSWORD)
    done = run_main("push", "rock", "--rescan", *served.common[:-2])
    assert done.stdout.startswith("rock: made"), done.stderr
    assert order == ["asked", "bar", "bar"]


def test_a_wrong_password_is_not_shown(served, tmp_path):
    wrong = tmp_path / "password"
    wrong.write_text("another word\n")
    done = run_main("push", "rock", *served.common[:-1], wrong)
    said = " ".join((done.stdout + done.stderr).split())
    assert done.exit_code == 2
    assert "Wrong username or password. Check the name and the password." in said
    assert "another word" not in said
    assert b"another word".hex() not in said


def test_the_password_is_sent_as_a_token():
    seen = []

    def answer(method, form):
        seen.append((method, form))
        return {"searchResult3": {"song": [{"id": "1", "title": "x"}]}} if method != "ping" else {}

    with answering(answer) as address:
        assert Server(f"{address}/rest/", lambda _: PASSWORD).songs() == [Song("1", title="x")]
    for _, form in seen:
        assert form["t"] == [hashlib.md5((PASSWORD + form["s"][0]).encode()).hexdigest()]
        assert "p" not in form
    assert len({form["s"][0] for _, form in seen}) == len(seen)


def test_a_password_that_goes_unprotected_over_a_network_is_warned_of(monkeypatch):
    answers = iter([Answer(is_ok=False, error_code=41), Answer(is_ok=True)])
    monkeypatch.setattr(Server, "_answer", lambda *_: next(answers))
    with pytest.warns(HarmoniumWarning, match="unencrypted"):
        Server("http://ann@music.example", lambda _: "x").call("ping")


def test_a_server_that_lists_nothing_is_searched_by_titles():
    def answer(method, form):
        songs = [{"id": "1", "title": "Blue"}] if form.get("query") == ["Blue"] else []
        return {"searchResult3": {"song": songs}}

    with answering(answer) as address:
        found = Server(address, lambda _: "x").songs([Track("/a/b.mp3", "1", title="Blue")])
    assert [song.title for song in found] == ["Blue"]


def refused(answer):
    with answering(answer) as address, pytest.raises(ServerError) as error:
        Server(address, lambda _: "s3cr3t").call("getPlaylists")
    assert "s3cr3t" not in str(error.value)
    return str(error.value)


MOVED = (301, {"Location": "https://other.example/rest/ping.view?u=x"}, b"")
REFUSED = {"status": "failed", "error": {"code": 50, "message": "Not allowed."}}


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((200, {}, b"<html>"), "no Subsonic server"),
        ((404, {}, b""), "answers 404"),
        (MOVED, "redirects to other.example."),
        (REFUSED, "administrator"),
    ],
    ids=["page", "missing", "moved", "refused"],
)
def test_what_is_not_the_expected_answer_is_explained(answer, message):
    assert message in refused(lambda *_: answer)


GOOD = {"id": "1", "title": "Blue", "path": "B/one.flac", "duration": 1.5}


@pytest.mark.parametrize(
    "song",
    [
        {**GOOD, "id": None},
        {"title": "Blue"},
        {**GOOD, "id": ["1"]},
        {**GOOD, "id": True},
        {**GOOD, "id": ""},
    ],
)
def test_a_song_without_an_id_is_left_out(song):
    answer = {"searchResult3": {"song": [song, {"id": 2, "title": 1979}]}}
    with answering(lambda *_: answer) as address:
        assert Server(address, lambda _: "x").songs() == [Song("2", title="1979")]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"duration": "long"}, {}),
        ({"duration": "180"}, {"duration": 180.0}),
        ({"duration": [1]}, {}),
        ({"duration": True}, {}),
        ({"duration": float("nan")}, {}),
        ({"duration": float("inf")}, {}),
        ({"duration": 10**400}, {}),
        ({"title": {"x": 1}, "artist": None, "album": 4, "path": []}, {"album": "4"}),
        ({"title": "\ud800x"}, {"title": "?x"}),
    ],
    ids=str,
)
def test_what_is_not_of_its_type_counts_as_unknown(given, expected):
    answer = {"searchResult3": {"song": {"id": "1", **given}}}  # one item instead of a list
    with answering(lambda *_: answer) as address:
        assert Server(address, lambda _: "x").songs() == [Song("1", **expected)]


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize(
    "method", ["ping", "search3", "getPlaylists", "startScan", "createPlaylist"]
)
def test_an_odd_answer_is_one_line(served, kind, method):
    """Whichever method the server answers oddly; the other answers are as they should be."""
    usual = {
        "search3": {"searchResult3": {"song": [GOOD]}},
        "getPlaylists": {"playlists": {}},
        "startScan": {"scanStatus": {"scanning": False}},
    }

    def answer(asked, form):
        return ODD[kind] if asked == method else usual.get(asked, {})

    with answering(answer) as address:
        to = ("-L", served.place, "--to", address, *served.common[-2:])
        done = run_main("push", "rock", "--name", "Loud", "--rescan", *to)
    said = done.stdout + done.stderr
    assert done.exit_code in (0, 1, 2)
    assert "Traceback" not in said
    assert "\x1b[2J" not in said
    assert len(said) < 2000
    if done.exit_code == 2:
        assert "127.0.0.1" in said


def test_a_server_that_always_has_more_songs_is_not_followed_for_ever(monkeypatch):
    monkeypatch.setattr(subsonic, "MAX_PAGES", 20)
    n_asked = 0

    def answer(method, form):
        nonlocal n_asked
        n_asked += 1
        songs = [{"id": f"{n_asked} {i}", "title": "x"} for i in range(3)]
        return {"searchResult3": {"song": songs}}

    with answering(answer) as address, pytest.raises(ServerError, match="more and more songs"):
        Server(address, lambda _: "x").songs()
    assert n_asked < 25
    monkeypatch.setattr(subsonic, "MAX_SONGS", 10)
    with answering(answer) as address, pytest.raises(ServerError, match="more and more songs"):
        Server(address, lambda _: "x").songs()
    assert n_asked < 35


def test_an_answer_has_a_limit_in_size(monkeypatch):
    monkeypatch.setattr(subsonic, "MAX_BYTES", 10**5)
    long = (200, {}, b" " * 10**6)
    with answering(lambda *_: long) as address, pytest.raises(ServerError, match="longer"):
        Server(address, lambda _: "x").call("ping")


def test_an_answer_has_a_limit_in_time(monkeypatch):
    monkeypatch.setattr(subsonic, "SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as slow:
        thread = threading.Thread(target=drip, args=(slow,))
        thread.start()
        address = f"http://ann@127.0.0.1:{slow.getsockname()[1]}"
        with pytest.raises(ServerError, match="did not answer"):
            Server(address, lambda _: "x").call("ping")
        thread.join()


def drip(listening):
    """Answer a byte at a time, without end."""
    connection, _ = listening.accept()
    with connection, suppress(OSError):
        connection.recv(10000)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        for _ in range(200):
            connection.sendall(b" ")
            time.sleep(0.05)


def test_a_scan_that_never_ends(monkeypatch):
    monkeypatch.setattr(subsonic, "MAX_SCAN_SECONDS", -1.0)
    scanning = {"scanStatus": {"scanning": True, "count": "many"}}
    with answering(lambda *_: scanning) as address, pytest.raises(ServerError, match="scanning"):
        Server(address, lambda _: "x").rescan(lambda *_: None)


def test_a_server_that_does_not_answer(monkeypatch):
    monkeypatch.setattr(subsonic, "SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://ann@127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(ServerError, match="did not answer"):
            Server(address, lambda _: "x").call("ping")
    with pytest.raises(ServerError, match="cannot be reached"):
        Server(address, lambda _: "x").call("ping")


def test_an_invalid_certificate():
    problem = ssl.SSLCertVerificationError("x")
    problem.verify_message = "self-signed certificate"
    server = Server("ann@music.example", lambda _: "x")
    assert "self-signed certificate. Use" in server._explained(URLError(problem))


def test_https_is_the_default():
    assert Server("ann@music.example", lambda _: "x").base == "https://music.example"


@pytest.mark.parametrize(
    "address", ["https://music.example", "ftp://ann@music.example", "https://ann@"]
)
def test_an_incomplete_address(address):
    with pytest.raises(DataError, match="USER@HOST"):
        Server(address, lambda _: "x")


def test_a_password_in_the_address_is_refused_without_showing_it():
    with pytest.raises(DataError, match="must not have a password") as error:
        Server("https://ann:s3cr3t@music.example", lambda _: "x")
    assert "s3cr3t" not in str(error.value)


class TestFindPassword:
    @pytest.fixture
    def server(self):
        return Server("ann@music.example", lambda _: "x")

    @pytest.fixture
    def keyring(self, monkeypatch):
        """A keyring: (server, user) → password."""
        kept = {("https://music.example", "ann"): "from the ring"}
        ring = SimpleNamespace(
            get_password=lambda *who: kept.get(who), errors=SimpleNamespace(KeyringError=OSError)
        )
        monkeypatch.setattr(subsonic, "find_spec", lambda _: True)
        monkeypatch.setitem(sys.modules, "keyring", ring)
        return kept

    @pytest.fixture
    def no_keyring(self, monkeypatch):
        monkeypatch.setattr(subsonic, "find_spec", lambda _: None)

    def test_from_a_file(self, server, tmp_path):
        (tmp_path / "password").write_text("secret\n")
        assert find_password(server, tmp_path / "password") == "secret"

    def test_a_file_that_does_not_exist(self, server, tmp_path):
        with pytest.raises(DataError, match="cannot be read"):
            find_password(server, tmp_path / "password")

    def test_an_empty_file(self, server, tmp_path):
        (tmp_path / "password").write_text("\n")
        with pytest.raises(DataError, match="first line"):
            find_password(server, tmp_path / "password")

    def test_from_the_keyring(self, server, keyring):
        assert find_password(server, None) == "from the ring"

    def test_typed_where_the_keyring_has_none(self, server, keyring):
        keyring.clear()
        assert find_password(server, None, lambda _: "typed") == "typed"

    def test_typed_without_a_keyring(self, server, no_keyring):
        assert find_password(server, None, lambda text: text.split()[2]) == "ann"

    def test_nowhere(self, server, no_keyring):
        with pytest.raises(DataError, match="--password-file"):
            find_password(server, None)
