"""Which program shows what of the fields that Harmonium writes, read back by the programs.

    python benchmarks/players.py

Two genres, moods, groupings and tags in the comment go to a file of each format. Programs that are
not installed are left out (Debian: mpd mpc kid3-cli quodlibet ffmpeg). The table is that of
docs/filetags.md: "all" values, each by itself; all "joined" in one; only the "first"; or "none".
Formats that give the same are one column, and fields one row.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from harmonium.library.filetags import Rules, apply_change, plan_write

sys.path.append(str(Path(__file__).parents[1] / "tests" / "helpers"))
from tagged_files import name_of, untagged

WRITTEN = {
    "genre": ("jazz", "soul"),
    "mood": ("calm", "warm"),
    "grouping": ("piano", "live"),
    "comment": ("late", "rain"),
}
FORMATS = {
    **{"mp3": "MP3", "mp3v23": "MP3 with ID3v2.3", "aiff": "AIFF", "wav": "WAV"},
    **{"flac": "FLAC", "ogg": "Ogg Vorbis", "opus": "Opus", "m4a": "M4A"},
}
Shown = dict[str, dict[str, list[str]]]  # format → field → values
MPD = """
music_directory "{folder}"
db_file "{place}/db"
log_file "{place}/log"
bind_to_address "{place}/socket"
metadata_to_use "+comment"
audio_output {{
    type "null"
    name "none"
}}
"""


def output(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout


@contextmanager
def music_player_daemon(folder: Path) -> Iterator[Callable[..., str]]:
    """MPD with the music of a folder; what calls mpc."""
    with tempfile.TemporaryDirectory() as place:
        settings = Path(place) / "mpd.conf"
        settings.write_text(MPD.format(folder=folder.resolve(), place=place))
        command = ["mpd", "--no-daemon", str(settings)]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as server:
            try:
                while not (Path(place) / "socket").exists() and server.poll() is None:
                    time.sleep(0.05)

                def mpc(*words: str) -> str:
                    return output("mpc", "--host", f"{place}/socket", *words)

                mpc("update", "--wait")
                yield mpc
            finally:
                server.terminate()


def by_mpd(folder: Path) -> Shown:
    shown: Shown = {kind: {} for kind in FORMATS}
    with music_player_daemon(folder) as mpc:
        for field in WRITTEN:
            try:
                values = mpc("list", field).splitlines()
            except subprocess.CalledProcessError:
                continue  # this version does not have the tag
            for value in filter(None, values):
                for file in mpc("find", field, value).splitlines():
                    shown[Path(file).stem].setdefault(field, []).append(value)
    return shown


def by_kid3(file: Path) -> dict[str, list[str]]:
    shown: dict[str, list[str]] = {}
    for line in output("kid3-cli", "-c", "get", file).splitlines():
        if found := re.fullmatch(r"  (\w+) +(.*)", line):
            field = {"work": "grouping"}.get(found[1].lower(), found[1].lower())
            shown.setdefault(field, []).extend(found[2].split("|"))
    return shown


def by_quodlibet(file: Path) -> dict[str, list[str]]:
    shown: dict[str, list[str]] = {}
    done = subprocess.run(["operon", "list", "-t", "-c", "tag,value", file], capture_output=True)
    for line in done.stdout.decode().splitlines():
        field, _, value = line.partition(":")
        shown.setdefault(field, []).append(value)
    return shown


def by_ffprobe(file: Path) -> dict[str, list[str]]:
    text = output("ffprobe", "-v", "error", "-show_format", "-show_streams", "-of", "json", file)
    found = json.loads(text)
    tags = {**found["streams"][0].get("tags", {}), **found["format"].get("tags", {})}
    return {{"tmoo": "mood"}.get(name.lower(), name.lower()): [tags[name]] for name in tags}


def each(read: Callable[[Path], dict[str, list[str]]]) -> Callable[[Path], Shown]:
    return lambda folder: {file.stem: read(file) for file in folder.iterdir()}


PROGRAMS = {
    "MPD": (("mpd", "mpc"), ("mpd", "--version"), by_mpd),
    "Kid3": (("kid3-cli",), ("dpkg-query", "-W", "-f", "${Version}", "kid3-cli"), each(by_kid3)),
    "Quod Libet": (("operon",), ("operon", "--version"), each(by_quodlibet)),
    "FFmpeg": (("ffprobe",), ("ffprobe", "-version"), each(by_ffprobe)),
}


def write_files(folder: Path) -> None:
    fields = {tag: field for field, tags in WRITTEN.items() for tag in tags}
    for kind in FORMATS:
        file = folder / (kind + Path(name_of(kind)).suffix)
        file.write_bytes(untagged(kind))
        rules = Rules(fields=fields, id3_version=3 if kind == "mp3v23" else 4)
        apply_change(plan_write(file, [*fields], rules))


def verdict(written: tuple[str, ...], shown: list[str]) -> str:
    if set(written) <= set(shown):
        return "all"
    if any(all(tag in text for tag in written) for text in shown):
        return "joined"
    return "first" if written[0] in shown else "none"


def main() -> None:
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    rows: dict[str, dict[str, str]] = {}
    with tempfile.TemporaryDirectory() as place:
        write_files(Path(place))
        for name, (needed, version, read) in PROGRAMS.items():
            if not all(map(shutil.which, needed)):
                print(f"{name} is not installed.", file=sys.stderr)
                continue
            number = re.search(r"\d+\.\d+(\.\d+)?", output(*version))
            shown, fields = read(Path(place)), dict[tuple[str, ...], list[str]]()
            for field, tags in WRITTEN.items():
                found = (verdict(tags, shown[kind].get(field, [])) for kind in FORMATS)
                fields.setdefault(tuple(found), []).append(field)
            for values, names in fields.items():
                row = f"{name} {number[0] if number else ''} | {', '.join(names)}"
                rows[row] = dict(zip(FORMATS, values, strict=True))
    columns: dict[tuple[str, ...], list[str]] = {}
    for kind, title in FORMATS.items():
        columns.setdefault(tuple(row[kind] for row in rows.values()), []).append(title)
    print("| program | field |", " | ".join(map(", ".join, columns.values())), "|")
    print("|---" * (2 + len(columns)) + "|")
    for i, row in enumerate(rows):
        print(f"| {row} |", " | ".join(values[i] for values in columns), "|")


if __name__ == "__main__":
    main()
