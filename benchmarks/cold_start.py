"""How long commands take from a cold start: what a person waits who types one.

    python benchmarks/cold_start.py                              # --help alone
    python benchmarks/cold_start.py --library demo/library.db --file "demo/audio/…/….wav"

Each command is called many times in a row, each call a new process; the disk's cache is warm. The
Python that does nothing is called in turn with them, for comparison. `tag` needs a library with a
trained model, such as `harmonium demo` leaves; its first call may compile programs, which are
kept for the next, and is reported by itself.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import report

HARMONIUM = "import sys; sys.argv[0] = 'harmonium'; from harmonium.cli import main; main()"


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-c", HARMONIUM, *arguments]


class Took(NamedTuple):
    """Seconds of a call: on the clock, and of processors, which a busy machine changes less."""

    clock: float
    processors: float


def seconds(call: list[str]) -> Took:
    began, before = time.perf_counter(), os.times()
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    took, after = time.perf_counter() - began, os.times()
    if done.returncode:
        raise SystemExit(f"{' '.join(call[3:])} failed:\n{done.stderr}")
    used = after.children_user + after.children_system
    return Took(took, used - before.children_user - before.children_system)


def modules_after(call: list[str]) -> int:
    """How many modules a command has imported when it ends."""
    code = call[2].replace("main()", "import atexit; atexit.register(lambda: ") + (
        "sys.stderr.write(f'\\n{len(sys.modules)}')); main()"
    )
    done = subprocess.run([*call[:2], code, *call[3:]], capture_output=True, text=True, check=False)
    return int(done.stderr.rsplit("\n", 1)[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--library", type=Path)
    parser.add_argument("--file", type=Path, help="a file of music to tag")
    parser.add_argument("--json", type=Path, help="where the results go")
    options = parser.parse_args()
    calls = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "python -c 'import typer.rich_utils'": [sys.executable, "-c", "import typer.rich_utils"],
        "harmonium --help": command("--help"),
        "harmonium features --help": command("features", "--help"),
    }
    if options.library and options.file:
        tag = command("tag", str(options.file), "--library", str(options.library))
        print(f"harmonium tag FILE, first call: {seconds(tag).clock:.2f} s")
        calls["harmonium tag FILE"] = tag
    found: dict[str, list[Took]] = {name: [] for name in calls}
    for _ in range(options.runs):
        for name, call in calls.items():
            found[name].append(seconds(call))
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, {options.runs} runs each\n")
    print(
        "| command | median s | 10 % | 90 % | of processors | modules |\n|---|---|---|---|---|---|"
    )
    rows = []
    for name, times in found.items():
        tenths = statistics.quantiles([took.clock for took in times], n=10)
        median = statistics.median(took.clock for took in times)
        used = statistics.median(took.processors for took in times)
        modules = f"{modules_after(calls[name]):,}" if name.startswith("harmonium") else ""
        print(
            f"| `{name}` | {median:.3f} | {tenths[0]:.3f} | {tenths[-1]:.3f} | {used:.3f} "
            f"| {modules} |"
        )
        columns = ("median", median), ("10 % quantile", tenths[0]), ("90 % quantile", tenths[-1])
        for column, value in (*columns, ("processor time", used)):
            rows.append(report.row(f"`{name}`", column, value))
    report.write(options.json, rows)


if __name__ == "__main__":
    main()
