"""`harmonium features`: the features of many files, as a table."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import ProgressColumn, Task
from rich.text import Text

from harmonium.commands import IN_PART, INTERRUPTED
from harmonium.commands.options import (
    CacheOption,
    EngineOption,
    ExtractorOption,
    JobsOption,
    NoCacheOption,
    StartOption,
    TimeLimitOption,
    cache_folder,
    file_option,
)
from harmonium.commands.screen import bar, say, show_rows
from harmonium.errors import counted

if TYPE_CHECKING:
    from harmonium.audio.extraction import Extraction, FileFeatures

MOST_SHOWN = 30
"""Files that the table of failures shows."""


def features(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH", help="Music files, and folders to search with all their subfolders."
        ),
    ],
    output: Annotated[
        Path, file_option("The table to write: .parquet, .csv or .npz.", "--output", "-o")
    ],
    extractor: ExtractorOption = "paper",
    seconds: Annotated[
        float | None,
        typer.Option(metavar="S", help="Length of the clip; by default the extractor's."),
    ] = None,
    start: StartOption = None,
    jobs: JobsOption = None,
    engine: EngineOption = "processes",
    cache: CacheOption = None,
    no_cache: NoCacheOption = False,
    time_limit: TimeLimitOption = 300,
    failures: Annotated[
        Path | None,
        file_option("Write the files that could not be used to this CSV file, with the reasons."),
    ] = None,
) -> None:
    """Compute the features of music files, and write them as a table.

    Works on all cores. Results are kept by the content of the files, and
    a second run uses them, even after an interruption or when files were
    renamed. Files that cannot be used are listed at
    the end.

    [dim]Example:[/dim]  harmonium features ~/Music -o features.parquet

    [dim]Exit codes:[/dim]  0 all files are in the table; 1 some could not be
    used, the others are in it; 2 nothing was written; 130 interrupted.
    """
    from harmonium.audio.audio_files import find_audio
    from harmonium.audio.extraction import (
        FileFeatures,
        check_output,
        write_failures,
        write_features,
    )
    from harmonium.audio.extractors import get_extractor
    from harmonium.errors import DataError
    from harmonium.files import check_writable

    check_output(output)
    if failures is not None:
        check_writable(failures)
    chosen = get_extractor(extractor)
    if seconds is not None:
        if chosen.windows is not None:
            raise DataError(
                f"--seconds is for extractors of one clip; '{extractor}' has windows of its own."
            )
        chosen = replace(chosen, seconds=seconds)
    with Console(stderr=True).status("Looking for music files"):
        found = find_audio(paths)
    if not found.files and not found.unreadable:
        raise DataError(
            "There is no music file in the folders named. Files are found by their endings "
            "(.mp3, .flac, .wav and so on); name a file with another ending itself."
        )
    began = time.monotonic()
    extraction = _extract(
        found.files,
        extractor=chosen,
        jobs=jobs,
        engine=engine,
        cache=cache_folder(cache, no_cache),
        start=start,
        time_limit=time_limit,
    )
    unlisted = (FileFeatures(path, reason=why) for path, why in found.unreadable.items())
    failed = [*unlisted, *extraction.failures]
    if failures is not None:
        write_failures(failures, failed)
    _show_failures(failed)
    if not extraction.paths:
        raise DataError("None of the files could be used; nothing was written.")
    write_features(output, extraction)
    n_features = extraction.features.shape[1]
    parts = [f"{counted(len(extraction.paths), 'file')}, {n_features:,} features each: {output}"]
    if extraction.n_cached:
        parts.append(f"{extraction.n_cached:,} from the cache")
    if failed:
        parts.append(f"{len(failed):,} could not be used")
    say(Console(), f"{'; '.join(parts)}; {time.monotonic() - began:.1f} s")
    raise typer.Exit(IN_PART if failed else 0)


def _extract(files: list[str], *, cache: Path | None, **options: Any) -> Extraction:
    """The features of the files, with a progress bar."""
    from harmonium.audio.extraction import extract_files

    done = 0
    try:
        with bar(Console(stderr=True), "listening", _Rate()) as show:

            def progress(n: int, total: int) -> None:
                nonlocal done
                done = n
                show(n, total)

            return extract_files(files, cache=cache, progress=progress, **options)
    except KeyboardInterrupt:
        if cache is None:
            kept = "Nothing was kept, as there is no cache."
        else:
            kept = f"They are kept in {cache}; the same command goes on from there."
        say(Console(stderr=True), f"Stopped after {done:,} of {len(files):,} files. {kept}")
        raise typer.Exit(INTERRUPTED) from None


class _Rate(ProgressColumn):
    """Files per second."""

    def render(self, task: Task) -> Text:
        return Text("" if task.speed is None else f"{task.speed:,.0f} files/s")


def _show_failures(failed: list[FileFeatures]) -> None:
    """The files that could not be used: a table for people, a line each for programs."""
    console = Console(stderr=True)
    if not console.is_terminal:
        for failure in failed:
            say(console, f"{failure.path}: {failure.reason}")
    elif failed:
        rows = [(failure.path, failure.reason) for failure in failed[:MOST_SHOWN]]
        title = f"{len(failed):,} could not be used"
        show_rows(console, ("File", "Reason"), rows, title=title)
    if console.is_terminal and len(failed) > MOST_SHOWN:
        more = f"and {len(failed) - MOST_SHOWN:,} more; --failures FILE writes all of them"
        say(console, Text(more, style="dim"))
