"""Tags are written where players look, everything else stays, and undoing restores every byte."""

import io
import json
import struct
from contextlib import contextmanager
from dataclasses import replace

import mutagen
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mutagen import id3
from mutagen.flac import FLAC
from mutagen.mp4 import MP4
from mutagen.ogg import OggPage
from tagged_files import (
    FORMATS,
    PEOPLES,
    PICTURE,
    ape,
    by_ffmpeg,
    decoded,
    frame,
    id3_tag,
    id3v1,
    metadata,
    name_of,
    riff_info,
    tagged,
    untagged,
    with_chunk,
)

from harmonium.errors import FileChangedError, FileTagError
from harmonium.library.filetags import (
    MODES,
    FileChange,
    Rules,
    UndoRecord,
    apply_change,
    audio_digest,
    plan_write,
    read_tags,
    undo,
)

TAGS = {"jazz": 0.9, "ROCK": 0.8, "sad": 0.75, "Müde": 0.5, "late night": 0.25}
FIELDS = {"sad": "mood", "müde": "mood", "late night": "grouping"}
RULES = Rules(fields=FIELDS, aliases={"jazz": "Jazz"}, scores=True)
MOOD = Rules(fields={"sad": "mood"})
OLD = tuple(PEOPLES["genre"])
GENRES = [*OLD, "Jazz"]
ID3 = ("mp3", "mp3v23", "wav", "aiff")
SOUND = untagged("mp3")


@pytest.fixture
def song(tmp_path):
    def put(data: bytes, name: str = "song"):
        path = tmp_path / name
        path.write_bytes(data)
        return path

    return put


def write(path, tags=TAGS, rules=RULES, **options) -> UndoRecord:
    """Plan and write, with the plan sent through JSON."""
    change = plan_write(path, tags, rules)
    again = FileChange.from_dict(json.loads(json.dumps(change.to_dict())))
    assert again == change
    return apply_change(again, **options)


@contextmanager
def written(path, tags=TAGS, rules=RULES):
    """Tags are in the file inside; then undoing restores it to the byte."""
    before = path.read_bytes()
    record = write(path, tags, rules)
    yield record
    undo(path, UndoRecord.from_bytes(record.to_bytes()))
    assert path.read_bytes() == before


def mutagens_view(data: bytes) -> dict[str, list[str]]:
    """Field → values, by Mutagen alone."""
    is_flac = b"fLaC" in data[:99] and data[:4] != b"OggS"  # perhaps with an ID3 tag before it
    file = (FLAC if is_flac else mutagen.File)(io.BytesIO(data))
    places = {name: [name] for name in ("genre", "mood", "grouping")}
    if isinstance(file, MP4):
        places = {"genre": ["©gen"], "mood": ["----:com.apple.iTunes:MOOD"], "grouping": ["©grp"]}
    elif isinstance(file.tags, id3.ID3):
        places = {"genre": ["TCON"], "mood": ["TMOO", "TXXX:Mood"], "grouping": ["TIT1"]}
    found = {name: file[k] for name, keys in places.items() for k in keys if k in file}
    return {
        name: [v.decode() if isinstance(v, bytes) else str(v) for v in getattr(one, "text", one)]
        for name, one in found.items()
    }


@pytest.mark.parametrize("picture", [False, True])
@pytest.mark.parametrize("kind", FORMATS)
def test_what_is_written_is_read_by_all(song, kind, picture):
    path = song(tagged(kind, picture=picture), name_of(kind))
    before, digest = path.read_bytes(), audio_digest(path)
    with written(path):
        after = path.read_bytes()
        values = {"genre": GENRES, "mood": ["sad", "Müde"], "grouping": ["late night"]}
        view = {k: ["; ".join(v)] for k, v in values.items()} if kind == "mp3v23" else values
        assert mutagens_view(after) == view
        found = metadata(after)
        assert (found["grouping"], found["title"]) == ("late night", "A song")
        assert found["harmonium_genre"].startswith("Jazz=0.900")
        # FFmpeg shows the first of several values, or all of them.
        assert found["genre"].split(";")[0] == "Rock"
        assert (found.get("mood") or found["tmoo"]).split(";")[0] == "sad"
        tags = read_tags(path)
        assert {name: list(getattr(tags, name)) for name in values} == values
        assert tags.title == "A song"
        assert tags.scores == {"Jazz": 0.9} | {k: v for k, v in TAGS.items() if k != "jazz"}
        assert apply_change(plan_write(path, TAGS, RULES)) is None
        assert audio_digest(path) == digest
        assert np.array_equal(decoded(after), decoded(before))
        if picture:
            assert PICTURE in after or PICTURE.hex()[:3000].encode() in after


