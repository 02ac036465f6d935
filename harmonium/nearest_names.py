"""The known names that are most like one that is not known: what to say after a misspelling."""

from collections.abc import Collection


def nearest_names(name: object, known: Collection[str], *, n: int = 1) -> list[str]:
    """At most ``n`` of the known names, the likest first; capitals do not count."""
    from difflib import get_close_matches  # only when something went wrong

    folded: dict[str, str] = {}
    for other in known:
        folded.setdefault(other.casefold(), other)
    return [folded[near] for near in get_close_matches(str(name).casefold(), folded, n=n)]


def did_you_mean(name: object, known: Collection[str], *, n: int = 1) -> str:
    """What follows a sentence about an unknown name: a question, or nothing."""
    near = nearest_names(name, known, n=n)
    return f" Did you mean {' or '.join(repr(other) for other in near)}?" if near else ""
