"""`harmonium search`: tracks by their tags."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from harmonium.commands.denied_tags import takes_denied_tags
from harmonium.commands.options import (
    JsonOption,
    LibraryOption,
    OnlyMineOption,
    OnlyShippedOption,
    file_option,
    owner_of,
)
from harmonium.commands.screen import bar, percent, printable, say, show_rows
from harmonium.errors import counted

if TYPE_CHECKING:
    from harmonium.library.answering.search import Hit


@takes_denied_tags
def search(
    query: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="QUERY",
            help="Tags with AND, OR, NOT (or -) and brackets; tags side by side must all hold. "
            "A tag of several words may be in quotes, within those of the shell.",
        ),
    ] = None,
    library: LibraryOption = None,
    like: Annotated[
        str | None,
        typer.Option(
            metavar="TRACK",
            help="Tracks that sound like this one: a file, the end of its path, #NUMBER, "
            "or artist - title.",
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", metavar="N", min=1, help="How many tracks, at most.")
    ] = 20,
    min_probability: Annotated[
        float,
        typer.Option(
            "--min-probability",
            "-p",
            metavar="P",
            min=0,
            max=1,
            help="Leave out less probable ones; 0 shows all that are possible.",
        ),
    ] = 0.05,
    predicted: Annotated[
        bool,
        typer.Option("--predicted", help="Only what the model adds to what people say."),
    ] = False,
    playlist: Annotated[
        Path | None, file_option("Write the tracks as a playlist, too: .m3u8.", "--playlist", "-o")
    ] = None,
    relative: Annotated[
        bool,
        typer.Option(
            "--relative",
            help="In the playlist, paths from its own folder on, so that both can be moved "
            "together.",
        ),
    ] = False,
    export: Annotated[
        Path | None,
        file_option(
            "Write the tracks with their tags for another program, too: .xml for Rekordbox, .sh "
            "for beets.",
            "--export",
        ),
    ] = None,
    only_mine: OnlyMineOption = False,
    only_shipped: OnlyShippedOption = False,
    as_json: JsonOption = False,
) -> None:
    """Find tracks by their tags, the surest first.

    People's own tags are certain and come first. After them come the
    tracks that the model finds, by probability: that of several tags is
    the product of theirs, that of -tag is one minus that of tag. With
    --like, tracks are ordered by how alike they sound, and how alike
    their learnt tags are: 100 % is the same, 0 % as unlike as any two
    tracks. It needs no model, only `harmonium index`. Where neither
    people nor the model say anything of a tag, it does not hold, and a
    track that is found by that alone is called open.

    [dim]Example:[/dim]  harmonium search jazz -rock --playlist evening.m3u8

    [dim]Exit codes:[/dim]  0 something was found; 1 nothing was; 2 the question
    cannot be answered, with the reason.
    """
    from harmonium.library import Library
    from harmonium.library.answering.search import search as search_library
    from harmonium.library.export import check_export, write_export
    from harmonium.library.playlist import can_be_listed, check_playlist, write_playlist
    from harmonium.library.precision import USUAL_PRECISION
    from harmonium.library.write import TagSources, wanted_tags

    if playlist is not None:
        playlist = playlist.expanduser()
        check_playlist(playlist)
    if export is not None:
        export = export.expanduser()
        check_export(export)
    errors = Console(stderr=True)
    comparing = nullcontext() if like is None else bar(errors, "comparing")
    with Library.open(library, create=False) as opened, comparing as progress:
        has_model = opened.models.current(whole=False) is not None
        track = None if like is None else opened.tracks.resolve(like).id
        found = search_library(
            opened,
            " ".join(query) if query else None,
            like=track,
            limit=limit,
            min_probability=min_probability,
            predicted=predicted,
            progress=progress,
            owner=owner_of(only_mine, only_shipped),
        )
        if export is not None and found.hits:
            source = TagSources(owner=owner_of(only_mine, only_shipped), precision=USUAL_PRECISION)
            ids, spelt = [hit.track.id for hit in found.hits], opened.spellings()
            tagged = [
                (track, [spelt.get(tag, tag) for tag in tags])
                for track, tags in wanted_tags(opened, ids, source)
            ]
            not_exported = write_export(export, tagged)
    if playlist is not None and found.hits:
        write_playlist(playlist, [hit.track for hit in found.hits], relative=relative)
    if not has_model and found.people_only:
        say(errors, "There is no model yet ('harmonium train'): only what people say counts.")
    for name in found.people_only if has_model else []:
        say(errors, f"The model has not learnt {name!r}: only what people say about it counts.")
    if as_json:
        print(json.dumps([_hit_record(hit) for hit in found.hits], indent=1))
    elif found.hits:
        _show_hits(Console(), found.hits)
    else:
        say(errors, "Nothing was found.")
    if found.n_below and not as_json:
        tracks = "1 track is" if found.n_below == 1 else f"{found.n_below:,} tracks are"
        floor = f"{100 * min_probability:g} %"
        say(errors, f"{tracks} left out, with less than {floor}; --min-probability 0 shows all.")
    if playlist is not None and found.hits:
        unlisted = [hit.track.path for hit in found.hits if not can_be_listed(hit.track)]
        say(errors, f"{counted(len(found.hits) - len(unlisted), 'track')}: {playlist}")
        for path in unlisted:
            say(errors, f"{path} is not in the playlist: its name has a line break in it.")
    if export is not None and found.hits:
        say(errors, f"{counted(len(found.hits) - len(not_exported), 'track')}: {export}")
        if not_exported:
            n, few = len(not_exported), ", ".join(track.path for track in not_exported[:3])
            more = ", …" if n > 3 else ""
            say(
                errors,
                f"{counted(n, 'track')} not in it, without tags or with a name that beets cannot "
                f"find: {few}{more}",
            )
    raise typer.Exit(0 if found.hits else 1)


def _show_hits(console: Console, hits: list[Hit]) -> None:
    rows: list[tuple[str | Text, ...]] = []
    near = hits[0].similarity is not None
    for hit in hits:
        score = hit.probability * (1 if hit.similarity is None else max(0.0, hit.similarity))
        if not console.is_terminal:
            rows.append((f"{score:.4f}", hit.source, hit.track.path))
            continue
        certain = {"people": Text("tagged", style="green"), "nobody": Text("open", style="dim")}
        shown = percent(score) if near else certain.get(hit.source, percent(score))
        rows.append((shown, hit.track.name, Text(printable(hit.track.path), style="dim")))
    heading = "Alike" if near else "Likely"
    show_rows(console, (heading, "Track", "File"), rows, right=(heading,))


def _hit_record(hit: Hit) -> dict[str, Any]:
    track = hit.track
    return {
        "id": track.id,
        "path": track.path,
        "artist": track.artist,
        "title": track.title,
        "probability": hit.probability,
        "source": hit.source,
        "tags": hit.tags,
        "similarity": hit.similarity,
    }
