"""The routes, asked as a program asks them."""

import errno
import io
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import islice
from types import SimpleNamespace

import numpy as np
import polars as pl
import postgres_server
import pytest
import soundfile
from processes_in_tests import wait_until
from small_library import trained
from sound_files import timed_noise
from web_server import root, serving

from harmonium import DiscriminativeRBM
from harmonium.audio import pictures
from harmonium.errors import (
    LibraryBusyError,
    LibraryDamagedError,
    LibraryError,
    LibraryUnavailableError,
    NotInLibraryError,
)
from harmonium.library import Library
from harmonium.library.filetags import read_tags
from harmonium.library.learning.learner import Learner
from harmonium.library.model.tagger import tag_library
from harmonium.library.store import database
from harmonium.library.store.models import StoredModel
from harmonium.library.store.reports import ModelReport
from harmonium.library.writing.writer import Writer
from harmonium.web import learner as learner_module
from harmonium.web.problems import problem_of
from harmonium.web.routes import sound as sound_routes


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def place(request, tmp_path_factory):
    """A library of 60 tracks, of which ann has tagged 30; in a file, then on a server."""
    with ExitStack() as stack:
        where = tmp_path_factory.mktemp("web") / "library.db"
        if request.param == "postgresql":
            server = request.getfixturevalue("postgres")
            where = stack.enter_context(postgres_server.schema(server))
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(database, "SYNCHRONOUS", "OFF")
        with Library.open(where) as library:
            trained(library, tagged=30, artists=7, features=True)
        yield where


@pytest.fixture(scope="module")
def client(place):
    with serving(place) as client:
        yield client


def test_the_page_is_served(client):
    assert client.get(root(client) + "/").status_code == 200


def test_the_server_is_healthy(client):
    assert client.get("health").json()["status"] == "ok"


def test_the_library_is_described(client):
    found = client.get("library").json()
    assert (found["tracks"], found["empty"], found["person"]) == (60, False, "me")
    assert found["people"] == [{"name": "ann", "n": 30}]
    assert found["model"]["learnt"] == 5


def test_where_there_is_no_library_the_page_begins_empty(tmp_path):
    with serving(tmp_path / "none.db") as client:
        found = client.get("library").json()
        assert found["empty"]
        assert found["model"] is None
        refused = client.get("search")
        assert refused.status_code == 409
        assert refused.json()["error"]["code"] == "not_ready"
    assert not (tmp_path / "none.db").exists()


def test_search_finds_what_the_library_finds(client, place):
    answer = client.get("search", params={"q": "rock -live", "min_probability": 0}).json()
    with Library.open(place) as library:
        expected = library.search("rock -live", limit=100, min_probability=0).hits
    assert [hit["id"] for hit in answer["hits"]] == [hit.track.id for hit in expected][:50]
    assert answer["total"] == len(expected)
    assert answer["hits"][0]["probability"] == pytest.approx(expected[0].probability)
    assert {hit["source"] for hit in answer["hits"]} == {hit.source for hit in expected[:50]}


PATH = {"q": "-rock", "from": 3, "to": 50, "stops": 6, "min_probability": 0.2}


def found_path(client):
    return [hit["id"] for hit in client.get("search", params=PATH).json()["hits"]]


def test_a_path_is_found(client):
    path = found_path(client)
    assert [path[0], path[-1], len({*path})] == [3, 50, 6]


def test_a_path_without_an_end_is_refused(client):
    assert client.get("search", params={"from": 3}).status_code == 422


def test_a_path_is_saved_as_a_search(client, place):
    path = found_path(client)
    change = client.put("searches", params={**PATH, "title": "Way"}).json()["change"]
    (saved,) = client.get("searches").json()["searches"]
    assert (saved["name"], saved["words"]) == ("Way", "-rock, from #3 to #50")
    found = client.get("search", params=saved["query"]).json()["hits"]
    assert [hit["id"] for hit in found] == path
    with Library.open(place) as library:
        assert [hit.track.id for hit in library.searches.run("Way")] == path
        library.save_search("All", "jazz", limit=20)
    all_, _ = client.get("searches").json()["searches"]
    assert all_["query"] == {"q": "jazz", "stops": 20}
    found = client.get("search", params=all_["query"]).json()
    assert found["total"] == sum(hit["holds"] for hit in found["hits"])
    assert found["total"] + found["n_below"] + found["n_other"] == 60
    for new, status in (("Way", 422), ("Jazz", 200), ("Way 2", 404)):
        done = client.post("searches/rename", params={"title": "All"}, json={"to": new})
        assert done.status_code == status
    assert client.delete("searches", params={"title": "Jazz"}).status_code == 200
    assert client.put("searches", params={"title": "x", "q": "none such"}).status_code == 404
    assert client.delete("searches", params={"title": "x"}).status_code == 404
    assert client.delete("searches", params={"title": "Way"}).json()["change"] > change
    assert client.get("searches").json() == {"searches": []}


