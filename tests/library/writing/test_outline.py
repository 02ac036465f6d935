"""The outline of a write has the numbers of the plan, and the plan those of the write."""

import shutil
from collections import Counter
from dataclasses import replace

import mutagen
import numpy as np
import pytest
import soundfile
from mutagen import id3
from small_library import trained
from tagged_files import by_ffmpeg, name_of, tagged, untagged
from written_music import PREDICTED, predict, say

from harmonium.data.tag_names import AUDIO_FEATURES
from harmonium.library.examine import examine
from harmonium.library.filetags import FIELDS, MODES
from harmonium.library.teaching.say import keep_said
from harmonium.library.writing import outline as outline_module
from harmonium.library.writing.wanted import wanted_tags

UNWRITABLE = {"read-only", "unsupported", "cut short", "fragmented", "gone"}
RULES = [
    {},
    {"ignore": ["Guitar"], "scores": True},
    {"whitelist": ["guitar", "dreamy", "calm"], "aliases": {"dreamy": "Guitar"}},
    {"fields": {"mood": "none", "genre": "mood"}, "aliases": {"Hip Hop": "Rock"}},
    {"default_field": "comment", "aliases": {"Guitar": "Gitarre"}},
    {"default_field": "grouping", "grouping_frame": "GRP1"},
    {"default_field": "genre", "separator": "/", "id3_version": 3},
    {"features": True},
]


def easy(path, **fields):
    """Set fields of a file."""
    file = mutagen.File(path, easy=True)
    for name, values in fields.items():
        file[name] = values
    file.save()


@pytest.fixture
def messy(library, tmp_path):
    """A library of files in all formats and all states; name → file."""
    folder = tmp_path / "music"
    folder.mkdir()
    files = {}
    for kind in ("mp3", "mp3v23", "flac", "ogg", "opus", "m4a", "wav", "aiff"):
        files[kind] = folder / f"{kind}-{name_of(kind)}"
        files[kind].write_bytes(tagged(kind))

    tag = id3.ID3(files["mp3"])
    tag.add(id3.GRP1(encoding=3, text=["guitar"]))
    tag.add(id3.COMM(encoding=3, lang="eng", desc="ID3v1 Comment", text=["calm"]))
    tag.save(files["mp3"])
    easy(files["flac"], description=["calm"], comment=["mine"])
    easy(files["ogg"], genre=["Other"])
    easy(files["opus"], genre=["Unknown"], mood=["Mellow"])
    easy(files["m4a"], genre=["Hip-Hop; Guitar"])

    files["read-only"] = files.pop("aiff")
    files["read-only"].chmod(0o444)
    files["unsupported"] = folder / "song.au"
    noise = 0.1 * np.random.default_rng(9).normal(size=5000)
    soundfile.write(files["unsupported"], noise.clip(-0.9, 0.9), 22_050)
    files["cut short"] = folder / "short.wav"
    files["cut short"].write_bytes(untagged("wav")[:-100])
    files["fragmented"] = folder / "fragments.m4a"
    files["fragmented"].write_bytes(
        by_ffmpeg("mp4", "aac", "x", movflags="frag_keyframe+empty_moov")
    )
    files["gone"] = folder / "gone.mp3"
    files["gone"].write_bytes(tagged("mp3")[:-600])
    library.tracks.put([examine(str(path)) for path in files.values()])

    copies = {"copy": "flac", "untagged copy": "ogg", "link": "mp3"}
    files["copy"] = folder / "copy.flac"
    shutil.copy(files["flac"], files["copy"])
    easy(files["copy"], genre=["Guitar"], comment=[])
    files["untagged copy"] = folder / "untagged.ogg"
    files["untagged copy"].write_bytes(untagged("ogg"))
    files["link"] = folder / "a link.mp3"
    files["link"].symlink_to(files["mp3"])
    for name, original in copies.items():
        track = library.tracks.find(str(files[original]))
        copy = examine(str(files[name]))
        assert copy.sound == track.sound
        library.tracks.put_copy(replace(copy, id=track.id))
    files["gone"].unlink()
    return files


@pytest.fixture
def wanting(library, messy):
    """What people say and a model predicts of these files."""
    more = {"rock/pop": 0.9, "jazz/funk": 0.9} | dict.fromkeys(AUDIO_FEATURES, 0.5)
    predict(library, PREDICTED | more, more=[*more], thresholds=[0.5, 0.5] + [2.0] * 7)
    say(library, [("ann", tag, 1) for tag in ("dreamy", "rap", "80", "a/b", "calm")])
    say(library, [("files", "jazz", 1)], kind="file")  # it is not in the files; they had it
    keep_said(library, 1, ["Sunday Morning"])
    return messy


def planned(library, rules):
    return library.writer.plan(precision=None, rules=rules)


