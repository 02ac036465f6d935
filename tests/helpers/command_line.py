"""Running commands in this process."""

from typer.testing import CliRunner

from harmonium.cli import app


def run(*arguments, **options):
    options = {"catch_exceptions": False} | options
    return CliRunner().invoke(app, [str(argument) for argument in arguments], **options)
