"""Corrections: `harmonium say`, `review`, `rename`, `hide`, `kind`, `forget`, `undo`."""

from __future__ import annotations

import shutil
import subprocess
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.text import Text

from harmonium.commands import INTERRUPTED, exit_code, options
from harmonium.commands.options import argument, flag, number, value
from harmonium.commands.output import Columns, Output, has_reader, percent, to_undo
from harmonium.errors import DataError, HarmoniumError, counted

if TYPE_CHECKING:
    from harmonium.library import Library
    from harmonium.library.store.changes import Change, UndoReport
    from harmonium.library.teaching.review import Doubt

PLAYERS = (["mpv", "--no-video"], ["ffplay", "-nodisp", "-autoexit"], ["afplay"], ["xdg-open"])
KEYS = {"y": "yes", "n": "no", " ": "skipped", "q": "quit"}
KEYS_HELP = "y yes, n no, space skip, p play, q quit"
ROUND = 10  # questions after which the model learns from the answers
KIND_COLUMNS = {"Tag": "shown", "Kind": "kind", ">People": "people", ">Predicted": "predicted"}
CHANGE_COLUMNS: Columns = {
    ">Change": lambda change: Text(str(change.id), style="cyan"),
    "When": "at",
    "Command": "command",
    "What": "summary",
    "": lambda change: Text(_undone(change), style="dim"),
}


def learn(out: Output, library: Library) -> str | None:
    """Learn from the current answers; a line that says what was learnt, or None.

    If learning fails, a note says why. The answers are kept either way.
    """
    try:
        with out.bar("learning") as progress:
            report = library.learn(progress)
    except HarmoniumError as error:
        out.note(f"Saved, but the model could not learn from it yet: {error}")
        return None
    if not report.refreshed:
        return None
    n_answers = 0
    for tag in report.tags:
        if tag.name in report.refreshed:
            n_answers += tag.n_yes + tag.n_no
    spellings = library.tags.spellings()
    names = ", ".join(spellings.get(name, name) for name in report.refreshed)
    return (
        f"Updated {names} on all tracks from {counted(n_answers, 'answer')} in "
        f"{report.seconds:.1f} s."
    )


def say(
    words: list[str] = argument(
        "TRACK... TAG",
        f"{options.TRACK_HELP} Or a folder. More files, #NUMBERs and folders that end in a slash "
        "may follow. Then tags that fit; with a minus, tags that do not. Quote a tag of several "
        "words.",
        default=...,
    ),
    library: str | None = options.LIBRARY,
    unsay: list[str] | None = value("TAG", "Withdraw what you said about this tag.", "--unsay"),
    person: str = options.PERSON,
    as_json: bool = options.JSON,
) -> None:
    """Set the tags of tracks; -TAG rejects one.

    Your tags count in searches, when files are written, and in training. The model learns from
    them at once: the track's other tags change, and so do the tags of tracks that sound like it. A
    new tag is predicted once five tracks have it. Your tags replace what you said before about the
    same tags, and what the file says.

    Example: harmonium say song.mp3 rock "hip hop" -live
    Example: harmonium say ~/Music/Concerts live
    Example: harmonium say *.flac sleepy
    In Python: library.say("song.mp3", "rock", "-live"), library.say([1, 2, "Concerts/"], "live")
    """
    from harmonium.library.store.tracks import named_tracks
    from harmonium.library.teaching.say import read_said

    first, *others = words
    more_tracks = list(takewhile(_is_track, others))
    tracks = [first, *more_tracks]
    yes, no = read_said(others[len(more_tracks) :])
    withdrawn = unsay or []
    if not (yes or no or withdrawn):
        raise DataError("Which tags? For example: harmonium say TRACK rock -live")
    out = Output(as_json)
    with options.opened(library) as opened:
        with opened.learner.paused():
            said = opened.say(tracks, yes=yes, no=no, unsay=withdrawn, person=person)
        learnt = None if said.change is None else learn(out, opened)
    out.json({"tracks": [track.id for track in said.tracks], "change": said.change})
    names = named_tracks(said.tracks)
    if said.change is None:
        out.say(f"{names}: nothing new.", learnt)
        return
    changes = [*yes, *(f"not {tag}" for tag in no), *(f"{tag} withdrawn" for tag in withdrawn)]
    out.say(f"{names}: {', '.join(changes)}", learnt, to_undo(said.change))


