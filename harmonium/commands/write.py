"""`harmonium write`: writes the library's tags into the files, where players read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.table import Table
from rich.text import Text

from harmonium.commands import IN_PART, NOTHING_DONE, exit_code, options
from harmonium.commands.options import argument, flag, probability, value
from harmonium.commands.output import Flow, Output, has_reader, percent, printable, to_undo
from harmonium.errors import DataError, counted
from harmonium.library.model import USUAL_PRECISION

if TYPE_CHECKING:
    from rich.console import Console

    from harmonium.library import Library
    from harmonium.library.filetags import FieldChange, Rules
    from harmonium.library.writing.file_plans import PlannedFile, WritePlan

MAX_SHOWN = 10  # files whose changes are shown before asking
MAX_NAMED = 20  # tags that are named as not written
RULES: dict[str, Any] = {"rich_help_panel": "Rules"}
STOPPED = (
    "Stopped. Each file is either untouched or complete. The same command continues; "
    "`harmonium undo` restores what was written."
)


def write(
    paths: list[str] | None = argument(
        "TRACK", "Files, folders, #NUMBER, artist - title; by default all."
    ),
    library: str | None = options.LIBRARY,
    query: str | None = value("QUERY", "Only tracks that this search finds.", "--query", "-q"),
    people: bool = flag("Only people's tags, no predictions.", "--people"),
    predicted: bool = flag("Only predictions that nobody rejected.", "--predicted"),
    only_own: bool = options.ONLY_OWN,
    only_built_in: bool = options.ONLY_BUILT_IN,
    precision: float = probability(
        USUAL_PRECISION,
        "The precision that predictions must have on held-out tracks, tag by tag; tags that "
        "cannot reach it are not written. 0 uses the thresholds of `harmonium tag`.",
        "--precision",
        max=0.99,
    ),
    dry_run: bool = flag("Show what would change, and write nothing.", "--dry-run"),
    yes: bool = flag("Do not ask before writing.", "--yes", "-y"),
    as_json: bool = options.JSON,
    mode: str | None = value(
        "MODE",
        "merge: add values missing in any spelling (default); append: add values missing "
        "letter for letter; overwrite: replace the field; only-if-empty: skip filled fields.",
        **RULES,
    ),
    field: list[str] | None = value(
        "[TAG|KIND=]FIELD",
        "Write a tag, or a kind of tags (see `harmonium kind`), to genre, mood, grouping, comment "
        "or none; repeatable. FIELD alone is for all other tags.",
        "--field",
        "-f",
        **RULES,
    ),
    default_field: str | None = value(
        "FIELD", "The field for all other tags, whatever their kind: genre, … or none.", **RULES
    ),
    only: list[str] | None = value("TAG", "Write only this tag; repeatable.", **RULES),
    ignore: list[str] | None = value("TAG", "Do not write this tag; repeatable.", **RULES),
    alias: list[str] | None = value(
        "TAG=NAME", "Write a tag under another name; repeatable.", **RULES
    ),
    scores: bool | None = flag(
        "Also write the probabilities, for Harmonium.", "--scores", default=None, **RULES
    ),
    features: bool | None = flag(
        "Also write audio features, such as ENERGY 0.73.", "--features", default=None, **RULES
    ),
    id3_version: int | None = value(
        "3|4", "ID3 version for files without a tag; by default 4.", "--id3", **RULES
    ),
    grouping_frame: str | None = value(
        "TIT1|GRP1", "ID3 frame for the grouping; newer iTunes reads GRP1.", **RULES
    ),
    rules: Path | None = value("FILE", "TOML file with rules; options add to it.", **RULES),
    remember: bool = flag("Save these rules in the library.", "--remember", **RULES),
    forget: bool = flag("Drop the rules saved in the library.", "--forget", **RULES),
) -> None:
    """Write tags into the music files, where players read them.

    Writes people's tags, and predictions that reach the precision you ask for. Genres go to the
    genre, moods to the mood, all other tags to the grouping, unless the rules say otherwise. The
    audio is not touched, and `harmonium undo` restores the files to the byte. After an
    interruption, the same command continues.

    Example: harmonium write ~/Music/Jazz --field instrument=comment --dry-run
    In Python: library.write("Jazz", precision=0.8, dry_run=True)
    """
    from harmonium.library.filetags.rules import parse_pairs
    from harmonium.library.searching.ranking import feature_column

    out = Output(as_json)
    given = {
        "mode": mode,
        "fields": parse_pairs([one for one in field or [] if "=" in one], "--field"),
        "default_field": _default_field(field or [], default_field),
        "whitelist": only or None,
        "ignore": ignore or None,
        "aliases": parse_pairs(alias or [], "--alias"),
        "scores": scores,
        "features": features,
        "id3_version": id3_version,
        "grouping_frame": grouping_frame,
    }
    wants_predictions = predicted or not people
    if features and not wants_predictions:
        raise DataError("--features are predictions, which --people leaves out. Drop --people.")
    with options.opened(library) as opened:
        if features:
            feature_column(opened.snapshot().tags, "energy")  # fails if the model has no features
        final = _rules(opened, rules, given, remember=remember, forget=forget)
        with out.bar("reading") as progress:
            plan = opened.writer.plan(
                *(paths or []),
                query=query,
                precision=precision,
                people=people or not predicted,
                predicted=wants_predictions,
                owner=options.owner_of(only_own, only_built_in),
                rules=final,
                progress=progress,
            )
        if wants_predictions:
            out.note(*_about_predictions(opened, plan, precision))
        raise typer.Exit(_carry_out(out, opened, plan, dry_run=dry_run, yes=yes))


def _default_field(fields: list[str], default: str | None) -> str | None:
    """The field for all other tags: --default-field, or --field without a tag."""
    from harmonium.library.filetags import FIELDS

    named = []
    for field in fields:
        if "=" in field:
            continue
        if field.strip() not in FIELDS:
            raise DataError(
                f"--field takes TAG=FIELD, or one of {', '.join(FIELDS)}; got '{field.strip()}'."
            )
        named.append(field.strip())
    if default is not None:
        named.append(default)
    different = list(dict.fromkeys(named))
    if len(different) > 1:
        raise DataError(f"All other tags go to one field; got {' and '.join(different)}. Name one.")
    return different[0] if different else None


def _rules(
    library: Library, file: Path | None, given: dict[str, Any], *, remember: bool, forget: bool
) -> Rules:
    """What the library remembers, then the file, then the options."""
    from harmonium.library.filetags.rules import join_layers, read_rules
    from harmonium.library.model.tag_table import unknown_tag
    from harmonium.library.writing.rules import RULES_SETTING, library_rules, remembered_rules

    tags = library.snapshot().tags
    known = tags.names | set(library.genres().parents)
    for tag in given["whitelist"] or []:
        if tags.name(tag) not in known:
            raise unknown_tag(tag, known)
    kept = {} if forget else remembered_rules(library)
    from_file = {} if file is None else read_rules(file)
    layers = [kept, from_file, given]
    rules = library_rules(library, layers)
    if remember:
        library.settings.set(RULES_SETTING, join_layers(layers))
    elif forget:
        library.settings.set(RULES_SETTING, {})
    return rules


def _about_predictions(library: Library, plan: WritePlan, precision: float) -> Iterable[str]:
    """Say which predictions are missing or not written, and where their precision comes from."""
    from harmonium.library.model.tag_table import NotWritten
    from harmonium.library.writing.wanted import count_untagged

    if n := count_untagged(library, plan.ids):
        yield f"{counted(n, 'track')} without predictions; run `harmonium tag`."
    snapshot = library.snapshot()
    if not precision or not snapshot.model.id:
        return
    if not snapshot.tags.has_curves:
        yield (
            "The model's precision is unknown, so predictions above its thresholds are written. "
            "`harmonium train` measures it."
        )
    reasons: dict[NotWritten, list[str]] = {}
    for name, decision in snapshot.tags.written(precision).items():
        if decision.reason is not None and snapshot.tags.has_curves:
            reasons.setdefault(decision.reason, []).append(snapshot.tags[name].spelling)
    for reason in NotWritten:
        if names := reasons.get(reason):
            listed = ", ".join(names[:MAX_NAMED]) + (" …" if len(names) > MAX_NAMED else "")
            yield f"Not written ({reason.explanation}): {listed}."
    if {NotWritten.IMPRECISE, NotWritten.UNSTEADY} & reasons.keys():
        yield f"A --precision below {percent(precision)} writes more."
    if n := plan.count_predicted(snapshot.tags.only("built-in")):
        yield (
            f"{counted(n, 'predicted tag')} from the built-in model. Its precision was measured on "
            "other music and may be lower on yours; check with `harmonium review`."
        )


def _carry_out(out: Output, library: Library, plan: WritePlan, *, dry_run: bool, yes: bool) -> int:
    """Show the plan, ask, write and report; returns the exit code."""
    out.failures(plan.failures.items())
    if dry_run:
        out.json([file.change.to_dict() | {"guessed": file.new_guesses} for file in plan.files])
        show_plan(out, plan)
        return IN_PART if plan.failures else 0
    if not plan.files:
        out.json({"change": None, "written": []})
        if plan.n_unchanged:
            out.say(f"Nothing to write: {counted(plan.n_unchanged, 'file')} up to date.")
        elif not plan.failures:
            out.say("Nothing to write: no tracks found.")
        return exit_code(0, len(plan.failures))
    if not yes and len(plan.files) > 1 and not _agreed(out, plan):
        out.note("Nothing was written.")
        return NOTHING_DONE
    with out.bar("writing", STOPPED) as progress:
        report = library.writer.write(plan, progress=progress)
    out.failures(report.failures.items())
    out.json({"change": report.change, "written": report.paths})
    n_failed = len(report.failures) + len(plan.failures)
    n_tags = counted(report.n_tags, "tag")
    n_files = counted(len(report.paths), "file")
    parts = [f"{n_tags} written to {n_files}"]
    if plan.n_unchanged:
        parts.append(f"{plan.n_unchanged:,} already up to date")
    if n_failed:
        parts.append(f"{n_failed:,} failed")
    out.say("; ".join(parts) + ".", to_undo(report.change))
    return exit_code(len(report.paths), n_failed)


def _agreed(out: Output, plan: WritePlan) -> bool:
    """Whether the person agrees to what is shown; a program must pass --yes."""
    files = counted(len(plan.files), "file")
    if not has_reader():
        raise DataError(
            f"Tags would be written to {files}, and there is no terminal to ask. Pass --yes, or "
            "look first with --dry-run."
        )
    show_changes(out.errors, plan.files[:MAX_SHOWN])
    if len(plan.files) > MAX_SHOWN:
        out.note(f"and {len(plan.files) - MAX_SHOWN:,} more (--dry-run shows all)")
    out.note(_expected(plan))
    return typer.confirm(f"Write to {files}?", err=True)


def show_plan(out: Output, plan: WritePlan) -> None:
    """Show what would change: before and after on a terminal, else path, field, before, after."""
    if not out.is_terminal:
        rows = []
        for planned in plan.files:
            for field in planned.change.fields:
                before = "; ".join(field.before)
                after = "; ".join(field.after)
                rows.append((planned.change.path, field.field, before, after))
        out.table((), rows)
        return
    show_changes(out.console, plan.files)
    files = counted(len(plan.files), "file")
    out.say(f"{files} would change, {plan.n_unchanged:,} up to date.", _expected(plan))
    reasons: dict[str, set[str]] = {}
    for planned in plan.files:
        for tag, reason in planned.change.left_out:
            reasons.setdefault(reason, set()).add(tag)
    for reason, tags in reasons.items():
        out.say(f"Skipped ({reason}): {', '.join(sorted(tags))}")


def show_changes(console: Console, files: Sequence[PlannedFile]) -> None:
    """The fields of each file before and after."""
    for planned in files:
        console.print(Text(printable(planned.change.path), style="bold"), soft_wrap=True)
        table = Table.grid(padding=(0, 1))
        for style in ("", "dim"):
            table.add_column(style=style, no_wrap=True)
        table.add_column(overflow="fold")
        for field in planned.change.fields:
            difference = _difference(field, planned.new_guesses)
            table.add_row(f"  {field.field}", field.places[0], difference)
        console.print(table)


def _expected(plan: WritePlan) -> str | None:
    """How many of the predicted tags are expected to be wrong."""
    if not plan.n_guessed:
        return None
    n_wrong = plan.expected_wrong
    wrong = f"about {n_wrong:,.0f}" if n_wrong >= 1 else "less than 1"
    tags = counted(plan.n_guessed, "tag")
    return f"The model adds {tags}; {wrong} of them will be wrong."


def _difference(field: FieldChange, probabilities: Mapping[str, float]) -> Flow:
    """Removed values are struck through, new ones green, with their probability if predicted."""
    before, after = field.tags
    gone = [name for name in before if name not in after]
    parts = [Text(f"-{printable(name)}", style="red strike") for name in gone]
    for name in after:
        if name in before:
            parts.append(Text(printable(name)))
        else:
            sure = f" {percent(probabilities[name])}" if name in probabilities else ""
            parts.append(Text(f"+{printable(name)}{sure}", style="green"))
    return Flow(parts)
