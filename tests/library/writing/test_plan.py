"""What becomes of the tags that are wanted in one file."""

import mutagen
import pytest
from tagged_files import PEOPLES
from written_music import say

from harmonium.library.filetags import MODES, FileTags, PlainLayout, Rules, read_tags
from harmonium.library.writing.plan import FilePlanner, TagNames
from harmonium.library.writing.wanted import WantedTags

OLD = tuple(PEOPLES["genre"])
NAMES = TagNames(spellings={"hip hop": "Hip Hop"}, synonyms={"rap": "hip hop", "funky": "funk"})


def planner(values, rules=None, **about):
    rules = rules or Rules(**about)
    return FilePlanner(FileTags.known(PlainLayout(), None, values, rules.id3), rules, NAMES)


def added(values, *said, predicted=(), **rules):
    wanted = WantedTags(said=said, predicted=dict.fromkeys(predicted, 0.5))
    return [tag.name for tag in planner(values, **rules).additions(wanted).added]


def test_tags_that_the_file_lacks_are_added_as_the_library_spells_them():
    assert added({"genre": ["Rock"]}, "rock", "hip hop") == ["Hip Hop"]


def test_a_file_keeps_its_own_spelling():
    rules = Rules(default_field="mood")
    change = planner({"genre": ["Hip-Hop"]}, rules).file_change("x", WantedTags(said=("hip hop",)))
    assert change.fields[0].after == ("Hip-Hop",)


@pytest.mark.parametrize("mode", MODES)
def test_only_merging_looks_for_synonyms(mode):
    found = added({"genre": ["Rap"], "mood": ["x"]}, "hip hop", default_field="grouping", mode=mode)
    assert found == ([] if mode == "merge" else ["Hip Hop"])


def test_a_tag_inside_a_longer_text_is_not_added():
    assert added({"genre": ["Jazz; Blues"]}, "jazz", "funk") == ["funk"]


def test_a_tag_inside_a_longer_text_is_not_added_either_once_it_is_elsewhere():
    """Otherwise what is written under one alias would make another tag new."""
    assert added({"genre": ["Jazz; Blues"], "mood": ["Jazz"]}, "jazz") == []


def test_a_predicted_tag_that_the_file_has_in_part_is_not_added():
    assert added({"genre": ["Rock"]}, predicted=["pop/rock"]) == []
    assert added({"genre": ["Rock"]}, "pop/rock") == ["pop/rock"]


def test_of_several_tags_with_one_name_the_first_is_added():
    wanted = WantedTags(said=("dreamy",), predicted={"calm": 0.75})
    plan = planner({}, aliases={"dreamy": "Quiet", "calm": "quiet"})
    (tag,) = plan.additions(wanted).added
    assert (tag.tag, tag.name, tag.probability) == ("dreamy", "Quiet", None)


def test_a_tag_that_only_the_rules_keep_out_is_told():
    plan = planner({"genre": ["Rock"]}, ignore=["rock", "funk"])
    assert plan.additions(WantedTags(said=("rock", "funk", "jazz"))).refused == ("funk",)


def test_a_name_that_no_file_can_hold_is_left_out():
    change = planner({}).file_change("x", WantedTags(said=("a\nb", "c")))
    assert change.fields[0].after == ("c",)
    assert "control character" in change.left_out[0].reason


def test_overwriting_changes_a_file_that_gets_no_new_tag():
    wanted = WantedTags(said=("rock",))
    assert planner({"genre": ["rock", "pop"]}, mode="overwrite").changes_more(wanted)
    assert not planner({"genre": ["rock"]}, mode="overwrite").changes_more(wanted)
    assert not planner({"genre": ["rock", "pop"]}).changes_more(wanted)


def test_scores_change_a_file_that_has_the_tag():
    wanted = WantedTags(predicted={"rock": 0.5})
    assert planner({"genre": ["Rock"]}, scores=True).changes_more(wanted)
    there = {"genre": ["Rock"], "harmonium_genre": ["rock=0.500"]}
    assert planner(there, scores=True).changes_more(wanted)  # it is spelt Rock
    there = {"genre": ["Rock"], "harmonium_genre": ["Rock=0.500"]}
    assert not planner(there, scores=True).changes_more(wanted)


def test_each_kind_of_tags_goes_to_a_field_of_its_own(songs, library):
    say(library, [("ann", "sunday morning", 1)])
    library.write(songs["mp3"], precision=None)
    tags = read_tags(songs["mp3"])
    assert tags.genre == (*OLD, "hip hop")
    assert tags.mood == ("dreamy", "mellow")
    assert tags.grouping == ("sunday morning", "guitar")


def test_a_kind_may_go_to_another_field_or_to_none(songs, library):
    library.set_kind("guitar", kind="mood")
    fields = {"mood": "comment", "genre": "none"}
    library.write(songs["flac"], precision=None, rules={"fields": fields})
    tags = read_tags(songs["flac"])
    assert (tags.genre, tags.mood, tags.grouping) == (OLD, (), ())
    assert tags.comment == ("dreamy; guitar; mellow",)


def test_a_genre_replaces_a_word_that_is_not_a_tag(songs, library):
    for path in songs.values():
        file = mutagen.File(path, easy=True)
        file["genre"] = ["Other"] if path == songs["mp3"] else ["Other", "Jazz"]
        file.save()
    before = songs["mp3"].read_bytes()
    library.write(precision=None)
    assert read_tags(songs["mp3"]).genre == ("hip hop",)
    assert read_tags(songs["flac"]).genre == ("Other", "Jazz", "hip hop")
    library.undo()
    assert songs["mp3"].read_bytes() == before
    library.set_kind("other", kind="own")
    library.write(precision=None)
    assert read_tags(songs["mp3"]).genre == ("Other", "hip hop")
