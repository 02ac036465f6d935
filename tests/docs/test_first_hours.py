"""The walks of docs/first-hour work as they are typed, except where a page says "not run".

Commands run in this process, on a few generated files. Training tries one setting instead of
several, for ten epochs.
"""

import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import heard_library
import pytest
from command_line import run_main
from places import DOCS

from harmonium.audio import extractors
from harmonium.library.filetags import apply_change, plan_write
from harmonium.library.learning import fitting

PAGES = sorted((DOCS / "first-hour").glob("*.md"))
BLOCK = re.compile(
    r"^(?:<!-- not run: (?P<why>[^\n]+) -->\n)?```(?P<kind>\w+)\n(?P<code>.*?)^```", re.M | re.S
)


@pytest.fixture
def home(tmp_path, data_home, monkeypatch) -> Iterator[Path]:
    """A home with some music in it."""
    for name, value in {"HOME": tmp_path, "HARMONIUM_CACHE": tmp_path / "cache"}.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(fitting, "usual_epochs", lambda *_: 10)
    monkeypatch.setattr(heard_library, "N_TRACKS", 24)
    with heard_library.trained_quickly(n_hidden=5):
        yield tmp_path


def write_music(folder: Path) -> None:
    paths, truth = heard_library.write_music(folder)
    for path, tags in zip(paths, truth, strict=True):
        apply_change(plan_write(path, ["Rock" if tags[2] else "Jazz"]))
    shutil.copy(paths[-1], folder / "song.flac")


def type_in(line: str) -> None:
    """Run a command as a shell would."""
    program, *arguments = [str(Path(word).expanduser()) for word in shlex.split(line)]
    assert program == "harmonium", line
    done = run_main(*arguments)
    assert done.exit_code == 0, f"{line}\n{done.stdout}{done.stderr}"


@pytest.mark.long
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_walk_works_as_it_is_typed(page, home, capsys, monkeypatch):
    monkeypatch.setattr(extractors, "_registered", dict(extractors._registered))
    if page.stem == "collector":
        write_music(home / "Music")
    names: dict = {"__name__": "__main__"}
    for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
        if block["why"]:
            continue
        if block["kind"] == "console":
            for line in block["code"].splitlines():
                type_in(line.removeprefix("$ "))
            continue
        assert block["kind"] == "python"
        exec(compile(block["code"], str(page), "exec"), names)
        printed = capsys.readouterr().out.splitlines()
        said = re.findall(r"^ *print\(.*\)(?:  # (.*))?$", block["code"], re.M)
        assert len(printed) == len(said)
        assert [p for p, s in zip(printed, said, strict=True) if s] == [s for s in said if s]


def test_every_block_is_run_or_says_why_not():
    assert [page.stem for page in PAGES] == ["collector", "researcher"]
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert len(BLOCK.findall(text)) == text.count("\n```") // 2
        for block in BLOCK.finditer(text):
            assert block["kind"] in ("python", "console")
            if block["kind"] == "console":
                assert all(line.startswith("$ ") for line in block["code"].splitlines())
