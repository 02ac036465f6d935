"""docs/extraction.md: its examples run, and nothing of the command is missing."""

import doctest
import re

import pytest
import soundfile
import typer
from places import DOCS
from signals import RATE, music

from harmonium import cli
from harmonium.audio import audio_files, cache, extraction
from harmonium.commands import IN_PART, INTERRUPTED, NOTHING_DONE
from harmonium.engine import interface, processes, runner

PAGE = (DOCS / "extraction.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S)
COMMAND = typer.main.get_command(cli.app).commands["features"]


def test_the_files_example_prints_what_it_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for seed, name in enumerate(("a.wav", "b.flac")):
        soundfile.write(name, music(1.5, seed=seed), RATE)
    (example,) = (text for text in EXAMPLES if "extract_files" in text)
    exec(compile(example, "extraction.md", "exec"), {"__name__": "__main__"})
    said = re.findall(r"^ *print\(.*?\)  # (.*)$", example, re.M)
    assert len(said) == 2
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == said
    assert lines[2:] == ["nothing.mp3 cannot be opened: No such file or directory."]


def test_the_extractor_example_is_one():
    (example,) = (text for text in EXAMPLES if "my_package" in text)
    names: dict = {}
    exec(example, names)
    sound = music(1.0)
    assert names["extractor"](sound, RATE).shape == (2,)


def test_the_engine_example_prints_what_it_says(capsys):
    (example,) = (text for text in EXAMPLES if "completed" in text)
    exec(example, {})
    assert capsys.readouterr().out == "-3 3\n-2 2\n-1 1\n"


def test_every_example_is_run():
    assert len(EXAMPLES) == 3


@pytest.mark.parametrize("option", [p.opts[0] for p in COMMAND.params if p.opts[0][0] == "-"])
def test_every_option_is_described(option):
    if option != "--help":
        assert re.search(rf"^\|.*`{option}`.*\|", PAGE, re.M)


def test_exit_codes_are_those_of_the_command():
    codes = {int(code) for code in re.findall(r"^\| (\d+) \|", PAGE, re.M)}
    assert codes == {0, IN_PART, NOTHING_DONE, INTERRUPTED}


@pytest.mark.parametrize(
    "module",
    [audio_files, cache, extraction, interface, processes, runner],
    ids=lambda module: module.__name__,
)
def test_the_examples_of_the_docstrings_run(module):
    assert doctest.testmod(module).failed == 0
