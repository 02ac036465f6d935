"""`harmonium tag`: the tags of files, and of the whole library."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import typer
from rich.text import Text

from harmonium.commands import exit_code, options
from harmonium.commands.options import argument, flag, number, probability, value
from harmonium.commands.output import Cell, Output
from harmonium.errors import DataError, counted

if TYPE_CHECKING:
    from harmonium.library import Library
    from harmonium.library.snapshot import TrackTag
    from harmonium.library.store.models import Owner
    from harmonium.library.tagging import TaggedFile

CERTAIN = {"people": "tagged", "given": "as you say"}  # source of a tag → shown as probability


def tag(
    paths: list[str] | None = argument(
        "PATH",
        "Music files and folders, in the library or not; or #NUMBER, or artist - title. "
        "By default all tracks of the library.",
    ),
    library: str | None = options.LIBRARY,
    known: str | None = value(
        "TAGS",
        "Known tags, such as 'rock, guitar, -live'; they help to infer the others.",
        "--known",
        "-k",
    ),
    sound_only: bool = flag("Do not infer tags from people's tags.", "--sound-only"),
    top: int | None = number(
        None,
        "The N most telling tags of each track, however likely; people's tags come first.",
        "--top",
        "-n",
    ),
    min_probability: float | None = probability(
        None,
        "Tags with at least this probability, instead of each tag's threshold.",
        "--min-probability",
        "-p",
    ),
    over_time: str | None = value("TAG", "How likely this tag is over the course of a file."),
    again: bool = flag("Also tag tracks that are tagged already.", "--again"),
    only_own: bool = options.ONLY_OWN,
    only_built_in: bool = options.ONLY_BUILT_IN,
    as_json: bool = options.JSON,
    as_csv: bool = flag("Print CSV: path, tag, probability, source, audio features.", "--csv"),
    raw: bool = options.RAW,
) -> None:
    """Tag files or the whole library.

    For files, people's tags come first and help to infer the others. For the whole library,
    predictions from the sound are stored for search and write; a second run only tags new tracks.
    People's own tags are never changed. Without a trained model, the built-in model tags files,
    with or without a library. Precision: of the held-out tracks with at least that probability, the
    share that have the tag. Audio features, such as energy, are values from 0 to 1.

    Example: harmonium tag song.mp3 --known "rock, -live"
    In Python: library.tag("song.mp3"), library.tag_all(), library.over_time(1, "jazz")
    """
    out = Output(as_json, as_csv)
    owner = options.owner_of(only_own, only_built_in)
    if not paths and known is not None:
        raise DataError("--known needs files: name them.")
    if over_time is not None:
        if not paths or len(paths) > 1:
            raise DataError(f"--over-time needs one file, got {len(paths or [])}.")
        _over_time(out, library, paths[0], over_time)
        return
    if not paths:
        with options.opened(library) as opened:
            _tag_library(out, opened, again=again)
            if out.form in ("json", "csv"):
                _show(out, opened.tagged(owner), top, min_probability, raw=raw)
        return
    _tag_files(
        out,
        library,
        paths,
        known=known,
        sound_only=sound_only,
        owner=owner,
        top=top,
        min_probability=min_probability,
        raw=raw,
    )


def _over_time(out: Output, library: str | None, path: str, tag: str) -> None:
    """How likely a tag is over the course of a file."""
    from harmonium.library.tagging import tags_over_time

    with options.opened_if_any(library) as opened, out.bar("listening") as progress:
        heard = tags_over_time(opened, path, tag, progress)
    ((name, probabilities),) = heard.tags.items()
    rows = list(zip(heard.begins, heard.ends, probabilities, strict=True))
    out.json(heard)
    out.csv(("begin", "end", "probability"), rows)
    cells: list[tuple[Cell, ...]] = []
    for begin, _, likelihood in rows:
        minutes, seconds = divmod(begin, 60)
        bar = "█" * round(30 * likelihood)
        cells.append((f"{int(minutes)}:{seconds:04.1f}", likelihood, bar))
    out.table((">Begin", f">{name}", ""), cells)


def _tag_library(out: Output, library: Library, *, again: bool) -> None:
    """Store predictions for the whole library."""
    from harmonium.library.writing.wanted import count_untagged

    with out.bar("tagging") as progress:
        n_new = library.tag_all(again=again, progress=progress)
    if out.form in ("json", "csv"):
        return
    model = library.models.current(whole=False)
    assert model is not None
    present = library.tracks.ids()
    n_left = count_untagged(library, present)
    new = counted(n_new, "track") if n_new else "No new tracks"
    out.say(f"{new} tagged by model {model.id}; {len(present) - n_left:,} in all.")
    if n_left:
        out.say(f"{counted(n_left, 'track')} without features; run `harmonium index`.")


def _tag_files(
    out: Output,
    library: str | None,
    paths: list[str],
    *,
    known: str | None,
    sound_only: bool,
    owner: Owner | None,
    top: int | None,
    min_probability: float | None,
    raw: bool,
) -> None:
    from harmonium.library.tagging import tag_files

    with options.opened_if_any(library) as opened, out.bar("listening") as progress:
        tagged = tag_files(
            opened, paths, known=known, sound_only=sound_only, owner=owner, progress=progress
        )
    _show(out, tagged, top, min_probability, raw=raw)
    out.failures((file.path, file.reason) for file in tagged.failures)
    raise typer.Exit(exit_code(len(tagged), len(tagged.failures)))


def _show(
    out: Output,
    files: Iterable[TaggedFile],
    top: int | None,
    min_probability: float | None,
    *,
    raw: bool,
) -> None:
    """Path by path; programs get the normalised names."""
    from harmonium.data.tag_names import AUDIO_FEATURES

    if out.is_terminal:
        for number, file in enumerate(files):
            if number:
                out.hint("")
            _show_to_people(out, file, top, min_probability)
        return
    contents = (
        _Content(file.path, file.tags(top, min_probability), file.features) for file in files
    )
    if out.form == "json":
        out.json(contents)
    elif out.form == "csv":
        rows = chain.from_iterable(map(_csv_rows, contents))
        out.csv(("path", "tag", "probability", "source", *AUDIO_FEATURES), rows, raw=raw)
    else:
        for path, tags, features in contents:
            out.table((), [(path, tag.tag, tag.probability, tag.source) for tag in tags])
            out.table((), [(path, name, value, "feature") for name, value in features.items()])


class _Content(NamedTuple):
    """What programs get of a file."""

    path: str
    tags: list[TrackTag]
    features: dict[str, float]


def _csv_rows(content: _Content) -> Iterator[tuple[str, ...]]:
    """A row per tag, each with the audio features; one without a tag if there are only these."""
    features = [f"{value:.6g}" for value in content.features.values()]
    for tag in content.tags:
        yield content.path, tag.tag, f"{tag.probability:.6g}", tag.source, *features
    if not content.tags and features:
        yield content.path, "", "", "", *features


def _show_to_people(
    out: Output, file: TaggedFile, top: int | None, min_probability: float | None
) -> None:
    tags = file.tags(top, min_probability)
    if tags:
        rows = [(tag.shown, _certainty(tag), tag.precision) for tag in tags]
        out.table(("Tag", ">Probability", ">Precision"), rows, title=file.path)
    elif file.is_music:
        out.hint(file.path, "No tag reaches its threshold; --top 5 shows the most likely.")
    else:
        out.hint(file.path, "It does not sound like music, so it gets no tags.")
    if file.features:
        features = [f"{name} {value:.2f}" for name, value in file.features.items()]
        out.hint(" · ".join(features))


def _certainty(tag: TrackTag) -> Cell:
    certain = CERTAIN.get(tag.source)
    return tag.probability if certain is None else Text(certain, style="green")
