"""Importing people's tags from tables and files, and features from tables.

An import of tags is one change: it is done completely or not at all, and can be undone. What people
already say is not added again, so importing the same table twice does nothing.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import sqlalchemy as sa

from harmonium.arrays import Floats
from harmonium.data.tables import PARQUET, USUAL_NAMES, find_columns, read_parquet, read_rows
from harmonium.data.tag_names import (
    KINDS,
    NO_TAG,
    TagSplitter,
    kind_of,
    normalise_names,
    normalise_tag,
    possible_parts,
    speller,
)
from harmonium.errors import DataError, FileTagError, LibraryError, counted
from harmonium.library.filetags import FIELDS, UndoRecord, genre_names
from harmonium.library.filetags.formats import GIVEN
from harmonium.library.library import Library
from harmonium.library.store.changes import SETTING
from harmonium.library.store.opinions import Kind
from harmonium.library.store.schema import EXTRACTOR, KIND, change, written_file
from harmonium.library.store.tracks import TrackFinder

MAX_TAG_LENGTH = 100  # of a tag from a file, in characters; anything longer is a text
SPLIT_FIELDS = dict.fromkeys(("grouping", "comment"), (",", ";", "\n"))
"""Fields in which people put several tags into one value → what separates them."""
COLUMN_KINDS = {
    **{name: name for name in ("genre", "mood", "instrument", "voice", "era")},
    **{"style": "genre", "emotion": "mood", "vocal": "voice", "decade": "era"},
}
"""Names of columns, also in the plural, that say which kind of tags they hold."""
_TRACK_ROLES = ("item", "artist", "title")
_UNMATCHED = {**dict.fromkeys((*_TRACK_ROLES, "reason"), pl.String), "rows": pl.Int64}
_UNCLEAR = {  # a column's role → what the column says, and how to name it
    "item": (
        "which track a row is about",
        "Name it with --item (paths or numbers), or with --title and --artist.",
    ),
    "tag": ("which tag it has", "Name it with --tag."),
}


@dataclass
class ImportReport:
    """What was imported, and what was not."""

    change: int | None = None  # its number; None if nothing was new, or it was a dry run
    n_rows: int = 0  # rows of the table, or tags in files
    n_matched: int = 0  # rows whose track was found
    n_added: int = 0  # opinions that began or ended; in a dry run, those that would
    people: list[str] = field(default_factory=list)
    n_tracks: int = 0
    n_tags: int = 0
    unmatched: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=_UNMATCHED))
    """What was not found: item, artist, title, reason and rows, the most frequent first."""
    left_out: Counter[str] = field(default_factory=Counter)  # reason → rows that were not used
    ignored: Counter[str] = field(default_factory=Counter)  # word, not a tag → tracks with it
    n_own: int = 0  # tags in files that Harmonium itself wrote
    split: dict[str, tuple[str, ...]] = field(default_factory=dict)  # text → the tags in it
    whole: Counter[str] = field(default_factory=Counter)  # text read as one tag → how often
    renamed: dict[str, str] = field(default_factory=dict)  # former name → imported name

    @property
    def complete(self) -> bool:
        """Whether every row could be used."""
        return not len(self.unmatched) and not self.left_out


def import_table(
    library: Library,
    path: str | Path,
    *,
    item: str | int | None = None,
    artist: str | int | None = None,
    title: str | int | None = None,
    tag: str | int | None = None,
    user: str | int | None = None,
    value: str | int | None = None,
    person: str | None = None,
    default_person: str = "me",
    aliases: Mapping[str, str] | None = None,
    header: bool = True,
    delimiter: str | None = None,
    encoding: str = "utf-8",
    split: Sequence[str] | None = None,
    replace: bool = False,
    dry_run: bool = False,
) -> ImportReport:
    """Import the tags that a table says people gave to tracks.

    Parameters
    ----------
    path : a .csv, .tsv or .parquet file, also with .gz
    item, artist, title, tag, user, value : columns, by name or by position from 0; by default
        recognised by their names. Columns such as genre, mood and instrument hold tags of these
        kinds. `value` is positive if the tag fits, otherwise 0 or less.
    person : whose tags they are; by default, the column of users says so
    default_person : whose tags they are if neither says so
    aliases : spelling → tag, see `harmonium.data.read_aliases`
    header, encoding : how a text file is written, as in `harmonium.data.read_triples`
    delimiter : what separates its columns; by default recognised from its first line
    split : what separates tags in one cell; an empty text: nothing does. By default, cells are
        split where that is safe, see `harmonium.data.tag_names`.
    replace : whether to withdraw what these people said before and is not in the table
    dry_run : whether to report what would be imported, and import nothing

    Raises a `DataError` if a column is not clear or the file cannot be used.
    """
    file = Path(path).expanduser()
    named = {"item": item, "artist": artist, "title": title, "tag": tag, "value": value}
    if person is None or user is not None:
        named["user"] = user
    choose = partial(choose_columns, named, ("item", "tag"), file.name)
    rows = read_rows(file, choose, header=header, delimiter=delimiter, encoding=encoding)
    frame = pl.DataFrame({role: rows.values(role) for role in rows.columns})
    report = ImportReport(
        n_rows=len(frame) + sum(map(len, rows.left_out.values())),
        left_out=Counter({why: len(where) for why, where in rows.left_out.items()}),
    )
    how: dict[str, Any] = {"replace": replace, "dry_run": dry_run}
    how |= {"person": person or default_person, "aliases": aliases or {}, "split": split}
    return import_rows(library, frame, report, file.name, **how)


def import_rows(
    library: Library,
    frame: pl.DataFrame,
    report: ImportReport,
    source: str,
    *,
    person: str,
    aliases: Mapping[str, str] | None = None,
    split: Sequence[str] | None = None,
    replace: bool = False,
    dry_run: bool = False,
) -> ImportReport:
    """Import rows whose columns are texts, named by their roles; see `import_table`.

    Fills in ``report``. Rows without a user belong to ``person``.
    """
    frame = _match_tracks(library, frame.with_row_index("row"))
    report.unmatched = _unmatched(frame)
    has_person = "user" not in frame.columns
    columns = [role for role in ("tag", *KINDS) if role in frame.columns]
    others = frame.drop(columns)
    frame = pl.concat(others.with_columns(cell=frame[role], kind=pl.lit(role)) for role in columns)
    if len(columns) > 1:  # a table with a row for each track has empty cells
        frame = frame.filter(pl.col("cell").str.strip_chars() != "")
    known = library.opinions.tags()["tag"].to_list()
    cells = frame["cell"].unique(maintain_order=True)
    tags = _split_cells(
        cells, TagSplitter(cells, known=known, separators=split), aliases or {}, report
    )
    numbers = pl.col("value").str.strip_chars().cast(pl.Float64, strict=False)
    frame = (
        frame.drop_nulls("track_id")
        .join(tags, on="cell", maintain_order="left_right")
        .with_columns(
            person=pl.lit(person) if has_person else pl.col("user").str.strip_chars(),
            value=pl.when(numbers > 0).then(1).when(numbers.is_not_nan()).then(-1)
            if "value" in others.columns
            else pl.lit(1),
        )
    )
    wrong = {
        # it would be read as part of the tag
        "a minus before the tag (a column --value says that it does not fit)": pl.col("denied"),
        "an empty tag": pl.col("tag") == "",
        "an empty user": pl.col("person") == "",
        "a value that is not a number": pl.col("value").is_null(),
    }
    for reason, is_wrong in wrong.items():
        if n_wrong := frame.select(is_wrong.sum()).item():
            report.left_out[reason] = n_wrong
            frame = frame.filter(~is_wrong)
    report.n_matched = frame["row"].n_unique()
    kind: Kind = "person" if has_person else "import"
    return _keep(library, frame, report, source, kind=kind, replace=replace, dry_run=dry_run)


def import_file_tags(
    library: Library,
    *,
    fields: Iterable[str] = ("genre",),
    person: str = "files",
    split: Sequence[str] | None = None,
    replace: bool = False,
    dry_run: bool = False,
) -> ImportReport:
    """Import the tags that the files had when they were last indexed.

    A value that holds several tags is split. Texts too long for a tag are left out, and so is what
    Harmonium itself wrote into a file (unless that was undone) or gave to beets.

    Parameters
    ----------
    fields : some of "genre", "mood", "grouping" and "comment"
    person : the name under which these tags are kept
    split : what separates tags in one value; an empty text: nothing. By default, commas, semicolons
        and line breaks in grouping and comment; elsewhere see `harmonium.data.tag_names`.
    replace : whether to withdraw tags under that name that are no longer in the files
    dry_run : whether to report what would be imported, and import nothing
    """
    wanted = list(dict.fromkeys(fields))
    for name in wanted:
        if name not in FIELDS:
            raise DataError(f"'fields' must be among {', '.join(FIELDS)}, got {name!r}.")
    _check_tracks(library)
    report = ImportReport()
    written = _written_tags(library)
    values = {
        track.id: {name: [*track.file_tags.get(name, ())] for name in (*wanted, GIVEN)}
        for track in library.tracks.all()
    }
    for by_field in values.values() if "genre" in wanted else ():  # numbers become names
        by_field["genre"] = [one for text in by_field["genre"] for one in genre_names(text)]
    known = library.opinions.tags()["tag"].to_list()
    splitters = {
        name: TagSplitter(
            (value for by_field in values.values() for value in by_field.get(name, ())),
            known=known,
            separators=SPLIT_FIELDS.get(name) if split is None else split,
        )
        for name in wanted
    }
    triples: list[tuple[int, str, str, str]] = []
    for track_id, by_field in values.items():
        found: dict[str, tuple[str, str]] = {}
        own = written.get(track_id, set()).union(map(normalise_tag, by_field.pop(GIVEN)))
        for name, texts in by_field.items():
            for text in texts:
                parts = splitters[name].split(text)
                _note_split(report, text, parts)
                found = {normalise_tag(part): (part, name) for part in parts} | found
        for tag, (spelling, name) in found.items():
            report.n_rows += 1
            if tag in own:
                report.n_own += 1
            elif len(tag) > MAX_TAG_LENGTH:
                report.left_out[f"more than {MAX_TAG_LENGTH} characters"] += 1
            else:
                triples.append((track_id, tag, spelling, name))
    schema = {"track_id": pl.Int64, **dict.fromkeys(("tag", "spelling", "kind"), pl.String)}
    frame = pl.DataFrame(triples, schema=schema, orient="row").with_columns(person=pl.lit(person))
    report.n_matched = len(frame)
    source = f"{', '.join(wanted)} of the files"
    return _keep(library, frame, report, source, kind="file", replace=replace, dry_run=dry_run)


def _written_tags(library: Library) -> dict[int, set[str]]:
    """Track → the tags that Harmonium wrote to its file, without what was undone."""
    # A tag that an undo restores is Harmonium's only if it was before the undone change.
    own: dict[int, set[str]] = {}
    own_before: dict[tuple[int, int], frozenset[str]] = {}  # of a change and a track
    query = (
        sa.select(written_file, change.c.undoes)
        .join_from(written_file, change, change.c.id == written_file.c.change_id)
        .where(written_file.c.track_id > 0)
        .order_by(written_file.c.id)
    )
    with library.connect() as connection:
        for row in connection.execute(query):
            try:
                fields = UndoRecord.from_bytes(bytes(row.record)).change.fields
            except FileTagError:
                continue  # from a newer version, which cannot be read
            tags = own.setdefault(row.track_id, set())
            own_before.setdefault((row.change_id, row.track_id), frozenset(tags))
            before, after = (
                {(one.field, normalise_tag(tag)) for one in fields for tag in one.tags[when]}
                for when in (0, 1)
            )
            added = {tag for _, tag in after - before}
            if row.undoes is not None:
                added &= own_before.get((row.undoes, row.track_id), frozenset())
            tags -= {tag for _, tag in before - after}
            tags |= added
    return own


def _note_split(report: ImportReport, text: str, parts: Sequence[str]) -> None:
    """Remember how a text was read, if that is not obvious."""
    if len(parts) > 1:
        report.split[text] = tuple(parts)
    elif parts and possible_parts(text) and len(parts[0]) <= MAX_TAG_LENGTH:
        report.whole[parts[0]] += 1


def _check_tracks(library: Library) -> None:
    if not library.tracks.count():
        raise LibraryError(
            f"The library {library.place} has no tracks yet. `harmonium index FOLDER` comes first."
        )


def _keep(
    library: Library,
    frame: pl.DataFrame,
    report: ImportReport,
    source: str,
    *,
    kind: Kind,
    replace: bool,
    dry_run: bool,
) -> ImportReport:
    """Add the rows, with renamed tags, as one change, unless it is a dry run or nothing is new.

    Words that are not tags are left out.

    Their tags get the kind of their column or field, unless another was set. A genre in a file may
    be a word of another kind, so the built-in kinds come first there.
    """
    now = library.renamed_tags()
    is_old = frame["tag"].is_in(list(now))
    if is_old.any():
        report.renamed = {old: now[old] for old in frame["tag"].filter(is_old).unique().sort()}
        # The old spelling does not fit the new name.
        kept = pl.when(~is_old).then(pl.col("spelling"))
        frame = frame.with_columns(pl.col("tag").replace(now), kept)
    kinds = library.kinds()
    no_tags = [tag for tag in frame["tag"].unique() if kind_of(tag, kinds) == NO_TAG]
    if no_tags:
        ignored = frame.filter(pl.col("tag").is_in(no_tags))
        words = ignored.group_by("spelling").agg(pl.col("track_id").n_unique()).rows()
        report.ignored = Counter(dict(words))
        frame = frame.filter(~pl.col("tag").is_in(no_tags))
    report.people = sorted(frame["person"].unique()) if len(frame) else []
    report.n_tracks, report.n_tags = frame["track_id"].n_unique(), frame["tag"].n_unique()
    n_given = frame.select("person", "track_id", "tag").n_unique()
    tags, tracks = counted(n_given, "tag"), counted(report.n_tracks, "track")
    summary = f"{source}: {tags} of {tracks}"
    with suppress(_DryRunEnds), library.begin():
        number = library.changes.begin("import", summary)
        report.n_added = library.opinions.add_triples(
            frame, change=number, kind=kind, replace=replace
        )
        n_kinds = 0
        settled = kinds if kind == "file" else library.settings.beginning_with(KIND)
        for tag, new in frame.select("tag", "kind").unique("tag", maintain_order=True).iter_rows():
            if new in KINDS and tag not in settled and kinds.get(tag) != new:
                n_kinds += library.changes.set_value(number, SETTING, KIND + tag, new)
        if dry_run:
            raise _DryRunEnds  # and rolls everything back
        if report.n_added or n_kinds:
            report.change = number
        else:  # nothing to undo, so no change to report
            library.changes.drop(number)
    return report


class _DryRunEnds(Exception):
    """Ends a transaction without keeping it."""


def choose_columns(
    named: Mapping[str, str | int | None],
    needed: Sequence[str],
    source: str,
    names: Sequence[str],
    n_columns: int = 0,
) -> dict[str, str | int]:
    """Role → column, for all roles that are named or recognised from the columns' names.

    A column of tags that is named after a kind, such as mood, has that kind as its role. There may
    be several such columns, unless a column of tags is named or is called tag.

    named : role ("item", "artist", "title", "tag", "user", "value") → what a person named, or None
    needed : the roles without which the table cannot be used, in the order in which a file without
        a header has them, perhaps after the user; a title does for an item
    names, n_columns : of the file's columns; no names without a header
    """
    chosen = {role: column for role, column in named.items() if column is not None}
    if names:
        find_columns(chosen, names, source=source)  # a misspelt name is reported first
    has_track = "item" in chosen or "title" in chosen
    folded = {name.strip().casefold(): name for name in reversed(names)}
    for role, usual in USUAL_NAMES.items():
        is_settled = role in chosen or (role in _TRACK_ROLES and has_track)
        if role not in named or is_settled:
            continue
        guessed = next((folded[name] for name in usual if name in folded), None)
        if guessed is not None and guessed not in chosen.values():
            chosen[role] = guessed
    if "tag" in named:
        chosen = _by_kind(chosen, names, only=named["tag"] is not None)
    if not names and not chosen:
        if 0 < n_columns < len(needed):
            raise DataError(
                f"{source} has {counted(n_columns, 'column')}; without a header it must have "
                f"{', '.join(needed)}. For another order, number them from 0, as in --item 0 "
                "--tag 1."
            )
        users = ["user"] if "user" in named and n_columns > len(needed) else []
        return {role: position for position, role in enumerate([*users, *needed])}
    there = f" Its columns: {', '.join(map(repr, names))}." if names else ""
    for role in needed:
        instead = {"item": ("title",), "tag": KINDS}.get(role, ())
        if role not in chosen and chosen.keys().isdisjoint(instead):
            missing, way_out = _UNCLEAR[role]
            no_header = " If its first line is not a header, pass --no-header." if names else ""
            raise DataError(
                f"It is not clear which column of {source} says {missing}.{there} {way_out}"
                + (no_header if role == "item" else "")
            )
    return chosen


def _by_kind(
    chosen: Mapping[str, str | int], names: Sequence[str], *, only: bool
) -> dict[str, str | int]:
    """The chosen columns; those named after a kind of tags replace the column of tags."""
    # With ``only``, just the chosen column of tags.
    others = {role: column for role, column in chosen.items() if role != "tag"}
    column = chosen.get("tag")
    if isinstance(column, int) and column < len(names):
        column = names[column]
    kinds: dict[str, str | int] = {}
    for name in [column] if only else names:
        word = str(name).strip().casefold()
        kind = COLUMN_KINDS.get(word, COLUMN_KINDS.get(word.removesuffix("s")))
        if kind is not None and name is not None and name not in others.values():
            kinds.setdefault(kind, name)
    return others | kinds if column is None or column in kinds.values() else dict(chosen)


def _match_tracks(library: Library, frame: pl.DataFrame) -> pl.DataFrame:
    """The rows with the track_id that item, artist and title mean, or the reason why none fits."""
    _check_tracks(library)
    roles = [role for role in _TRACK_ROLES if role in frame.columns]
    words = frame.select(roles).unique(maintain_order=True)
    with library.connect() as connection:
        finder = TrackFinder(connection, library.folders())
    answers = [finder.match(**row) for row in words.iter_rows(named=True)]
    numbers = [[None] if isinstance(answer, str) else answer for answer in answers]
    reasons = [answer if isinstance(answer, str) else None for answer in answers]
    words = words.with_columns(
        pl.Series("track_id", numbers, pl.List(pl.Int64)), pl.Series("reason", reasons, pl.String)
    ).explode("track_id")
    return frame.join(words, on=roles, how="left", nulls_equal=True, maintain_order="left")


def _unmatched(frame: pl.DataFrame) -> pl.DataFrame:
    """What matches no track, the most frequent first."""
    roles = {role: pl.col(role) if role in frame.columns else pl.lit("") for role in _TRACK_ROLES}
    return (
        frame.filter(pl.col("track_id").is_null())
        .group_by(*(role for role in roles if role in frame.columns), "reason", maintain_order=True)
        .len("rows")
        .select(**roles, reason="reason", rows=pl.col("rows").cast(pl.Int64))
        .sort("rows", descending=True, maintain_order=True)
    )


def _split_cells(
    cells: pl.Series, splitter: TagSplitter, aliases: Mapping[str, str], report: ImportReport
) -> pl.DataFrame:
    """The tags in each cell: cell, tag, spelling, and whether it has a minus before it."""
    pairs = []
    for text in cells:
        parts = splitter.split(text) or (text,)
        _note_split(report, text, parts)
        pairs += [(text, part) for part in parts]
    schema = {"cell": pl.String, "spelling": pl.String}
    frame = pl.DataFrame(pairs, schema=schema, orient="row")
    tags = speller(normalise=True, aliases=aliases)(frame["spelling"])
    own = pl.select(pl.when(normalise_names(frame["spelling"]) == tags).then(frame["spelling"]))
    targets = {normalise_tag(name): name for name in aliases.values()}
    return frame.with_columns(
        tag=tags,
        spelling=own.to_series().fill_null(tags.replace(targets)),
        denied=frame["spelling"].str.contains(r"^\s*[-−]\s*\w"),
    )


PREFIX = "imported:"  # prefix of imported features' names


@dataclass
class FeatureReport:
    """What was imported, and what was not."""

    name: str  # the features' name in the library
    n_features: int
    n_rows: int
    n_tracks: int = 0  # tracks that have features now
    unmatched: dict[str, str] = field(default_factory=dict)  # a row → why it matches no track


def import_features(
    library: Library,
    path: str | Path,
    *,
    item: str | int | None = None,
    artist: str | int | None = None,
    title: str | int | None = None,
    dry_run: bool = False,
) -> FeatureReport:
    """Use the rows of a table as the library's features, instead of the current ones.

    Tracks are found as in `import_table`. Earlier features stay for the models that use them.

    Parameters
    ----------
    path : a .csv, .tsv or .parquet file with a column for each number, or one of lists; or an .npz
        file with an array of names (n,) and one of numbers (n, n_features)
    item, artist, title : columns, by name or by position from 0; by default recognised
    """
    file = Path(path).expanduser()
    frame = _read(file)
    named = {"item": item, "artist": artist, "title": title}
    chosen = choose_columns(named, ("item",), file.name, frame.columns)
    columns = {role: frame.columns[x] if isinstance(x, int) else x for role, x in chosen.items()}
    words = frame.select(pl.col(name).cast(pl.String).alias(role) for role, name in columns.items())
    X = _numbers(frame.drop(columns.values()), file.name)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()[:12]
    report = FeatureReport(f"{PREFIX}{file.stem}", X.shape[1], len(X))
    matched = _match_tracks(library, words.with_row_index("row"))
    lost = matched.filter(pl.col("track_id").is_null()).drop("row", "track_id")
    for *texts, reason in lost.iter_rows():
        report.unmatched[" - ".join(filter(None, texts))] = reason
    # If a track has several rows, the last counts.
    rows = dict(matched.drop_nulls("track_id").select("track_id", "row").iter_rows())
    report.n_tracks = len(rows)
    if not rows:
        raise DataError(f"No row of {file.name} matches a track in the library.")
    if not dry_run:
        with library.begin():
            key = f"{report.name}@{digest}"
            library.tracks.put_features([*rows], X[[*rows.values()]], extractor=key)
            library.settings.set(EXTRACTOR, key)
    return report


def _read(file: Path) -> pl.DataFrame:
    if file.suffix in PARQUET:
        return read_parquet(file)
    try:
        if file.suffix == ".npz":
            return _of_arrays(file)
        if file.suffix in (".csv", ".tsv"):
            return pl.read_csv(file, separator="\t" if file.suffix == ".tsv" else ",")
    except (Exception, pl.exceptions.PanicException) as error:  # readers raise all kinds of errors
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{file} cannot be read: {reason}.") from error
    raise DataError(f"Features are read from .csv, .tsv, .parquet and .npz files, got {file.name}.")


def _of_arrays(file: Path) -> pl.DataFrame:
    # Opened here: np.load leaves a file open if it is not an archive.
    with file.open("rb") as opened, np.load(opened) as arrays:
        found = {name: arrays[name] for name in arrays.files}
    texts = {
        name: a.astype(str) for name, a in found.items() if a.ndim == 1 and a.dtype.kind in "US"
    }
    numbers = [a for a in found.values() if a.ndim == 2 and a.dtype.kind in "fiu"]
    if not texts or len(numbers) != 1:
        raise ValueError("it must have an array of names (n,) and one of numbers (n, n_features)")
    columns = {f"feature {j}": column for j, column in enumerate(numbers[0].T)}
    return pl.DataFrame({**texts, **columns})


def _numbers(frame: pl.DataFrame, source: str) -> Floats:
    """The features, (n, n_features): all columns of numbers, or the only column of lists."""
    lists = [name for name in frame.columns if frame[name].dtype in (pl.List, pl.Array)]
    try:
        if len(lists) == 1:
            given = np.array(frame[lists[0]].to_list(), np.float64)
        else:
            given = frame.select(pl.col(pl.Float64, pl.Float32, pl.Int64, pl.Int32)).to_numpy()
        with np.errstate(over="ignore"):
            X = given.astype(np.float32)
    except (TypeError, ValueError) as error:
        raise DataError(f"The lists in {source} must hold numbers and be equally long.") from error
    if X.ndim != 2 or not X.size:
        raise DataError(f"{source} has no columns of numbers to use as features.")
    wrong = np.flatnonzero(~np.isfinite(X).all(axis=1))
    if len(wrong):
        raise DataError(
            f"Features must be finite numbers; {len(wrong):,} rows of {source} have others, first "
            f"row {wrong[0] + 1}. Leave them out."
        )
    return X
