"""`harmonium write`: the library's tags into the files, where players look."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from harmonium.commands import IN_PART, INTERRUPTED, NOTHING_DONE, exit_code
from harmonium.commands.options import (
    JsonOption,
    LibraryOption,
    OnlyMineOption,
    OnlyShippedOption,
    file_option,
    owner_of,
)
from harmonium.commands.screen import bar, say, say_failures
from harmonium.errors import counted

if TYPE_CHECKING:
    from harmonium.library import Library
    from harmonium.library.filetags import Rules
    from harmonium.library.write import WritePlan

FEW = 10
"""Files whose changes are shown before asking."""
LEAST_PROBABILITY = 0.5
"""A track counts as found if the question is as likely as not to be true of it."""


def write(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TRACK",
            help="Tracks: files, folders, #NUMBER, or artist - title. Without any, and without "
            "--query, all tracks of the library.",
        ),
    ] = None,
    library: LibraryOption = None,
    query: Annotated[
        str | None,
        typer.Option(
            "--query",
            "-q",
            metavar="QUERY",
            help="Only tracks for which this is more likely than not, as 'harmonium search' says.",
        ),
    ] = None,
    people: Annotated[
        bool, typer.Option("--people", help="Only what people say, no predictions.")
    ] = False,
    predicted: Annotated[
        bool, typer.Option("--predicted", help="Only what the model predicts and nobody denies.")
    ] = False,
    only_mine: OnlyMineOption = False,
    only_shipped: OnlyShippedOption = False,
    precision: Annotated[
        float,
        typer.Option(
            "--precision",
            metavar="P",
            min=0,
            max=0.99,
            help="How often what the model adds is to be right, tag by tag, as held-out tracks "
            "show it. A tag that cannot be right so often is not predicted. 0 takes the thresholds "
            "of 'harmonium tag'.",
        ),
    ] = 0.8,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", "-n", help="Show what would change, and write nothing.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before writing.")] = False,
    mode: Annotated[
        str | None,
        typer.Option(
            metavar="MODE",
            help="What to do with a field that has values: merge adds what it lacks in any "
            "spelling (the default), append what it lacks letter for letter, overwrite replaces "
            "it, only-if-empty leaves it.",
        ),
    ] = None,
    field: Annotated[
        list[str] | None,
        typer.Option(
            "--field",
            "-f",
            metavar="[TAG=]FIELD",
            help="The field for a tag: genre, mood, grouping or comment; as often as you like. "
            "FIELD alone is the one for all others.",
        ),
    ] = None,
    default_field: Annotated[
        str | None,
        typer.Option(
            metavar="FIELD",
            help="The field for all other tags (genre by default); none leaves them out.",
        ),
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="TAG", help="Write only these tags.")
    ] = None,
    ignore: Annotated[
        list[str] | None, typer.Option(metavar="TAG", help="Do not write this tag.")
    ] = None,
    alias: Annotated[
        list[str] | None, typer.Option(metavar="TAG=NAME", help="Write a tag under another name.")
    ] = None,
    scores: Annotated[
        bool, typer.Option("--scores", help="Also write the probabilities, for Harmonium.")
    ] = False,
    id3_version: Annotated[
        int | None,
        typer.Option(
            "--id3",
            metavar="3|4",
            help="The version of ID3 for files that have no such tag, 2.4 by default.",
        ),
    ] = None,
    grouping_frame: Annotated[
        str | None,
        typer.Option(
            metavar="TIT1|GRP1",
            help="The ID3 frame for grouping; newer versions of iTunes look for GRP1.",
        ),
    ] = None,
    rules: Annotated[
        Path | None, file_option("A TOML file with the rules above; options add to it.")
    ] = None,
    remember: Annotated[
        bool, typer.Option("--remember", help="Keep these rules in the library for next time.")
    ] = False,
    forget: Annotated[
        bool, typer.Option("--forget", help="Do not use the rules of last time, and drop them.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Write tags into the files of tracks, where players look for them.

    What people say, and what the model predicts with the precision asked
    for, goes into genre, mood, grouping and comment by the rules. The sound
    is not touched, and 'harmonium undo' restores the files to the byte. An
    interrupted write goes on when it is started again.

    [dim]Example:[/dim]  harmonium write ~/Music/Jazz --field mellow=mood --dry-run

    [dim]Exit codes:[/dim]  0 all files have their tags; 1 some could not be
    written, the others have them; 2 nothing was done; 130 interrupted.
    """
    from harmonium.commands.write_report import say_imprecise, say_measured_elsewhere
    from harmonium.library import Library
    from harmonium.library.write import (
        TagSources,
        count_unheard,
        imprecise_tags,
        plan_writes,
    )
    from harmonium.library.write_rules import parse_pairs

    given = {
        "mode": mode,
        "fields": parse_pairs([one for one in field or [] if "=" in one], "--field"),
        "default_field": _default_field(field or [], default_field),
        "whitelist": only or None,
        "ignore": ignore or None,
        "aliases": parse_pairs(alias or [], "--alias"),
        "scores": scores or None,
        "id3_version": id3_version,
        "grouping_frame": grouping_frame,
    }
    with Library.open(library, create=False) as opened:
        _check_known(opened, only or [])
        final = _rules(opened, rules, given, remember=remember, forget=forget)
        source = TagSources(
            people=people or not predicted,
            predicted=predicted or not people,
            owner=owner_of(only_mine, only_shipped),
            precision=precision or None,
        )
        ids, files = _chosen_tracks(opened, paths or [], query)
        errors = Console(stderr=True)
        if source.predicted and (n := count_unheard(opened, ids)):
            have = f"{counted(n, 'track')} {'has' if n == 1 else 'have'}"
            say(errors, f"{have} no predictions yet; 'harmonium tag' makes them.")
        if source.predicted and source.precision and opened.models.current(whole=False):
            found = imprecise_tags(opened, source.precision)
            say_imprecise(errors, found, source.precision, opened.spellings())
        with bar(errors, "reading") as progress:
            plan = plan_writes(opened, ids, final, source=source, only_to=files, progress=progress)
        if source.predicted and source.precision:
            say_measured_elsewhere(errors, _from_elsewhere(opened, plan))
        code = _carry_out(opened, plan, dry_run=dry_run, yes=yes, as_json=as_json)
    raise typer.Exit(code)


