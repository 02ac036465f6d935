"""What people may pass to the smoother as triples, and the vocabulary it keeps of them."""

import os
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import polars as pl

from harmonium.data import Conditioning, Triples, normalise_tag, read_triples
from harmonium.data.codes import as_strings, codes_in
from harmonium.data.triples import Pairs
from harmonium.errors import DataError, nearest_names
from harmonium.estimators.smoother.conditions import PARTS, Codes

_ROLES = ("user", "item", "tag")

SEARCH = "search"
"""The selection of auxiliary variables that the pairs held out choose."""


def read_any_triples(triples: Any) -> Triples:
    """Triples as they are, of a file, of a frame with these columns, or of three sequences."""
    if isinstance(triples, Triples):
        found = triples
    elif isinstance(triples, str | os.PathLike):
        found = read_triples(triples)
    elif hasattr(triples, "columns"):
        found = _of_frame(triples)
    elif isinstance(triples, tuple | list) and len(triples) == 3:
        found = Triples.from_columns(*triples)
    else:
        raise DataError(
            "'triples' must be Triples, a file of them, a frame with the columns user, item and "
            f"tag, or three sequences (users, items, tags). Got {type(triples).__name__} instead."
        )
    if not len(found):
        raise DataError("'triples' must hold at least one (user, item, tag). Got none.")
    return found


def _of_frame(frame: Any) -> Triples:
    missing = [role for role in _ROLES if role not in list(frame.columns)]
    if missing:
        given = ", ".join(repr(str(name)) for name in list(frame.columns)[:10])
        raise DataError(
            f"A frame of triples must have the columns user, item and tag, but {missing[0]!r} is "
            f"not among its columns: {given}. Rename them."
        )
    return Triples.from_columns(*(frame[role] for role in _ROLES))


def with_vocabulary(
    triples: Triples, n_tags: int | None, pairs: Pairs | None
) -> tuple[Triples, Pairs | None]:
    """The triples of the n most used tags, and who saw what.

    Whoever gave an item only other tags has seen it and given none of these.
    """
    if n_tags is None or n_tags >= len(triples.tags):
        return triples, pairs
    if pairs is None:
        return triples.top_tags(n_tags), triples
    users, items = triples.users.gather(triples.user), triples.items.gather(triples.item)
    if isinstance(pairs, Triples):
        more = (pairs.users.gather(pairs.user), pairs.items.gather(pairs.item))
    else:
        more = (as_strings(pairs[0], name="pairs"), as_strings(pairs[1], name="pairs"))
    seen = (pl.concat([users, more[0]]), pl.concat([items, more[1]]))
    return triples.top_tags(n_tags), seen


def tag_positions(tags: Any, vocabulary: Sequence[str]) -> tuple[list[int], list[str]]:
    """Where each tag, as it is or in the usual spelling, is in the vocabulary; and those not."""
    names = [tags] if isinstance(tags, str) else list(tags)
    place = {name: i for i, name in enumerate(vocabulary)}
    found: list[int] = []
    strange: list[str] = []
    for name in names:
        if not isinstance(name, str):
            raise DataError(f"'tags' must hold names of tags. Got {name!r} instead.")
        spelt = name if name in place else normalise_tag(name)
        if spelt in place:
            found.append(place[spelt])
        else:
            strange.append(name)
    return list(dict.fromkeys(found)), strange


def unknown_tag(name: str, vocabulary: Sequence[str]) -> str:
    """What to say about a tag that the model does not know."""
    near = nearest_names(name, vocabulary, n=3)
    guess = f" Near it are {', '.join(repr(other) for other in near)}." if near else ""
    return f"{name!r} is not among the {len(vocabulary):,} tags of the model.{guess}"


def name_codes(wanted: Any, names: pl.Series, *, name: str) -> Codes:
    """The code of each name, (n,), -1 for one that is not there; a single name is a list of one."""
    values = [wanted] if isinstance(wanted, str | int) else wanted
    return codes_in(as_strings(values, name=name), names)


def auxiliary_selections(auxiliary: Any, data: Conditioning) -> list[tuple[str, ...]]:
    """The selections of auxiliary variables to try: the one that is asked for, or all."""
    if isinstance(auxiliary, str) and auxiliary == SEARCH:
        parts = [part for part in PARTS if part != "track" or len(data.tracks) < len(data.items)]
        sizes = range(len(parts), -1, -1)
        return [chosen for size in sizes for chosen in combinations(parts, size)]
    names = (auxiliary,) if isinstance(auxiliary, str) else tuple(auxiliary)
    for name in names:
        if name not in PARTS:
            raise DataError(
                f"'auxiliary' must be {SEARCH!r} or a selection of {', '.join(map(repr, PARTS))}. "
                f"Got {name!r} among it."
            )
    return [names]