@pytest.mark.parametrize("picture", [False, True])
@pytest.mark.parametrize("kind", FORMATS)
def test_an_undo_is_redone_to_the_byte(song, kind, picture):
    path = song(tagged(kind, picture=picture), name_of(kind))
    with written(path) as record:
        after = path.read_bytes()
        assert len(record.to_bytes()) < 2500 < len(PICTURE) / 20
        redo = undo(path, record)
        assert undo(path, record) is None
        undo(path, redo)
        assert path.read_bytes() == after


FEATURES = {"energy": 0.734, "valence": 0.0, "danceability": 1.0}
PLACES = {"mp3": "TXXX:{}", "m4a": "----:com.apple.iTunes:{}"}


@pytest.mark.parametrize("kind", FORMATS)
def test_audio_features_go_to_fields_of_their_names(song, kind):
    path = song(tagged(kind), name_of(kind))
    rules = Rules(features=True)
    assert not plan_write(path, [], Rules(), FEATURES)
    apply_change(plan_write(path, [], rules, FEATURES))
    place = PLACES.get("mp3" if kind in ID3 else kind[:3], "{}")
    there = mutagen.File(io.BytesIO(path.read_bytes()))
    for name, text in {"energy": "0.73", "valence": "0.00", "danceability": "1.00"}.items():
        (value,) = there[place.format(name.upper())]
        assert (value.decode() if isinstance(value, bytes) else str(value)) == text
    assert not plan_write(path, [], rules, FEATURES)


@pytest.mark.parametrize("kind", FORMATS)
def test_the_value_of_an_audio_feature_stays_unless_the_mode_is_to_overwrite(song, kind):
    path = song(tagged(kind), name_of(kind))
    rules = Rules(features=True)
    apply_change(plan_write(path, [], rules, FEATURES))
    other = {"energy": 0.5}
    assert not plan_write(path, [], rules, other)
    (change,) = plan_write(path, [], replace(rules, mode="overwrite"), other).fields
    assert (change.before, change.after) == (("0.73",), ("0.50",))


@pytest.mark.parametrize("kind", FORMATS)
def test_audio_features_are_undone_to_the_byte(song, kind):
    path = song(tagged(kind), name_of(kind))
    before = path.read_bytes()
    record = apply_change(plan_write(path, [], Rules(features=True), FEATURES))
    undo(path, record)
    assert path.read_bytes() == before


@pytest.mark.parametrize("kind", FORMATS)
def test_files_without_tags_have_some_until_undone(song, kind):
    path = song(untagged(kind))
    with written(path, ["rock", "sad"], replace(MOOD, id3_version=3)):
        tags = read_tags(path)
        assert (tags.genre, tags.mood) == (("rock",), ("sad",))
        assert tags.version == "ID3v2.3" or kind not in ID3
        assert metadata(path.read_bytes())["mood"] == "sad"
        assert np.array_equal(decoded(path.read_bytes()), decoded(untagged(kind)))


def test_version_2_3_stays(song):
    path = song(tagged("mp3v23"))
    write(path, ["Ярость"], Rules(separator="/"))
    assert path.read_bytes()[:4] == b"ID3\3"


def test_version_2_3_takes_the_separator_that_was_asked_for(song):
    path = song(tagged("mp3v23"))
    write(path, ["Ярость"], Rules(separator="/"))
    raw = id3.ID3(path, translate=False)
    assert (raw["TCON"].text, raw["TCON"].encoding) == (["Rock; Élan vital/Ярость"], 1)
    assert read_tags(path, separator="/").genre == ("Rock; Élan vital", "Ярость")


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize(("name", "other"), [("TIT1", "GRP1"), ("GRP1", "TIT1")])
def test_grouping_goes_to_the_frame_of_choice(song, name, other, version):
    path = song(id3_tag(version, frame("TIT1", b"\0old") + frame("GRP1", b"\0old")) + SOUND)
    write(path, ["night"], Rules(default_field="grouping", grouping_frame=name, mode="overwrite"))
    raw = id3.ID3(path)
    assert (raw[name].text, raw[other].text) == (["night"], ["old"])


