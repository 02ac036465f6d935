"""Which tags a track's file should get."""

from tagged_files import PEOPLES
from written_music import PREDICTED, predict, say

from harmonium.library.filetags import read_tags
from harmonium.library.writing.wanted import TagSources, WantedTags, has_part, wanted_tags

OLD = tuple(PEOPLES["genre"])


def field_values(song):
    tags = read_tags(song)
    return tags.genre, tags.mood, tags.grouping


def test_predicted_tags_have_the_likeliest_first(library, songs):
    wanted = wanted_tags(library, [1], TagSources())[1]
    assert list(wanted.predicted) == ["guitar", "hip hop", "mellow"]


def test_what_people_say_comes_first(library, songs):
    wanted = wanted_tags(library, [1], TagSources())[1]
    assert wanted.said == ("dreamy",)
    assert next(iter(wanted.scores)) == "dreamy"
    assert wanted.scores["dreamy"] == 1.0


def test_a_predicted_tag_of_probability_one_is_not_what_people_say(library, songs):
    predict(library, PREDICTED | {"guitar": 1.0})
    wanted = wanted_tags(library, [1], TagSources())[1]
    assert "guitar" not in wanted.said
    assert wanted.predicted["guitar"] == 1.0
    plan = library.writer.plan(songs["mp3"], precision=None)
    assert "guitar" in plan.files[0].new_guesses
    counts = {tag.tag: tag for tag in library.writer.outline(precision=None).tags}
    assert (counts["guitar"].n, counts["guitar"].n_said) == (3, 0)


def test_some_tags_may_be_taken_out():
    wanted = WantedTags(said=("a", "b"), predicted={"c": 0.5, "d": 0.5})
    assert wanted.without({"a", "d"}) == WantedTags(said=("b",), predicted={"c": 0.5})
    assert not wanted.without({"a", "b", "c", "d"})


def test_a_part_says_no_more_than_the_whole():
    assert has_part("pop/rock", {"rock"})
    assert has_part("pop/rock", {"hard rock"})
    assert not has_part("pop/rock", {"rocksteady"})
    assert not has_part("rock", {"rock"})


def test_what_people_reject_is_not_wanted(library, songs):
    say(library, [("bob", "guitar", -1), ("bob", "dreamy", -1)])
    library.write(precision=None)
    assert field_values(songs["flac"]) == ((*OLD, "hip hop"), ("mellow",), ())


def test_what_files_say_is_not_wanted(library, songs):
    say(library, [("tags of files", "Élan vital!", 1)], kind="file")
    assert wanted_tags(library, [1], TagSources(predicted=False))[1].said == ("dreamy",)


def test_a_tag_that_a_track_has_in_part_is_not_predicted(library, songs):
    more = {"rock/pop": 0.9, "jazz/funk": 0.9}
    predict(library, PREDICTED | more, more=[*more], thresholds=[0.5, 0.5])
    tags = [tag.tag for tag in library.writer.outline(precision=None).tags]
    assert ("rock/pop" in tags, "jazz/funk" in tags) == (False, True)  # the files have Rock
    say(library, [("ann", "acid jazz", 1)])
    assert "jazz/funk" not in [tag.tag for tag in library.writer.outline(precision=None).tags]
    say(library, [("ann", "acid jazz", -1)])
    library.write(songs["flac"], people=False, precision=None, rules={"whitelist": ["rock/pop"]})
    assert read_tags(songs["flac"]).genre == OLD


def test_a_tag_that_people_give_by_another_name_is_not_predicted(library, songs):
    say(library, [("ann", "rap", 1)])
    assert not any(tag.tag == "hip hop" for tag in library.writer.outline(precision=None).tags)
    library.write(precision=None)
    assert read_tags(songs["mp3"]).genre == (*OLD, "rap")
    say(library, [("ann", "hip hop", 1)])  # now they are two tags
    library.write(precision=None)
    assert "hip hop" in read_tags(songs["mp3"]).genre
