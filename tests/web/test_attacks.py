"""What docs/web.md says the server withstands, one test for each."""

import hmac
import logging
import socket
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from multiprocessing import Pipe
from unittest.mock import Mock
from urllib.parse import quote

import httpx
import numpy as np
import polars as pl
import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from mutagen.flac import FLAC, Picture
from small_library import quick_model, trained
from tagged_files import untagged
from web_server import raw, root, serving

from harmonium import DiscriminativeRBM
from harmonium.audio.extractors import extractor_key
from harmonium.library import Library
from harmonium.library.edits import forget
from harmonium.library.store.tracks import Track
from harmonium.web import app as app_module
from harmonium.web import guard, jobs, sessions
from harmonium.web.app import create_app
from harmonium.web.guard import ServerSettings

TOKEN = "a-token-that-only-the-owner-knows"
CANARY = "CANARY 5d41402abc4b2a76b9719d911017c592"
JSON = {"Content-Type": "application/json"}
OCTETS = {"Content-Type": "application/octet-stream"}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A library beside a file that no route may show."""
    folder = tmp_path_factory.mktemp("attacked")
    (folder / "secret.txt").write_text(CANARY)
    with Library.open(folder / "library.db") as library:
        trained(library, tagged=30, artists=7)
        path = folder / "song.flac"
        path.write_bytes(untagged("flac"))
        library.tracks.put([Track(str(path), "ab" * 32)])
    return folder / "library.db"


@pytest.fixture(scope="module")
def client(place):
    with serving(place) as client:
        yield client


@pytest.fixture(scope="module")
def locked(place):
    """The same library on a server that wants a token; the client does not know it."""
    with serving(place, token=TOKEN) as client:
        client.headers.pop("Authorization")
        yield client


def operations():
    """(method, path) of all routes but the stream of events."""
    document = create_app(ServerSettings()).openapi()
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if not path.endswith("/events"):
                yield method.upper(), path, operation


each_operation = pytest.mark.parametrize(
    ("method", "path", "operation"),
    [pytest.param(*one, id=" ".join(one[:2])) for one in operations()],
)


# Paths. ---------------------------------------------------------------------------------------


@each_operation
def test_no_parameter_leads_to_a_file(client, place, method, path, operation):
    secret = str(place.parent / "secret.txt")
    up = "../" * 12
    for text in (secret, f"{up}{secret}", f"..{secret}", f"file://{secret}", f"{secret}\0.flac"):
        at = path
        query = {}
        for parameter in operation.get("parameters", []):
            name = parameter["name"]
            if parameter["in"] == "path":
                at = at.replace(f"{{{name}}}", quote(text, safe=""))
            else:
                query[name] = text
        fields = {"folder": text, "tag": text, "to": text, "token": text, "yes": [text]}
        options = {"json": fields} if method == "POST" and "/files" not in path else {}
        answer = client.request(method, root(client) + at, params=query, **options)
        assert answer.status_code < 500
        assert CANARY not in answer.text
        assert "root:" not in answer.text


def test_static_files_do_not_lead_elsewhere(client):
    for path in ("../app.py", "%2e%2e/app.py", "..%2fapp.py", "....//app.py", "/etc/passwd", "%00"):
        answer = raw(client, _request(client, f"/static/{path}"), seconds=1.0)
        assert b" 404 " in answer.split(b"\r\n")[0], path
        assert b"create_app" not in answer


def test_a_track_that_was_forgotten_is_not_played(tmp_path):
    with Library.open(tmp_path / "library.db") as library:
        path = tmp_path / "song.flac"
        path.write_bytes(untagged("flac"))
        ids = library.tracks.put([Track(str(path), "cd" * 32)])
        forget(library, ids)
    with serving(tmp_path / "library.db") as client:
        assert client.get(f"tracks/{ids[0]}/audio").status_code == 404
        assert client.get(f"tracks/{ids[0]}").status_code == 404


def test_a_cover_is_a_picture_or_nothing(tmp_path):
    path = tmp_path / "song.flac"
    path.write_bytes(untagged("flac"))
    with Library.open(tmp_path / "library.db") as library:
        library.tracks.put([Track(str(path), "ab" * 32)])
    with serving(tmp_path / "library.db") as client:
        assert client.get("tracks/1/cover").status_code == 204
        for data, status in ((SCRIPT.encode(), 204), (b"\x89PNG\r\n\x1a\n" + b"x" * 40, 200)):
            file, picture = FLAC(path), Picture()
            file.clear_pictures()
            picture.type, picture.mime, picture.data = 3, "text/html", data
            file.add_picture(picture)
            file.save()
            answer = client.get("tracks/1/cover")
            assert (answer.status_code, SCRIPT in answer.text) == (status, False)
        assert answer.content == data
        assert answer.headers["content-type"] == "image/png"
        assert answer.headers["x-content-type-options"] == "nosniff"
        path.unlink()
        assert client.get("tracks/1/cover").status_code == 404


def test_a_file_that_cannot_be_decoded_is_there_and_has_no_cover(tmp_path):
    path = tmp_path / "broken.mp3"
    path.write_bytes(b"no music")
    with Library.open(tmp_path / "library.db") as library:
        ids = library.tracks.put([Track(str(path), "ab" * 32)])
        library.tracks.set_state(ids, "unreadable")
    with serving(tmp_path / "library.db") as client:
        assert client.get(f"tracks/{ids[0]}/cover").status_code == 204


# Bodies. --------------------------------------------------------------------------------------


def test_what_is_too_large_is_refused(client, monkeypatch):
    monkeypatch.setattr(guard, "MAX_FILE_BYTES", 10_000)
    answer = client.post("files?name=a.flac", content=b"x" * 10_001, headers=OCTETS)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")

    def endless():  # without a length that could be believed
        for _ in range(11):
            yield b"x" * 1000

    answer = client.post("files?name=a.flac", content=endless(), headers=OCTETS)
    assert answer.status_code == 413
    many = {"yes": ["x" * 100] * 12_000}
    assert client.post("tracks/1/say", json=many).status_code == 413


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("noise.mp3", bytes(range(256)) * 40),
        ("text.wav", b"This is no music."),
        ("cut.flac", untagged("flac")[:400]),
        ("list.mp3", b"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nfile:///etc/passwd\n"),
        ("concat.m4a", b"ffconcat version 1.0\nfile /etc/passwd\n"),
        ("head.wav", b"RIFF\xff\xff\xff\xffWAVEfmt \x10\0\0\0\1\0\xff\xff\xff\xff\xff\xff"),
        ("empty.ogg", b""),
        *((name, b"x") for name in ("a.exe", "a.html", "a", "a.flac.js")),
    ],
)
def test_malformed_uploads_are_refused(tmp_path, tagging_client, name, data):
    answer = tagging_client.post("files", params={"name": name}, content=data, headers=OCTETS)
    error = (answer.status_code, answer.json()["error"]["code"])
    assert error == ((415, "unsupported_media") if data else (422, "bad_request"))
    assert (data != b"x") or answer.status_code == 415
    assert str(tmp_path.root) + "tmp" not in answer.text
    assert tagging_client.get("health").status_code == 200


def test_a_sound_of_days_is_refused(tagging_client):
    bomb = bytearray(untagged("flac"))
    rate, total = 22_050, 22_050 * 3600 * 200
    assert int.from_bytes(bomb[18:26], "big") >> 44 == rate
    head = int.from_bytes(bomb[18:26], "big")
    bomb[18:26] = ((head >> 36 << 36) | total).to_bytes(8, "big")
    answer = tagging_client.post("files?name=bomb.flac", content=bytes(bomb), headers=OCTETS)
    assert answer.status_code == 413
    assert "hours" in answer.json()["error"]["message"]


def test_whoever_hears_a_file_is_held_to_limits(tmp_path):
    code = (
        "from harmonium.web.uploads import _set_limits\n"
        "import resource\n"
        "_set_limits()\n"
        "print(resource.getrlimit(resource.RLIMIT_CPU)[0])\n"
        "try:\n    bytearray(5 << 30)\nexcept MemoryError:\n    print('no memory')\n"
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f"try:\n    open({str(tmp_path / 'x')!r}, 'w').write('x')\n"
        "except OSError:\n    print('no file')\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.stdout.split("\n")[:2] == ["60", "no memory"]
    assert (tmp_path / "x").read_bytes() == b""


@pytest.fixture(scope="module")
def tagging_client(tmp_path_factory):
    """A server that could hear a file: its model takes the paper's features."""
    place = tmp_path_factory.mktemp("hears") / "library.db"
    X = np.random.default_rng(0).normal(size=(40, 389)).astype(np.float32)
    model = DiscriminativeRBM(n_hidden=2, max_epochs=1, validation_fraction=0.0, random_state=0)
    model.fit(X, pl.DataFrame((X[:, :6] > 0).astype(np.float32), schema=quick_model().vocabulary))
    with Library.open(place) as library:
        data, key = model.to_bytes(), extractor_key("paper")
        library.models.add(replace(quick_model(), bytes=data, extractor=key))
    with serving(place) as client:
        yield client


