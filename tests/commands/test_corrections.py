"""`say`, `rename`, `forget`, `models` and `review`: what a person corrects, and takes back."""

import json

import numpy as np
import pytest
import small_library
from command_line import run
from noise_files import write
from some_tracks import in_force, triples

from harmonium.commands import corrections
from harmonium.errors import DataError, LibraryError
from harmonium.library.index import index
from harmonium.library.verdicts import judge, label_matrix, only_answered_tracks


@pytest.fixture
def tagged(library):
    small_library.trained(library, tagged=20, artists=6)
    return library


def found(library, question):
    return {hit.track.id: hit for hit in library.search(question, limit=100).hits}


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["say", "#50"], "harmonium say TRACK rock -live"),
        (["say", "#50", "rock", "Other"], "'Other' is not a tag"),
        (["rename", "rokc", "metal"], "Did you mean rock"),
        (["rename", "hip hop", "Hip-Hop"], "two spellings"),
        (["models", "use", "9"], "There is no model 9"),
        (["review"], "needs a terminal"),
    ],
)
def test_what_is_refused(tagged, place, arguments, word):
    with pytest.raises((DataError, LibraryError), match=word):
        run(*arguments, "-L", place)


class TestSay:
    def test_tags_that_fit_or_do_not(self, tagged, place):
        before = in_force(tagged)
        done = run("say", "#50", "Hip-Hop", "-live", "-L", place)
        assert done.exit_code == 0
        assert in_force(tagged) == before | {("me", 50, "hip hop"): 1, ("me", 50, "live"): -1}
        assert found(tagged, "hip hop")[50].source == "people"

    def test_undo(self, tagged, place):
        before = in_force(tagged)
        run("say", "#50", "Hip-Hop", "-live", "-L", place)
        assert run("undo", "-L", place).exit_code == 0
        assert in_force(tagged) == before

    def test_rejected_tags_that_begin_like_options(self, tagged, place):
        """-L and -h are options of say."""
        run("say", "#50", "rock; -Lush", "-hard rock", "-L", place)
        said = in_force(tagged)
        assert (said["me", 50, "lush"], said["me", 50, "hard rock"]) == (-1, -1)

    def test_the_same_again_is_no_change(self, tagged, place):
        run("say", "#50", "rock", "-Lush", "-L", place)
        n_changes = len(tagged.changes.list())
        done = run("say", "#50", "-Lush", "rock", "--json", "-L", place)
        assert json.loads(done.stdout) == {"tracks": [50], "change": None}
        assert len(tagged.changes.list()) == n_changes

    def test_withdrawn_tags(self, tagged, place):
        run("say", "#50", "rock", "-L", place)
        assert run("say", "#50", "--unsay", "Rock", "-L", place).exit_code == 0
        assert ("me", 50, "rock") not in in_force(tagged)

    def test_a_person_s_word_outweighs_the_file_s(self, tagged, place):
        """And importing the files again does not change that."""
        says = triples(("files", 50, "polka", 1))
        tagged.opinions.add_triples(says, change=tagged.changes.begin("import", ""), kind="file")
        assert found(tagged, "polka")[50].source == "people"
        run("say", "#50", "-polka", "-L", place)
        assert 50 not in found(tagged, "polka")
        tagged.opinions.add_triples(says, change=tagged.changes.begin("import", ""), kind="file")
        assert 50 not in found(tagged, "polka")
        run("undo", "-L", place)  # the import, of which nothing is left
        run("undo", "-L", place)
        assert found(tagged, "polka")[50].source == "people"

    @pytest.fixture
    def folders(self, library, tmp_path, monkeypatch):
        """Folders that are called like tags; digit of a file → number of its track."""
        for k, name in enumerate(("live/0", "live/b/1", "rock/2", "3")):
            write(tmp_path / f"{name}.flac", k, seconds=1)
        monkeypatch.chdir(tmp_path)
        index(library, [tmp_path], extractor="timbre", engine="serial")
        return {track.path.rsplit("/", 1)[-1][0]: track.id for track in library.tracks.all()}

    def test_many_tracks_are_one_change(self, library, place, folders):
        run("say", "live", "3.flac", f"#{folders['2']}", "rock", "-calm", "-L", place)
        expected = {}
        for number in folders.values():
            expected["me", number, "rock"] = 1
            expected["me", number, "calm"] = -1
        assert in_force(library) == expected
        assert run("undo", "-L", place).exit_code == 0
        assert in_force(library) == {}

    def test_a_later_folder_ends_in_a_slash(self, library, place, folders):
        done = run("say", "3.flac", "rock/", "live", "--json", "-L", place)
        assert json.loads(done.stdout)["tracks"] == [folders["3"], folders["2"]]
        assert {tag for _, _, tag in in_force(library)} == {"live"}

    def test_a_folder_in_python(self, library, folders):
        library.say(["rock", folders["3"]], "-live")
        assert set(in_force(library).values()) == {-1}

    def test_forgetting_folders(self, library, place, folders):
        done = run("forget", "live", "rock", "#1", "3.flac", "-L", place)
        assert "4 tracks removed" in done.stdout
        assert not len(library.tracks.ids())

    def test_a_folder_without_tracks(self, place, folders, tmp_path):
        (tmp_path / "empty").mkdir()
        with pytest.raises(LibraryError, match="no tracks in the folder"):
            run("say", "empty", "rock", "-L", place)


