"""What the server does with files: indexing, listening, drawing, writing, and back."""

import io
import threading
from multiprocessing import Pipe
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
import soundfile
from processes_in_tests import wait_until
from sound_files import timed_noise
from web_server import serving

from harmonium import DiscriminativeRBM
from harmonium.library import Library
from harmonium.library.filetags import read_tags
from harmonium.library.store.models import StoredModel
from harmonium.library.tagger import tag_library
from harmonium.web import jobs
from harmonium.web import service as service_module

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
    """A model of three tags, trained on noise, that has tagged all tracks."""
    with Library.open(place) as library:
        extractor = library.settings.get("extractor")
        _, X = library.tracks.features(library.tracks.ids(), extractor=extractor)
        rng = np.random.default_rng(0)
        many = np.repeat(X, 20, axis=0) + rng.normal(size=(20 * len(X), X.shape[1])) * X.std(axis=0)
        Y = (rng.random((len(many), 3)) < 0.5).astype(np.float32)
        tags = ["rock", "jazz", "live"]
        model = DiscriminativeRBM(n_hidden=4, max_epochs=3, validation_fraction=0.0, random_state=0)
        model.fit(many.astype(np.float32), pl.DataFrame(Y, schema=tags))
        about = {"name": "DiscriminativeRBM", "vocabulary": tags, "extractor": extractor}
        about |= {"thresholds": np.full(3, 0.05, np.float32), "report": {"precision": {}}}
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
    assert job["state"] == "done"
    assert job["result"]["new"] == 3
    assert job["result"]["unreadable"] == 1
    found = client.get("library").json()
    assert found["tracks"] == 3
    assert found["folders"] == [str(folder)]


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


def test_a_file_gets_tags_and_nothing_of_it_is_kept(world):
    client, _, _ = world
    answer = client.post("files", params={"name": "new.flac"}, content=sound(7), headers=OCTETS)
    found = answer.json()
    assert found["name"] == "new.flac"
    assert found["duration"] == pytest.approx(3, abs=0.1)
    assert {tag["tag"] for tag in found["tags"]} == {"rock", "jazz", "live"}
    assert client.get("library").json()["tracks"] == 3


def test_what_is_planned_is_written_and_undone_to_the_byte(world):
    client, folder, _ = world
    before = {path: path.read_bytes() for path in folder.iterdir()}
    client.post("tracks/1/say", json={"yes": ["Surf Rock"], "no": ["rock", "jazz", "live"]})
    plan = client.get("write/plan", params={"precision": 0, "ignore": "live"}).json()
    tags = {tag["tag"]: tag for tag in plan["tags"]}
    assert tags["surf rock"]["n"] == 1
    assert tags["surf rock"]["expected_wrong"] == 0
    assert not tags["live"]["accepted"]
    fields = {one["track"]["id"]: one["fields"] for one in plan["preview"]}
    assert fields[1][0]["after"] == ["Surf Rock"]
    assert plan["files"] == len(plan["preview"])
    job = client.post("write", json={"precision": 0, "ignore": ["live"], "skip": [2]}).json()
    result = finished(client, job)["result"]
    assert result["written"] == plan["files"] - 1
    assert read_tags(str(folder / "a.flac")).genre == ("Surf Rock",)
    assert (folder / "b.ogg").read_bytes() == before[folder / "b.ogg"]
    undone = client.post(f"changes/{result['change']}/undo").json()
    assert undone["complete"]
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_one_job_of_a_kind_at_a_time_and_of_a_folder_that_is_there(world):
    client, folder, _ = world
    first = client.post("index", json={"folder": str(folder)}).json()
    second = client.post("index", json={"folder": str(folder)})
    assert second.status_code == 409
    assert second.json()["error"]["code"] == "conflict"
    stopped = client.post(f"jobs/{first['id']}/stop")
    assert stopped.status_code == 200
    assert finished(client, first)["state"] in ("stopped", "done")
    answer = client.post("index", json={"folder": str(folder / "nowhere")})
    assert answer.status_code == 400
    assert answer.json()["error"]["field"] == "folder"


def test_a_job_that_is_stopped_before_it_has_begun_is_stopped(monkeypatch):
    """The word to stop may come as soon as the process listens."""

    def stop_at_once(pipe):
        raise KeyboardInterrupt

    monkeypatch.setattr(jobs, "_listen_for_stop", stop_at_once)
    ours, theirs = Pipe()
    jobs.work("index", "nowhere.db", {}, theirs)
    assert ours.recv() == ("stopped", None)


def test_a_failure_does_not_end_the_learning(monkeypatch):
    calls, learnt, failed = [], threading.Event(), threading.Event()

    def learn():
        calls.append("learn")
        if len(calls) == 1:
            raise OSError("the disk is full")
        return SimpleNamespace(refreshed=["rock"], n_tracks=1)

    monkeypatch.setattr(service_module.log, "exception", lambda text: failed.set())
    library = SimpleNamespace(learn=learn, improvement=lambda: None)
    service = SimpleNamespace(
        closing=threading.Event(),
        library=lambda: library,
        events=SimpleNamespace(tell=lambda event, what: learnt.set()),
    )
    learner = service_module.Learner(service)
    learner.learn()
    assert failed.wait(10)
    learner.learn()
    assert learnt.wait(10)
    service.closing.set()
    learner.close()
    assert len(calls) == 2