# Text. ----------------------------------------------------------------------------------------

SCRIPT = '<script>alert("x")</script>'


def test_script_is_text(tmp_path):
    with Library.open(tmp_path / "library.db") as library:
        files = [
            Track(f"/music/{SCRIPT.replace('/', '_')}.mp3", "01", title=SCRIPT, artist=SCRIPT),
            Track("/music/evil\n#EXTINF:1,x\nhttp://evil.example/a.mp3", "02", title="a\nb"),
        ]
        library.tracks.put(files)
    with serving(tmp_path / "library.db") as client:
        said = client.post("tracks/1/say", json={"yes": [SCRIPT]})
        answers = [said, client.get("search"), client.get("tracks/1"), client.get("tags")]
        answers.append(client.get(f"search?q={quote(SCRIPT)}"))
        for answer in answers:
            assert answer.headers["content-type"] == "application/json"
            assert answer.headers["x-content-type-options"] == "nosniff"
        assert client.get("search").json()["hits"][0]["title"] == SCRIPT
        playlist = client.get("playlist")
        assert "attachment" in playlist.headers["content-disposition"]
        assert not [line for line in playlist.text.split("\n") if line.startswith("http")]


def test_every_answer_forbids_what_the_page_does_not_need(client):
    for path in ("/", "/static/nowhere", "/api/v1/library", "/api/v1/nowhere"):
        headers = client.get(root(client) + path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert "access-control-allow-origin" not in headers
        assert "server" not in headers


SQL = ("'; DROP TABLE track; --", '" OR 1=1 --', "x' UNION SELECT bytes FROM model --", "%' OR '1")


@pytest.mark.parametrize("text", SQL)
def test_sql_is_text(client, text):
    for path in ("search", "facets", "playlist", "write/plan"):
        assert client.get(path, params={"q": text}).status_code in (404, 422)
    assert client.get(f"tags/{quote(text, safe='')}").status_code == 404
    assert client.get("teach", params={"tag": text}).status_code == 404
    assert client.get("library").json()["tracks"] == 61


# Who calls. -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_a_page_of_another_site_cannot_call(client, headers):
    for answer in (
        client.post("tracks/1/say", json={"yes": ["rock"]}, headers=headers),
        client.get("library", headers=headers),
        client.delete("session", headers=headers),
    ):
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")
    own = {"Origin": root(client), "Sec-Fetch-Site": "same-origin"}
    assert client.post("tracks/1/complete", json={}, headers=own).status_code == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_a_form_cannot_send_json(client, kind):
    headers = {"Content-Type": kind}
    answer = client.post("tracks/1/say", content=b'{"yes": ["rock"]}', headers=headers)
    assert answer.status_code == 415


TAKEN = ("localhost", "LOCALHOST:99", "127.0.0.1", "[::1]:8040")
REFUSED = ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "")