@pytest.mark.parametrize(("version", "place"), [(4, "TMOO"), (3, "TXXX:Mood")])
def test_mood_moves_to_the_frame_of_the_version(song, version, place):
    frames = frame("TMOO", b"\0a") + frame("TXXX", b"\0mood\0b") + frame("TXXX", b"\0Other\0c")
    path = song(id3_tag(version, frames) + SOUND)
    write(path, ["sad"], Rules(default_field="mood"))
    assert set(id3.ID3(path, translate=False)) == {place, "TXXX:Other"}
    assert sorted(read_tags(path).mood) == ["a", "b", "sad"]


# Odd files: what is written, and what must stay. -----------------------------------------------

TITLE, ROCK = frame("TIT2", b"\0A"), frame("TCON", b"\0Rock")
OTHERS = [frame("XYZW", b"?") + frame("TPE1", b"\7no encoding") + frame("PRIV", b"o\0\xff\xfe\0")]
OTHERS.append(frame("TYER", b"\x001999") + frame("TXXX", b"\0iTunes_CDDB\0" + b"x" * 60))
V22 = id3_tag(2, b"TCO\0\0\5\0(17)" + b"TT2\0\0\6\0title") + SOUND
RIFF = with_chunk(untagged("wav"), riff_info({b"IGNR": b"Rock\0"}))
MANY = tuple(f"tag {i:03}" for i in range(40))
LONG = frame("COMM", b"\0eng\0" + b"x" * 300)
ITUNES = id3_tag(4, LONG + TITLE, padding=20) + SOUND
FIRST = id3_tag(4, frame("TCON", b"\3First"), padding=30)
END = id3v1("Title", "Artist", 17)
REST = id3_tag(3, frame("TCON", b"\0Second")) + SOUND + ape("Genre", "Pop") + END
FOOTER = id3_tag(4, TITLE, flags=0x10)
CHUNK = b"abcd\x05\0\0\0bytes\0"
# the size in a frame is that before unsynchronisation
UNSYNCHRONISED = b"TIT2" + struct.pack(">IH", 5, 0) + b"\1\xff\0\xfeA\0"
UNSYNCHRONISED_24 = frame("TIT2", b"\1\xff\0\xfeA\0")


def odd(name, data, *keeps, tags=("Jazz",), same_size=False, **expected):
    """A file, the bytes that stay in it, and what is then read; the title and genre by default."""
    expected = {"genre": ("Jazz",)} | expected
    return pytest.param(data, keeps, tags, same_size, expected, id=name)


def headed(version, flags, before=b"", frames=TITLE):
    return id3_tag(version, before + frames, flags=flags) + SOUND


def flac_with(padding):
    """FLAC with so many bytes of padding; None: without a block of comments."""
    whole = io.BytesIO(tagged("flac"))
    file = FLAC(whole)
    whole.seek(0)
    if padding is None:
        file.metadata_blocks.remove(file.tags)
    file.save(whole, padding=lambda info: padding or 0)
    return whole.getvalue()


def speex():
    head = struct.pack("<8s20siiiiiiiiiiiii", b"Speex   ", b"1.2", 1, 80, 8000, *[1] * 10)
    packets = [head, struct.pack("<I2sI", 2, b"me", 0), b"sound"]
    pages = [OggPage.from_packets([packet], i)[0] for i, packet in enumerate(packets)]
    pages[0].first = pages[2].last = True
    pages[2].position = 4000
    return b"".join(page.write() for page in pages)


def opus_with_data():
    """Opus with bytes behind its comments that are to be kept."""
    whole = io.BytesIO(untagged("opus"))
    head, comments = OggPage(whole), OggPage(whole)
    comments.packets = [b"OpusTags" + struct.pack("<I2sI", 2, b"me", 0) + b"\1binary"]
    return head.write() + comments.write() + untagged("opus")[whole.tell() :]


def wav_with_tag(order):
    tag = id3_tag(3, TITLE)
    chunk = b"id3 " + struct.pack("<I", len(tag)) + tag + b"\0" * (len(tag) % 2)
    return with_chunk(untagged("wav"), b"".join((chunk, CHUNK)[::order])) + b"trailing"


def odd_wav(padding):
    """A last chunk of odd size."""
    header = b"fmt \x10\0\0\0" + struct.pack("<HHIIHH", 1, 1, 8000, 8000, 1, 8)
    body = b"WAVE" + header + b"data" + struct.pack("<I", 4001) + bytes(4001) + padding
    return b"RIFF" + struct.pack("<I", len(body)) + body


