"""The commands, a module each; and the codes that they end with besides 0 (docs/cli.md)."""

IN_PART = 1
"""Some files or rows could not be used, and are listed; the others are done."""
NOTHING_DONE = 2
"""Wrong usage or bad input."""
INTERRUPTED = 130
"""By Ctrl-C: what was committed stays, and the same command goes on."""
NOBODY_READS = 141
"""What the output goes to was closed, as by `| head`; the shell's number for that."""


def exit_code(n_done: int, n_failed: int) -> int:
    """The code of a command by how many things it did, and how many it could not do."""
    if not n_failed:
        return 0
    return IN_PART if n_done else NOTHING_DONE
