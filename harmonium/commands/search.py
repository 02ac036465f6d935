"""`harmonium search`, `suggest` and `related`: tracks by tags, and tags by tags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
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
    from harmonium.library.store.tracks import Track

LEAST_LIKELY = 0.05  # a track that does not match is listed from this probability on


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
        "Only tracks of at least this probability; 0 shows all possible ones. By default, tracks "
        "that have the tags, then less likely ones down to 0.05.",
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
    raw: bool = options.RAW,
    only_own: bool = options.ONLY_OWN,
    only_built_in: bool = options.ONLY_BUILT_IN,
    as_json: bool = options.JSON,
) -> None:
    """Search tracks by their tags, the most likely first.

    A track matches if people agree that it has the tags, or, where they leave one open, if its
    probability reaches the tag's threshold. Tracks that people gave these tags are certain and come
    first, then those that the model adds, by probability, and then less likely ones. The
    probabilities of several tags are multiplied, and -tag counts as one minus the tag's. If neither
    people nor the model say anything about a tag, it counts as absent; a track found only for that
    reason is shown as open.

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
    from harmonium.library.export import PLAYLIST_ENDINGS, check_export

    if playlist is not None:
        check_writable(playlist.expanduser(), PLAYLIST_ENDINGS)
    if export is not None:
        check_export(export.expanduser())
    out = Output(as_json)
    owner = options.owner_of(only_own, only_built_in)
    text = " ".join(query or [])
    order = None if sort is None else sort.strip()
    with options.opened(library) as opened, out.bar("comparing") as progress:
        out.folders = opened.folders()
        result = opened.search(
            text,
            like=like,
            start=start,
            end=end,
            predicted=predicted,
            order=order,
            owner=owner,
            min_probability=min_probability,
            limit=limit,
            features=as_json,
            progress=progress,
        )
        result = replace(result, hits=[hit for hit in result.hits if _is_listed(hit)])
        matching = [hit for hit in result if hit.holds]
        change = None
        if save is not None:
            change = opened.save_search(
                save,
                text,
                like=like,
                start=start,
                end=end,
                predicted=predicted,
                order=order,
                owner=owner,
                min_probability=min_probability,
                limit=limit,
            )
        tracks = [hit.track for hit in matching]
        if playlist is not None and tracks:
            opened.playlist(playlist, tracks, relative=relative)
        if export is not None and tracks:
            opened.export(export, matching, owner, raw=raw)
        has_model = opened.models.current(whole=False) is not None
    _note_unlearnt(out, result, has_model=has_model)
    _show(out, result)
    if save is not None:
        out.note(f"Saved as {save!r}.", to_undo(change))
    n_likely = len(result) - len(matching)
    if n_likely:
        out.hint(f"{counted(len(matching), 'track')} with these tags, then less likely ones.")
    if result.n_below > n_likely and len(result) < limit and not as_json:
        _note_hidden(out, result.n_below, n_likely, min_probability)
    elif len(result) == limit and result.total != limit and start is None and order != "smooth":
        out.hint(f"The first {counted(limit, 'track')}; -n {5 * limit} shows more.")
    if playlist is not None and tracks:
        _note_playlist(out, tracks, playlist)
    if export is not None and tracks:
        out.note(f"{counted(len(tracks), 'track')}: {export}")
    raise typer.Exit(0 if result.hits else 1)


def _note_unlearnt(out: Output, result: SearchResult, *, has_model: bool) -> None:
    """The tags of the query that the model has not learnt."""
    if result.people_only and not has_model:
        out.note("No model yet; run `harmonium train`. Only people's tags count.")
        return
    for tag in result.people_only:
        out.note(f"The model has not learnt {tag!r}: only people's tags count.")


def _note_hidden(out: Output, n_below: int, n_likely: int, min_probability: float | None) -> None:
    """How many less likely tracks are not shown."""
    if min_probability is None:
        hidden = counted(n_below - n_likely, "less likely track")
    else:
        hidden = f"{counted(n_below, 'track')} below {100 * min_probability:g} %"
    out.note(f"{hidden} not shown; --min-probability 0 shows all.")


def _note_playlist(out: Output, tracks: Sequence[Track], playlist: Path) -> None:
    """How many tracks are in the playlist, and those that cannot be."""
    from harmonium.library.export import can_be_listed

    unlisted = [track.path for track in tracks if not can_be_listed(track)]
    out.note(f"{counted(len(tracks) - len(unlisted), 'track')}: {playlist}")
    for path in unlisted:
        out.note(f"{path} is not in the playlist: its name has a line break.")


def _is_listed(hit: Hit) -> bool:
    """Whether it matches, or may do so."""
    return hit.holds or hit.probability is None or hit.probability >= LEAST_LIKELY


def _show(out: Output, result: SearchResult) -> None:
    out.json([_record(hit) for hit in result])
    if out.form == "json":
        return
    if not result.hits:
        out.note("No tracks found.")
    elif out.is_terminal:
        _show_to_people(out, result)
    else:
        out.table((), [(_score(hit), hit.source, hit.track.path) for hit in result])


def _show_to_people(out: Output, result: SearchResult) -> None:
    """The audio features that were asked for, then how certain a track is, and the track."""
    names = [*result.hits[0].features]
    has_similarity = any(hit.similarity is not None for hit in result)
    columns = [f">{name.capitalize()}" for name in names]
    columns += [">Similarity" if has_similarity else ">Probability", "Track", "File"]
    rows = []
    for hit in result:
        row: list[Cell] = []
        for name in names:
            row.append(f"{hit.features[name]:.2f}" if name in hit.features else "")
        row += [_certainty(hit), hit.track.name, hit.track.path]
        rows.append(row)
    out.table(columns, rows)


def _score(hit: Hit) -> float:
    probability = 1.0 if hit.probability is None else hit.probability
    similarity = 1.0 if hit.similarity is None else max(0.0, hit.similarity)
    return probability * similarity


def _certainty(hit: Hit) -> Cell:
    if hit.similarity is not None:
        return _score(hit)
    if hit.probability is None:
        return Text("name", style="dim")
    if hit.source == "people":
        return Text("tagged", style="green")
    if hit.source == "nobody":
        return Text("open", style="dim")
    return _score(hit)


def _record(hit: Hit) -> dict[str, Any]:
    return {
        "id": hit.track.id,
        "path": hit.track.path,
        "artist": hit.track.artist,
        "title": hit.track.title,
        "probability": 1.0 if hit.probability is None else hit.probability,
        "holds": hit.holds,
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
    from harmonium.library import tags as tag_functions

    given = [part.strip() for tag in tags for part in tag.split(",") if part.strip()]
    with options.opened_if_any(library) as opened:
        tagger_and_said = tag_functions.tagger_and_said(opened)
        suggested = tag_functions.suggest(*tagger_and_said, given, number)
        spellings = opened.tags.spellings() if opened else {}
    columns: Columns = {
        "Tag": lambda tag: spellings.get(tag.tag, tag.tag),
        ">Probability": "probability",
        ">Usual": "usual",
    }
    Output(as_json).show(suggested, columns)


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
    from harmonium.library import tags as tag_functions

    with options.opened_if_any(library) as opened:
        tagger_and_said = tag_functions.tagger_and_said(opened)
        found = tag_functions.related(*tagger_and_said, tag, number)
        spellings = opened.tags.spellings() if opened else {}
    columns: Columns = {
        "Tag": lambda other: spellings.get(other.tag, other.tag),
        ">Log-odds": lambda other: f"{other.log_odds:+.2f}",
        ">With": "probability_with",
        ">Without": "probability_without",
    }
    Output(as_json).show(found, columns)