@pytest.mark.parametrize(
    ("data", "keeps", "tags", "same_size", "expected"),
    [
        odd("ID3v2.2", V22, genre=("Rock", "Jazz"), title="title", version="ID3v2.2"),
        *(
            odd(
                f"frames of others in ID3v2.{version}",
                id3_tag(version, OTHERS[0] + ROCK + OTHERS[1], padding=300) + SOUND,
                *(OTHERS[0] + b"TCON", OTHERS[1] + bytes(200)),
                genre=("Rock", "Jazz"),
                same_size=True,
            )
            for version in (3, 4)
        ),
        odd("no frame", id3_tag(3, TITLE + b"junk, no frame") + SOUND, b"junk, no frame" + SOUND),
        odd("sizes of iTunes", ITUNES, LONG, tags=MANY, genre=MANY, title="A"),
        odd("extended", headed(3, 0x40, struct.pack(">IHI", 6, 0, 0)), title="A"),
        odd("extended 2.4", headed(4, 0x40, bytes((0, 0, 0, 6, 1, 0))), title="A"),
        odd("extended, not there", headed(3, 0x40), title="A"),
        odd("unsynchronised", headed(3, 0x80, frames=UNSYNCHRONISED), title="A"),
        odd("unsynchronised 2.4", headed(4, 0x80, frames=UNSYNCHRONISED_24), title="A"),
        odd("experimental", headed(3, 0x20), title="A"),
        odd("footer", FOOTER + b"3DI" + FOOTER[3:10] + SOUND, title="A"),
        odd("ID3v1", SOUND + END, SOUND + END, genre=("Rock", "Jazz"), album="An album"),
        odd("other tags", FIRST + REST, REST, genre=("First", "Jazz")),
        odd("ID3 before FLAC", FIRST + tagged("flac"), FIRST + b"fLaC", genre=(*OLD, "Jazz")),
        odd(
            "invalid UTF-8",
            tagged("flac").replace(b"artist=Somebody", b"ArTiSt=\xe9omebody"),
            b"ArTiSt=\xe9omebody",
            genre=(*OLD, "Jazz"),
            same_size=True,
        ),
        *(
            odd(f"FLAC, padding {n}", flac_with(n), tags=["Ja"], genre=(*OLD, "Ja"))
            for n in (0, 1, 3, 4, 5, 300)
        ),
        odd("FLAC without comments", flac_with(None)),
        odd("FLAC in Ogg", by_ffmpeg("ogg", "flac"), format="Ogg FLAC"),
        odd("Speex", speex(), format="Speex"),
        odd("Opus with data", opus_with_data(), b"GENRE=Jazz\1binary"),
        odd("tag before a chunk", wav_with_tag(1), CHUNK, b"trailing", title="A"),
        odd("tag after a chunk", wav_with_tag(-1), CHUNK, b"trailing", title="A"),
        odd("odd size", odd_wav(b"")),
        odd("odd size, padded", odd_wav(b"\0")),
        odd("RIFF texts", RIFF, genre=("Rock", "Jazz")),
    ],
)
def test_odd_files_keep_what_is_not_ours(song, data, keeps, tags, same_size, expected):
    path = song(data)
    digest = audio_digest(path)
    with written(path, tags, Rules()):
        found, after = read_tags(path), path.read_bytes()
        assert {name: getattr(found, name) for name in expected} == expected
        assert "; ".join(mutagens_view(after)["genre"]) == "; ".join(expected["genre"])
        assert all(part in after for part in keeps)
        assert len(after) == len(data) or not same_size  # the padding took it up
        assert audio_digest(path) == digest
        if found.format != "Speex" and not found.notes:  # no sound; FFmpeg knows no second tag
            assert np.array_equal(decoded(after), decoded(data))


@pytest.mark.parametrize("kind", ["ogg", "opus"])
def test_ogg_pages_stay_in_order_when_their_number_grows(song, kind):
    path = song(untagged(kind))
    many = [f"a tag with a long name {i}" for i in range(1500)]
    with written(path, many, Rules()):
        with path.open("rb") as file:
            pages = []
            while file.tell() < len(path.read_bytes()):
                pages.append(OggPage(file))
        assert [page.sequence for page in pages] == list(range(len(pages)))
        assert mutagen.File(path)["genre"] == many
        assert np.array_equal(decoded(path.read_bytes()), decoded(untagged(kind)))