class TestRename:
    def test_predictions_follow(self, tagged, place):
        rock = found(tagged, "rock")
        done = run("rename", "rock", "Rock & Roll", "-L", place)
        assert done.exit_code == 0
        renamed = found(tagged, '"rock & roll"')
        assert {i: hit.probability for i, hit in renamed.items()} == {
            i: hit.probability for i, hit in rock.items()
        }

    def test_undo(self, tagged, place):
        before = in_force(tagged)
        rock = found(tagged, "rock")
        run("rename", "rock", "Rock & Roll", "-L", place)
        assert run("undo", "-L", place).exit_code == 0
        assert in_force(tagged) == before
        assert found(tagged, "rock").keys() == rock.keys()

    def test_a_name_that_is_given_back_is_in_use_again(self, tagged, place):
        run("rename", "rock", "loud", "-L", place)
        run("rename", "loud", "rock", "-L", place)
        assert tagged.tags.renamed() == {"loud": "rock"}

    def test_two_tags_become_one(self, tagged, place):
        run("say", "#50", "rock", "-jazz", "--person", "ann", "-L", place)
        before = in_force(tagged)
        done = run("rename", "rock", "jazz", "--json", "-L", place)
        report = json.loads(done.stdout)
        assert report["merged"]
        assert report["needs_training"]
        n_rock = sum(tag == "rock" for _, _, tag in before)
        assert (report["n_moved"], report["n_dropped"]) == (n_rock - 1, 1)
        after = in_force(tagged)
        assert after[("ann", 50, "jazz")] == -1
        assert not any(tag == "rock" for _, _, tag in after)
        assert found(tagged, "rock").keys() == found(tagged, "jazz").keys()
        run("undo", "-L", place)
        assert in_force(tagged) == before
        assert found(tagged, "rock")

    def test_the_former_name_goes_on_working(self, tagged, place):
        run("rename", "rock", "Loud Music", "-L", place)
        assert found(tagged, "Rock").keys() == found(tagged, '"loud music"').keys() != set()
        run("say", "#50", "rock", "-L", place)
        assert in_force(tagged)["me", 50, "loud music"] == 1
        assert tagged.suggest("rock") == tagged.suggest("loud music")
        assert tagged.related("rock") == tagged.related("loud music")
        assert tagged.tags.detail("rock").tag == "loud music"
        assert tagged.complete(50, ["rock"]) == tagged.complete(50, ["loud music"])
        assert {doubt.tag for doubt in tagged.review.doubts("rock")} == {"loud music"}
        tagged.set_kind("rock", kind="mood")
        assert tagged.snapshot().tags["loud music"].kind == "mood"
        tagged.hide("rock")
        assert tagged.tags.hidden() == {"loud music"}

    def test_a_later_import_keeps_the_new_name(self, tagged, place, tmp_path):
        table = tmp_path / "tags.csv"
        table.write_text("track,tag,user\n#51,Rock,bob\n#52,rock,bob\n#52,jazz,bob\n")
        run("rename", "rock", "rocking", "-L", place)
        run("rename", "rocking", "Loud Music", "-L", place)
        done = json.loads(run("import", str(table), "--json", "-L", place).stdout)
        assert done["renamed"] == {"rock": "loud music"}
        again = run("import", str(table), "--replace", "--json", "-L", place).stdout
        assert json.loads(again)["n_added"] == 0
        said = in_force(tagged)
        assert said[("bob", 51, "loud music")] == said[("bob", 52, "jazz")] == 1
        assert not any(tag == "rock" for _, _, tag in said)
        assert tagged.tags.spellings()["loud music"] == "Loud Music"
        for _ in range(3):
            run("undo", "-L", place)
        assert tagged.tags.renamed() == {}
        run("import", str(table), "-L", place)
        assert in_force(tagged)[("bob", 51, "rock")] == 1


