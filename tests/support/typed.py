"""The command line, as a user types it."""

from typer.testing import CliRunner

from fedbandit_envs.cli import app


def call(*words, columns=200):
    env = {"COLUMNS": str(columns), "TERM": "dumb"}
    return CliRunner().invoke(app, [str(word) for word in words], env=env)


def said(result):
    """What a command has printed, without frames and line breaks."""
    return " ".join(result.output.replace("│", " ").split())


def assert_explained(result, message, exit_code=2):
    """A message, an exit code and no traceback."""
    assert result.exit_code == exit_code, result.output
    assert isinstance(result.exception, SystemExit)
    assert message in said(result)