def _from_elsewhere(library: Library, plan: WritePlan) -> int:
    """How many of the tags that the plan adds are predicted by the model that came along."""
    from harmonium.data.normalise import normalise_tag

    model = library.models.current(whole=False)
    if model is None:
        return 0
    learnt = model.only("built-in").learnt
    names = {tag for tag, is_one in zip(model.vocabulary, learnt, strict=True) if is_one}
    return sum(normalise_tag(tag) in names for one in plan.files for tag in one.new_guesses)


def _default_field(fields: list[str], default: str | None) -> str | None:
    """The field of all tags for which none is named: --default-field, or --field without a tag."""
    from harmonium.errors import DataError
    from harmonium.library.filetags import FIELDS

    alone = [one.strip() for one in fields if "=" not in one]
    for one in alone:
        if one not in FIELDS:
            raise DataError(f"--field takes TAG=FIELD, or one of {', '.join(FIELDS)}; got '{one}'.")
    named = dict.fromkeys([*alone, *([] if default is None else [default])])
    if len(named) > 1:
        raise DataError(f"All other tags go to one field, got {' and '.join(named)}. Name one.")
    return next(iter(named), None)


def _check_known(library: Library, tags: list[str]) -> None:
    """Refuse tags that no track can have: they are misspelt."""
    from harmonium.data.normalise import normalise_tag
    from harmonium.library.answering.query import unknown_tag
    from harmonium.library.answering.search import known_tags

    if not tags:
        return
    known = known_tags(library, library.models.current(whole=False))
    known |= set(library.genres().parents)
    for tag in tags:
        if normalise_tag(tag) not in known:
            raise unknown_tag(tag, known)


def _chosen_tracks(
    library: Library, named: list[str], query: str | None
) -> tuple[list[int], set[str] | None]:
    """The numbers of the present tracks that are named or found, ascending; else of all.

    Where files or folders are named, also their files there: others with the same sound are not
    meant.

    named : files, folders, "#NUMBER", "artist - title"
    query : what to search for; if there are names too, among those

    Raises
    ------
    LibraryError
        where a name fits no track, or one whose file cannot be used
    """
    from harmonium.library.answering.search import search

    chosen, files = set(library.tracks.ids().tolist()), None
    if named:
        found = [one for text in named for one in _named(library, text)]
        chosen &= {number for number, _ in found}
        files = {path for _, path in found}
    if query is not None:
        limit = max(1, library.tracks.count())
        hits = search(library, query, limit=limit, min_probability=LEAST_PROBABILITY).hits
        chosen &= {hit.track.id for hit in hits}
    return sorted(chosen), files


