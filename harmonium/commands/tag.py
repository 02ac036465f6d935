"""`harmonium tag`: what the model says about files, or about a whole library."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from harmonium.commands import exit_code
from harmonium.commands.options import (
    JsonOption,
    LibraryOption,
    OnlyMineOption,
    OnlyShippedOption,
    opened_if_there,
    owner_of,
)
from harmonium.commands.quick_learning import learn
from harmonium.commands.screen import bar, percent, printable, say, show_rows
from harmonium.errors import counted

if TYPE_CHECKING:
    from harmonium.library import Library
    from harmonium.library.answering.stored_tagger import StoredTagger
    from harmonium.library.answering.tag import TrackTag
    from harmonium.library.store.models import Owner, StoredModel


def tag(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH",
            help="Files and folders of music, in the library or not; or #NUMBER, or artist - "
            "title. Without any, all tracks of the library.",
        ),
    ] = None,
    library: LibraryOption = None,
    known: Annotated[
        str | None,
        typer.Option(
            "--known",
            "-k",
            metavar="TAGS",
            help="What you know already, such as 'rock, guitar, -live' (-: does not hold); it "
            "helps to infer the rest.",
        ),
    ] = None,
    sound_only: Annotated[
        bool,
        typer.Option("--sound-only", help="Do not use people's tags to infer the others."),
    ] = False,
    top: Annotated[
        int | None,
        typer.Option(
            "--top",
            "-n",
            metavar="N",
            min=1,
            help="The N most probable tags of each, whatever their probability; people's tags "
            "come first, however many they are.",
        ),
    ] = None,
    min_probability: Annotated[
        float | None,
        typer.Option(
            "--min-probability",
            "-p",
            metavar="P",
            min=0,
            max=1,
            help="Tags of at least this probability, instead of the threshold of each tag.",
        ),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Tag again the tracks that the model has tagged.")
    ] = False,
    only_mine: OnlyMineOption = False,
    only_shipped: OnlyShippedOption = False,
    as_json: JsonOption = False,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Print CSV: path, tag, probability, source.")
    ] = False,
) -> None:
    """Say which tags tracks have, with the probability of each.

    For files, people's tags come first, and help to infer the others. For
    the whole library, what the model predicts from the sound of each track
    is stored, so that 'search' and 'write' can use it; a second run only
    takes what is new. People's own tags are never changed. Where nobody
    has trained a model, files are tagged by the one that comes along,
    with or without a library.
    Under Right: how many of the held-out tracks of at least that
    probability have the tag.

    [dim]Example:[/dim]  harmonium tag song.mp3 --known "rock, -live"

    [dim]Exit codes:[/dim]  0 done; 1 some files could not be used and are
    listed; 2 nothing was done; 130 interrupted, the same command goes on.
    """
    from harmonium.errors import DataError
    from harmonium.library.answering.refined_tagger import current_tagger

    if as_json and as_csv:
        raise DataError("Ask for --json or for --csv, not for both.")
    show = _print_json if as_json else _print_csv if as_csv else _show_tags
    choice = (top, min_probability)
    owner = owner_of(only_mine, only_shipped)
    with opened_if_there(library, needed=not paths) as opened:
        if not paths and known is not None:
            raise DataError("--known is about some tracks: name their files.")
        model = _model(opened, needs_number=not paths, owner=owner)
        if paths:
            tagger = current_tagger(opened, model)
            code = _tag_paths(opened, tagger, paths, known, not sound_only, choice, show)
        else:
            assert opened is not None
            _tag_all(opened, model, again, choice, owner, show if as_json or as_csv else None)
            code = 0
    raise typer.Exit(code)


def _model(library: Library | None, *, needs_number: bool, owner: Owner | None) -> StoredModel:
    """The library's model, or the one that comes along where that is all there is or is wanted."""
    from harmonium.library.answering.shipped_model import shipped_model, use_shipped_model
    from harmonium.library.answering.stored_tagger import current_model

    model = None if library is None else use_shipped_model(library)
    has_shipped = model is not None and not model.is_own.all()
    if not needs_number and (model is None or (owner == "built-in" and not has_shipped)):
        model = shipped_model()
    if model is None:
        assert library is not None
        model = current_model(library)  # which says how to get one
    return model.only(owner)


