"""Files of triples and of counts: CSV, TSV and Parquet, plain or gzipped.

A file that cannot be used is a DataError. Single rows that cannot be used are left out, with one
DataWarning that counts them by reason and names the first lines.

The functions share these options:

header : whether the first row names the columns; without a header, columns are given by position,
    and by default are the first ones in the order of the function's signature
delimiter : "," for .csv and a tab for .tsv and .tab unless named here; needed for other extensions
quote : the character around fields that hold a delimiter or a line break; None if there is none
encoding : the encoding of a text file

A column is given by its name or by its position, counted from 0.
"""

from __future__ import annotations

from collections.abc import Mapping

from harmonium.data.name_columns import Column
from harmonium.data.table_files import PathLike, read_rows
from harmonium.data.tag_counts import TagCounts, counts_from_rows
from harmonium.data.triples import Triples, triples_from_rows
from harmonium.errors import DataError


def read_triples(
    path: PathLike,
    *,
    user: str | int = "user",
    item: str | int = "item",
    tag: str | int = "tag",
    normalise: bool = True,
    aliases: Mapping[str, str] | PathLike | None = None,
    header: bool = True,
    delimiter: str | None = None,
    quote: str | None = '"',
    encoding: str = "utf-8",
) -> Triples:
    """The (user, item, tag) triples of a file; repeated ones count once.

    Parameters
    ----------
    path : a .csv, .tsv or .parquet file, also with .gz
    user, item, tag : the columns, by name or by position from 0; by default also under another
        name that they often have, such as listener, clip and label
    normalise : whether tags are brought to one spelling, see `normalise_tag`
    aliases : spelling -> tag, or a file of them for `read_aliases`; applied after normalisation
    header, delimiter, quote, encoding : how a text file is written, see above
    """
    rows = read_rows(
        path,
        {"user": user, "item": item, "tag": tag},
        header=header,
        delimiter=delimiter,
        quote=quote,
        encoding=encoding,
    )
    return triples_from_rows(rows, normalise=normalise, aliases=_alias_table(aliases))


def read_counts(
    path: PathLike,
    *,
    item: str | int = "item",
    tag: str | int = "tag",
    count: str | int = "count",
    all_items: Column | None = None,
    normalise: bool = True,
    aliases: Mapping[str, str] | PathLike | None = None,
    header: bool = True,
    delimiter: str | None = None,
    quote: str | None = '"',
    encoding: str = "utf-8",
) -> TagCounts:
    """The (item, tag, count) rows of a file; counts of the same item and tag are added up.

    Parameters
    ----------
    path : a .csv, .tsv or .parquet file, also with .gz
    item, tag, count : the columns, by name or by position from 0
    all_items : the rows of the matrix in this order, for items that may have no tag at all
    normalise : whether tags are brought to one spelling, see `normalise_tag`
    aliases : spelling -> tag, or a file of them for `read_aliases`; applied after normalisation
    header, delimiter, quote, encoding : how a text file is written, see above
    """
    rows = read_rows(
        path,
        {"item": item, "tag": tag, "count": count},
        header=header,
        delimiter=delimiter,
        quote=quote,
        encoding=encoding,
    )
    table = _alias_table(aliases)
    return counts_from_rows(rows, all_items=all_items, normalise=normalise, aliases=table)


def read_aliases(
    path: PathLike,
    *,
    alias: str | int = "alias",
    tag: str | int = "tag",
    header: bool = True,
    delimiter: str | None = None,
    quote: str | None = '"',
    encoding: str = "utf-8",
) -> dict[str, str]:
    """An alias table, spelling -> tag, from a file with the columns alias and tag."""
    rows = read_rows(
        path,
        {"alias": alias, "tag": tag},
        header=header,
        delimiter=delimiter,
        quote=quote,
        encoding=encoding,
    )
    rows = rows.usable()
    table: dict[str, str] = {}
    for spelling, name in zip(rows.values("alias"), rows.values("tag"), strict=True):
        if table.setdefault(spelling, name) != name:
            raise DataError(
                f"{rows.source} gives {spelling!r} two meanings, {table[spelling]!r} and {name!r}. "
                "Keep one of them."
            )
    return table


def _alias_table(aliases: Mapping[str, str] | PathLike | None) -> Mapping[str, str] | None:
    return aliases if aliases is None or isinstance(aliases, Mapping) else read_aliases(aliases)
