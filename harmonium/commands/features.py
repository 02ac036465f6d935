"""`harmonium features` and `extractor`: what can be computed from sound."""

import time
from dataclasses import replace
from pathlib import Path

import typer

from harmonium.commands import IN_PART, options
from harmonium.commands.options import argument, file, value
from harmonium.commands.output import Output
from harmonium.errors import DataError, counted


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
) -> None:
    """Compute the features of music files as a table.

    Uses all cores. Features are cached by file content, so a second run is fast, even after an
    interruption or if files were renamed. Unreadable files are listed at the end.

    Example: harmonium features ~/Music -o features.parquet
    In Python: harmonium.AudioFeatures().transform(paths)
    """
    from harmonium.audio import extraction
    from harmonium.audio.decoding import find_audio
    from harmonium.audio.extractors import get_extractor
    from harmonium.files import check_writable

    check_writable(output, extraction.OUTPUT_FORMATS)
    if failures is not None:
        check_writable(failures)
    chosen = get_extractor(extractor)
    if seconds is not None:
        if chosen.windows is not None:
            raise DataError(
                f"--seconds is for extractors with one clip; '{extractor}' sets its own windows."
            )
        chosen = replace(chosen, seconds=seconds)
    out = Output()
    with out.errors.status("Looking for music files"):
        files, unreadable, _ = find_audio(paths)
    if not files and not unreadable:
        raise DataError(
            "No music files in these folders. Files are found by their endings (.mp3, .flac, .wav "
            "and so on); to use a file with another ending, name it."
        )
    began, kept = time.monotonic(), options.cache_folder(cache, no_cache)

    def stopped(done: int, total: int) -> str:
        kept_in = f"They are kept in {kept}; the same command continues."
        rest = "Nothing was kept, as there is no cache." if kept is None else kept_in
        return f"Stopped after {done:,} of {total:,} files. {rest}"

    with out.bar("listening", stopped) as progress:
        done = extraction.extract_files(
            files,
            extractor=chosen,
            jobs=jobs,
            engine=engine,
            cache=kept,
            start=start,
            time_limit=time_limit,
            progress=progress,
        )
    unlisted = (extraction.FileFeatures(path, reason=why) for path, why in unreadable.items())
    failed = [*unlisted, *done.failures]
    if failures is not None:
        extraction.write_failures(failures, failed)
    reasons = ((one.path, one.reason or "") for one in failed)
    out.failures(reasons, "; --failures FILE writes all of them")
    if not done.paths:
        raise DataError("None of the files could be read; nothing was written.")
    extraction.write_features(output, done)
    n_features = done.features.shape[1]
    parts = [f"{counted(len(done.paths), 'file')}, {n_features:,} features each: {output}"]
    parts += [f"{done.n_cached:,} from the cache"] if done.n_cached else []
    parts += [f"{len(failed):,} could not be read"] if failed else []
    out.say(f"{'; '.join(parts)}; {time.monotonic() - began:.1f} s")
    raise typer.Exit(IN_PART if failed else 0)


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
    found = [(name, get_extractor(name)) for name in available_extractors()]
    records = [
        {"name": name, "features": len(one.feature_names), "heads": len(one.head_names)}
        | {key: getattr(one, key) for key in ("auc", "milliseconds", "summary")}
        for name, one in found
    ]
    out.json(records)
    rows = []
    for name, one in found:
        auc = "-" if one.auc is None else f"{one.auc:.3f}"
        ms = "-" if one.milliseconds is None else f"{one.milliseconds:.0f}"
        rows.append((name, len(one.feature_names), auc, ms, one.summary))
    out.table(("Name", ">Numbers", ">AUC", ">ms", "Description"), rows)
    out.hint(f"A new library is indexed with {DEFAULT}.")
