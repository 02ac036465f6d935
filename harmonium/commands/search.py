"""`harmonium search`, `suggest` and `related`: tracks by tags, and tags by tags."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.text import Text

from harmonium.commands import options
from harmonium.commands.options import argument, file, flag, number, probability, value
from harmonium.commands.output import Cell, Columns, Output, to_undo
from harmonium.errors import counted

if TYPE_CHECKING:
    from harmonium.library.snapshot import Hit, SearchResult


def search(
    query: list[str] | None = argument(
        "QUERY",
        "Tags with and, or, not (or -) and brackets; tags side by side must all match. Words that "
        "are not tags find titles, artists and albums. "
        "Quote a tag of several words inside the shell's quotes. Audio features: 'energy:>0.7', "
        "'valence:<0.3', energy:0.4..0.8.",
    ),
    library: str | None = options.LIBRARY,
    like: str | None = value("TRACK", f"Tracks that sound like this one. {options.TRACK_HELP}"),
    start: str | None = value("TRACK", "Start of a path by sound to --to, of -n tracks.", "--from"),
    end: str | None = value("TRACK", "The end of the path from --from.", "--to"),
    sort: str | None = value(
        "ORDER",
        "Sort by probability, likeness, name, added (newest first), smooth (the first -n tracks, "
        "each similar to the one before) or an audio feature: energy (highest first), -energy "
        "(lowest first).",
    ),
    limit: int = number(20, "Show at most N tracks.", "--limit", "-n"),
    min_probability: float | None = probability(
        None,
        "Skip less likely tracks; 0 shows all possible ones. By default 0.05, and 0.3 with --sort.",
        "--min-probability",
        "-p",
    ),
    predicted: bool = flag("Only tracks that the model adds to your tags.", "--predicted"),
    save: str | None = value("NAME", "Also save the search; see `harmonium playlists`."),
    playlist: Path | None = file("Also write a playlist, .m3u8.", "--playlist", "-o"),
    relative: bool = flag("Use paths relative to the playlist's folder.", "--relative"),
    export: Path | None = file(
        "Also export tracks, tags and audio features: .xml (Rekordbox) or .csv."
    ),
    only_own: bool = options.ONLY_OWN,
    only_built_in: bool = options.ONLY_BUILT_IN,
    as_json: bool = options.JSON,
) -> None:
    """Search tracks by their tags, the most likely first.

    Tracks that people gave these tags are certain and come first. The model's finds follow, by
    probability: several tags' probabilities are multiplied, and -tag counts as one minus the tag's.
    If neither people nor the model say anything about a tag, it counts as absent; a track found
    only for that reason is shown as open.

    With --like, tracks are ordered by how similar they sound and how similar their learnt tags are:
    100 % is the same, 0 % an average pair of tracks. This needs no model, only `harmonium index`.

    With --from and --to, tracks lead from one to the other in small steps. Each is shown with its
    similarity to the one before, and those in between match the query.

    Example: harmonium search jazz -rock --playlist evening.m3u8
    Example: harmonium search jazz energy:0.7.. --sort valence
    Example: harmonium search --from calm.mp3 --to loud.mp3 -christmas
    In Python: library.search("jazz -rock"), library.similar("song.mp3")
    Exit codes: 0 something was found; 1 nothing was found; 2 the query is invalid.
    """
    from harmonium.files import check_writable
    from harmonium.library.export import PLAYLIST_ENDINGS, can_be_listed, check_export

    if playlist is not None:
        check_writable(playlist.expanduser(), PLAYLIST_ENDINGS)
    if export is not None:
        check_export(export.expanduser())
    out, owner = Output(as_json), options.owner_of(only_own, only_built_in)
    if min_probability is None:
        min_probability = 0.05 if sort in (None, "probability", "smooth") and start is None else 0.3
    with options.opened(library) as opened, out.bar("comparing") as progress:
        out.folders = opened.folders()
        asked: dict[str, Any] = {"like": like, "start": start, "end": end, "predicted": predicted}
        order = sort and sort.strip()
        asked |= {"order": order, "owner": owner, "min_probability": min_probability}
        text = " ".join(query or [])
        found = opened.search(text, limit=limit, features=as_json, progress=progress, **asked)
        change = None if save is None else opened.save_search(save, text, limit=limit, **asked)
        tracks = [hit.track for hit in found]
        if playlist is not None and tracks:
            opened.playlist(playlist, tracks, relative=relative)
        if export is not None and tracks:
            opened.export(export, found, owner)
        if found.people_only and opened.models.current(whole=False) is None:
            out.note("No model yet; run `harmonium train`. Only people's tags count.")
        else:
            only = "The model has not learnt {!r}: only people's tags count."
            out.note(*map(only.format, found.people_only))
    _show(out, found)
    out.note(None if save is None else f"Saved as {save!r}.", to_undo(change))
    if found.n_below and len(found) < limit and not as_json:
        below = f"{counted(found.n_below, 'track')} below {100 * min_probability:g} %"
        out.note(f"{below} not shown; --min-probability 0 shows all.")
    elif len(found) == limit and found.total != limit and start is None and sort != "smooth":
        out.hint(f"The first {counted(limit, 'track')}; -n {5 * limit} shows more.")
    if playlist is not None and tracks:
        unlisted = [track.path for track in tracks if not can_be_listed(track)]
        out.note(f"{counted(len(tracks) - len(unlisted), 'track')}: {playlist}")
        reason = "is not in the playlist: its name has a line break."
        out.note(*(f"{path} {reason}" for path in unlisted))
    if export is not None and tracks:
        out.note(f"{counted(len(tracks), 'track')}: {export}")
    raise typer.Exit(0 if tracks else 1)


def _show(out: Output, found: SearchResult) -> None:
    out.json([_record(hit) for hit in found])
    if out.form == "json":
        return
    if not found.hits:
        out.note("No tracks found.")
    elif out.is_terminal:
        near = any(hit.similarity is not None for hit in found)
        asked = [*found.hits[0].features]
        rows = [
            (
                *(f"{hit.features[name]:.2f}" if name in hit.features else "" for name in asked),
                *(_certainty(hit), hit.track.name, hit.track.path),
            )
            for hit in found
        ]
        columns = (">Similarity" if near else ">Probability", "Track", "File")
        out.table((*(f">{name.capitalize()}" for name in asked), *columns), rows)
    else:
        out.table((), [(_score(hit), hit.source, hit.track.path) for hit in found])


def _score(hit: Hit) -> float:
    similarity = 1.0 if hit.similarity is None else max(0.0, hit.similarity)
    return (1.0 if hit.probability is None else hit.probability) * similarity


def _certainty(hit: Hit) -> Cell:
    if hit.probability is None and hit.similarity is None:
        return Text("name", style="dim")
    words = {"people": Text("tagged", style="green"), "nobody": Text("open", style="dim")}
    return words.get(hit.source or "", _score(hit)) if hit.similarity is None else _score(hit)


def _record(hit: Hit) -> dict[str, Any]:
    return {name: getattr(hit.track, name) for name in ("id", "path", "artist", "title")} | {
        "probability": 1.0 if hit.probability is None else hit.probability,
        "source": hit.source,
        "tags": hit.tags,
        "features": hit.features,
        "similarity": hit.similarity,
    }


def suggest(
    tags: list[str] = argument("TAG", "Tags that a track has; commas are optional.", default=...),
    library: str | None = options.LIBRARY,
    number: int = number(10, "Show at most N tags.", "--number", "-n"),
    as_json: bool = options.JSON,
) -> None:
    """Suggest more tags for a track that has these.

    The sound is not used. First counts which tags people in the library gave together with these.
    If too few tracks have them, other collections of tags and the model help.

    Example: harmonium suggest rock guitar
    In Python: library.suggest("rock", "guitar")
    """
    given = [part.strip() for tag in tags for part in tag.split(",") if part.strip()]
    columns = {">Probability": "probability", ">Usual": "usual"}
    _show_tags(library, as_json, "suggest", given, number, columns=columns)


def related(
    tag: str = argument("TAG", "A tag.", default=...),
    library: str | None = options.LIBRARY,
    number: int = number(10, "Show at most N tags.", "--number", "-n"),
    as_json: bool = options.JSON,
) -> None:
    """List the tags that a tag makes more likely, and less likely.

    The strength is the difference that the tag makes in log-odds. The sound is not used. -n
    applies to each of the two lists.

    Example: harmonium related "hip hop"
    In Python: library.related("hip hop")
    """
    columns: Columns = {
        ">Log-odds": lambda one: f"{one.log_odds:+.2f}",
        **{">With": "probability_with", ">Without": "probability_without"},
    }
    _show_tags(library, as_json, "related", tag, number, columns=columns)


def _show_tags(place: str | None, as_json: bool, find: str, *asked: Any, columns: Columns) -> None:
    """What a function of `harmonium.library.tags` finds, with or without a library."""
    from harmonium.library import tags

    with options.opened_if_any(place) as library:
        found = getattr(tags, find)(*tags.tagger_and_said(library), *asked)
        spelt = library.spellings() if library else {}
    Output(as_json).show(found, {"Tag": lambda one: spelt.get(one.tag, one.tag), **columns})
