"""Rows that say which tags people gave to tracks, whichever source they come from."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import polars as pl

from harmonium.data.aliases import speller
from harmonium.data.splitting import TagSplitter, possible_parts
from harmonium.data.tag_names import KINDS, NO_TAG, kind_of, normalise_names, normalise_tag
from harmonium.errors import LibraryError, counted
from harmonium.library.imports.columns import TRACK_ROLES
from harmonium.library.library import Library
from harmonium.library.store.changes import SETTING
from harmonium.library.store.opinions import Kind
from harmonium.library.store.schema import KIND
from harmonium.library.track_finder import TrackFinder

MAX_TAG_LENGTH = 100  # of a tag from a file, in characters; anything longer is a text
_UNMATCHED = {**dict.fromkeys((*TRACK_ROLES, "reason"), pl.String), "rows": pl.Int64}


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
    frame = match_tracks(library, frame.with_row_index("row"))
    report.unmatched = _unmatched(frame)
    cells = _one_cell_a_row(frame)
    tags = _tags_in_cells(library, cells["cell"], split, aliases or {}, report)
    has_users = "user" in frame.columns
    triples = (
        cells.drop_nulls("track_id")
        .join(tags, on="cell", maintain_order="left_right")
        .with_columns(
            person=pl.col("user").str.strip_chars() if has_users else pl.lit(person),
            value=_sign_of_value() if "value" in frame.columns else pl.lit(1),
        )
    )
    triples = _without_invalid(triples, report)
    report.n_matched = triples["row"].n_unique()
    return store_rows(
        library,
        triples,
        report,
        source,
        kind="import" if has_users else "person",
        replace=replace,
        dry_run=dry_run,
    )


def match_tracks(library: Library, frame: pl.DataFrame) -> pl.DataFrame:
    """The rows with the track_id that item, artist and title mean, or the reason why none fits."""
    check_tracks(library)
    roles = [role for role in TRACK_ROLES if role in frame.columns]
    words = frame.select(roles).unique(maintain_order=True)
    with library.connect() as connection:
        finder = TrackFinder(connection, library.folders())
    matches = [finder.match(**row) for row in words.iter_rows(named=True)]
    words = words.with_columns(
        pl.Series("track_id", [match.ids or [None] for match in matches], pl.List(pl.Int64)),
        pl.Series("reason", [match.reason for match in matches], pl.String),
    ).explode("track_id")
    return frame.join(words, on=roles, how="left", nulls_equal=True, maintain_order="left")


def check_tracks(library: Library) -> None:
    """A LibraryError if a library has no tracks to import anything for."""
    if not library.tracks.count():
        raise LibraryError(
            f"The library {library.place} has no tracks yet. `harmonium index FOLDER` comes first."
        )


def note_split(report: ImportReport, text: str, parts: Sequence[str]) -> None:
    """Remember how a text was read, if that is not obvious."""
    if len(parts) > 1:
        report.split[text] = tuple(parts)
    elif parts and possible_parts(text) and len(parts[0]) <= MAX_TAG_LENGTH:
        report.whole[parts[0]] += 1


def store_rows(
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

    Words that are not tags are left out. The tags get the kind of their column or field, unless
    another was set. A genre in a file may be a word of another kind, so the built-in kinds come
    first there.
    """
    kinds = library.tags.kinds()
    frame = _with_present_names(library, frame, report)
    frame = _without_words(frame, kinds, report)
    report.people = sorted(frame["person"].unique()) if len(frame) else []
    report.n_tracks = frame["track_id"].n_unique()
    report.n_tags = frame["tag"].n_unique()
    with suppress(_DryRunEnds), library.begin():
        number = library.changes.begin("import", source)
        report.n_added = library.opinions.add_triples(
            frame, change=number, kind=kind, replace=replace
        )
        settled = kinds if kind == "file" else library.settings.beginning_with(KIND)
        n_kinds = _set_kinds(library, frame, number, kinds, settled)
        if dry_run:
            raise _DryRunEnds  # and rolls everything back
        if report.n_added or n_kinds:
            report.change = number
            library.changes.describe(number, f"{source}: {_summary(report, replace=replace)}")
        else:  # nothing to undo, so no change to report
            library.changes.drop(number)
    return report


def _summary(report: ImportReport, *, replace: bool) -> str:
    """What an import has changed."""
    if not report.n_added:
        return "kinds of tags set"
    return f"{counted(report.n_added, 'tag')} {'changed' if replace else 'added'}"


class _DryRunEnds(Exception):
    """Ends a transaction without keeping it."""