def _is_track(word: str) -> bool:
    """Whether a word after the first one is a track and not a tag."""
    if word.startswith("#"):
        return word[1:].isdecimal()
    path = Path(word).expanduser()
    if word.endswith("/"):
        return path.is_dir()
    return path.suffix != "" and path.is_file()


def review(
    tag: str | None = argument("TAG", "Only this tag; by default all tags."),
    library: str | None = options.LIBRARY,
    number: int = number(20, "Ask N questions.", "--number", "-n"),
    person: str = options.PERSON,
) -> None:
    """Answer the model's questions about doubtful tags.

    Asks about the least certain predictions, across tags and artists: y if the tag fits, n if not,
    space to skip, p to play the track, q to quit. Every answer is saved at once, and the model
    learns after every ten. One review is one change for `harmonium undo`.

    Example: harmonium review jazz
    In Python: library.review.doubts("jazz"), library.review.answer(track, "jazz", True)
    """
    if not has_reader():
        raise DataError("A review needs a terminal. Programs can use `harmonium say`.")
    with options.opened(library) as opened, opened.learner.paused():
        session = _Review(opened, person, number)
        try:
            session.run(tag)
        except KeyboardInterrupt:
            session.report()
            raise typer.Exit(INTERRUPTED) from None
        session.report()


