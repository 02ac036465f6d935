"""`harmonium tag`: the tags of files, or of a whole library."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import typer
from rich.text import Text

from harmonium.commands import exit_code, options
from harmonium.commands.output import Output
from harmonium.errors import counted

if TYPE_CHECKING:
    from harmonium.library import Library
    from harmonium.library.tagging import TaggedFile, TrackTag

CERTAIN = {"people": "tagged", "given": "as you say"}
"""Source of a tag → what is shown in the place of its probability."""


def tag(
    paths: list[str] | None = options.argument(
        "PATH",
        "Music files and folders, in the library or not; or #NUMBER, or artist - title. "
        "By default all tracks of the library.",
    ),
    library: str | None = options.LIBRARY,
    known: str | None = options.value(
        "TAGS",
        "Known tags, such as 'rock, guitar, -live'; they help to infer the others.",
        "--known",
        "-k",
    ),
    sound_only: bool = options.flag("Do not infer tags from people's tags.", "--sound-only"),
    top: int | None = options.number(
        None,
        "The N most likely tags of each track, at any probability; people's tags come first.",
        "--top",
        "-n",
    ),
    min_probability: float | None = options.probability(
        None,
        "Tags with at least this probability, instead of each tag's threshold.",
        "--min-probability",
        "-p",
    ),
    again: bool = options.flag("Also tag tracks that are tagged already.", "--again"),
    only_own: bool = options.ONLY_OWN,
    only_built_in: bool = options.ONLY_BUILT_IN,
    as_json: bool = options.JSON,
    as_csv: bool = options.flag("Print CSV: path, tag, probability, source.", "--csv"),
) -> None:
    """Tag files or the whole library.

    For files, people's tags come first and help to infer the others. For the whole library,
    predictions from the sound are stored for search and write; a second run only tags new tracks.
    People's own tags are never changed. Without a trained model, the built-in model tags files,
    with or without a library. Precision is the share of held-out tracks of at least that
    probability that have the tag.

    Example: harmonium tag song.mp3 --known "rock, -live"
    In Python: library.tag("song.mp3"), library.tag_all()
    Exit codes: 0 done; 1 some files could not be read and are listed; 2 nothing was done; 130
    interrupted, the same command continues.
    """
    from harmonium.errors import DataError
    from harmonium.library.tagging import tag_named

    out, owner = Output(as_json, as_csv), options.owner_of(only_own, only_built_in)
    if not paths and known is not None:
        raise DataError("--known needs files: name them.")
    with options.opened_if_there(library, needed=not paths) as opened:
        spellings = {} if opened is None else opened.spellings()
        if not paths:
            assert opened is not None
            with out.bar("tagging") as progress:
                n_new = opened.tag_all(again=again, progress=progress)
            if out.form in ("json", "csv"):
                _show(out, _chosen(opened.tagged(owner), top, min_probability), spellings)
            else:
                _say_how_many(out, opened, n_new)
            return
        with out.bar("listening") as progress:
            found = tag_named(
                opened, paths, known=known, sound_only=sound_only, owner=owner, progress=progress
            )
    _show(out, _chosen(found, top, min_probability), spellings)
    out.note(*(f"{failure.path}: {failure.reason}" for failure in found.failures))
    raise typer.Exit(exit_code(len(found), len(found.failures)))


def _chosen(
    files: Iterable[TaggedFile], top: int | None, min_probability: float | None
) -> Iterator[tuple[str, list[TrackTag]]]:
    return ((one.path, one.tags(top, min_probability)) for one in files)


def _show(
    out: Output, files: Iterator[tuple[str, list[TrackTag]]], spellings: Mapping[str, str]
) -> None:
    """Path by path; programs get the normalised names."""
    if out.form == "json":
        out.json({"path": path, "tags": tags} for path, tags in files)
    elif out.form == "csv":
        out.csv(
            ("path", "tag", "probability", "source"),
            (
                (path.encode(errors="backslashreplace").decode(), one.tag, p, one.source)
                for path, tags in files
                for one in tags
                for p in [f"{one.probability:.6g}"]
            ),
        )
    elif not out.is_terminal:
        for path, tags in files:
            out.table((), [(path, one.tag, one.probability, one.source) for one in tags])
    else:
        for number, (path, tags) in enumerate(files):
            out.hint(*([""] if number else []))
            rows = [
                (spellings.get(one.tag, one.tag), _certainty(one), one.precision) for one in tags
            ]
            if rows:
                out.table(("Tag", ">Probability", ">Precision"), rows, title=path)
            else:
                out.hint(path, "No tag reaches its threshold; --top 5 shows the most likely.")


def _certainty(one: TrackTag) -> Text | float:
    certain = CERTAIN.get(one.source)
    return one.probability if certain is None else Text(certain, style="green")


def _say_how_many(out: Output, library: Library, n_new: int) -> None:
    import numpy as np

    model = library.models.current(whole=False)
    assert model is not None
    present, (heard, _) = library.tracks.ids(), library.predictions.columns(model.id or 0, [0])
    n_tagged = int(np.isin(present, heard).sum())  # without missing files
    new = counted(n_new, "track") if n_new else "No new tracks"
    out.say(f"{new} tagged by model {model.id}; {n_tagged:,} in all.")
    if n_left := len(present) - n_tagged:
        out.say(f"{counted(n_left, 'track')} without features; run `harmonium index`.")