@pytest.mark.parametrize("host", [*TAKEN, *REFUSED])
def test_only_names_of_this_machine_are_taken(client, host):
    status = b"HTTP/1.1 200" if host in TAKEN else b"HTTP/1.1 400"
    assert raw(client, _request(client, "/api/v1/health", host), seconds=2.0).startswith(status)
    twice = _request(client, "/api/v1/health", f"localhost\r\nHost: {host}")
    assert raw(client, twice, seconds=2.0).startswith(b"HTTP/1.1 400")


def test_another_name_may_be_allowed(place):
    with serving(place, allowed_hosts=("music.example",)) as client:
        answer = raw(client, _request(client, "/api/v1/health", "music.example"), seconds=2.0)
        assert answer.startswith(b"HTTP/1.1 200")


def _request(client, path, host=None):
    host = f"127.0.0.1:{client.base_url.port}" if host is None else host
    return f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode()


# Tokens. --------------------------------------------------------------------------------------


@each_operation
def test_without_the_token_no_route_answers(locked, method, path, operation):
    if (method, path) in (("GET", "/api/v1/health"), ("POST", "/api/v1/session")):
        return
    at = root(locked) + path.replace("{id}", "1").replace("{tag}", "rock")
    octets = OCTETS if path.endswith("/files") else {}
    for more in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {TOKEN}"}):
        answer = locked.request(method, at, headers={**octets, **more})
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, "unauthorized")