class TestHide:
    def test_several_tags_are_one_change(self, tagged, place):
        run("hide", "rock", "jazz", "-L", place)
        assert tagged.tags.hidden() == {"rock", "jazz"}
        run("undo", "-L", place)
        assert not tagged.tags.hidden()

    def test_a_hidden_tag_is_not_predicted_until_undone(self, tagged, place):
        everything = found(tagged, "rock")
        done = run("hide", "Rock", "-L", place)
        assert "is hidden. To undo: harmonium undo" in done.stdout
        assert {hit.source for hit in found(tagged, "rock").values()} == {"people"}
        run("undo", "-L", place)
        assert found(tagged, "rock").keys() == everything.keys()

    def test_the_list(self, tagged, place):
        assert "No tags are hidden" in run("hide", "-L", place).stderr
        run("hide", "Rock", "-L", place)
        assert run("hide", "-L", place).stdout == "rock\n"

    def test_a_tag_that_is_hidden_already(self, tagged, place):
        run("hide", "Rock", "-L", place)
        with pytest.raises(DataError, match="hidden already"):
            run("hide", "ROCK", "-L", place)

    def test_an_earlier_change_is_undone_by_its_number(self, tagged, place):
        number = json.loads(run("hide", "rock", "--json", "-L", place).stdout)["change"]
        run("hide", "jazz", "-L", place)
        assert run("undo", str(number), "-L", place).exit_code == 0
        assert tagged.tags.hidden() == {"jazz"}

    def test_tags_of_a_new_model_have_their_present_names(self):
        model = small_library.quick_model()
        renamed = model.renamed({"rock": "loud", "mellow": "live"})
        now = dict(zip(renamed.vocabulary, renamed.thresholds.tolist(), strict=True))
        assert now["loud"] == model.thresholds[0]
        assert "rock" not in now
        assert np.isnan(now["mellow"])  # the other one is predicted
        assert now["live"] == model.thresholds[4]

    def test_a_hidden_tag_stays_hidden_with_a_new_model(self, tagged):
        tagged.hide("jazz")
        tagged.models.add(small_library.quick_model())
        assert not tagged.snapshot().tags["jazz"].predicted
        assert tagged.snapshot().tags["rock"].predicted


