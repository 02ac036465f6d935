"""The commands `harmonium data list`, `show` and `download`."""

import http.server
import json
import re
import socket
import threading
from functools import partial

import pytest
from command_line import output_of
from dataset_samples import write_samples

from harmonium.data import datasets
from harmonium.data.datasets.loaders import SIZES
from harmonium.errors import DataError, DatasetNotFoundError
from harmonium.files import user_data_folder

STYLES = r"\x1b\[[\d;]*m"


@pytest.fixture
def samples(tmp_path, monkeypatch):
    monkeypatch.delenv("HARMONIUM_DATA", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("COLUMNS", "80")
    return write_samples(tmp_path / "data")


run = partial(output_of, "data")


class TestList:
    def test_every_dataset_and_where_it_is(self, samples):
        lines = run("list", "--folder", samples).splitlines()
        found = {line.split()[0]: line for line in lines if line}
        assert {*datasets.names(), "mulan:toy"} <= found.keys()
        assert found["hetrec"] == "hetrec\t12523\t9749\t-\t186478\tno\thetrec-lastfm"
        assert found["emotify"] == "emotify\t400\t9\t-\t16184\tyes\temotify"
        assert found["mulan:yeast"].endswith("not found")
        listed = {one["name"]: one for one in json.loads(run("list", "--json", "-f", samples))}
        assert listed["emotify"] == {
            **{"name": "emotify", "title": datasets.info("emotify").title, "items": 400, "tags": 9},
            **{"features": None, "triples": 16184, "audio": True},
            "folder": str(samples / "emotify"),
        }
        assert listed["mulan:yeast"]["folder"] is None

    def test_on_a_terminal(self, samples, monkeypatch):
        monkeypatch.setenv("FORCE_COLOR", "1")
        lines = re.sub(STYLES, "", run("list")).splitlines()  # a path stays in one piece
        assert all(len(line) <= 80 for line in lines if not line.startswith("Searched: "))
        output = run("list")
        assert output.count("not found") == len(datasets.names())
        assert "harmonium data show mturk" in output


class TestShow:
    def test_figures_groups_splits_and_unknown_labels(self, samples):
        facts = json.loads(run("show", "emotify", "--json", "-f", samples))
        assert (facts["items"], facts["tags"], facts["features"]) == (5, 9, None)
        assert (facts["triples"], facts["users"]) == (13, 5)
        assert facts["listeners_per_item"] == [1, 4]
        assert facts["labels"] == {"positive": 10, "negative": 35, "unknown": 0}
        assert facts["top_tags"][0] == {"tag": "joyful activation", "positive": 2}
        assert facts["audio_files"] == 5
        assert facts["folder"] == str(samples / "emotify")
        assert "3 tracks, 2 artists" in run("show", "majorminer", "-f", samples)
        assert "train 2, test 1" in run("show", "mulan:toy", "-f", samples)
        facts = json.loads(run("show", "hetrec", "--json", "-t", 1, "-f", samples))
        Y = datasets.load("hetrec", samples).labels().values
        assert [*facts["labels"].values()] == [(Y == 1).sum(), (Y == 0).sum(), (Y != Y).sum()]
        assert facts["labels"]["unknown"] > 0
        assert facts["top_tags"] == [{"tag": "trip-hop", "positive": 1}]


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves a folder; a file named in `cut` breaks off after half of its bytes."""

    cut = ""

    def log_message(self, *arguments):
        pass

    def copyfile(self, source, outputfile):
        content = source.read()
        short = self.cut and self.path.endswith(self.cut)
        outputfile.write(content[: len(content) // 2] if short else content)


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A mirror of the paper's files, in their published sizes: (address, folder)."""
    for variable in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(Handler, "cut", "")
    folder = tmp_path / "mirror"
    for name, splits in SIZES.items():
        (folder / name).mkdir(parents=True)
        for split, rows in splits.items():
            lines = (f"{row % 95} {row % 389 + 1}:1\n" for row in range(rows))
            (folder / name / f"{name}_{split}.libsvm").write_text("".join(lines))
    handler = partial(Handler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as httpd:
        thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{httpd.server_port}", folder
        httpd.shutdown()
        thread.join()


@pytest.fixture
def target(tmp_path):
    return tmp_path / "fetched"


@pytest.fixture
def fetch(samples, server, target):
    """Downloads mturk, or another dataset, from the mirror."""
    return lambda *options, name="mturk", url=server[0]: run(
        "download", name, "--url", url, "-f", target, *options
    )


def files_in(folder):
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


class TestFetch:
    @pytest.mark.parametrize("name", ["mturk", "majmin"])
    def test_fetch_then_load(self, fetch, target, name):
        assert "3 files downloaded" in fetch(name=name)
        files = sorted(f"{name}_{split}.libsvm" for split in SIZES[name])
        assert files_in(target) == files
        data = datasets.load(name, target)
        assert {split: len(rows) for split, rows in data.splits.items()} == SIZES[name]

    def test_it_goes_to_harmonium_data_or_the_user_s_folder(
        self, samples, server, monkeypatch, tmp_path
    ):
        monkeypatch.setenv("HARMONIUM_FETCH_URL", server[0] + "/")
        run("download", "mturk")
        assert datasets.is_found(datasets.info("mturk")) == user_data_folder() / "mturk"
        monkeypatch.setenv("HARMONIUM_DATA", str(tmp_path / "named"))
        run("download", "mturk")
        assert len(files_in(tmp_path / "named" / "mturk")) == 3

    def test_files_that_are_there_stay_unless_forced(self, fetch, server, target):
        fetch()
        (server[1] / "mturk" / "mturk_test.libsvm").unlink()
        assert "Already downloaded" in fetch()
        with pytest.raises(DatasetNotFoundError, match="404"):
            fetch("--force")
        assert len(files_in(target)) == 3

    def test_a_download_that_breaks_off_leaves_nothing_behind(self, fetch, target, monkeypatch):
        monkeypatch.setattr(Handler, "cut", "mturk_valid.libsvm")
        with pytest.raises(DatasetNotFoundError, match=r"mturk_valid\.libsvm could not be"):
            fetch()
        assert files_in(target) == ["mturk_train.libsvm"]

    @pytest.mark.parametrize(
        ("content", "word"),
        [("0 1:1\n", "1 rows where .* 597"), ("<html>Log in</html>\n", "not what was published")],
    )
    def test_another_file_is_refused(self, fetch, server, target, content, word):
        (server[1] / "mturk" / "mturk_train.libsvm").write_text(content)
        with pytest.raises(DataError, match=word):
            fetch()
        assert files_in(target) == []

    def test_without_a_network(self, fetch, target):
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            with pytest.raises(DatasetNotFoundError, match="Connection refused") as caught:
                fetch(url=f"http://127.0.0.1:{unused.getsockname()[1]}")
        assert str(target / "mturk") in str(caught.value)

    def test_a_folder_that_cannot_be_written(self, fetch, target):
        target.touch()
        with pytest.raises(DatasetNotFoundError, match="written to"):
            fetch()

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"name": "majorminer"}, "Only mturk and majmin .* got 'majorminer'"),
            ({"url": "ftp://example.org"}, "must begin with http:// or https://"),
        ],
    )
    def test_what_cannot_be_fetched(self, fetch, options, message):
        with pytest.raises(DataError, match=message):
            fetch(**options)
