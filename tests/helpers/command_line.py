"""Running commands in this process."""

import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from types import SimpleNamespace
from unittest import mock

import pytest
from typer.testing import CliRunner

from harmonium.cli import app, main

SAYS_WHAT_IS_LOADED = """
import sys, harmonium.cli
try: harmonium.cli.main()
finally: sys.stderr.write(' '.join(sys.modules))
"""


def run(*arguments, **options):
    options = {"catch_exceptions": False} | options
    return CliRunner().invoke(app, [str(argument) for argument in arguments], **options)


def output_of(*arguments):
    """What a command prints that succeeds."""
    done = run(*arguments)
    assert done.exit_code == 0, done.output
    return done.output


def run_main(*arguments):
    """As from a shell: expected errors are messages on stderr, and an exit code.

    Ctrl-C does not end this process, as it does a program that has loaded JAX.
    """
    line = ["harmonium", *map(str, arguments)]
    with (
        redirect_stdout(StringIO()) as out,
        redirect_stderr(StringIO()) as err,
        mock.patch.object(sys, "argv", line),
        mock.patch.object(os, "_exit"),
        pytest.raises(SystemExit) as end,
    ):
        main()
    code = end.value.code or 0
    return SimpleNamespace(exit_code=code, stdout=out.getvalue(), stderr=err.getvalue())
