"""The tree of genres: kinds, other names, lists."""

import pytest

from harmonium.data.genre_tree import GenreTree, own_tree, read_tree
from harmonium.errors import DataError


def test_kinds_of_kinds_and_other_names_count():
    tree = own_tree()
    assert tree.ancestors("bebop") == ["jazz"]
    assert {"industrial", "metal", "rock"} <= set(tree.ancestors("industrial metal"))
    assert tree.canonical("dnb") == tree.canonical("drum and bass") == "drum & bass"
    assert {"bebop", "be bop", "jazz", "latin jazz"} <= tree.counts_for("jazz")
    assert tree.spellings["hip hop"] == "Hip-Hop"


def test_a_list_has_the_nearest_genre():
    tree = own_tree()
    assert tree.in_list("bebop", ["Jazz", "Rock"]) == "jazz"
    assert tree.in_list("bebop", ["Be-Bop", "Jazz"]) == "be bop"
    assert tree.in_list("thrash metal", ["rock"]) == "rock"
    assert tree.in_list("bebop", ["rock"]) is None


def test_no_name_is_both_a_genre_and_another_name():
    tree = own_tree()
    assert tree.parents.keys().isdisjoint(tree.aliases)
    assert set(tree.aliases.values()) <= tree.parents.keys()


def test_it_comes_back_from_its_tables():
    tree = own_tree()
    assert GenreTree.from_dict(tree.to_dict()) == tree
    assert not GenreTree.from_dict({})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kinds = 3", "'kinds' must be a table of genres and lists"),
        ("[kinds]\na = ['b']\nb = ['a']", "a kind of itself"),
        ("[kinds]\na = ['b']\n[aliases]\nb = 'c'", "'b' is another name"),
        ("genres = []", "There is no 'genres'.*kinds, aliases"),
        ("[", "are not TOML"),
    ],
)
def test_a_tree_that_cannot_be_used(tmp_path, text, message):
    file = tmp_path / "tree.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        read_tree(file)