def test_only_the_right_token_opens(locked):
    assert locked.get("library", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
    assert locked.post("session", json={"token": "wrong"}).status_code == 401


def test_the_cookie_opens_until_it_is_signed_out(locked):
    with httpx.Client(base_url=locked.base_url) as browser:
        signed = browser.post("session", json={"token": TOKEN})
        assert signed.status_code == 204
        cookie = signed.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "samesite=strict" in cookie.lower()
        assert TOKEN not in cookie
        assert browser.get("library").status_code == 200
        kept = dict(browser.cookies)
        browser.delete("session")
        assert browser.get("library").status_code == 401
    with httpx.Client(base_url=locked.base_url, cookies=kept) as thief:
        assert thief.get("library").status_code == 401


@pytest.mark.parametrize(
    "value",
    [
        "",
        "x",
        "9999999999.",
        "9999999999." + "0" * 64,
        hmac.new(TOKEN.encode(), b"", "sha256").hexdigest(),
        TOKEN,
    ],
)
def test_a_forged_cookie_opens_nothing(locked, value):
    name = f"harmonium_{locked.base_url.port}"
    assert locked.get("library", headers={"Cookie": f"{name}={value}"}).status_code == 401


def sign_in(client):
    """The cookie's value in a new session."""
    client.cookies.clear()
    assert client.post("session", json={"token": TOKEN}).status_code == 204
    (value,) = client.cookies.values()
    client.cookies.clear()
    return value


def cookie(client, value):
    """The header with a session's cookie."""
    return {"Cookie": f"harmonium_{client.base_url.port}={value}"}


def statuses(client, values):
    """The status of an answer in each of some sessions."""
    return [client.get("library", headers=cookie(client, value)).status_code for value in values]


def test_the_state_of_a_session_outlives_the_server(tmp_path):
    """Each browser has a session of its own, also of two that sign in at once."""
    Library.open(tmp_path / "library.db").close()
    with serving(tmp_path / "library.db", token=TOKEN) as first:
        del first.headers["Authorization"]
        values = [sign_in(first) for _ in range(3)]
        assert len({*values}) == 3
        first.delete("session", headers=cookie(first, values[0]))
        assert statuses(first, values) == [401, 200, 200]
    with serving(tmp_path / "library.db", token=TOKEN) as second:
        del second.headers["Authorization"]
        assert statuses(second, values) == [401, 200, 200]
        second.delete("session", headers=cookie(second, values[1]))
    with serving(tmp_path / "library.db", token=TOKEN) as third:
        del third.headers["Authorization"]
        assert statuses(third, values) == [401, 401, 200]
    with serving(tmp_path / "library.db", token="another token of that length") as other:
        del other.headers["Authorization"]
        assert statuses(other, values) == [401, 401, 401]


def test_secrets_are_compared_in_constant_time(monkeypatch):
    compared = []
    monkeypatch.setattr(sessions.hmac, "compare_digest", lambda *both: compared.append(both))
    assert not sessions.same_secret("wrong", TOKEN)
    assert compared == [(b"wrong", TOKEN.encode())]


def test_the_log_holds_no_secret(place, caplog):
    with caplog.at_level(logging.DEBUG), serving(place, token=TOKEN, log=True) as client:
        client.get("library", params={"token": TOKEN})
        client.post("session", json={"token": TOKEN})
        client.get("search?q=private%20thoughts")
    lines = [one.getMessage() for one in caplog.records if not one.name.startswith("http")]
    text = "\n".join(lines)
    assert "'/api/v1/library' 200" in text
    assert TOKEN not in text
    assert "private" not in text
    assert TOKEN not in repr(ServerSettings(token=TOKEN))


# Time. ----------------------------------------------------------------------------------------


def test_a_head_that_does_not_end_is_cut_off(client, monkeypatch):
    monkeypatch.setattr(app_module, "HEAD_SECONDS", 0.2)
    began = time.monotonic()
    assert raw(client, b"GET /api/v1/health HTTP/1.1\r\nHost: loc", seconds=5.0) == b""
    assert time.monotonic() - began < 4
    whole = _request(client, "/api/v1/health").replace(b"Connection: close\r\n", b"")
    with socket.create_connection((client.base_url.host, client.base_url.port), 5) as wire:
        wire.sendall(whole)
        assert wire.recv(65536).startswith(b"HTTP/1.1 200")
        wire.sendall(b"GET /api/v1")  # a second request on the same connection
        while wire.recv(65536):
            pass


def test_a_body_that_does_not_end_is_cut_off(client, monkeypatch):
    monkeypatch.setattr(guard, "BODY_SECONDS", 0.2)
    head = f"POST /api/v1/tracks/1/say HTTP/1.1\r\nHost: 127.0.0.1:{client.base_url.port}\r\n"
    head += "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
    began = time.monotonic()
    assert raw(client, head.encode(), seconds=5.0).startswith(b"HTTP/1.1 408")
    assert time.monotonic() - began < 4


def test_a_client_that_does_not_read_is_cut_off(client, place, monkeypatch):
    monkeypatch.setattr(guard, "SEND_SECONDS", 0.3)
    song = place.parent / "song.flac"
    before = song.read_bytes()
    song.write_bytes(bytes(60_000_000))
    try:
        with socket.socket() as wire:
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            wire.connect((client.base_url.host, client.base_url.port))
            wire.sendall(_request(client, "/api/v1/tracks/61/audio"))
            time.sleep(1.5)
            wire.settimeout(5)
            received = 0
            while part := wire.recv(1 << 20):
                received += len(part)
        assert received < 60_000_000
    finally:
        song.write_bytes(before)


def test_too_many_connections_are_turned_away(place, monkeypatch):
    monkeypatch.setattr(app_module, "MAX_CONNECTIONS", 5)
    with serving(place) as client:
        address = (client.base_url.host, client.base_url.port)
        wires = [socket.create_connection(address) for _ in range(6)]
        try:
            time.sleep(0.2)
            assert b" 503 " in raw(client, _request(client, "/api/v1/health"), seconds=2.0)
            wires += [socket.create_connection(address) for _ in range(5)]
            wires[-1].settimeout(5)  # far less than the 10 s that a head may take
            with suppress(ConnectionResetError):
                assert wires[-1].recv(1) == b""  # cut off: no descriptor is left to it
        finally:
            for wire in wires:
                wire.close()
        time.sleep(0.2)
        assert client.get("health").status_code == 200


def test_costly_work_is_limited(client):
    service = client.server.config.app.state.service
    with service.limited("drawing", 1), pytest.MonkeyPatch.context() as patch:
        patch.setattr("harmonium.web.routes.sound.WAIT_SECONDS", 0.1)
        answer = client.get("tracks/61/spectrum")
    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "busy"
    assert int(answer.headers["retry-after"]) > 0


def test_questions_cannot_be_made_too_deep(client):
    for text in ("(" * 400 + "rock" + ")" * 400, "-" * 900 + "rock", "rock OR " * 120 + "rock"):
        assert client.get("search", params={"q": text}).status_code in (200, 422)
    assert client.post("tracks/1/say", content=b"[" * 100_000, headers=JSON).status_code == 400


# 422 and 415 say that the library cannot do what the document allows: a query, or sound, is text.
ACCEPTED = {"expected-statuses": ["2xx", 404, 409, 415, 422, 503]}
schema = schemathesis.openapi.from_dict(
    create_app(ServerSettings()).openapi(),
    config=schemathesis.Config.from_dict({"checks": {"positive_data_acceptance": ACCEPTED}}),
)


@pytest.fixture(scope="module")
def idle_client(tmp_path_factory):
    """A server whose jobs do nothing: a made-up folder may be a real one."""
    file = tmp_path_factory.mktemp("openapi") / "library.db"
    with Library.open(file) as library:
        trained(library, tagged=30, artists=7)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jobs, "RunningJob", NoProcess)
        with serving(file) as idle_client:
            yield idle_client


class NoProcess:
    """A job that is done at once."""

    def __init__(self, record, place):
        self.record, self.began = record, 0.0
        self.pipe, theirs = Pipe()
        theirs.send(("done", {}))
        self.process = Mock(exitcode=0)

    def stop(self):
        """It has."""


@schema.exclude(path_regex="/events$").parametrize()
@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_answer_is_described(case, idle_client):
    case.call_and_validate(base_url=root(idle_client))