def _named(library: Library, text: str) -> list[tuple[int, str]]:
    """(track, file) of each file that a text means."""
    from harmonium.errors import LibraryError
    from harmonium.files import absolute_path
    from harmonium.library.known_files import is_below

    place = absolute_path(text)
    if not Path(place).is_dir():
        track = library.tracks.resolve(text)
        if track.state != "present":
            why = f": {track.reason.rstrip('.')}" if track.reason else ""
            raise LibraryError(f"{text} cannot be used; its file is {track.state}{why}.")
        everywhere = [track.path, *library.tracks.copies([track.id]).get(track.id, [])]
        return [(track.id, p) for p in ([place] if place in everywhere else everywhere)]
    copies = library.tracks.copies(library.tracks.ids())
    inside = [
        (track.id, path)
        for track in library.tracks.all()
        for path in (track.path, *copies.get(track.id, []))
        if is_below(path, [place])
    ]
    if not inside:
        raise LibraryError(
            f"The library has no track in the folder {text}. `harmonium index {text}` adds those "
            "that are there."
        )
    return inside


def _rules(
    library: Library, file: Path | None, given: dict[str, Any], *, remember: bool, forget: bool
) -> Rules:
    """What the library remembers, then the file, then the options."""
    from harmonium.library.answering.search import known_tags
    from harmonium.library.write_rules import (
        RULES_SETTING,
        join_layers,
        library_rules,
        read_rules,
    )

    layers = [
        {} if forget else library.settings.get(RULES_SETTING, {}),
        {} if file is None else read_rules(file),
        given,
    ]
    tags = known_tags(library, library.models.current(whole=False))
    rules = library_rules(library, layers, tags)
    if remember or forget:
        library.settings.set(RULES_SETTING, join_layers(layers) if remember else {})
    return rules


def _carry_out(
    library: Library, plan: WritePlan, *, dry_run: bool, yes: bool, as_json: bool
) -> int:
    """Show the plan, ask, write, report; the exit code."""
    from harmonium.commands import write_report as report
    from harmonium.library.write import write_planned

    console, errors = Console(), Console(stderr=True)
    say_failures(errors, plan.failures)
    if dry_run:
        if as_json:
            records = [one.change.to_dict() | {"guessed": one.new_guesses} for one in plan.files]
            print(json.dumps(records, ensure_ascii=False))
        else:
            report.show_plan(console, plan)
        return IN_PART if plan.failures else 0
    if not plan.files:
        report.say_nothing_to_write(console, plan)
        return exit_code(0, len(plan.failures))
    if not yes and len(plan.files) > 1 and not _agreed(errors, plan):
        errors.print("Nothing was written.")
        return NOTHING_DONE
    with bar(errors, "writing") as progress:
        try:
            written = write_planned(library, plan.files, progress=progress)
        except KeyboardInterrupt:
            say(
                errors,
                "Stopped. Each file is the old one or the new one. The same command goes on; "
                "'harmonium undo' takes back what was written.",
            )
            raise typer.Exit(INTERRUPTED) from None
    say_failures(errors, written.failures)
    if as_json:
        print(json.dumps({"change": written.change, "written": written.paths}, ensure_ascii=False))
    else:
        report.say_written(console, written, plan)
    return exit_code(len(written.paths), len(plan.failures) + len(written.failures))


def _agreed(errors: Console, plan: WritePlan) -> bool:
    """Whether the person says yes to what is shown; a program has to with --yes."""
    from harmonium.commands.write_report import say_expected, show_changes
    from harmonium.errors import DataError

    files = counted(len(plan.files), "file")
    if not is_terminal():
        raise DataError(
            f"Tags would be written to {files}, and there is nobody to ask. Say --yes, or look "
            "first with --dry-run."
        )
    show_changes(errors, plan.files[:FEW])
    if len(plan.files) > FEW:
        errors.print(f"and {len(plan.files) - FEW:,} more (--dry-run shows all)", style="dim")
    say_expected(errors, plan)
    return typer.confirm(f"Write to {files}?", err=True)


def is_terminal() -> bool:
    """Whether there is somebody to ask."""
    return sys.stdin is not None and sys.stdin.isatty()
