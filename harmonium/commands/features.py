"""`harmonium features` and `extractor`: what can be computed from sound."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from harmonium.commands import IN_PART, options
from harmonium.commands.options import argument, file, value
from harmonium.commands.output import Output
from harmonium.errors import DataError, counted

if TYPE_CHECKING:
    from harmonium.audio.extractors import Extractor


def features(
    paths: list[Path] = argument("PATH", "Music files and folders.", default=...),
    output: Path = file("Table to write: .parquet, .csv or .npz.", "--output", "-o", default=...),
    extractor: str = options.EXTRACTOR,
    seconds: float | None = value("S", "Length of the clip; by default the extractor's."),
    start: float | None = options.START,
    jobs: int | None = options.JOBS,
    engine: str = options.engine("processes"),
    cache: Path | None = options.CACHE,
    no_cache: bool = options.NO_CACHE,
    time_limit: float = options.TIME_LIMIT,
    failures: Path | None = file("Write unreadable files and the reasons to this CSV file."),
    raw: bool = options.RAW,
) -> None:
    """Compute the features of music files as a table.

    Uses all cores. Features are cached by file content, so a second run is fast, even after an
    interruption or if files were renamed. Unreadable files are listed at the end.

    Example: harmonium features ~/Music -o features.parquet
    In Python: harmonium.AudioFeatures().transform(paths)
    """
    from harmonium.audio import extraction
    from harmonium.audio.folders import find_audio
    from harmonium.files import check_writable

    check_writable(output, extraction.OUTPUT_FORMATS)
    if failures is not None:
        check_writable(failures)
    chosen = _extractor(extractor, seconds)
    out = Output()
    with out.errors.status("Looking for music files"):
        found = find_audio(paths)
    if not found.files and not found.unreadable:
        raise DataError(
            "No music files in these folders. Files are found by their endings (.mp3, .flac, .wav "
            "and so on); to use a file with another ending, name it."
        )
    began = time.monotonic()
    folder = options.cache_folder(cache, no_cache)

    def stopped(done: int, total: int) -> str:
        line = f"Stopped after {done:,} of {total:,} files."
        if folder is None:
            return f"{line} Nothing was kept, as there is no cache."
        return f"{line} They are kept in {folder}; the same command continues."

    with out.bar("listening", stopped) as progress:
        result = extraction.extract_files(
            found.files,
            extractor=chosen,
            jobs=jobs,
            engine=engine,
            cache=folder,
            start=start,
            time_limit=time_limit,
            progress=progress,
        )
    failed = [
        extraction.FileFeatures(path=path, reason=reason)
        for path, reason in found.unreadable.items()
    ]
    failed += result.failures
    if failures is not None:
        extraction.write_failures(failures, failed, raw=raw)
    reasons = [(file.path, file.reason) for file in failed]
    out.failures(reasons, "; --failures FILE writes all of them")
    if not result.paths:
        raise DataError("None of the files could be read; nothing was written.")
    extraction.write_features(output, result, raw=raw)
    n_features = result.features.shape[1]
    parts = [f"{counted(len(result.paths), 'file')}, {n_features:,} features each: {output}"]
    if result.n_cached:
        parts.append(f"{result.n_cached:,} from the cache")
    if failed:
        parts.append(f"{len(failed):,} could not be read")
    parts.append(f"{time.monotonic() - began:.1f} s")
    out.say("; ".join(parts))
    raise typer.Exit(IN_PART if failed else 0)


def _extractor(name: str, seconds: float | None) -> Extractor:
    """The extractor, perhaps with clips of another length."""
    from harmonium.audio.extractors import get_extractor

    chosen = get_extractor(name)
    if seconds is None:
        return chosen
    if chosen.windows is not None:
        raise DataError(
            f"--seconds is for extractors with one clip; '{name}' sets its own windows."
        )
    return replace(chosen, seconds=seconds)


extractor = typer.Typer()


@extractor.command("list")
def list_extractors(as_json: bool = options.JSON) -> None:
    """List the feature extractors: how good and how fast.

    AUC: the mean over the nine emotions of Emotify, by logistic regression in five folds. ms:
    milliseconds for a clip of 15 s on one core, including decoding. Both were measured once, on one
    machine.

    Example: harmonium extractor list
    In Python: harmonium.audio.available_extractors()
    """
    from harmonium.audio.extractors import DEFAULT, available_extractors, get_extractor

    out = Output(as_json)
    records = []
    rows = []
    for name in available_extractors():
        extractor = get_extractor(name)
        records.append(
            {
                "name": name,
                "features": len(extractor.feature_names),
                "heads": len(extractor.head_names),
                "auc": extractor.auc,
                "milliseconds": extractor.milliseconds,
                "summary": extractor.summary,
            }
        )
        auc = "-" if extractor.auc is None else f"{extractor.auc:.3f}"
        ms = "-" if extractor.milliseconds is None else f"{extractor.milliseconds:.0f}"
        rows.append((name, len(extractor.feature_names), auc, ms, extractor.summary))
    out.json(records)
    out.table(("Name", ">Numbers", ">AUC", ">ms", "Description"), rows)
    out.hint(f"A new library is indexed with {DEFAULT}.")
