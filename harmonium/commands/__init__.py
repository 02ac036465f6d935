"""The commands, thin over `harmonium.Library`, and their exit codes other than 0 (docs/cli.md)."""

IN_PART = 1  # some files or rows could not be used, and are listed; the others are done
NOTHING_DONE = 2  # wrong usage or bad input
INTERRUPTED = 130  # Ctrl-C: what was committed stays, and the same command continues
PIPE_CLOSED = 141  # the reader closed the pipe, as `| head` does; the code that shells use


def exit_code(n_done: int, n_failed: int) -> int:
    """The exit code of a command that did some things and failed at others."""
    if not n_failed:
        return 0
    return IN_PART if n_done else NOTHING_DONE