def test_without_a_question_all_tracks_come_by_name(client):
    hits = client.get("search", params={"limit": 100}).json()["hits"]
    names = [hit["name"].casefold() for hit in hits]
    assert len(hits) == 60
    assert names == sorted(names)
    newest = client.get("search", params={"order": "added", "limit": 1}).json()["hits"]
    assert newest[0]["id"] == 60
    jazz = client.get("search", params={"q": "jazz", "limit": 60}).json()["hits"]
    for question, whole in (({}, hits), ({"q": "jazz"}, jazz)):
        pages = [{"limit": 20, "offset": at, **question} for at in (0, 20, 40)]
        parts = [client.get("search", params=page).json()["hits"] for page in pages]
        assert [hit for part in parts for hit in part] == whole


def test_a_track_has_audio_features(client, place):
    values = client.get("tracks/7").json()["features"]
    with Library.open(place) as library:
        assert values == pytest.approx(library.audio_features(7))


def test_hits_have_audio_features_where_asked_for(client):
    values = client.get("tracks/7").json()["features"]
    ask = {"q": "energy:>0.5", "order": "-valence"}
    for hit in client.get("search", params=ask).json()["hits"]:
        assert set(hit["features"]) == {"energy", "valence"}
    (hit,) = client.get("search", params={"features": True, "limit": 1}).json()["hits"]
    assert set(hit["features"]) == set(values)


@pytest.mark.parametrize(
    ("wrong", "status"), [({"q": "enrgy:>0.5"}, 404), ({"order": "enrgy"}, 422)]
)
def test_an_unknown_audio_feature_is_refused(client, wrong, status):
    refused = client.get("search", params=wrong)
    assert refused.status_code == status
    assert "energy" in refused.json()["error"]["message"]


def test_the_orders_are_documented(client):
    paths = client.get("openapi.json").json()["paths"]
    (asked,) = (
        one for one in paths["/api/v1/search"]["get"]["parameters"] if one["name"] == "order"
    )
    assert {"name", "energy", "-energy"} <= set(asked["schema"]["enum"])


def found_ids(client, **params):
    found = client.get("search", params={"limit": 100, "min_probability": 0, **params}).json()
    return {hit["id"] for hit in found["hits"]}


def test_names_are_found_beside_tags(client):
    artists = found_ids(client, name="artist 3")
    assert found_ids(client, name="artist 3", q="rock") == found_ids(client, q="rock") & artists
    assert found_ids(client, name="artist 3", q="rock") != set()


def test_names_are_found_by_their_words(client):
    everyone = client.get("search", params={"limit": 100}).json()["hits"]
    artist = {hit["id"] for hit in everyone if hit["artist"] == "Artist 3"}
    # or 3 in another place, as in Song 31
    assert found_ids(client, name="aRTist 3") >= artist
    assert found_ids(client, name='"artist 3"') == set()
    assert found_ids(client, name="song 31 031.ogg") == {32}
    assert found_ids(client, name="50%_\\'") == set()


def test_a_correction_moves_the_other_tags(client):
    answer = client.post("tracks/40/complete", json={"yes": ["Rock"]}).json()
    tags = {one["tag"]: one for one in answer["tags"]}
    assert tags["rock"]["probability"] == 1
    assert tags["jazz"]["probability"] < tags["jazz"]["before"]
    assert answer["moved"][0] == "jazz"
    nothing = client.post("tracks/40/complete", json={}).json()
    for one in nothing["tags"]:
        assert one["probability"] == pytest.approx(one["before"], abs=1e-4)
    assert nothing["moved"] == []


def test_what_is_said_can_be_searched_until_withdrawn(client):
    said = {"yes": ["Surf  Rock", "mellows"], "no": ["jazz"]}
    answer = client.post("tracks/50/say", json=said).json()
    assert answer["change"]
    tags = {one["tag"]: one for one in answer["track"]["tags"]}
    assert tags["surf rock"]["said"] is True
    assert tags["jazz"]["said"] is False
    hits = client.get("search", params={"q": '"surf rock"'}).json()["hits"]
    assert [hit["id"] for hit in hits] == [50]
    (pair,) = client.get("doctor", params={"doubts": 0}).json()["spellings"]
    assert (pair["tag"], pair["n_tracks"], pair["other"]) == ("mellows", 1, "mellow")
    withdrawn = {"unknown": ["surf rock", "jazz", "mellows"]}
    again = client.post("tracks/50/say", json=withdrawn).json()
    assert all(one["said"] is None for one in again["track"]["tags"])