def assert_same_numbers(outline, plan):
    assert outline.failures.keys() == plan.failures.keys()
    assert outline.tracks == sorted({file.track.id for file in plan.files})
    assert outline.n_files == len(plan.files)
    added = Counter(tag.tag for file in plan.files for tag in file.added)
    assert {tag.tag: tag.n for tag in outline.accepted} == added
    assert sum(tag.n - tag.n_said for tag in outline.accepted) == plan.n_guessed
    wrong = sum(tag.expected_wrong for tag in outline.accepted)
    assert wrong == pytest.approx(plan.expected_wrong)
    changed = [{field.field for field in file.change.fields} for file in plan.files]
    assert outline.n_features == sum("energy" in fields for fields in changed)
    for file in plan.files:
        of_tags = [field for field in file.change.fields if field.field in FIELDS]
        assert len(file.added) == sum(len(field.added) for field in of_tags)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("rules", RULES, ids=lambda rules: ", ".join(rules) or "no rules")
def test_every_stage_of_a_write_has_the_same_numbers(library, wanting, rules, mode):
    rules = {"mode": mode, **rules}
    outline = library.writer.outline(precision=None, rules=rules)
    plan = planned(library, rules)
    assert_same_numbers(outline, plan)
    failing = {name for name, path in wanting.items() if str(path) in plan.failures}
    assert {"unsupported", "gone"} <= failing <= UNWRITABLE

    report = library.writer.write(plan)
    assert not report.failures
    assert len(report.paths) == outline.n_files
    assert report.n_tags == sum(tag.n for tag in outline.accepted)

    again = planned(library, rules)
    assert not again.files
    assert_same_numbers(library.writer.outline(precision=None, rules=rules), again)


def test_a_file_is_written_through_a_link_only_where_it_is_named(library, wanting):
    paths = [file.change.path for file in planned(library, {}).files]
    assert str(wanting["mp3"]) in paths
    assert str(wanting["link"]) not in paths
    report = library.write(wanting["link"], predicted=False)  # unless the link is named
    assert report.paths == [str(wanting["link"])]
    assert wanting["link"].is_symlink()


def test_a_file_that_cannot_be_written_counts_once_it_can(library, wanting):
    outline = library.writer.outline()
    assert "read-only" in outline.failures[str(wanting["read-only"])]
    wanting["read-only"].chmod(0o644)
    now = library.writer.outline()
    assert now.n_files == outline.n_files + 1
    assert str(wanting["read-only"]) not in now.failures


def test_the_format_of_a_file_that_an_older_version_read_is_looked_at(library, wanting):
    """Its row does not say why no tags can be written to it."""
    track = library.tracks.find(str(wanting["unsupported"]))
    library.tracks.replace(replace(track, obstacle=None))
    outline = library.writer.outline()
    assert "format is not supported" in outline.failures[track.path]


def test_what_the_rules_refuse_is_outlined_as_not_accepted(library, wanting):
    outline = library.writer.outline(precision=None, rules={"ignore": ["Guitar"]})
    without = library.writer.outline(precision=None)
    tags = {tag.tag: tag for tag in outline.tags}
    assert not tags["guitar"].accepted
    assert tags["guitar"].n == next(tag.n for tag in without.tags if tag.tag == "guitar")
    assert tags["dreamy"].accepted


def test_it_counts_the_tags_that_tracks_have(library, monkeypatch):
    """Here no file has any tag, as far as the library knows; and there are no files."""
    monkeypatch.setattr(outline_module, "_failures", lambda files: {})
    trained(library, tagged=30, artists=7)
    snapshot = library.snapshot()
    outline = library.writer.outline(precision=0, rules={"ignore": ["mellow"]})
    listed = {tag.tag: tag for tag in outline.tags}
    n_wanted = dict.fromkeys(listed, 0)
    n_predicted = 0
    for track_id in snapshot.ids.tolist():
        said = snapshot.verdicts.of_track(track_id)
        probabilities = snapshot.predictions.rows(np.array([track_id]))[0]
        for name in listed:
            tag = snapshot.tags[name]
            is_predicted = tag.predicted and tag.reached(probabilities[tag.place])
            n_wanted[name] += said.get(name, is_predicted)
            n_predicted += is_predicted and name not in said and name != "mellow"
    assert {name: tag.n for name, tag in listed.items()} == n_wanted
    assert not listed["mellow"].accepted
    assert not any(tag.elsewhere for tag in outline.tags)  # all are learnt from this library
    assert sum(tag.n - tag.n_said for tag in outline.accepted) == n_predicted
    wanted = wanted_tags(library, snapshot.ids.tolist())
    changing = [track_id for track_id, tags in wanted.items() if set(tags.scores) - {"mellow"}]
    assert outline.tracks == sorted(changing)
