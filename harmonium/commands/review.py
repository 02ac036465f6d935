"""`harmonium review`: the model's doubts, answered with one key each."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from harmonium.commands import INTERRUPTED
from harmonium.commands.options import LibraryOption, PersonOption
from harmonium.commands.quick_learning import learn, learnt
from harmonium.commands.screen import percent, say
from harmonium.errors import counted

if TYPE_CHECKING:
    from harmonium.library import Library
    from harmonium.library.correcting.review import Doubt

PLAYERS = (["mpv", "--no-video"], ["ffplay", "-nodisp", "-autoexit"], ["afplay"], ["xdg-open"])
KEYS = "y yes, n no, space skip, p play, q quit"
AT_A_TIME = 10
"""Questions after which the model learns from the answers, and is in doubt about others."""


def review(
    tag: Annotated[
        str | None, typer.Argument(metavar="TAG", help="Only about this tag; by default all.")
    ] = None,
    library: LibraryOption = None,
    number: Annotated[
        int, typer.Option("--number", "-n", metavar="N", min=1, help="How many questions.")
    ] = 20,
    person: PersonOption = "me",
) -> None:
    """Answer the model's doubts, with one key each.

    Shows the tracks of which the model is most in doubt, from different
    tags and artists: y says that the tag fits, n that it does not, the
    space bar skips, p plays the track, q ends. Each answer is kept at
    once, and after every ten the model learns from them. All answers of
    one review are one change, which 'harmonium undo' takes back.

    [dim]Example:[/dim]  harmonium review jazz

    [dim]Exit codes:[/dim]  0 done; 2 there is nothing to ask, or nobody to answer;
    130 interrupted: the answers are kept.
    """
    from harmonium.errors import DataError
    from harmonium.library import Library
    from harmonium.library.correcting.review import doubtful

    if not is_terminal():
        raise DataError(
            "A review needs a terminal with somebody at it. For programs there is `harmonium say`."
        )
    with Library.open(library, create=False) as opened:
        questions = doubtful(opened, tag, n=min(number, AT_A_TIME))
        if not questions:
            raise DataError("People have answered all that the model could be in doubt about.")
        session = _Session(opened, person, number)
        try:
            while questions and session.ask(questions):
                session.learn()
                left = min(number - len(session.asked), AT_A_TIME)
                questions = doubtful(opened, tag, n=left, skip=session.asked) if left else []
        except KeyboardInterrupt:
            session.report()
            raise typer.Exit(INTERRUPTED) from None
        session.report()


class _Session:
    """Questions and answers, under one change."""

    def __init__(self, library: Library, person: str, number: int) -> None:
        self.library, self.person, self.number = library, person, number
        self.console = Console()
        self.change: int | None = None
        self.asked: list[tuple[int, str]] = []
        self.n_answers = self.n_right = self.n_learnt = 0
        self.playing: subprocess.Popen[bytes] | None = None

    def ask(self, questions: list[Doubt]) -> bool:
        """Ask one after the other; whether the person wants more."""
        if not self.asked:
            say(self.console, KEYS)
        try:
            for question in questions:
                self.asked.append((question.track.id, question.tag))
                key = self._key(question, f"{len(self.asked)}/{self.number}")
                if key == "q":
                    return False
                if key in "yn":
                    self._keep(question, key == "y")
        finally:
            self._stop()
        return True

    def learn(self) -> None:
        """Let the model learn from the answers, if there are new ones."""
        if self.n_answers > self.n_learnt:
            self.n_learnt = self.n_answers
            if line := learnt(learn(self.library)):
                say(self.console, line)

    def report(self) -> None:
        """What was answered, and what to do next."""
        if self.change is None:
            say(self.console, "Nothing was answered.")
            return
        self.learn()
        answers = counted(self.n_answers, "answer")
        right = f"the model had guessed {self.n_right:,} of them right"
        say(self.console, f"{answers} kept; {right}.")
        self._say_gain()
        say(self.console, f"To take them back: harmonium undo {self.change}")

    def _say_gain(self) -> None:
        """What learning on the way has gained."""
        from harmonium.library.learning.quick import improvement

        gain = improvement(self.library, self.change)
        if gain is not None:
            say(
                self.console,
                f"As it was trained it guesses {gain.right_before:,} of {gain.n:,}; learning from "
                f"each answer before the next, {gain.right_now:,}.",
            )

    def _key(self, question: Doubt, where: str) -> str:
        """The key that answers a question: y, n, q or a space."""
        doubt = percent(question.probability)
        say(self.console, f"{where}  {question.tag}? ({doubt})  {question.track.name}")
        while True:
            key = typer.getchar().lower()
            if key == "p":
                self._play(question.track.path)
            elif key in ("y", "n", "q", " "):
                self._stop()
                words = {"y": "yes", "n": "no", "q": "quit", " ": "skipped"}
                say(self.console, f"     {words[key]}")
                return key
            elif key in ("\x03", "\x04"):
                raise KeyboardInterrupt
            else:
                say(self.console, f"     {KEYS}")

    def _keep(self, question: Doubt, fits: bool) -> None:
        from harmonium.library.correcting.review import answer_doubt

        track, tag = question.track.id, question.tag
        self.change = answer_doubt(
            self.library, track, tag, fits, person=self.person, change=self.change
        )
        self.n_answers += 1
        self.n_right += fits == question.guess

    def _play(self, path: str) -> None:
        self._stop()
        player = next((one for one in PLAYERS if shutil.which(one[0])), None)
        if player is None:
            names = ", ".join(one[0] for one in PLAYERS)
            say(self.console, f"     There is no player; any of {names} would do.")
            return
        nowhere = subprocess.DEVNULL
        self.playing = subprocess.Popen(
            [*player, path], stdin=nowhere, stdout=nowhere, stderr=nowhere
        )

    def _stop(self) -> None:
        """Stop the player that was started, if it still plays."""
        if self.playing is not None and self.playing.poll() is None:
            self.playing.terminate()
        self.playing = None


def is_terminal() -> bool:
    """Whether there is somebody to ask."""
    return sys.stdin is not None and sys.stdin.isatty()