@pytest.mark.parametrize(
    ("data", "format", "word"),
    [
        (by_ffmpeg("mp4", "aac", movflags="frag_keyframe+empty_moov"), "MP4", "fragmented"),
        (untagged("wav")[:-100], "WAV", "cut short"),
    ],
)
def test_files_that_are_read_but_not_written_to(song, data, format, word):
    path = song(data)
    assert read_tags(path).format == format
    with pytest.raises(FileTagError, match=word):
        plan_write(path, ["rock"])


@pytest.mark.parametrize("kind", ["m4a", "m4a-faststart"])
def test_other_items_of_mp4_stay(song, kind):
    path = song(tagged(kind, picture=True))
    file = MP4(path)
    file["trkn"], file["tmpo"], file["----:x:y"] = [(1, 2)], [120], [b"z"]
    file.save()
    before = dict(MP4(path))
    write(path, ["Jazz"], Rules())
    assert dict(MP4(path)) == before | {"©gen": GENRES}


@pytest.mark.parametrize("kind", ["mp3", "mp3v23"])
def test_tags_that_id3_cannot_hold_are_left_out_with_the_reason(song, kind):
    tags = dict.fromkeys(("80", "(17)", "CR"), "number") | dict.fromkeys(("80s", "(x)"), "")
    tags["a;b"] = "" if kind == "mp3" else "separates"
    change = plan_write(song(tagged(kind)), tags.keys(), Rules())
    assert set(change.fields[0].after[2:]) == {tag for tag, word in tags.items() if not word}
    assert {tag for tag, _ in change.left_out} == {tag for tag, word in tags.items() if word}
    assert all(tags[tag] in reason for tag, reason in change.left_out)
    assert apply_change(change) is not None


def plan_with_scores(path):
    rules = Rules(fields={"sad": "mood"}, ignore=["loud"], scores=True)
    return plan_write(path, {"jazz": 0.5, "loud": 1.0, "sad": 1 / 3, "Rock": 0.125}, rules)


def test_a_plan_changes_nothing(song):
    path = song(tagged("flac"))
    assert plan_with_scores(path)
    assert path.read_bytes() == tagged("flac")


def test_a_plan_shows_what_changes(song):
    change = plan_with_scores(song(tagged("flac")))
    assert (change.format, change.version) == ("FLAC", "Vorbis comment")
    assert [(one.field, one.before, one.after, one.places) for one in change.fields] == [
        ("genre", OLD, (*OLD, "jazz"), ("GENRE",)),
        ("mood", (), ("sad",), ("MOOD",)),
        ("harmonium_genre", (), ("jazz=0.500", "Rock=0.125"), ("HARMONIUM_GENRE",)),
        ("harmonium_mood", (), ("sad=0.333",), ("HARMONIUM_MOOD",)),
    ]
    assert change.left_out == (("loud", "on the ignore list"),)


@pytest.mark.parametrize(
    ("mode", "genres"),
    [
        ("merge", (*OLD, "jazz")),
        ("append", (*OLD, "jazz", "rock")),
        ("overwrite", ("jazz", "rock")),
        ("only-if-empty", OLD),
    ],
)
def test_the_modes_do_what_they_say(song, mode, genres):
    path = song(tagged("flac"))
    write(path, {"jazz": 0.5, "rock": 0.5, "sad": 0.5}, replace(MOOD, mode=mode, scores=True))
    tags = read_tags(path)
    assert (tags.genre, tags.mood) == (genres, ("sad",))


@pytest.mark.parametrize(
    ("mode", "scored"),
    [
        ("merge", {"jazz", "rock", "sad"}),
        ("append", {"jazz", "rock", "sad"}),
        ("overwrite", {"jazz", "rock", "sad"}),
        ("only-if-empty", {"rock", "sad"}),
    ],
)
def test_only_tags_that_are_in_the_file_are_scored(song, mode, scored):
    path = song(tagged("flac"))
    write(path, {"jazz": 0.5, "rock": 0.5, "sad": 0.5}, replace(MOOD, mode=mode, scores=True))
    assert set(read_tags(path).scores) == scored


VALUES = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=12)


