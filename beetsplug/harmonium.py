"""Harmonium's plugin for beets: genres, moods and audio features from the sound.

docs/connect.md has its settings.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

import mediafile
from beets import config, ui
from beets.dbcore import types
from beets.importer import ImportSession, ImportTask
from beets.library import Item, Library
from beets.plugins import BeetsPlugin
from rich.console import Console
from rich.progress import track

from harmonium.errors import HarmoniumError
from harmonium.library.model import USUAL_PRECISION

LISTS = {"mood": "TMOO", "harmonium": ""}  # fields of lists, and their frames in ID3v2.4
# named here, too, because every command of beets loads this module
FEATURES = (
    *("energy", "valence", "danceability", "acousticness"),
    *("instrumentalness", "liveness", "speechiness"),
)
BATCH = 64  # items to tag at a time


class HarmoniumPlugin(BeetsPlugin):
    """`beet harmonium`, and a stage of `beet import`."""

    item_types = {  # noqa: RUF012
        **dict.fromkeys(LISTS, types.MULTI_VALUE_DSV),
        **dict.fromkeys(FEATURES, types.NullFloat(2)),
    }

    def __init__(self) -> None:
        super().__init__()
        self.config.add(
            {
                "auto": True,
                "library": None,
                "precision": USUAL_PRECISION,
                "write_features": False,
            }
        )
        for name, frame in LISTS.items():
            self.add_media_field(name, _list_field(name.upper(), frame))
        for name in FEATURES if self.config["write_features"].get(bool) else ():
            self.add_media_field(name, _number_field(name.upper()))
        if self.config["auto"].get(bool):
            self.import_stages = [self.imported]
        self.register_listener("cli_exit", self.close)

    @cached_property
    def tagger(self) -> Any:
        """Harmonium with its library, opened when it is first needed."""
        from harmonium.connect.beets import ItemTagger

        return ItemTagger(self.config["library"].get(), self.config["precision"].as_number())

    def close(self, **_: Any) -> None:
        """Close Harmonium's library."""
        if "tagger" in self.__dict__:
            self.__dict__.pop("tagger").close()

    def commands(self) -> list[ui.Subcommand]:
        """`beet harmonium QUERY`."""
        command = ui.Subcommand("harmonium", help="tag items by their sound")
        flag = command.parser.add_option
        flag("-f", "--force", action="store_true", help="also items that were tagged before")
        flag("-p", "--pretend", action="store_true", help="show the changes, and make none")
        command.func = self.tag_items
        return [command]

    def tag_items(self, lib: Library, opts: Any, args: list[str]) -> None:
        """Tag the items that a query finds, and write their files if beets is set to write."""
        done = ("energy", "harmonium")
        items = [one for one in lib.items(args) if opts.force or not any(map(one.get, done))]
        errors, tagged = Console(stderr=True), self._with_new_values(items)
        bar: Iterable[Item] = track(tagged, "Tagging", len(items), console=errors, transient=True)
        try:
            for item in bar if errors.is_terminal else tagged:
                if ui.show_model_changes(item) and not opts.pretend:
                    item.store()
                    if ui.should_write():
                        item.try_write()
        except HarmoniumError as error:
            raise ui.UserError(f"harmonium: {error}") from error

    def imported(self, session: ImportSession, task: ImportTask) -> None:
        """Tag what is being imported; beets writes the files afterwards."""
        try:
            for item in self._with_new_values(task.imported_items()):
                item.store()
        except HarmoniumError as error:
            self._log.error("{}", error)

    def _with_new_values(self, items: Sequence[Item]) -> Iterator[Item]:
        """The items, in batches, with new values that are not stored yet."""
        for start in range(0, len(items), BATCH):
            some = {os.fsdecode(item.path): item for item in items[start : start + BATCH]}
            for tagged in self.tagger.tag([*some]):
                if tagged.problem is not None:
                    self._log.warning("{}: {}", tagged.path, tagged.problem)
                item = some[tagged.path]
                item.update(self.tagger.new_values(item, tagged))
                yield item


def _list_field(name: str, frame: str) -> mediafile.ListMediaField:
    """Values in a field of files; ID3v2.3 has no frame for moods."""
    in_mp3 = mediafile.MP3ListDescStorageStyle(name, split_v23=True)
    if frame and not config["id3v23"].get(bool):
        in_mp3 = mediafile.MP3ListStorageStyle(frame)
    in_mp4 = mediafile.MP4ListStorageStyle(f"----:com.apple.iTunes:{name}")
    return mediafile.ListMediaField(in_mp3, in_mp4, mediafile.ListStorageStyle(name))


def _number_field(name: str) -> mediafile.MediaField:
    """A number from 0 to 1 in a field of files, as `harmonium write --features` writes it."""
    in_mp3 = mediafile.MP3DescStorageStyle(name, float_places=2)
    in_mp4 = mediafile.MP4StorageStyle(f"----:com.apple.iTunes:{name}", float_places=2)
    others = mediafile.StorageStyle(name, float_places=2)
    return mediafile.MediaField(in_mp3, in_mp4, others, out_type=float)