def _tag_paths(
    library: Library | None,
    tagger: StoredTagger,
    named: list[str],
    known: str | None,
    use_people: bool,
    choice: tuple[int | None, float | None],
    show: Any,
) -> int:
    from harmonium.library.answering.tag import read_known, tag_files

    given = None if known is None else read_known(known, tagger)
    files = _files(library, named)
    errors = Console(stderr=True)
    with bar(errors, "listening") as progress:
        tagged, failures = tag_files(
            library, tagger, files, known=given, use_people=use_people, progress=progress
        )
    spellings = {} if library is None else library.spellings()
    show(((one.path, one.tags(*choice)) for one in tagged), spellings)
    for failure in failures:
        say(errors, f"{failure.path}: {failure.reason}")
    return exit_code(len(tagged), len(failures))


def _files(library: Library | None, named: list[str]) -> list[str]:
    """The files that are named, in folders too, or by what the library knows of them."""
    from harmonium.audio.audio_files import find_audio
    from harmonium.errors import DataError, LibraryError

    paths = []
    for text in named:
        path = Path(text).expanduser()
        try:
            if path.exists():
                paths.append(path)
            elif library is None:
                raise LibraryError("There is no library that could know it, either.")
            else:
                paths.append(Path(library.tracks.resolve(text).path))
        except LibraryError as error:
            raise LibraryError(f"There is no file {text!r}. {error}") from None
    found = find_audio(paths)
    if not found.files:
        raise DataError("There is no music file in the folders named.")
    return [str(file) for file in found.files]


def _tag_all(
    library: Library,
    model: StoredModel,
    again: bool,
    choice: tuple[int | None, float | None],
    owner: Owner | None,
    show: Any,
) -> None:
    import numpy as np

    from harmonium.library.answering.tag import stored_tags, tag_library

    with bar(Console(stderr=True), "tagging") as progress:
        n_new = tag_library(library, model, again=again, progress=progress)
    learn(library)  # a new model has yet to hear what people said since, or of other words
    if show is not None:
        tagged = ((one.path, one.tags(*choice)) for one in stored_tags(library, owner))
        show(tagged, library.spellings())
        return
    present, (heard, _) = library.tracks.ids(), library.predictions.columns(model.id or 0, [0])
    n_heard = int(np.isin(present, heard).sum())  # not those whose files are gone
    console = Console()
    new = counted(n_new, "track") if n_new else "No further tracks"
    say(console, f"{new} tagged by model {model.id}; it has tagged {n_heard:,} in all.")
    if n_heard < len(present):
        deaf = len(present) - n_heard
        have = "1 has" if deaf == 1 else f"{deaf:,} have"
        say(console, f"{have} no features: 'harmonium index' computes them.")


def _show_tags(files: Iterable[tuple[str, list[TrackTag]]], spellings: dict[str, str]) -> None:
    console = Console()
    for number, (path, rows) in enumerate(files):
        if not console.is_terminal:
            cells = ((path, row.tag, f"{row.probability:.4f}", row.source) for row in rows)
            show_rows(console, (), cells)
            continue
        if number:
            say(console, "")
        say(console, Text(printable(path), style="bold"))
        if not rows:
            say(console, "No tag is probable enough; --top 5 shows the most probable ones.")
            continue
        certain = {
            "people": Text("tagged", style="green"),
            "given": Text("as you say", style="green"),
        }
        spelt = [spellings.get(row.tag, row.tag) for row in rows]
        named = [
            (
                spelt[i],
                certain.get(row.source, percent(row.probability)),
                "" if row.precision is None else percent(row.precision),
            )
            for i, row in enumerate(rows)
        ]
        show_rows(console, ("Tag", "Probability", "Right"), named, right=("Probability", "Right"))


def _print_json(files: Iterable[tuple[str, list[TrackTag]]], _: dict[str, str]) -> None:
    """One array, written as it comes."""
    print("[", end="")
    for number, (path, rows) in enumerate(files):
        record = {"path": path, "tags": [vars(row) for row in rows]}
        print("," if number else "", json.dumps(record, ensure_ascii=True), sep="\n", end="")
    print("\n]")


def _print_csv(files: Iterable[tuple[str, list[TrackTag]]], _: dict[str, str]) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(("path", "tag", "probability", "source"))
    for path, rows in files:
        name = path.encode(errors="backslashreplace").decode()
        writer.writerows((name, row.tag, f"{row.probability:.6g}", row.source) for row in rows)