def test_a_hidden_word_is_not_predicted_from_then_on(client, monkeypatch):
    """Though the model has learnt it from answers, and unlearns it only later."""

    def predicted():
        tags = client.get("tags").json()["tags"]
        return any(tag["tag"] == "drizzle" and tag["threshold"] is not None for tag in tags)

    for track in range(40, 46):
        assert client.post(f"tracks/{track}/say", json={"yes": ["drizzle"]}).status_code == 200
    wait_until(predicted, "the word to be learnt")
    with monkeypatch.context() as busy:
        busy.setattr(Learner, "learn", lambda _: None)
        change = client.post("tags/drizzle/hide").json()["change"]
        assert not predicted()
    client.post(f"changes/{change}/undo")
    wait_until(predicted, "the word to be learnt again")
    for track in range(40, 46):
        client.post(f"tracks/{track}/say", json={"unknown": ["drizzle"]})
    wait_until(lambda: not predicted(), "the word to be unlearnt")


def test_the_answers_of_a_sitting_are_one_change(client):
    questions = client.get("teach", params={"n": 3, "tag": "mellow"}).json()["questions"]
    assert {one["tag"] for one in questions} == {"mellow"}
    change = None
    for one in questions:
        body = {"track": one["track"]["id"], "tag": one["tag"], "answer": True, "change": change}
        change = client.post("teach", json=body).json()["change"]
    again = client.get("teach", params={"n": 60, "tag": "mellow"}).json()["questions"]
    asked = {one["track"]["id"] for one in questions}
    assert asked.isdisjoint(one["track"]["id"] for one in again)


