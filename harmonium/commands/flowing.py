"""A list of short texts that is broken between them, and not within one."""

from collections.abc import Iterable, Sequence

from rich.console import Console, ConsoleOptions
from rich.measure import Measurement
from rich.text import Text

BETWEEN = ", "


class Flow:
    """Texts with commas between them, as many to a line as there is room for."""

    def __init__(self, pieces: Sequence[Text]) -> None:
        self.pieces = pieces

    def lines(self, width: int) -> list[Text]:
        """The lines; one is longer than the width only where a single piece is."""
        found: list[Text] = []
        for number, piece in enumerate(self.pieces):
            last = number == len(self.pieces) - 1
            whole = piece.copy() if last else Text.assemble(piece, BETWEEN.rstrip())
            if found and found[-1].cell_len + 1 + whole.cell_len <= width:
                found[-1] = Text.assemble(found[-1], " ", whole)
            else:
                found.append(whole)
        return found

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterable[Text]:
        yield from self.lines(options.max_width)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        longest = max((piece.cell_len + 1 for piece in self.pieces), default=0)
        total = sum(piece.cell_len + len(BETWEEN) for piece in self.pieces)
        return Measurement(longest, max(longest, total)).with_maximum(options.max_width)
