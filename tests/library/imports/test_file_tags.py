"""Importing the tags that files have."""

from dataclasses import replace

import pytest
from some_tracks import in_force

from harmonium.errors import DataError
from harmonium.library.imports import (
    import_file_tags,
)
from harmonium.library.store.tracks import Track


def test_tags_of_files(library):
    comments = {"comment": ["nice, mellow; live\nx", "long " * 30], "genre": ["Pop"]}
    files = [{"genre": ["Hip-Hop", "hip hop"], "mood": ["Calm"]}, comments]
    library.tracks.put(Track(f"/{k}", f"{k}", file_tags=tags) for k, tags in enumerate(files))
    library.tracks.put([Track("/c", "3", file_tags={"genre": ["Pop"]}, state="missing")])
    report = import_file_tags(library)
    assert in_force(library) == {("files", 1, "hip hop"): 1, ("files", 2, "pop"): 1}
    assert report.complete
    assert library.opinions.people()[0].kind == "file"
    report = import_file_tags(library, fields=["mood", "comment"], person="my files")
    assert report.left_out == {"more than 100 characters": 1}
    tags = {tag for person, _, tag in in_force(library) if person == "my files"}
    assert tags == {"calm", "nice", "mellow", "live", "x"}
    assert import_file_tags(library).change is None
    with pytest.raises(DataError, match="'fields'"):
        import_file_tags(library, fields=["year"])


def test_what_undoing_brought_back_is_its_owners_tag(library, tmp_path):
    from tagged_files import untagged

    from harmonium.library.examine import examine
    from harmonium.library.filetags import Rules, apply_change, plan_write
    from harmonium.library.writing.restore import undo_change

    path = tmp_path / "a.flac"
    path.write_bytes(untagged("flac"))
    apply_change(plan_write(path, ["Rock", "Live"]))  # by its owner
    (one,) = library.tracks.put([examine(str(path))])

    def write(tags):
        change = library.changes.begin("write", "x")

        def keep(record):
            library.changes.keep_file(change, one, str(path), record.to_bytes())

        apply_change(plan_write(path, tags, Rules(mode="overwrite")), keep=keep)
        library.tracks.replace(replace(examine(str(path)), id=one))
        return change

    def own_and_imported():
        report = import_file_tags(library, dry_run=True)
        return report.n_own, report.n_matched

    first = write(["rock", "Jazz"])  # "rock" is its owner's, in another spelling
    assert own_and_imported() == (1, 1)
    second = write(["Blues"])
    assert own_and_imported() == (1, 0)
    undone = undo_change(library, second)
    assert own_and_imported() == (1, 1)  # of "Jazz" and "rock"
    undo_change(library, undone.change)
    assert own_and_imported() == (1, 0)  # "Blues" is there again, and still Harmonium's
    undo_change(library, second)
    undo_change(library, first)
    assert library.tracks.get(one).file_tags == {"genre": ["Rock", "Live"]}
    assert own_and_imported() == (0, 2)
    apply_change(plan_write(path, ["Blues"]))  # by its owner, who agrees
    library.tracks.replace(replace(examine(str(path)), id=one))
    assert own_and_imported() == (0, 3)
