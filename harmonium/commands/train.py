"""`harmonium train`: a model of the tags that people gave to the tracks of a library."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from harmonium.commands import IN_PART, INTERRUPTED
from harmonium.commands.options import (
    EngineOption,
    JobsOption,
    JsonOption,
    LibraryOption,
    SeedOption,
)
from harmonium.commands.screen import bar, percent, say, show_rows

if TYPE_CHECKING:
    from harmonium.data.genre_tree import GenreTree
    from harmonium.library.store.models import StoredModel

MOST_LEFT_OUT = 10
"""Tags that are listed as left out."""
FEWEST_SHOWN = 20
"""Probabilities in a range from which on it is said how many of them came true."""


def train(
    library: LibraryOption = None,
    min_examples: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=2,
            help="Tracks that a tag needs; by default 10, or 5 where fewer than 100 tracks are "
            "tagged.",
        ),
    ] = None,
    max_tags: Annotated[
        int, typer.Option(metavar="N", min=1, help="Learn at most this many tags, the most used.")
    ] = 200,
    min_count: Annotated[
        int,
        typer.Option(
            metavar="N", min=1, help="How many people must give a track a tag for it to count."
        ),
    ] = 1,
    min_share: Annotated[
        float,
        typer.Option(metavar="P", min=0, max=1, help="And what share of all who tagged the track."),
    ] = 0.2,
    smooth: Annotated[
        bool,
        typer.Option(
            "--smooth/--no-smooth",
            help="Whether to try to learn what a new person would say instead of what was said, "
            "where several people have tagged the same tracks.",
        ),
    ] = True,
    genres: Annotated[
        str | None,
        typer.Option(
            metavar="TREE",
            help="Let tracks with a kind of a genre count for the genre, bebop for jazz. TREE is "
            "own (the tree that comes with Harmonium), a TOML file, or none. The library remembers "
            "it, for search too.",
        ),
    ] = None,
    seed: SeedOption = 0,
    jobs: JobsOption = None,
    engine: EngineOption = "serial",
    as_json: JsonOption = False,
) -> None:
    """Learn from people's tags how tracks with each tag sound.

    Takes the tags with enough tracks, tries a few settings by
    cross-validation, and says how well each tag can be predicted for
    tracks that it has not learnt from: the AUC, where 0.5 is chance
    and 1 is perfect, with its standard error. A tag that is not clearly
    above chance is not predicted. A first model is there after a few
    seconds; the better one takes its place when it is complete. With
    --engine processes, several settings are tried at a time.

    [dim]Example:[/dim]  harmonium train --min-examples 20

    [dim]Exit codes:[/dim]  0 there is a new model; 1 there is one, but no tag
    was learnt; 2 there is none, with the reason; 130 interrupted, with the
    first model if that was there.
    """
    from harmonium.engine import EngineError
    from harmonium.library import Library
    from harmonium.library.learning.train import TrainingOptions
    from harmonium.library.learning.train import train as train_library

    tree = None if genres is None else _tree(genres)
    options = TrainingOptions(min_examples, max_tags, min_count, min_share, smooth, seed, tree)
    errors = Console(stderr=True)
    with Library.open(library, create=False) as opened, bar(errors, "reading") as progress:

        def show(what: str, done: int, total: int) -> None:
            progress(done, total, what.lower())

        firsts: list[StoredModel] = []

        def show_first(model: StoredModel) -> None:
            firsts.append(model)
            if errors.is_terminal:
                say(errors, _first(model))

        try:
            model = train_library(
                opened, options, progress=show, first=show_first, engine=engine, jobs=jobs
            )
        except EngineError as error:
            stopped = _stopped(firsts, opened.models.current(whole=False))
            raise EngineError(f"{error}\n{stopped}") from error
        except KeyboardInterrupt:
            say(errors, _stopped(firsts, opened.models.current(whole=False)))
            raise typer.Exit(INTERRUPTED) from None
        spellings = opened.spellings()
    code = 0 if model.learnt.any() else IN_PART
    if as_json:
        print(json.dumps({"model": model.id, **model.report}, indent=1))
        raise typer.Exit(code)
    console = Console()
    headings = ("Tag", "Tracks", "AUC", "±", "From", "Right", "Write", "")
    rows = (_row(tag, spellings) for tag in model.report["tags"])
    show_rows(console, headings, rows, right=headings[1:7])
    if console.is_terminal:
        say(console, "")
        for line in _summary(model, spellings):
            say(console, line)
    if code:
        for line in _nothing_learnt(model):
            say(errors, line)
    raise typer.Exit(code)


def _first(model: StoredModel) -> str:
    auc = model.report["mean_auc"]
    how_good = "" if auc is None else f", mean AUC {auc:.3f}"
    return (
        f"Model {model.id}, a first one, is there after {model.report['seconds']:.0f} s: "
        f"{model.learnt.sum()} of "
        f"{len(model.vocabulary)} tags{how_good}. A better one is being made; Ctrl-C keeps this "
        "one."
    )


def _stopped(firsts: Sequence[StoredModel], in_use: StoredModel | None) -> str:
    """What there is after Ctrl-C: the first model, if it was stored, and the one in use."""
    if not firsts or in_use is None:
        return "Stopped. No model was stored; the former one, if any, stays in use."
    first = firsts[0].id
    if first == in_use.id:
        return (
            f"Stopped. The first model ({first}) is in use; 'harmonium train' makes a better one."
        )
    return (
        f"Stopped. Model {in_use.id} stays in use. The first of the new models is {first}: "
        f"'harmonium models use {first}'."
    )


def _tree(named: str) -> GenreTree:
    from harmonium.data.genre_tree import GenreTree, own_tree, read_tree

    if named in ("own", "none"):
        return own_tree() if named == "own" else GenreTree()
    return read_tree(Path(named).expanduser())


def _row(tag: dict[str, Any], spellings: dict[str, str]) -> tuple[str | Text, ...]:
    names = ("auc", "error", "threshold", "precision", "write_from")
    values = (tag.get(name) for name in names)
    numbers = ("" if value is None else f"{value:.2f}" for value in values)
    note = Text("" if tag["learnt"] else "not learnt", style="yellow")
    return spellings.get(tag["tag"], tag["tag"]), str(tag["examples"]), *numbers, note


def _reliability(found: dict[str, Any]) -> Iterator[str]:
    """How far held-out probabilities are off, and how often it was true where so much was said."""
    yield (
        f"Its probabilities for held-out tracks are off by {100 * found['error']:.1f} points on "
        f"average ({100 * found['uncorrected']:.1f} before they were corrected):"
    )
    rows = zip(found["mean_probability"], found["share_true"], found["n"], strict=True)
    yield from (
        f"  said {percent(said):>5}: true {percent(true):>5} of {n:,} times"
        for said, true, n in rows
        if n >= FEWEST_SHOWN
    )


def _summary(model: StoredModel, spellings: dict[str, str]) -> Iterator[str]:
    report, tags, left_out = model.report, model.report["tags"], model.report["left_out"]
    n_learnt = sum(tag["learnt"] for tag in tags)
    people = "1 person" if report["people"] == 1 else f"{report['people']:,} people"
    yield (
        f"Model {model.id}: {n_learnt:,} of {len(tags):,} tags learnt from {report['tracks']:,} "
        f"tracks that {people} tagged, in {report['seconds']:.0f} s."
    )
    better = "smoothed tags" if report["smoothed"] else "tags as they were given"
    yield (
        f"Mean AUC {report['mean_auc']:.3f}, for tracks held out by {report['grouped_by']} in "
        f"{report['folds']} folds."
    ) + (f" It did better with {better}." if report["smoothing_tried"] else "")
    if n_more := len(model.vocabulary) - model.n_own:
        helped = "helped" if report.get("shipped_inputs") else "did not help"
        yield (
            f"What the model that came along says of the tracks {helped}. Its other {n_more:,} "
            "tags stay beside yours."
        )
    yield (
        "An AUC of 0.5 is chance, 1 is perfect. A track counts as having a tag if its "
        "probability reaches the number under From. Right: the share of such held-out tracks that "
        "have the tag. Write: the probability from which on 'harmonium write' writes it, since it "
        "is right 80 % of the time by a cautious count; without a number it is not written."
    )
    if "calibration" in report:
        yield from _reliability(report["calibration"])
    if n_learnt < len(tags):
        yield (
            "Tags that are not learnt are not clearly above chance: their tracks are too few, or "
            "do not sound alike. They are not predicted."
        )
    if report.get("genres"):
        yield "Kinds of a genre counted for it, here and in search; --genres none ends that."
    if left_out:
        yield f"{len(left_out):,} tags were left out. The most used of them, and what they lack:"
        for one in left_out[:MOST_LEFT_OUT]:
            yield f"  {spellings.get(one['tag'], one['tag'])}: {one['reason']}"
    if n_learnt:
        yield "Next: harmonium tag"


def _nothing_learnt(model: StoredModel) -> Iterator[str]:
    """What to do where no tag can be told from the sound."""
    tags = sorted(model.report["tags"], key=lambda tag: -(tag["auc"] or 0))
    yield (
        "No tag was learnt: none is predicted clearly better than by chance, so the model predicts "
        "nothing. What helps:"
    )
    nearest = ", ".join(f"{tag['tag']} ({tag['examples']})" for tag in tags[:3])
    yield f"  more tracks with the tags that came nearest: {nearest};"
    yield "  tags that can be heard, such as genres, instruments or moods;"
    yield "  tags of whole albums or artists: a table for 'harmonium import', or --from-files."
