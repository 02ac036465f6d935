"""Which column of a table says what."""

import pytest

from harmonium.errors import DataError
from harmonium.library.imports import (
    choose_columns,
)

ROLES = dict.fromkeys(("item", "artist", "title", "tag", "user", "value"))
NEEDED = ("item", "tag")


@pytest.mark.parametrize(
    ("names", "named", "n_columns", "expected"),
    [
        ("user item tag", {}, 0, "user item tag"),
        ("Path Tag", {}, 0, "item=Path tag=Tag"),
        ("listener artist title label", {}, 0, "user=listener artist title tag=label"),
        ("user_id track_id title tag", {}, 0, "user=user_id item=track_id title tag"),
        ("a b c", {"item": "a", "tag": "c"}, 0, "item=a tag=c"),
        ("user path tag", {"item": "tag", "tag": "path"}, 0, "item=tag tag=path user"),
        ("path Mood Styles key", {}, 0, "item=path mood=Mood genre=Styles"),
        ("path tag mood", {}, 0, "item=path tag"),
        ("path genre mood", {"tag": 2}, 0, "item=path mood"),
        ("", {}, 3, "user=0 item=1 tag=2"),
        ("", {}, 2, "item=0 tag=1"),
    ],
)
def test_columns_are_told_from_their_names(names, named, n_columns, expected):
    pairs = (part.partition("=") for part in expected.split())
    wanted = {role: name or role for role, _, name in pairs}
    found = choose_columns(ROLES | named, NEEDED, "t.csv", names.split(), n_columns)
    assert {role: str(column) for role, column in found.items()} == wanted


@pytest.mark.parametrize(
    ("names", "message"),
    [("user tag", "--item"), ("user path", "--tag"), ("", "1 column")],
)
def test_what_is_not_clear_is_asked_for(names, message):
    with pytest.raises(DataError, match=message):
        choose_columns(ROLES, NEEDED, "t.csv", names.split(), 1)