class _Review:
    """Questions and answers, under one change."""

    def __init__(self, library: Library, person: str, number: int) -> None:
        self.library = library
        self.person = person
        self.number = number
        self.out = Output()
        self.change: int | None = None
        self.asked: list[tuple[int, str]] = []
        self.n_answers = 0
        self.n_right = 0  # answers that the model had guessed
        self.n_learnt = 0  # answers that it has learnt from
        self.playing: subprocess.Popen[bytes] | None = None

    def run(self, tag: str | None) -> None:
        """Ask in rounds, and learn after each, until the person quits or nothing is left."""
        while len(self.asked) < self.number:
            n_questions = min(self.number - len(self.asked), ROUND)
            questions = self.library.review.doubts(tag, n_questions, self.asked)
            if not questions and not self.asked:
                raise DataError("Nothing to review: every question is answered.")
            if not questions:
                return
            if not self.asked:
                self.out.say(KEYS_HELP)
            for question in questions:
                self.asked.append((question.track.id, question.tag))
                try:
                    key = self._key(question)
                finally:
                    self._stop()
                if key == "q":
                    return
                if key in "yn":
                    self._save(question, key == "y")
            self._learn()

    def report(self) -> None:
        """Say what was answered, how much it helped, and how to undo it."""
        if self.change is None:
            self.out.say("Nothing was answered.")
            return
        self._learn()
        answers = counted(self.n_answers, "answer")
        self.out.say(f"{answers} saved; the model had guessed {self.n_right:,} of them right.")
        gain = self.library.review.improvement(self.change)
        if gain is not None:
            self.out.say(
                f"As trained, it guesses {gain.right_before:,} of {gain.n:,} right; learning from "
                f"each answer in turn, it guesses {gain.right_now:,}."
            )
        self.out.say(to_undo(self.change))

    def _learn(self) -> None:
        if self.n_answers > self.n_learnt:
            self.n_learnt = self.n_answers
            self.out.say(learn(self.out, self.library))

    def _key(self, question: Doubt) -> str:
        """The key that answers a question: y, n, q or a space."""
        tag = self.library.tags.spellings().get(question.tag, question.tag)
        probability = percent(question.probability)
        self.out.say(
            f"{len(self.asked)}/{self.number}  {tag}? ({probability})  {question.track.name}"
        )
        while True:
            key = typer.getchar().lower()
            if key in ("\x03", "\x04"):
                raise KeyboardInterrupt
            if key == "p":
                self._play(question.track.path)
            else:
                self.out.say(f"     {KEYS.get(key, KEYS_HELP)}")
                if key in KEYS:
                    return key

    def _save(self, question: Doubt, fits: bool) -> None:
        self.change = self.library.review.answer(
            question.track, question.tag, fits, person=self.person, change=self.change
        )
        self.n_answers += 1
        self.n_right += fits == question.guess

    def _play(self, path: str) -> None:
        self._stop()
        for player in PLAYERS:
            if shutil.which(player[0]):
                break
        else:
            names = ", ".join(player[0] for player in PLAYERS)
            self.out.say(f"     No player found; install one of {names}.")
            return
        self.playing = subprocess.Popen(
            [*player, path],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def _stop(self) -> None:
        """Stop the player."""
        if self.playing is not None and self.playing.poll() is None:
            self.playing.terminate()
        self.playing = None


def rename(
    old: str = argument("OLD", "A tag.", default=...),
    new: str = argument("NEW", "Its new name, or the tag to merge it into.", default=...),
    library: str | None = options.LIBRARY,
    as_json: bool = options.JSON,
) -> None:
    """Rename or merge a tag.

    People's tags and the models get the new name. If NEW exists, the two are merged. Files are
    not touched; if files and tables have the old name, it is imported as the new one from now on.

    Example: harmonium rename "electronica" electronic
    In Python: library.rename("electronica", "electronic")
    """
    out = Output(as_json)
    with options.opened(library) as opened:
        with opened.learner.paused():
            done = opened.rename(old, new)
        learn(out, opened)
        spelling = opened.tags.spellings().get(done.new, done.new)
    out.json(done)
    verb = "merged into" if done.merged else "renamed to"
    out.say(f"{done.old} {verb} {spelling}: {counted(done.n_moved, 'tag')} moved.")
    if done.n_dropped:
        out.say(f"{counted(done.n_dropped, 'track')} had both and keep {done.new} as it was.")
    if done.needs_training:
        out.say(f"The model knew both and predicts {done.new} as before until you train again.")
    out.say(to_undo(done.change))


def hide(
    tags: list[str] | None = argument("TAG", "Tags; without any, list the hidden tags."),
    library: str | None = options.LIBRARY,
    as_json: bool = options.JSON,
) -> None:
    """Hide tags.

    A hidden tag is neither predicted nor learnt. Use it for tags that say nothing about the sound,
    such as "seen live". People's tags stay and search finds them, but they are not written to
    files. `harmonium undo` shows the tag again.

    Example: harmonium hide "seen live"
    In Python: library.hide("seen live")
    """
    out = Output(as_json)
    with options.opened(library) as opened:
        with opened.learner.paused():
            change = opened.hide(*tags) if tags else None
        if change is not None:
            learn(out, opened)
        hidden = sorted(opened.tags.hidden())
        spellings = opened.tags.spellings()
    out.json({"change": change, "hidden": hidden})
    if tags:
        verb = "is" if len(tags) == 1 else "are"
        out.say(f"{', '.join(tags)} {verb} hidden. {to_undo(change)}")
    elif hidden:
        out.table(("Hidden",), [(spellings.get(name, name),) for name in hidden])
    elif not as_json:
        out.note("No tags are hidden. `harmonium hide TAG` hides one.")


def kind(
    words: list[str] | None = argument(
        "TAG... KIND",
        "Tags, then their kind: genre, mood, instrument, voice, era, sound or own; none for words "
        "that are not tags. Without arguments, list all tags.",
    ),
    library: str | None = options.LIBRARY,
    as_json: bool = options.JSON,
) -> None:
    """List the tags by kind, or set the kind of tags.

    A tag's kind decides which field of a file it goes to: genres to genre, moods to mood, all
    others to grouping. `harmonium write --field mood=comment` changes that.

    Example: harmonium kind "sunday morning" rainy mood
    In Python: library.set_kind("rainy", kind="mood"), library.tags.list()
    """
    out = Output(as_json)
    with options.opened(library) as opened:
        if not words:
            out.show(opened.tags.list(), KIND_COLUMNS, empty="No tags yet.")
            return
        *tags, new = words
        if not tags:
            raise DataError(f"Which kind? For example: harmonium kind {new!r} mood")
        change = opened.set_kind(*tags, kind=new)
    out.json({"change": change, "kind": new})
    if change is None:
        out.say("Nothing changed.")
    else:
        out.say(f"{', '.join(tags)}: {new}. {to_undo(change)}")


def forget(
    tracks: list[str] = argument("TRACK", f"{options.TRACK_HELP} Or a folder.", default=...),
    library: str | None = options.LIBRARY,
    as_json: bool = options.JSON,
) -> None:
    """Remove tracks from the library; their files are not touched.

    A removed track is not found, tagged, learnt from or written to, and `harmonium index` skips its
    file. `harmonium undo` brings it back with all its tags.

    Example: harmonium forget "Audiobook - Chapter 1" ~/Music/Podcasts
    In Python: library.forget("chapter 1.mp3", "Podcasts")
    """
    from harmonium.library.store.tracks import named_tracks

    out = Output(as_json)
    with options.opened(library) as opened:
        found = opened.tracks_of(*tracks)
        with opened.learner.paused():
            change = opened.forget(*found)
        learn(out, opened)
    out.json({"tracks": [track.id for track in found], "change": change})
    out.say(
        f"{named_tracks(found)} removed from the library; no file was touched.", to_undo(change)
    )


def undo(
    change: int | None = argument("CHANGE", "A change's number; by default the last not undone."),
    library: str | None = options.LIBRARY,
    list_changes: bool = flag("List the last changes, and undo nothing.", "--list", "-l"),
    limit: int = number(20, "--list shows at most N changes."),
    fields_only: bool = flag(
        "In files changed since, restore only fields that still hold what was written.",
        "--fields-only",
    ),
    as_json: bool = options.JSON,
) -> None:
    """Undo a change: tags, and files to the byte.

    Every change to tags, files, tracks or the model in use can be undone. To redo, undo the undo:
    name its number. Tags that later changes touched are kept, and so are files that another program
    changed since; both are listed, and the next undo without a number skips them.

    Example: harmonium undo --list
    In Python: library.undo(), library.changes.list()
    """
    out = Output(as_json)
    with options.opened(library) as opened:
        if list_changes:
            out.show(opened.changes.list(limit), CHANGE_COLUMNS, empty="No changes yet.")
            return
        wanted = opened.writer.last_change() if change is None else opened.changes.get(change)
        stopped = f"Stopped. To continue: harmonium undo {wanted.id}"
        with out.bar("restoring", stopped) as progress, opened.learner.paused():
            report = opened.undo(wanted.id, exact=not fields_only, progress=progress)
        if report.ended or report.revived or report.values_restored:
            learn(out, opened)
    _report(out, wanted, report)
    raise typer.Exit(exit_code(report.n_done, report.n_left))


def _undone(change: Change) -> str:
    if change.undone_by is not None:
        return f"undone by {change.undone_by}"
    if change.undone_in_part_by is None:
        return ""
    if change.left is None:
        return f"undo {change.undone_in_part_by} was interrupted"
    return f"partly undone by {change.undone_in_part_by}, {change.left:,} left"


def _report(out: Output, change: Change, report: UndoReport) -> None:
    from harmonium.library.store.changes import SETTING

    out.failures((report.files_left | report.values_left).items())
    for later, n in sorted(report.conflicts.items()):
        out.note(f"Change {later} came later and changed {n:,} of it again. Undo that one first.")
    out.json(
        {
            "undone": change.id,
            "change": report.change,
            "tags": report.ended + report.revived,
            "files": report.files_restored,
            "complete": report.complete,
        }
    )
    parts = []
    if report.ended:
        parts.append(f"{counted(report.ended, 'tag')} removed")
    if report.revived:
        parts.append(f"{counted(report.revived, 'tag')} restored")
    for kind, n in report.values_restored.items():
        if kind != SETTING or not parts:  # a setting only records the change
            parts.append(f"{counted(n, kind)} reset")
    if report.files_restored:
        parts.append(f"{counted(report.files_restored, 'file')} restored")

    if report.complete:
        outcome = "undone"
    else:
        outcome = "partly undone" if parts else "not undone"
    line = f"Change {change.id} ({change.command}: {change.summary}) {outcome}"
    if parts:
        line += f": {', '.join(parts)}"
    out.say(
        f"{line}.",
        None if report.complete else f"To try the rest again: harmonium undo {change.id}",
        f"To redo: harmonium undo {report.change}" if report.n_done else None,
    )
