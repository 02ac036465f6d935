"""`harmonium train`, `models` and `tag`: learning tags, and giving them to tracks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.text import Text

from harmonium.commands import IN_PART, exit_code, options
from harmonium.commands.corrections import learn
from harmonium.commands.options import argument, flag, number, probability, value
from harmonium.commands.output import Cell, Columns, Output, percent, to_undo
from harmonium.errors import DataError, counted

if TYPE_CHECKING:
    from harmonium.data.tag_names import GenreTree
    from harmonium.library import Library
    from harmonium.library.snapshot import TrackTag
    from harmonium.library.store.models import StoredModel
    from harmonium.library.tagging import TaggedFile

MAX_LEFT_OUT = 10  # skipped tags that are listed
MIN_IN_RANGE = 20  # the summary shows a range of probabilities only with this many predictions
TAG_COLUMNS = ("Tag", ">Tracks", ">AUC", ">±", ">Threshold", ">Precision", ">Write from", "")
MODEL_COLUMNS: Columns = {
    ">Model": lambda one: Text(str(one.id), style="cyan"),
    "Made": lambda one: "built-in" if one.built_in else one.made_at,
    ">Tags learnt": lambda one: f"{one.n_learnt:,} of {one.n_tags:,}",
    ">AUC": lambda one: None if one.mean_auc is None else f"{one.mean_auc:.3f}",
    **{">Trained on": "n_tracks", ">Has tagged": "n_tagged"},
    "": lambda one: Text("in use" if one.in_use else "", style="green"),
}
CERTAIN = {"people": "tagged", "given": "as you say"}  # source of a tag → shown as probability


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
    out, firsts = Output(as_json), list[int]()

    def show_first(model: StoredModel) -> None:
        firsts.append(model.id)
        if not out.errors.is_terminal:
            return
        auc, seconds, own = model.report["mean_auc"], model.report["seconds"], model.is_own
        how_good = "" if auc is None else f", mean AUC {auc:.3f}"
        out.note(
            f"First model ({model.id}) ready after {seconds:.0f} s: {model.learnt[own].sum()} of "
            f"{model.n_own} tags{how_good}. Training continues; Ctrl-C keeps this model."
        )

    with options.opened(library) as opened:
        with out.bar("reading", lambda *_: _stopped(opened, firsts)) as progress:
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
                raise EngineError(f"{error}\n{_stopped(opened, firsts)}") from error
        spellings = opened.spellings()
    out.json({"model": model.id, **model.report})
    out.table(TAG_COLUMNS, [_row(tag, spellings) for tag in model.report["tags"]])
    if out.is_terminal:
        out.say("", *_summary(model, spellings))
    if not model.learnt.any():
        if not as_json:
            out.note(*_nothing_learnt(model))
        raise typer.Exit(IN_PART)


def _stopped(library: Library, firsts: list[int]) -> str:
    """What to say about the models after Ctrl-C."""
    in_use = library.models.current(whole=False)
    if not firsts or in_use is None:
        return "Stopped. No model was stored; the previous one, if any, stays in use."
    if firsts[0] == in_use.id:
        return f"Stopped. The first model ({firsts[0]}) is in use; `harmonium train` improves it."
    return (
        f"Stopped. Model {in_use.id} stays in use. The new first model is {firsts[0]}: "
        f"`harmonium models use {firsts[0]}`."
    )


def _tree(named: str) -> GenreTree:
    from harmonium.data.tag_names import GenreTree, builtin_tree, read_tree

    if named in ("own", "none"):
        return builtin_tree() if named == "own" else GenreTree()
    return read_tree(Path(named).expanduser())


def _row(tag: dict[str, Any], spellings: dict[str, str]) -> tuple[str | Text, ...]:
    names = ("auc", "error", "threshold", "precision", "write_from")
    numbers = ("" if (value := tag.get(name)) is None else f"{value:.2f}" for name in names)
    note = Text("" if tag["learnt"] else "not learnt", style="yellow")
    return spellings.get(tag["tag"], tag["tag"]), str(tag["examples"]), *numbers, note


def _summary(model: StoredModel, spellings: dict[str, str]) -> Iterator[str]:
    report, tags, left_out = model.report, model.report["tags"], model.report["left_out"]
    n_learnt = sum(tag["learnt"] for tag in tags)
    people = "1 person" if report["people"] == 1 else f"{report['people']:,} people"
    yield (
        f"Model {model.id}: {n_learnt:,} of {len(tags):,} tags learnt from {report['tracks']:,} "
        f"tracks tagged by {people}, in {report['seconds']:.0f} s."
    )
    better = "smoothed tags" if report["smoothed"] else "tags as given"
    yield (
        f"Mean AUC {report['mean_auc']:.3f} on tracks held out by {report['grouped_by']} in "
        f"{report['folds']} folds."
    ) + (f" It was better with {better}." if report["smoothing_tried"] else "")
    if n_more := len(model.vocabulary) - model.n_own:
        helped = "helped" if report.get("shipped_inputs") else "did not help"
        yield f"The built-in model's predictions {helped}. It adds {counted(n_more, 'tag')}."
    yield (
        "AUC: 0.5 is chance, 1 is perfect. Threshold: the probability at which a track gets the "
        "tag. Precision: the share of such held-out tracks that have it. Write from: the "
        "probability at which `harmonium write` writes the tag, at a cautious precision of "
        "80 %; without a number it is not written."
    )
    if found := report.get("calibration"):
        yield f"Held-out probabilities are off by {100 * found['error']:.1f} points on average:"
        rows = zip(found["mean_probability"], found["share_true"], found["n"], strict=True)
        for said, true, n in rows:
            if n >= MIN_IN_RANGE:
                yield f"  predicted {percent(said):>5}: true {percent(true):>5} of {n:,} times"
    if n_learnt < len(tags):
        yield (
            "Tags that are not learnt are not clearly better than chance: they have too few "
            "tracks, or their tracks do not sound alike. They are not predicted."
        )
    if report.get("genres"):
        yield "Subgenres count as their genres, also in search; --genres none stops that."
    if left_out:
        yield f"{counted(len(left_out), 'tag')} skipped. The most used, and what they lack:"
        for one in left_out[:MAX_LEFT_OUT]:
            yield f"  {spellings.get(one['tag'], one['tag'])}: {one['reason']}"
    if n_learnt:
        yield "Next: harmonium tag"


def _nothing_learnt(model: StoredModel) -> Iterator[str]:
    """What to do if no tag can be predicted from the sound."""
    tags = sorted(model.report["tags"], key=lambda tag: -(tag["auc"] or 0))
    nearest = ", ".join(f"{tag['tag']} ({tag['examples']})" for tag in tags[:3])
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
    In Python: library.list_models(), library.use_model(2)
    """
    if action not in (None, "use") or (action is None) != (number is None):
        raise typer.BadParameter("Use 'harmonium models' or 'harmonium models use N'.")
    out = Output(as_json)
    with options.opened(library) as opened:
        change = None if number is None else opened.use_model(number, learn=False)
        if change is not None:
            learn(out, opened)
        found, n_tracks = opened.list_models(), opened.tracks.count("present")
    if number is None:
        out.show(found, MODEL_COLUMNS, empty="No model yet; run `harmonium train`.")
        return
    out.json(found)
    now = "was already" if change is None else "is now"
    out.say(f"Model {number} {now} in use.", to_undo(change))
    if next(one for one in found if one.id == number).n_tagged < n_tracks:
        out.say("It has not tagged all tracks yet. Next: harmonium tag")


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
    from harmonium.library.tagging import tag_files, tags_over_time
    from harmonium.library.write import count_untagged

    out, owner = Output(as_json, as_csv), options.owner_of(only_own, only_built_in)
    if not paths and known is not None:
        raise DataError("--known needs files: name them.")
    if over_time is not None:
        if not paths or len(paths) > 1:
            raise DataError(f"--over-time needs one file, got {len(paths or [])}.")
        with options.opened_if_any(library) as opened, out.bar("listening") as progress:
            heard = tags_over_time(opened, paths[0], over_time, progress)
        ((name, p),) = heard.tags.items()
        rows = list(zip(heard.begins, heard.ends, p, strict=True))
        out.json(heard)
        out.csv(("begin", "end", "probability"), rows)
        bars = [
            (f"{int(at) // 60}:{at % 60:04.1f}", one, "█" * round(30 * one)) for at, _, one in rows
        ]
        out.table((">Begin", f">{name}", ""), bars)
        return
    if not paths:
        with options.opened(library) as whole:
            with out.bar("tagging") as progress:
                n_new = whole.tag_all(again=again, progress=progress)
            if out.form in ("json", "csv"):
                _show(out, whole.tagged(owner), top, min_probability)
                return
            model, present = whole.models.current(whole=False), whole.tracks.ids()
            assert model is not None
            n_left = count_untagged(whole, present)
        new = counted(n_new, "track") if n_new else "No new tracks"
        out.say(f"{new} tagged by model {model.id}; {len(present) - n_left:,} in all.")
        if n_left:
            out.say(f"{counted(n_left, 'track')} without features; run `harmonium index`.")
        return
    with options.opened_if_any(library) as opened, out.bar("listening") as progress:
        found = tag_files(
            opened, paths, known=known, sound_only=sound_only, owner=owner, progress=progress
        )
    _show(out, found, top, min_probability)
    out.failures((one.path, one.reason or "") for one in found.failures)
    raise typer.Exit(exit_code(len(found), len(found.failures)))