def _one_cell_a_row(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows with one text of tags each, ``cell``, and the ``kind`` of its column."""
    columns = [role for role in ("tag", *KINDS) if role in frame.columns]
    others = frame.drop(columns)
    cells = pl.concat(others.with_columns(cell=frame[role], kind=pl.lit(role)) for role in columns)
    if len(columns) > 1:  # a table with a row for each track has empty cells
        cells = cells.filter(pl.col("cell").str.strip_chars() != "")
    return cells


def _tags_in_cells(
    library: Library,
    cells: pl.Series,
    separators: Sequence[str] | None,
    aliases: Mapping[str, str],
    report: ImportReport,
) -> pl.DataFrame:
    """The tags in each cell: cell, tag, spelling, and whether it has a minus before it."""
    distinct = cells.unique(maintain_order=True)
    known = library.opinions.tags()["tag"].to_list()
    splitter = TagSplitter(distinct, known=known, separators=separators)
    pairs = []
    for text in distinct:
        parts = splitter.split(text) or (text,)
        note_split(report, text, parts)
        pairs += [(text, part) for part in parts]
    schema = {"cell": pl.String, "spelling": pl.String}
    frame = pl.DataFrame(pairs, schema=schema, orient="row")
    tags = speller(normalise=True, aliases=aliases)(frame["spelling"])
    # A tag that an alias names is spelt as the alias says.
    has_alias = normalise_names(frame["spelling"]) != tags
    targets = {normalise_tag(name): name for name in aliases.values()}
    spellings = pl.select(
        pl.when(has_alias).then(tags.replace(targets)).otherwise(frame["spelling"])
    )
    return frame.with_columns(
        tag=tags,
        spelling=spellings.to_series(),
        denied=frame["spelling"].str.contains(r"^\s*[-−]\s*\w"),
    )


def _sign_of_value() -> pl.Expr:
    """1 if the value is positive, -1 if it is not, and null if it is no number."""
    numbers = pl.col("value").str.strip_chars().cast(pl.Float64, strict=False)
    return pl.when(numbers > 0).then(1).when(numbers.is_not_nan()).then(-1)


def _without_invalid(triples: pl.DataFrame, report: ImportReport) -> pl.DataFrame:
    """The rows that can be used; the others are counted by reason."""
    reasons = {
        # It would be read as part of the tag.
        "a minus before the tag (a column --value says that it does not fit)": pl.col("denied"),
        "an empty tag": pl.col("tag") == "",
        "an empty user": pl.col("person") == "",
        "a value that is not a number": pl.col("value").is_null(),
    }
    for reason, is_invalid in reasons.items():
        n_invalid = triples.select(is_invalid.sum()).item()
        if n_invalid:
            report.left_out[reason] = n_invalid
            triples = triples.filter(~is_invalid)
    return triples


def _unmatched(frame: pl.DataFrame) -> pl.DataFrame:
    """What matches no track, the most frequent first."""
    roles = [role for role in TRACK_ROLES if role in frame.columns]
    texts = {role: pl.col(role) if role in roles else pl.lit("") for role in TRACK_ROLES}
    return (
        frame.filter(pl.col("track_id").is_null())
        .group_by(*roles, "reason", maintain_order=True)
        .len("rows")
        .select(**texts, reason="reason", rows=pl.col("rows").cast(pl.Int64))
        .sort("rows", descending=True, maintain_order=True)
    )


def _with_present_names(
    library: Library, frame: pl.DataFrame, report: ImportReport
) -> pl.DataFrame:
    """The rows with the present names of tags that were renamed."""
    renamed = library.tags.renamed()
    is_old = frame["tag"].is_in(list(renamed))
    if not is_old.any():
        return frame
    report.renamed = {old: renamed[old] for old in frame["tag"].filter(is_old).unique().sort()}
    spelling = pl.when(~is_old).then(pl.col("spelling"))  # the old one does not fit the new name
    return frame.with_columns(pl.col("tag").replace(renamed), spelling)


def _without_words(
    frame: pl.DataFrame, kinds: Mapping[str, str], report: ImportReport
) -> pl.DataFrame:
    """The rows without words that are not tags, such as Other or Unknown."""
    no_tags = [tag for tag in frame["tag"].unique() if kind_of(tag, kinds) == NO_TAG]
    if not no_tags:
        return frame
    is_word = pl.col("tag").is_in(no_tags)
    words = frame.filter(is_word).group_by("spelling").agg(pl.col("track_id").n_unique())
    report.ignored = Counter(dict(words.rows()))
    return frame.filter(~is_word)


def _set_kinds(
    library: Library,
    frame: pl.DataFrame,
    change: int,
    kinds: Mapping[str, str],
    settled: Mapping[str, str],
) -> int:
    """Set the kinds of tags that are not settled, as part of a change; how many changed."""
    n_set = 0
    for tag, kind in frame.select("tag", "kind").unique("tag", maintain_order=True).iter_rows():
        if kind in KINDS and tag not in settled and kinds.get(tag) != kind:
            n_set += library.changes.set_value(change, SETTING, KIND + tag, kind)
    return n_set