def test_one_shape_for_every_error(client, monkeypatch):
    monkeypatch.setattr(Writer, "fields", lambda _: 1 // 0)
    as_json = {"Content-Type": "application/json"}
    for answer, status, code in (
        (client.get("search", params={"q": "roc"}), 404, "unknown_tag"),
        (client.get("search", params={"q": "(rock"}), 422, "bad_request"),
        (client.get("search", params={"limit": "x"}), 400, "bad_request"),
        (client.get("tracks/9999"), 404, "not_found"),
        (client.get("nowhere"), 404, "not_found"),
        (client.put("library"), 405, "bad_request"),
        (client.put("tags/rock/kind", json={"kind": "?"}), 400, "bad_request"),
        (client.put("write/fields", json={"fields": {"mood": "title"}}), 400, "bad_request"),
        (client.post("tracks/1/say", json={"yes": [""]}), 400, "bad_request"),
        (client.post("tracks/1/say", content=b"{", headers=as_json), 400, "bad_request"),
        (client.get("tracks/1/audio"), 404, "not_found"),
        (client.get("write/fields"), 500, "failed"),
    ):
        error = answer.json()["error"]
        assert (answer.status_code, error["code"]) == (status, code)
        assert error["message"].endswith((".", "?"))
        assert set(error) == {"code", "message", "field"}


@pytest.mark.parametrize(
    ("error", "status", "retry_after"),
    [
        (LibraryError("The word locked decides nothing."), 409, None),
        (LibraryDamagedError("Nor does: the connection is lost."), 409, None),
        (LibraryUnavailableError("The disk is full."), 503, "5"),
        (LibraryBusyError("Another program writes."), 503, "5"),
        (NotInLibraryError("There is no track #9."), 404, None),
    ],
)
def test_the_type_of_an_error_decides_its_status(error, status, retry_after):
    problem = problem_of(error)
    assert problem.status_code == status
    assert (problem.headers or {}).get("Retry-After") == retry_after


RATE = 22_050
OCTETS = {"Content-Type": "application/octet-stream"}


def sound(seed, kind="FLAC", seconds=3.0):
    whole = io.BytesIO()
    soundfile.write(whole, timed_noise(seconds, RATE, seed=seed), RATE, format=kind)
    return whole.getvalue()


def finished(client, job):
    """The job, when it has ended."""

    def ended():
        found = client.get(f"jobs/{job['id']}").json()
        return None if found["state"] in ("waiting", "running") else found

    return wait_until(ended, "the end of a job")


def add_model(place):
    """A model of three tags and energy, trained on noise, that has tagged all tracks."""
    with Library.open(place) as library:
        extractor = library.settings.get("extractor")
        _, X = library.tracks.features(library.tracks.ids(), extractor=extractor)
        rng = np.random.default_rng(0)
        many = np.repeat(X, 20, axis=0) + rng.normal(size=(20 * len(X), X.shape[1])) * X.std(axis=0)
        Y = (rng.random((len(many), 4)) < 0.5).astype(np.float32)
        tags = ["rock", "jazz", "live", "energy"]
        model = DiscriminativeRBM(n_hidden=4, max_epochs=3, validation_fraction=0.0, random_state=0)
        model.fit(many.astype(np.float32), pl.DataFrame(Y, schema=tags))
        about = {"name": "DiscriminativeRBM", "vocabulary": tags, "extractor": extractor}
        thresholds = np.array([0.05, 0.05, 0.05, np.nan], np.float32)
        about |= {"thresholds": thresholds, "report": ModelReport()}
        library.models.add(StoredModel(bytes=model.to_bytes(), **about))
        tag_library(library)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A server whose library was indexed over the API; and its folder of music."""
    base = tmp_path_factory.mktemp("jobs")
    folder = base / "music"
    folder.mkdir()
    for i, (name, kind) in enumerate((("a.flac", "FLAC"), ("b.ogg", "OGG"), ("c.wav", "WAV"))):
        (folder / name).write_bytes(sound(i, kind))
    (folder / "broken.mp3").write_bytes(b"no music")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HARMONIUM_CACHE", str(base / "cache"))
        with serving(base / "library.db") as client:
            job = client.post("index", json={"folder": str(folder)}).json()
            ended = finished(client, job)
            add_model(base / "library.db")
            yield client, folder, ended


def test_indexing_makes_a_library_of_a_folder(world):
    client, folder, job = world
    assert (job["state"], job["result"]["new"], job["result"]["unreadable"]) == ("done", 3, 1)
    found = client.get("library").json()
    assert (found["tracks"], found["folders"]) == (3, [str(folder)])


def test_files_that_could_not_be_indexed_are_listed(world):
    client, folder, _ = world
    wrong = client.get("doctor", params={"doubts": 0}).json()
    (broken,) = wrong["unreadable"]
    assert broken["path"] == str(folder / "broken.mp3")
    assert "decoded" in broken["reason"]
    assert wrong["missing"] == []


def test_folders_are_listed_to_choose_one(world):
    client, folder, _ = world
    (folder.parent / ".hidden").mkdir()
    found = client.get("folders", params={"path": str(folder.parent)}).json()
    assert (found["path"], found["parent"]) == (str(folder.parent), str(folder.parent.parent))
    listed = {one["name"]: one for one in found["folders"]}
    assert listed["music"] == {
        **{"path": str(folder), "name": "music"},
        **{"n_sounds": 4, "counted": True},
    }
    assert ".hidden" not in listed
    assert found["n_sounds"] >= 4


def test_no_files_are_listed_to_choose_one(world):
    client, folder, _ = world
    inside = client.get("folders", params={"path": str(folder)})
    assert inside.json()["folders"] == []
    assert "broken" not in inside.text


@pytest.mark.parametrize("name", ["a.flac", "nowhere", "\0"])
def test_what_is_no_folder_is_refused(world, name):
    client, folder, _ = world
    wrong = name if name == "\0" else str(folder / name)
    refused = client.get("folders", params={"path": wrong})
    assert (refused.status_code, refused.json()["error"]["field"]) == (404, "path")


def test_tags_in_files_are_counted(world):
    client, *_ = world
    assert client.get("import").json() == {"tracks": 0, "tags": 0, "new": 0, "ignored": {}}
    refused = client.get("import", params={"fields": "gender"})
    assert (refused.status_code, "genre" in refused.json()["error"]["message"]) == (422, True)


def test_learning_from_files_without_tags_fails(world):
    client, *_ = world
    ended = finished(client, client.post("import", json={"fields": ["genre"]}).json())
    assert ended["state"] == "failed"  # there is nothing to learn from
    assert "tag" in ended["error"]


def test_while_another_program_writes_readers_are_answered(world, monkeypatch):
    client, folder, _ = world
    library = client.server.config.app.state.service.library()
    monkeypatch.setattr(library, "_wait", 1.0)
    with Library.open(folder.parent / "library.db") as other, ThreadPoolExecutor(30) as pool:
        with other.begin():
            saying = [
                pool.submit(client.post, "tracks/1/say", json={"yes": ["loud"]}) for _ in range(20)
            ]
            reading = [client.get(path) for path in ("health", "search", "tracks/1")]
            refused = [one.result() for one in saying]
        assert [one.status_code for one in reading] == [200] * 3
        assert {(one.status_code, one.json()["error"]["code"]) for one in refused} == {
            (503, "busy")
        }
        for answer in ({"yes": ["loud"]}, {"unknown": ["loud"]}):
            assert client.post("tracks/1/say", json=answer).status_code == 200


def test_events_go_on_after_the_library_could_not_be_read(world, monkeypatch):
    client, *_ = world
    events, looks = client.server.config.app.state.service.events, []
    look = events._changes

    def fail_once(last):
        looks.append(last)
        if len(looks) == 1:
            raise LibraryBusyError("it is locked")
        return look(last)

    monkeypatch.setattr(events, "_changes", fail_once)
    with client.stream("GET", "events", timeout=20) as stream:
        wait_until(lambda: len(looks) > 1, "another look at the changes")
        for answer in ({"yes": ["loud"]}, {"unknown": ["loud"]}):
            assert client.post("tracks/1/say", json=answer).status_code == 200
        assert "event: change" in islice(stream.iter_lines(), 12)


def test_without_room_for_it_the_picture_of_a_sound_is_drawn_all_the_same(world, monkeypatch):
    client, *_ = world

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pictures, "write_atomically", full)
    monkeypatch.setattr(pictures, "VERSION", "another")
    assert client.get("tracks/1/spectrum").status_code == 200
    monkeypatch.setattr(tempfile, "NamedTemporaryFile", full)
    answer = client.post("files?name=a.flac", content=sound(9), headers=OCTETS)
    assert answer.status_code == 503
    assert "No space left" in answer.json()["error"]["message"]


@pytest.mark.parametrize("what", ["audio", "spectrum", "over-time", "cover"])
def test_a_link_in_place_of_a_track_is_not_followed(world, monkeypatch, tmp_path, what):
    client, folder, _ = world
    monkeypatch.setenv("HARMONIUM_CACHE", str(tmp_path / "one"))
    expected, opened = client.get(f"tracks/1/{what}").content, sound_routes.open_track
    secret = tmp_path / "secret.flac"
    secret.write_bytes(sound(12))

    def swap():
        (folder / "a.flac").rename(folder / "kept")
        (folder / "a.flac").symlink_to(secret)

    def swap_when_opened(*args, **options):
        found = opened(*args, **options)
        swap()
        return found

    try:
        swap()
        assert client.get(f"tracks/1/{what}").status_code == 404
        (folder / "kept").replace(folder / "a.flac")
        monkeypatch.setenv("HARMONIUM_CACHE", str(tmp_path / "another"))
        monkeypatch.setattr(sound_routes, "open_track", swap_when_opened)
        assert client.get(f"tracks/1/{what}").content == expected
    finally:
        (folder / "kept").replace(folder / "a.flac")


def test_audio_comes_in_parts(world):
    client, folder, _ = world
    number = client.get("search", params={"limit": 1}).json()["hits"][0]["id"]
    whole = (folder / "a.flac").read_bytes()
    answer = client.get(f"tracks/{number}/audio")
    assert answer.content == whole
    assert answer.headers["content-type"] == "audio/flac"
    part = client.get(f"tracks/{number}/audio", headers={"Range": "bytes=100-199"})
    assert part.status_code == 206
    assert part.content == whole[100:200]
    assert part.headers["content-range"] == f"bytes 100-199/{len(whole)}"
    beyond = client.get(f"tracks/{number}/audio", headers={"Range": f"bytes={len(whole)}-"})
    assert beyond.status_code == 416


def test_the_picture_of_a_sound_is_drawn_once(world):
    client, _, _ = world
    first = client.get("tracks/1/spectrum")
    assert first.content[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = (int.from_bytes(first.content[at : at + 4], "big") for at in (16, 20))
    assert (width, height) == (1200, 128)
    assert client.get("tracks/1/spectrum").content == first.content
    again = client.get("tracks/1/spectrum", headers={"If-None-Match": first.headers["etag"]})
    assert again.status_code == 304


def test_tags_over_time_are_of_the_places_of_a_sound(world):
    client, _, _ = world
    found = client.get("tracks/1/over-time").json()
    assert len(found["begins"]) == len(found["ends"]) >= 1
    assert 0 <= found["begins"][0] < found["ends"][-1] <= 3.1
    assert found["tags"]
    assert {len(p) for p in found["tags"].values()} == {len(found["begins"])}
    assert client.get("tracks/999/over-time").status_code == 404


def test_a_file_gets_tags(world):
    client, _, _ = world
    answer = client.post("files", params={"name": "new.flac"}, content=sound(7), headers=OCTETS)
    found = answer.json()
    assert found["name"] == "new.flac"
    assert found["duration"] == pytest.approx(3, abs=0.1)
    assert {tag["tag"] for tag in found["tags"]} == {"rock", "jazz", "live"}
    assert 0 < found["features"].pop("energy") < 1
    assert not found["features"]


def test_nothing_of_a_file_is_kept(world):
    client, _, _ = world
    client.post("files", params={"name": "new.flac"}, content=sound(7), headers=OCTETS)
    assert client.get("library").json()["tracks"] == 3


def test_a_planned_write_is_undone_to_the_byte(world):
    client, folder, _ = world
    before = {path: path.read_bytes() for path in folder.iterdir()}
    client.post("tracks/1/say", json={"yes": ["Surf Rock"], "no": ["rock", "jazz", "live"]})
    fields_of_kinds = client.get("write/fields").json()["fields"]
    plan = client.get("write/plan", params={"precision": 0, "ignore": "live"}).json()
    tags = {tag["tag"]: tag for tag in plan["tags"]}
    assert tags["surf rock"]["n"] == 1
    assert (tags["surf rock"]["kind"], fields_of_kinds["own"]) == ("own", "grouping")
    assert tags["surf rock"]["expected_wrong"] == 0
    assert not tags["live"]["accepted"]
    fields = {one["track"]["id"]: one["fields"] for one in plan["preview"]}
    assert fields[1][0]["after"] == ["Surf Rock"]
    assert plan["files"] == len(plan["preview"])
    client.put("tags/surf rock/kind", json={"kind": "mood"})
    answer = client.put("write/fields", json={"fields": {"mood": "genre"}}).json()["fields"]
    assert answer == fields_of_kinds | {"mood": "genre"}
    job = client.post("write", json={"precision": 0, "ignore": ["live"], "skip": [2]}).json()
    result = finished(client, job)["result"]
    assert result["written"] == plan["files"] - 1
    assert read_tags(str(folder / "a.flac")).genre == ("Surf Rock",)
    assert (folder / "b.ogg").read_bytes() == before[folder / "b.ogg"]
    undone = client.post(f"changes/{result['change']}/undo").json()
    assert undone["complete"]
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_one_job_of_a_kind_at_a_time(world):
    client, folder, _ = world
    first = client.post("index", json={"folder": str(folder)}).json()
    second = client.post("index", json={"folder": str(folder)})
    assert second.status_code == 409
    assert second.json()["error"]["code"] == "conflict"
    stopped = client.post(f"jobs/{first['id']}/stop")
    assert stopped.status_code == 200
    assert finished(client, first)["state"] in ("stopped", "done")


def test_no_import_while_a_model_is_trained(world):
    client, _, _ = world
    first = client.post("train", json={}).json()
    second = client.post("import", json={"fields": ["genre"]})
    assert second.status_code == 409
    assert "Training a model" in second.json()["error"]["message"]
    client.post(f"jobs/{first['id']}/stop")
    finished(client, first)


def test_only_a_folder_that_is_there_is_indexed(world):
    client, folder, _ = world
    answer = client.post("index", json={"folder": str(folder / "nowhere")})
    assert answer.status_code == 404
    assert answer.json()["error"]["field"] == "folder"


def test_a_failure_does_not_end_the_learning(monkeypatch):
    calls, learnt, failed = [], threading.Event(), threading.Event()

    def learn():
        calls.append("learn")
        if len(calls) == 1:
            raise OSError("the disk is full")
        return SimpleNamespace(refreshed=["rock"], n_tracks=1)

    monkeypatch.setattr(learner_module.log, "exception", lambda text: failed.set())
    review = SimpleNamespace(improvement=lambda: None)
    library = SimpleNamespace(learn=learn, review=review)
    service = SimpleNamespace(
        library=lambda: library, events=SimpleNamespace(tell=lambda event, what: learnt.set())
    )
    learner = learner_module.Learner(service)
    learner.learn()
    assert failed.wait(10)
    learner.learn()
    assert learnt.wait(10)
    learner.close()
    assert len(calls) == 2
