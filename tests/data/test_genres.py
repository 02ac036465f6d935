"""The tree of genres."""

import pytest

from harmonium.data.genres import GenreTree, builtin_tree, read_tree
from harmonium.errors import DataError


def test_ancestors_come_nearest_first():
    tree = builtin_tree()
    assert tree.ancestors("bebop") == ["jazz"]
    assert {"industrial", "metal", "rock"} <= set(tree.ancestors("industrial metal"))


def test_other_names_mean_the_same_genre():
    tree = builtin_tree()
    assert tree.canonical("dnb") == tree.canonical("drum and bass") == "drum & bass"
    assert tree.parents.keys().isdisjoint(tree.aliases)
    assert set(tree.aliases.values()) <= tree.parents.keys()


def test_subgenres_count_for_a_genre():
    assert {"bebop", "be bop", "jazz", "latin jazz"} <= builtin_tree().counts_for("jazz")


def test_the_spelling_of_a_genre():
    assert builtin_tree().spellings["hip hop"] == "Hip-Hop"


@pytest.mark.parametrize(
    ("name", "allowed", "nearest"),
    [
        ("bebop", ["Jazz", "Rock"], "jazz"),
        ("bebop", ["Be-Bop", "Jazz"], "be bop"),
        ("thrash metal", ["rock"], "rock"),
        ("bebop", ["rock"], None),
    ],
)
def test_the_nearest_genre_of_a_list(name, allowed, nearest):
    assert builtin_tree().in_list(name, allowed) == nearest


def test_a_tree_as_a_table():
    tree = builtin_tree()
    assert GenreTree.from_dict(tree.to_dict()) == tree


def test_an_empty_tree():
    assert not GenreTree.from_dict({})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kinds = 3", "'kinds' must be a table of genres and lists"),
        ("words = ['-']", "'words' must be a list of names"),
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
