"""`harmonium train` and `models`: learning tags, and which model is in use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.text import Text

from harmonium.commands import IN_PART, options
from harmonium.commands.corrections import learn
from harmonium.commands.options import argument, flag, number, probability, value
from harmonium.commands.output import Columns, Output, percent, to_undo
from harmonium.errors import counted
from harmonium.library.model import USUAL_PRECISION

if TYPE_CHECKING:
    from harmonium.data.genres import GenreTree
    from harmonium.library import Library
    from harmonium.library.store.models import StoredModel
    from harmonium.library.store.reports import CalibrationReport, TagReport

MAX_LEFT_OUT = 10  # skipped tags that are listed
MIN_IN_RANGE = 20  # the summary shows a range of probabilities only with this many predictions
TAG_COLUMNS = ("Tag", ">Tracks", ">AUC", ">±", ">Threshold", ">Precision", ">Write from", "")
MODEL_COLUMNS: Columns = {
    ">Model": lambda model: Text(str(model.id), style="cyan"),
    "Made": lambda model: "built-in" if model.built_in else model.made_at,
    ">Tags learnt": lambda model: f"{model.n_learnt:,} of {model.n_tags:,}",
    ">AUC": lambda model: None if model.mean_auc is None else f"{model.mean_auc:.3f}",
    ">Trained on": "n_tracks",
    ">Has tagged": "n_tagged",
    "": lambda model: Text("in use" if model.in_use else "", style="green"),
}


def train(
    library: str | None = options.LIBRARY,
    min_examples: int = number(5, "Tracks that a tag needs: N with it and N without it.", min=2),
    max_tags: int = number(200, "Learn at most the N most used tags."),
    min_count: int = number(1, "How many people must give a track a tag for it to count."),
    min_share: float = probability(0.2, "The share of a track's taggers who must give it a tag."),
    smooth: bool = flag(
        "Try to learn what a new person would say, if several people tagged the same tracks.",
        "--smooth/--no-smooth",
        default=True,
    ),
    genres: str | None = value(
        "TREE",
        "Count a subgenre as its genre, bebop as jazz. TREE is own (Harmonium's tree), a TOML "
        "file, or none. The library remembers it, and search uses it too.",
    ),
    seed: int = options.SEED,
    jobs: int | None = options.JOBS,
    engine: str = options.engine("serial"),
    as_json: bool = options.JSON,
) -> None:
    """Train a model on your tags.

    Tries a few settings by cross-validation on the tags with enough tracks. For each tag it reports
    the AUC on held-out tracks, with its standard error: 0.5 is chance, 1 is perfect. Tags that are
    not clearly better than chance are not predicted. A first model is ready after a few seconds;
    the final one replaces it. --engine processes tries several settings at once.

    Example: harmonium train --min-examples 20
    In Python: library.train(min_examples=20)
    Exit codes: 0 there is a new model; 1 it learnt no tag; 2 there is no new model; 130
    interrupted, the first model stays if it was ready.
    """
    from harmonium.engine import EngineError

    tree = None if genres is None else _tree(genres)
    out = Output(as_json)
    first_model: int | None = None

    def show_first(model: StoredModel) -> None:
        nonlocal first_model
        first_model = model.id
        if not out.errors.is_terminal:
            return
        report = model.report
        mean_auc = "" if report.mean_auc is None else f", mean AUC {report.mean_auc:.3f}"
        out.note(
            f"First model ({model.id}) ready after {report.seconds:.0f} s: {report.n_learnt} of "
            f"{report.n_given} tags{mean_auc}. Training continues; Ctrl-C keeps this model."
        )

    with options.opened(library) as opened:
        with out.bar("reading", lambda *_: _stopped(opened, first_model)) as progress:
            try:
                model = opened.train(
                    min_examples=min_examples,
                    max_tags=max_tags,
                    min_count=min_count,
                    min_share=min_share,
                    smooth=smooth,
                    seed=seed,
                    genres=tree,
                    engine=engine,
                    jobs=jobs,
                    progress=lambda what, done, total: progress(done, total, what.lower()),
                    first=show_first,
                )
            except EngineError as error:
                raise EngineError(f"{error}\n{_stopped(opened, first_model)}") from error
        spellings = opened.tags.spellings()
        decisions = opened.snapshot().tags.written(USUAL_PRECISION)
        contradicted = [tag for tag, decision in decisions.items() if decision.contradicted]
    out.json({"model": model.id, **model.report.to_json()})
    out.table(TAG_COLUMNS, [_row(tag, spellings) for tag in model.report.tags])
    if out.is_terminal:
        out.say("", *_summary(model, spellings, contradicted))
    if not any(output.threshold is not None for output in model.outputs):
        if not as_json:
            out.note(*_nothing_learnt(model))
        raise typer.Exit(IN_PART)


def _stopped(library: Library, first_model: int | None) -> str:
    """What to say about the models after Ctrl-C."""
    in_use = library.models.current(whole=False)
    if first_model is None or in_use is None:
        return "Stopped. No model was stored; the previous one, if any, stays in use."
    if first_model == in_use.id:
        return f"Stopped. The first model ({first_model}) is in use; `harmonium train` improves it."
    return (
        f"Stopped. Model {in_use.id} stays in use. The new first model is {first_model}: "
        f"`harmonium models use {first_model}`."
    )


def _tree(name: str) -> GenreTree:
    from harmonium.data.genres import GenreTree, builtin_tree, read_tree

    if name == "own":
        return builtin_tree()
    if name == "none":
        return GenreTree()
    return read_tree(Path(name).expanduser())


def _row(tag: TagReport, spellings: dict[str, str]) -> tuple[str | Text, ...]:
    return (
        spellings.get(tag.tag, tag.tag),
        str(tag.examples),
        _two_digits(tag.auc),
        _two_digits(tag.error),
        _two_digits(tag.threshold),
        _two_digits(tag.precision),
        _two_digits(tag.write_from),
        Text(_remark(tag), style="yellow"),
    )


def _remark(tag: TagReport) -> str:
    if tag.learnt:
        return ""
    return "not learnt" if tag.threshold is None else "built-in"


def _two_digits(number: float | None) -> str:
    return "" if number is None else f"{number:.2f}"


def _summary(
    model: StoredModel, spellings: dict[str, str], contradicted: Sequence[str]
) -> Iterator[str]:
    report = model.report
    people = "1 person" if report.people == 1 else f"{report.people:,} people"
    yield (
        f"Model {model.id}: {report.n_learnt:,} of {report.n_given:,} tags learnt from "
        f"{report.tracks:,} tracks tagged by {people}, in {report.seconds:.0f} s."
    )
    line = (
        f"Mean AUC {report.mean_auc:.3f} on tracks held out by {report.grouped_by} in "
        f"{report.folds} folds."
    )
    if report.smoothing_tried:
        better = "smoothed tags" if report.smoothed else "tags as given"
        line += f" It was better with {better}."
    yield line
    n_from_builtin = sum(output.source == "built-in" for output in model.outputs)
    if n_from_builtin:
        helped = "helped" if report.shipped_inputs else "did not help"
        tags = counted(n_from_builtin, "tag")
        yield f"The built-in model's predictions {helped}. It adds {tags}."
        rest = [tag.tag for tag in report.tags if tag.threshold is not None and not tag.learnt]
        if rest:
            names = ", ".join(spellings.get(tag, tag) for tag in rest)
            yield f"The built-in model predicts those of your tags that were not learnt: {names}."
    if contradicted:
        names = ", ".join(spellings.get(tag, tag) for tag in contradicted)
        yield f"Written to fewer files than before, since your tracks contradict it: {names}."
    yield (
        "AUC: 0.5 is chance, 1 is perfect. Threshold: the probability at which a track gets the "
        "tag. Precision: the share of such held-out tracks that have it. Write from: the "
        "probability at which `harmonium write` writes the tag, at a cautious precision of "
        f"{percent(USUAL_PRECISION)}; without a number it is not written."
    )
    if report.calibration is not None:
        yield from _calibration_lines(report.calibration)
    if report.n_learnt < len(report.tags):
        yield (
            "Tags that are not learnt are not clearly better than chance: they have too few "
            "tracks, or their tracks do not sound alike. They are not predicted, unless the "
            "built-in model knows them."
        )
    if report.genres:
        yield "Subgenres count as their genres, also in search; --genres none stops that."
    if report.left_out:
        yield f"{counted(len(report.left_out), 'tag')} skipped. The most used, and what they lack:"
        for excluded in report.left_out[:MAX_LEFT_OUT]:
            yield f"  {spellings.get(excluded.tag, excluded.tag)}: {excluded.reason}"
    if report.n_learnt:
        yield "Next: harmonium tag"


def _calibration_lines(calibration: CalibrationReport) -> Iterator[str]:
    """How often predictions of each range of probabilities were true."""
    yield f"Held-out probabilities are off by {100 * calibration.error:.1f} points on average:"
    rows = zip(calibration.mean_probability, calibration.share_true, calibration.n, strict=True)
    for predicted, true, n in rows:
        if n >= MIN_IN_RANGE and predicted is not None and true is not None:
            yield f"  predicted {percent(predicted):>5}: true {percent(true):>5} of {n:,} times"


def _nothing_learnt(model: StoredModel) -> Iterator[str]:
    """What to do if no tag can be predicted from the sound."""
    tags = sorted(model.report.tags, key=lambda tag: -(tag.auc or 0))
    nearest = ", ".join(f"{tag.tag} ({tag.examples})" for tag in tags[:3])
    yield "No tag was learnt: none is predicted clearly better than chance. What helps:"
    yield f"  more tracks with the tags that came closest: {nearest};"
    yield "  tags that can be heard, such as genres, instruments or moods;"
    yield "  tags of whole albums or artists: `harmonium import TABLE` or `import --from-files`."


def models(
    action: str | None = argument("[use]", "'use' switches to another model."),
    number: int | None = argument("[N]", "The number of the model."),
    library: str | None = options.LIBRARY,
    as_json: bool = options.JSON,
) -> None:
    """List the trained models, or switch to another one.

    The AUC is the mean over a model's tags on held-out tracks: 0.5 is chance, 1 is perfect. Use it
    only for models with the same tags and tracks.

    Example: harmonium models use 2
    In Python: library.models.entries(), library.models.use(2)
    """
    if action not in (None, "use") or (action is None) != (number is None):
        raise typer.BadParameter("Use 'harmonium models' or 'harmonium models use N'.")
    out = Output(as_json)
    with options.opened(library) as opened:
        with opened.learner.paused():
            change = None if number is None else opened.models.use(number)
        if change is not None:
            learn(out, opened)
        stored = opened.models.entries()
        n_tracks = opened.tracks.count("present")
    if number is None:
        out.show(stored, MODEL_COLUMNS, empty="No model yet; run `harmonium train`.")
        return
    out.json(stored)
    verb = "was already" if change is None else "is now"
    out.say(f"Model {number} {verb} in use.", to_undo(change))
    n_tagged = {model.id: model.n_tagged for model in stored}
    if n_tagged[number] < n_tracks:
        out.say("It has not tagged all tracks yet. Next: harmonium tag")