class TestForget:
    def test_nothing_finds_it_until_it_is_undone(self, tagged, place):
        before = in_force(tagged)
        rock = found(tagged, "rock")
        number = next(i for i, hit in rock.items() if hit.source == "people")
        done = run("forget", f"#{number}", "-L", place)
        assert "no file was touched" in done.stdout
        assert number not in found(tagged, "rock")
        assert number not in tagged.tracks.ids()
        assert not any(track == number for _, track, _ in in_force(tagged))
        run("undo", "-L", place)
        assert in_force(tagged) == before
        assert found(tagged, "rock").keys() == rock.keys()

    @pytest.mark.parametrize("kind", ["number", "title"])
    def test_nobody_says_anything_about_it(self, tagged, place, kind):
        rock = found(tagged, "rock")
        number = next(i for i, hit in rock.items() if hit.source == "people")
        run("forget", f"#{number}", "-L", place)
        names = {"number": f"#{number}", "title": f"Song {number - 1}"}
        with pytest.raises(LibraryError, match=r"removed from|no track"):
            run("say", names[kind], "rock", "-L", place)

    def test_indexing_passes_over_it_moved_copied_or_changed(self, library, place, tmp_path):
        music = tmp_path / "music"
        for k in range(3):
            write(music / f"{k}.flac", k, seconds=1)
        how = {"extractor": "timbre", "engine": "serial"}
        index(library, [music], **how)
        run("forget", "0.flac", "-L", place)
        assert index(library, **how).forgotten == [str(music / "0.flac")]
        write(music / "copy.flac", 0, seconds=1)
        assert len(index(library, **how).forgotten) == 2
        (music / "0.flac").rename(music / "moved.flac")
        report = index(library, **how)
        assert len(report.forgotten) == 2
        assert not report.missing
        write(music / "0.flac", 9, seconds=1)  # another sound at its former path
        assert index(library, **how).new == [str(music / "0.flac")]
        assert library.tracks.count("present") == 3
        run("undo", "-L", place)
        for _ in range(2):  # its path is another track's now, then it is found where it is
            index(library, **how)
        assert library.tracks.count("present") == 4


@pytest.fixture
def two_models(tagged):
    tagged.models.add(small_library.quick_model())
    return tagged


def test_the_list_of_models(two_models, place):
    rows = [line.split("\t") for line in run("models", "-L", place).stdout.splitlines()]
    listed = [(row[0], row[2], row[5], row[6]) for row in rows]
    assert listed == [("2", "5 of 6", "0", "in use"), ("1", "5 of 6", "60", "")]


def test_switching_to_another_model(two_models, place):
    done = run("models", "use", "1", "-L", place)
    assert "Model 1 is now in use." in done.stdout
    assert "harmonium tag" not in done.stdout
    assert two_models.models.current().id == 1
    run("undo", "-L", place)
    assert two_models.models.current().id == 2


def test_a_switch_without_a_number(two_models, place):
    assert run("models", "use", "-L", place).exit_code == 2


def test_a_switch_is_not_undone_after_another(two_models, place):
    run("models", "use", "1", "-L", place)
    two_models.models.add(small_library.quick_model())
    done = run("undo", "-L", place)  # the model in use is not what the change made it: it stays
    assert done.exit_code == 2
    assert "no longer what this change made it" in done.stderr
    assert two_models.models.current().id == 3


# Review: which questions are asked, and what becomes of the answers.


@pytest.fixture
def press(monkeypatch):
    def press(keys):
        waiting = list(keys)
        monkeypatch.setattr(corrections, "has_reader", lambda: True)
        monkeypatch.setattr(corrections.typer, "getchar", lambda: waiting.pop(0))

    return press