@settings(deadline=None, max_examples=60)
@example(FORMATS[0], {"V": 0.0, "v": 1.0}, MODES[0], "mood", True, True)
@given(
    st.sampled_from(FORMATS),
    st.dictionaries(VALUES, st.floats(0, 1), max_size=5),
    st.sampled_from(MODES),
    st.sampled_from(("genre", "mood", "grouping")),
    st.booleans(),
    st.booleans(),
)
def test_undoing_what_was_written_is_the_identity(
    tmp_path_factory, kind, tags, mode, name, scores, bare
):
    data = untagged(kind) if bare else tagged(kind)
    path = tmp_path_factory.getbasetemp() / f"any-{name_of(kind)}"
    path.write_bytes(data)
    change = plan_write(path, tags, Rules(mode=mode, default_field=name, scores=scores))
    record = apply_change(change)
    if record is None:
        assert path.read_bytes() == data
        return
    found = read_tags(path)
    for one in change.fields:
        if one.field == name:
            assert getattr(found, name) == one.after
    assert set(found.scores) <= set(tags)
    undo(path, UndoRecord.from_bytes(record.to_bytes()))
    assert path.read_bytes() == data


def test_a_plan_is_refused_for_a_file_that_was_changed_since(song):
    path = song(tagged("flac"))
    old = plan_write(path, ["pop"])
    write(path)
    with pytest.raises(FileTagError, match=r"plan again .*Jazz"):
        apply_change(old)


def test_undoing_is_refused_for_a_file_that_was_changed_since(song):
    path = song(tagged("flac"))
    record = write(path)
    file = mutagen.File(path)
    file["title"], file["mood"] = "Another title", ["sad", "better"]
    file.save()
    changed = path.read_bytes()
    with pytest.raises(FileChangedError, match="exact=False"):
        undo(path, record)
    assert path.read_bytes() == changed
    redo = undo(path, record, exact=False)
    tags = read_tags(path)
    assert (tags.genre, tags.grouping, tags.scores) == (OLD, (), {})
    assert (tags.mood, tags.title) == (("sad", "better"), "Another title")
    undo(path, redo)
    assert path.read_bytes() == changed


@pytest.mark.parametrize("data", [b"", b"nonsense", b"HMU1", b"HMU1\0\0"])
def test_other_bytes_are_no_record(data):
    with pytest.raises(FileTagError, match="record"):
        UndoRecord.from_bytes(data)


def test_a_record_that_is_cut_off_is_refused(song):
    data = write(song(tagged("flac"))).to_bytes()
    with pytest.raises(FileTagError, match="record"):
        UndoRecord.from_bytes(data[:-9])


@pytest.mark.parametrize("kind", FORMATS)
def test_tags_come_after_what_the_comment_says(song, kind):
    path = song(tagged(kind), name_of(kind))
    comment = Rules(default_field="comment")
    write(path, ["by me"], comment)
    bare = path.read_bytes()
    record = write(path, {"mellow": 0.9, "By Me": 0.8, "late night": 0.7}, comment)
    assert read_tags(path).comment == ("by me; mellow; late night",)
    assert metadata(path.read_bytes())["comment"] == "by me; mellow; late night"
    assert read_tags(path).genre == tuple(PEOPLES["genre"])
    assert not plan_write(path, ["mellow", "late night"], comment)
    undo(path, record)
    assert path.read_bytes() == bare
    change = plan_write(path, ["new", "a, b"], replace(comment, mode="overwrite"))
    assert change.fields[0].after == ("new",)
    assert change.left_out == (("a, b", "a comment would take it for several tags"),)


def test_comments_of_programs_stay(song):
    tag = id3.ID3()
    for description, text in (("", "mine"), ("iTunNORM", "0001"), ("Comment", "theirs")):
        tag.add(id3.COMM(encoding=1, lang="deu", desc=description, text=[text]))
    whole = io.BytesIO(SOUND)
    tag.save(whole, v2_version=3, v1=0)
    path = song(whole.getvalue())
    write(path, ["Ünruhig"], Rules(default_field="comment"))
    found = id3.ID3(path).getall("COMM")
    assert {one.lang for one in found} == {"deu"}
    texts = {one.desc: one.text[0] for one in found}
    assert texts == {"": "mine; Ünruhig", "iTunNORM": "0001", "Comment": "theirs"}


def test_comments_in_other_places_stay(song):
    path = song(untagged("flac"), "song.flac")
    file = FLAC(path)
    file["DESCRIPTION"] = ["a text"]
    file.save()
    write(path, ["calm"], Rules(default_field="comment"))
    assert FLAC(path)["DESCRIPTION"] == ["a text"]
    assert read_tags(path).comment == ("calm", "a text")
