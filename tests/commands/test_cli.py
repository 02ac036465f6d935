"""The command line as a whole: its help, its page, exit codes, completion, and what it imports."""

import os
import re
import runpy
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from command_line import SAYS_WHAT_IS_LOADED
from places import DOCS

from harmonium.cli import Commands, imported_command

MAKER = runpy.run_path(str(DOCS / "cli.py"))
commands, page = MAKER["commands"], MAKER["page"]
MAIN = "from harmonium.cli import main; main()"
AS_HARMONIUM = f"import sys; sys.argv[0] = 'harmonium'\n{MAIN}"
HEAVY = {"jax", "numpy", "polars", "scipy", "sklearn", "sqlalchemy", "mutagen", "av"}

ALL = dict(commands())


def call(*arguments, code=MAIN, **environment):
    command = [sys.executable, "-c", code, *arguments]
    environment = {**os.environ, "COLUMNS": "100", **environment}
    return subprocess.run(command, capture_output=True, text=True, env=environment)


@pytest.mark.parametrize("name", ALL)
def test_every_command_has_an_example(name):
    (example, *_) = re.findall(r"\[dim\]Examples?:\[/dim\]\s+(.*)", ALL[name].help)
    assert name in example


@pytest.mark.parametrize("name", ALL)
def test_every_option_has_a_help(name):
    without = [p.name for p in ALL[name].params if not p.help and not getattr(p, "hidden", False)]
    assert without == []


@pytest.mark.parametrize(("letter", "metavar"), [("-n", "N"), ("-p", "P"), ("-L", "PLACE")])
def test_a_letter_means_one_thing_in_all_commands(letter, metavar):
    options = [
        option for command in ALL.values() for option in command.params if letter in option.opts
    ]
    assert {option.metavar for option in options} == {metavar}
    assert len(options) > 1


def test_it_is_a_module_too():
    command = [sys.executable, "-m", "harmonium", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "python -m harmonium [OPTIONS]" in done.stdout


@pytest.mark.parametrize("name", Commands.listed)
def test_the_list_says_what_the_command_says(name):
    summary, *_ = imported_command(name).help.split("\n\n")
    assert Commands.listed[name].summary == summary.replace("\n", " ")


def test_the_page_of_commands_is_current():
    assert (DOCS / "cli.md").read_text(encoding="utf-8") == page(), (
        "docs/cli.md is not current: python docs/cli.py > docs/cli.md"
    )


def test_help_lists_every_command():
    done = call("--help")
    assert done.returncode == 0
    shown = " ".join(done.stdout.split())
    assert "COMMAND [ARGS]" in shown
    for name, listed in Commands.listed.items():
        assert name in shown
        assert listed.summary.split(",")[0].split()[0] in shown


def test_help_imports_no_command():
    done = call("--help", code=SAYS_WHAT_IS_LOADED)
    loaded = done.stderr.split()
    assert not HEAVY & {name.partition(".")[0] for name in loaded}
    own = {name for name in loaded if name.startswith("harmonium.")}
    assert own == {f"harmonium.{name}" for name in ("cli", "errors", "commands", "lazy")}


def program(body):
    """A program whose command line is a function with this body."""
    return f"import os, sys\nimport harmonium.cli as c\ndef app():\n    {body}\nc.app = app\n{MAIN}"


def command(body):
    """A program whose command `doctor` has this body."""
    start = "import harmonium.commands.index as module, harmonium.commands.output as o"
    return f"{start}\ndef doctor():\n    {body}\nmodule.doctor = doctor\n{MAIN}"


@pytest.mark.parametrize(
    ("body", "environment", "expected"),
    [
        ("raise KeyboardInterrupt", {}, (130, "", "Stopped.\n")),
        (
            'print("before"); raise PermissionError(13, "Permission denied", "/a/file")',
            {},
            (2, "before\n", "Error: Permission denied: /a/file.\n"),
        ),
        (
            'raise c.HarmoniumError("\\x1b[31mred\\nand green")',
            {},
            (2, "", "Error: \\x1b[31mred\nand green\n"),
        ),
        ('print("Björk")', {"PYTHONIOENCODING": "ascii"}, (0, "Bj\\xf6rk\n", "")),
        (
            "r, w = os.pipe(); os.dup2(w, 1); os.close(w); print('late'); os.close(r); sys.exit(0)",
            {"PYTHONUNBUFFERED": ""},
            (141, "", ""),
        ),
    ],
    ids=["ctrl-c", "no permission", "control characters", "letters", "late reader"],
)
def test_the_end_of_a_program(body, environment, expected):
    done = call(code=program(body), **environment)
    assert (done.returncode, done.stdout, done.stderr) == expected


class TestExitCodes:
    def test_an_expected_error_is_one_message(self, tmp_path):
        done = call("tag", str(tmp_path / "none.wav"))
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("Error: ")
        assert "Traceback" not in done.stderr

    def test_an_unknown_command_is_one_message(self):
        done = call("featurs")
        assert done.returncode == 2
        assert "Did you mean 'features'?" in done.stderr

    def test_a_folder_that_does_not_exist_is_one_message(self, tmp_path):
        done = call(str(tmp_path / "Musci"))
        message = " ".join(done.stderr.split())
        assert (done.returncode, message.count("is not a folder")) == (2, 1)

    def test_an_unexpected_error_is_a_traceback(self):
        done = call(code=program("1 / 0"))
        assert done.returncode == 1
        assert "ZeroDivisionError" in done.stderr

    def test_ctrl_c_in_a_command_is_one_line(self):
        done = call("doctor", code=command("print('before', end=''); raise KeyboardInterrupt"))
        assert (done.returncode, done.stdout, done.stderr) == (130, "before", "Stopped.\n")

    def test_ctrl_c_ends_a_question(self):
        """Though polars lets the reading of an answer go on."""
        code = command("import polars, typer; o.has_reader() and typer.confirm('Sure?')")
        line, terminal = [sys.executable, "-c", code, "doctor"], os.openpty()[1]
        with subprocess.Popen(line, stdin=terminal, stdout=-1, stderr=-1) as asking:
            assert asking.stdout.read(5) == b"Sure?"
            time.sleep(0.2)
            asking.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                asking.wait(timeout=20)
            asking.kill()
            assert asking.stderr.read() == b"\nStopped.\n"
        assert asking.returncode == 130

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
    def test_a_full_disk_is_one_line(self):
        env = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
        command = [sys.executable, "-c", MAIN, "--version"]
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, env=env)
        assert (done.returncode, done.stderr) == (2, b"Error: No space left on device.\n")


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("harmonium fea", ["features"]),
        ("harmonium data ", ["list", "show"]),
        ("harmonium features --out", ["--output"]),
    ],
)
def test_what_bash_offers(typed, offered):
    at = {"COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
    done = call(code=AS_HARMONIUM, _HARMONIUM_COMPLETE="complete_bash", **at)
    assert done.stdout.split() == offered