class TestQuestions:
    @pytest.fixture
    def doubts(self, tagged):
        return tagged.review.doubts(limit=10)

    def test_they_are_spread_over_tracks(self, doubts):
        assert len({doubt.track.id for doubt in doubts}) == len(doubts) == 10
        assert len({doubt.tag for doubt in doubts}) >= 3

    def test_they_are_open(self, tagged, doubts):
        said = {(track, tag) for _, track, tag in in_force(tagged)}
        assert not said & {(doubt.track.id, doubt.tag) for doubt in doubts}

    def test_they_are_doubtful(self, tagged, doubts):
        model = tagged.models.current()
        place_of = {tag: j for j, tag in enumerate(model.vocabulary)}
        P = tagged.predictions.probabilities(model.id, tagged.tracks.ids())
        for doubt in doubts:
            p = P[doubt.track.id - 1, place_of[doubt.tag]]
            assert doubt.probability == pytest.approx(p)
            assert doubt.guess == (p >= 0.4)
        distance = [abs(doubt.probability - 0.4) for doubt in doubts]
        assert np.mean(distance) < np.abs(P[:, :5] - 0.4).mean() / 2

    def test_of_one_tag(self, tagged):
        first = tagged.review.doubts("Hip-Hop", limit=3)
        assert {doubt.tag for doubt in first} == {"hip hop"}
        skip = [(doubt.track.id, doubt.tag) for doubt in first]
        again = tagged.review.doubts("hip hop", limit=3, skip=skip)
        assert not {doubt.track.id for doubt in first} & {doubt.track.id for doubt in again}

    def test_of_a_tag_that_was_not_learnt(self, tagged):
        with pytest.raises(DataError, match="has not learnt 'random'"):
            tagged.review.doubts("random")


def test_answers_are_one_change(tagged, place, press, monkeypatch):
    before = in_force(tagged)
    asked = tagged.review.doubts(limit=4)
    monkeypatch.setattr(type(tagged.tags), "spellings", lambda _: {asked[0].tag: "As Spelt"})
    press("y ?nq")
    done = run("review", "-n", "4", "-L", place)
    assert done.exit_code == 0
    kept = {("me", asked[0].track.id, asked[0].tag): 1, ("me", asked[2].track.id, asked[2].tag): -1}
    assert in_force(tagged) == before | kept
    right = asked[0].guess + (not asked[2].guess)
    assert "1/4  As Spelt? (" in done.stdout
    assert f"2 answers saved; the model had guessed {right} of them right" in done.stdout
    assert tagged.changes.list(1)[0].summary == "2 answers"
    run("undo", "-L", place)
    assert in_force(tagged) == before


def test_ctrl_c_loses_no_answer(tagged, place, press):
    before = in_force(tagged)
    press("yy\x03")
    done = run("review", "-L", place)
    assert done.exit_code == 130
    assert "2 answers saved" in done.stdout
    assert len(in_force(tagged)) == len(before) + 2


def test_the_model_learns_on_the_way(tagged, place, press):
    press("n" * 10 + "yy")
    done = run("review", "-n", "12", "-L", place)
    lines = done.stdout.splitlines()
    learnt = [number for number, line in enumerate(lines) if line.startswith("Updated")]
    assert len(learnt) == 2  # after ten, and at the end
    assert "11/12" in lines[learnt[0] + 1]
    assert "12 answers saved" in done.stdout
    assert "As trained, it guesses" in done.stdout
    assert "of 12 right; learning from each answer in turn" in done.stdout.replace("\n", " ")


def test_an_answer_says_nothing_of_other_tags(tagged):
    """Otherwise a yes to one tag would be a no to all others, at the next training."""
    asked = next(doubt for doubt in tagged.review.doubts(limit=10) if doubt.track.id > 20)
    tagged.review.answer(asked.track, asked.tag, True)
    opinions = tagged.opinions.triples()
    answered = only_answered_tracks(tagged, opinions)
    assert answered.tolist() == [asked.track.id]
    ids = np.array([1, asked.track.id])
    tags = small_library.TAGS
    Y = label_matrix(judge(opinions), ids, tags, only_answered=answered)
    assert not np.isnan(Y[0]).any()
    assert Y[1, tags.index(asked.tag)] == 1
    assert np.isnan(Y[1]).sum() == len(tags) - 1