def _show(
    out: Output, tagged: Iterable[TaggedFile], top: int | None, min_probability: float | None
) -> None:
    """Path by path; programs get the normalised names."""
    from harmonium.data.tag_names import AUDIO_FEATURES

    files = ((one.path, one.tags(top, min_probability), one.features) for one in tagged)
    if out.form == "json":
        out.json({"path": path, "tags": tags, "features": values} for path, tags, values in files)
    elif out.form == "csv":
        rows = (
            (path, *cells, *(f"{p:.6g}" for p in values.values()))
            for path, tags, values in files
            for cells in [(one.tag, f"{one.probability:.6g}", one.source) for one in tags]
            or ([("", "", "")] if values else [])
        )
        out.csv(("path", "tag", "probability", "source", *AUDIO_FEATURES), rows)
    elif not out.is_terminal:
        for path, tags, values in files:
            out.table((), [(path, one.tag, one.probability, one.source) for one in tags])
            out.table((), [(path, name, value, "feature") for name, value in values.items()])
    else:
        for number, one in enumerate(tagged):
            out.hint(*([""] if number else []))
            if tags := one.tags(top, min_probability):
                cells = [(tag.shown, _certainty(tag), tag.precision) for tag in tags]
                out.table(("Tag", ">Probability", ">Precision"), cells, title=one.path)
            elif one.is_music:
                out.hint(one.path, "No tag reaches its threshold; --top 5 shows the most likely.")
            else:
                out.hint(one.path, "It does not sound like music, so it gets no tags.")
            if values := one.features:
                out.hint(" · ".join(f"{name} {value:.2f}" for name, value in values.items()))


def _certainty(tag: TrackTag) -> Cell:
    certain = CERTAIN.get(tag.source)
    return tag.probability if certain is None else Text(certain, style="green")
