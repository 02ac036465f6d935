"""Starting, watching and ending processes in tests, without assumptions about time."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from places import HELPERS

PATIENCE = 120  # seconds; only ever used up when something is broken


def wait_until(condition, what):
    """Poll until the condition holds, and return its value."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(0.02)
    raise AssertionError(f"waited {PATIENCE} s in vain for: {what}")


def is_running(pid):
    """Whether there is such a process; one that has ended but was not asked how is not."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"


def start(*arguments, packages=(), **options):
    """A Python process in a session of its own, as a terminal would start it.

    It can import the tests' modules, and what is in the folders ``packages``.
    """
    paths = [HELPERS, *packages, os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, map(str, paths)))}
    environment |= options.pop("env", {})
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
    command = [sys.executable, *map(str, arguments)]
    return subprocess.Popen(command, start_new_session=True, env=environment, **pipes)


def reports_of_killed(*arguments):
    """What killed.py says of each process that it killed."""
    process = start(HELPERS / "killed.py", *arguments)
    said, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors
    return [json.loads(line) for line in said.splitlines()]


def end(process):
    """End a process of `start` and all its children, whatever they do."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=PATIENCE)


def begin_together(processes):
    """Let processes go on that wait for a line, at the same moment; what they said, all well."""
    try:
        for process in processes:
            process.stdin.write("\n")
            process.stdin.flush()
        said = [process.communicate(timeout=PATIENCE) for process in processes]
    finally:
        for process in processes:
            if process.poll() is None:
                end(process)
    for process, (_, errors) in zip(processes, said, strict=True):
        assert process.returncode == 0, errors
    return said
