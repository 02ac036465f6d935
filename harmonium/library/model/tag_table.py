"""One table of tags: a row for each tag of a library, and the two rules that everything follows.

`Tag.holds` says whether a track has a tag: what people agree on decides; otherwise the model does.
`Tag.written` says from which probability predictions of a tag are written to files, or why they are
not. Lists, counts, searches, pages, writes and exports ask these two.

A row exists for every tag that people ever gave, that the model in use knows, or that somebody has
hidden, and for the names of audio features, which people may use as tags, too. The other names of a
tag have none: `TagTable.name` resolves them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

import numpy as np

from harmonium.arrays import Mask, Places
from harmonium.data.genres import builtin_tree
from harmonium.data.tag_names import kind_of, normalise_tag
from harmonium.errors import UnknownTagError, did_you_mean
from harmonium.library.model.builtin import builtin_aliases, builtin_kinds, builtin_model
from harmonium.library.model.evidence import Evidence, Quality
from harmonium.library.model.precision import MIN_NEARBY, PrecisionCurve, TagPrecision
from harmonium.library.store.models import NO_MODEL, Output, Owner, Source, StoredModel
from harmonium.library.store.predictions import MISSING, Steps, packed_number

if TYPE_CHECKING:
    from harmonium.library.library import Library

MIN_CATCH_ALL = 0.6
"""The least probability of a built-in tag of two genres, such as pop/rock: below, it is a guess."""


class NotWritten(StrEnum):
    """Why predictions of a tag are not written."""

    HIDDEN = "hidden"
    NOT_LEARNT = "not learnt"
    FROM_ANSWERS = "from answers"
    UNCONFIRMED = "unconfirmed"
    UNMEASURED = "unmeasured"
    FEW_TRACKS = "few tracks"
    IMPRECISE = "imprecise"
    UNSTEADY = "unsteady"
    CONTRADICTED = "contradicted"

    @property
    def explanation(self) -> str:
        """The reason as a phrase."""
        return _EXPLANATIONS[self]


_EXPLANATIONS = {
    NotWritten.HIDDEN: "hidden",
    NotWritten.NOT_LEARNT: "the model has not learnt it",
    NotWritten.FROM_ANSWERS: "learnt from answers only, and not measured yet",
    NotWritten.UNCONFIRMED: "a built-in mood that was right in one collection only",
    NotWritten.UNMEASURED: "nobody has checked the built-in model's predictions",
    NotWritten.FEW_TRACKS: "too few artists to measure it",
    NotWritten.IMPRECISE: "never that precise",
    NotWritten.UNSTEADY: "its most probable tracks are less often right",
    NotWritten.CONTRADICTED: "a built-in tag that your own tracks contradict",
}


@dataclass(frozen=True, kw_only=True)
class WriteDecision:
    """From which probability predictions of a tag are written, or why they are not."""

    threshold: float | None = None  # None: never
    precision: float | None = None  # what to expect of what is written; None if unknown
    reason: NotWritten | None = None  # None if it is written
    best: float | None = None  # the best precision that it reaches, if that is too low
    contradicted: bool = False
    """Whether the library's tracks keep the built-in model from writing it to as many."""


@dataclass(frozen=True, kw_only=True)
class Tag:
    """A tag of a library, and what is known about it."""

    name: str  # normalised
    facts: TagFacts = field(repr=False, compare=False)
    owner: Owner  # learnt here, of the built-in model, or people's alone
    learnt: frozenset[Source] = frozenset()  # what the model learnt it from; empty: it has not
    column: int | None = None  # the place of its predictions; None if there are none
    hidden: bool = False  # a person has hidden it
    threshold: float | None = None  # the model gives it from this probability on; None: never
    evidence: Evidence | None = field(default=None, repr=False, compare=False)

    @property
    def spelling(self) -> str:
        """As it is shown and written."""
        return self.facts.spellings.get(self.name, self.name)

    @property
    def kind(self) -> str:
        """Genre, mood, instrument, voice, era, sound, own, or none."""
        return kind_of(self.name, self.facts.kinds)

    @property
    def place(self) -> int:
        """The place of its predictions, which it must have."""
        if self.column is None:
            raise ValueError(f"the model has no predictions of {self.name!r}")
        return self.column

    @property
    def predicted(self) -> bool:
        """Whether the model gives it to tracks."""
        return self.threshold is not None and not self.hidden

    @property
    def quality(self) -> Quality | None:
        """How well the model knows it; None if it was not evaluated."""
        if self.evidence is None or self.column is None:
            return None
        return self.evidence.quality(self.column)

    @property
    def curve(self) -> PrecisionCurve | None:
        """Its precision above each probability; None if no held-out track says anything."""
        if self.evidence is None or self.column is None or not self._is_trained:
            return None
        return self.evidence.curve(self.column)

    @property
    def measured(self) -> TagPrecision | None:
        """All that is known about its precision; None if nothing is."""
        if self.evidence is None or self.column is None or not self._is_trained:
            return None
        return self.evidence.precision(self.column)

    @property
    def _is_trained(self) -> bool:
        return bool(self.learnt & {"tracks", "built-in"})

    def reached(self, probability: float | None) -> bool:
        """Whether a probability reaches its threshold."""
        if probability is None or np.isnan(probability) or self.threshold is None:
            return False
        return packed_number(float(probability)) >= packed_number(self.threshold)

    def holds(
        self, said: bool | None, probability: float | None, *, synonym_given: bool = False
    ) -> bool:
        """Whether a track has the tag.

        Parameters
        ----------
        said : whether it holds, as people agree; None if they leave it open
        probability : the model's; None if it has none
        synonym_given : whether people gave the track another tag that means the same
        """
        if said is not None:
            return said
        return self.predicted and not synonym_given and self.reached(probability)

    def holding(self, steps: Steps | None, yes: Places, no: Places, out: Mask) -> None:
        """`holds` for many tracks at once, written into ``out`` (n,).

        Parameters
        ----------
        steps : the stored probabilities (n,); None if there are none
        yes, no : places of the tracks where people agree that it holds, and of those where they
            agree that it does not or gave a synonym instead
        """
        if steps is None or self.threshold is None or self.hidden:
            out[:] = False
        else:
            np.greater_equal(steps, packed_number(self.threshold), out=out)
            out[steps == MISSING] = False
            out[no] = False
        out[yes] = True

    def precision_from(self, probability: float) -> float | None:
        """The share of held-out tracks of at least this probability that have the tag.

        None without such held-out tracks, or if it has learnt from answers since.
        """
        if "answers" in self.learnt or self.curve is None:
            return None
        return self.curve.precision_from(probability)

    def written(self, precision: float | None) -> WriteDecision:
        """From which probability it is written, if predictions must have this precision.

        None takes everything that the tag's own threshold takes, if the tag is right often enough,
        and everything that a precision of `MIN_NEARBY` takes. A lower precision never takes less.
        """
        reason = self._never_written()
        if reason is not None or self.threshold is None:
            return WriteDecision(reason=reason or NotWritten.NOT_LEARNT)
        evidence = self.evidence
        measured = self.measured
        usual: float | None = self.threshold
        if evidence is not None and self.column is not None and not evidence.is_sure(self.column):
            usual = None
        if evidence is None or not evidence.curves:  # an old model file
            if usual is None:
                return WriteDecision(reason=NotWritten.IMPRECISE)
            return WriteDecision(threshold=usual)
        if measured is None:
            if precision is None and usual is not None:
                return WriteDecision(threshold=usual)
            return WriteDecision(reason=NotWritten.UNMEASURED)
        likely = measured.threshold(MIN_NEARBY)
        thresholds = [threshold for threshold in (usual, likely) if threshold is not None]
        least = min(thresholds, default=None)
        threshold = least
        if precision is not None and least is not None:
            promised = measured.threshold(precision)
            threshold = None if promised is None else max(promised, least)
        asked = MIN_NEARBY if precision is None else precision
        contradicted = measured.is_contradicted(asked)
        if threshold is None:
            return _too_imprecise(measured, asked, contradicted)
        return WriteDecision(
            threshold=threshold,
            precision=measured.expected_from(threshold),
            contradicted=contradicted,
        )

    def _never_written(self) -> NotWritten | None:
        """Why it is not written at any precision."""
        if self.hidden:
            return NotWritten.HIDDEN
        if self.threshold is None or self.column is None:
            return NotWritten.NOT_LEARNT
        if not self._is_trained:
            return NotWritten.FROM_ANSWERS
        if self.evidence is not None and not self.evidence.is_confirmed(self.column):
            return NotWritten.UNCONFIRMED
        return None


def _too_imprecise(measured: TagPrecision, precision: float, contradicted: bool) -> WriteDecision:
    if contradicted:
        return WriteDecision(reason=NotWritten.CONTRADICTED, contradicted=True)
    best = measured.best()
    if best is None:
        return WriteDecision(reason=NotWritten.FEW_TRACKS)
    if best < precision:
        return WriteDecision(reason=NotWritten.IMPRECISE, best=best)
    return WriteDecision(reason=NotWritten.UNSTEADY)


class TagFacts(Protocol):
    """What people decided about tags."""

    @property
    def used(self) -> frozenset[str]:
        """Every tag that people ever gave, and the genres above them in the library's tree."""

    @property
    def hidden(self) -> frozenset[str]:
        """The tags that a person has hidden."""

    @property
    def renamed(self) -> Mapping[str, str]:
        """A former name → the present one."""

    @property
    def spellings(self) -> Mapping[str, str]:
        """Tag → its spelling, if that is another than its name."""

    @property
    def words(self) -> Mapping[str, str]:
        """Another word → the genre of the library's tree that it means."""

    @property
    def kinds(self) -> Mapping[str, str]:
        """Tag → its kind, where it is known."""


class NoFacts:
    """Nobody has decided anything: for a table of the built-in tags alone."""

    used: frozenset[str] = frozenset()
    hidden: frozenset[str] = frozenset()
    renamed: Mapping[str, str] = MappingProxyType({})
    spellings: Mapping[str, str] = MappingProxyType({})
    words: Mapping[str, str] = MappingProxyType({})

    @property
    def kinds(self) -> Mapping[str, str]:
        """Tag → its kind."""
        return builtin_kinds()


class LibraryTagFacts:
    """What people decided about the tags of a library; each is read when first needed."""

    def __init__(self, library: Library) -> None:
        self._library = library

    def read(self) -> None:
        """Read all of them now."""
        for fact in ("used", "hidden", "renamed", "spellings", "words", "kinds"):
            getattr(self, fact)

    @cached_property
    def used(self) -> frozenset[str]:
        """Every tag that people ever gave, and the genres above them in the library's tree."""
        given = self._library.tags.used()
        tree = self._library.genres()
        above = {genre for tag in given for genre in (tree.canonical(tag), *tree.ancestors(tag))}
        return frozenset(given | above) if tree else frozenset(given)

    @cached_property
    def hidden(self) -> frozenset[str]:
        """The tags that a person has hidden."""
        return frozenset(self._library.tags.hidden())

    @cached_property
    def renamed(self) -> Mapping[str, str]:
        """A former name → the present one."""
        return self._library.tags.renamed()

    @cached_property
    def spellings(self) -> Mapping[str, str]:
        """Tag → its spelling, if that is another than its name."""
        return self._library.tags.spellings()

    @cached_property
    def words(self) -> Mapping[str, str]:
        """Another word → the genre of the library's tree that it means."""
        return self._library.genres().aliases

    @cached_property
    def kinds(self) -> Mapping[str, str]:
        """Tag → its kind, where it is known."""
        return self._library.tags.kinds()


class TagTable:
    """The tags of a library, by name."""

    def __init__(
        self,
        model: StoredModel,
        facts: TagFacts,
        evidence: Evidence | None = None,
        owner: Owner | None = None,
    ) -> None:
        self.facts = facts
        self.features = model.features
        """Audio feature → the column of its values."""
        self._model = model
        self._evidence = evidence or Evidence(model, lambda: model.bytes)
        self._owner = owner
        self._tags: dict[str, Tag] = {}
        self._columns: dict[str, int] = {}
        for column, output in enumerate(model.outputs):
            is_feature = output.name in self.features and output.threshold is None
            if not is_feature and output.name not in facts.renamed:
                self._columns.setdefault(output.name, column)

    @classmethod
    def of_library(cls, library: Library, model: StoredModel | None = None) -> TagTable:
        """The tags of a library with a model, by default the one in use.

        All of it is read at once, so that the table outlives the open library.
        """
        model = model or library.models.current() or NO_MODEL
        facts = LibraryTagFacts(library)
        facts.read()
        return cls(model, facts, evidence_of(library, model))

    @classmethod
    def of_builtin(cls) -> TagTable:
        """The tags of the built-in model."""
        return cls(builtin_model(), NoFacts())

    def only(self, owner: Owner | None) -> TagTable:
        """The same tags; only those learnt here, or only built-in ones, are predicted."""
        if owner == self._owner:
            return self
        return TagTable(self._model, self.facts, self._evidence, owner)

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of all tags."""
        facts = self.facts
        names = {*self._columns, *self.features, *facts.used, *facts.hidden}
        return frozenset(names - facts.renamed.keys())

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __iter__(self) -> Iterator[Tag]:
        return (self[name] for name in sorted(self.names))

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, name: str) -> Tag:
        """The row of a tag; of an unknown one, an empty row."""
        tag = self._tags.get(name)
        if tag is None:
            tag = self._tags[name] = self._row(name)
        return tag

    def _row(self, name: str) -> Tag:
        column = self._columns.get(name)
        output = None if column is None else self._model.outputs[column]
        learnt = _learnt_from(output)
        owner = _owner_of(learnt)
        threshold = None if output is None else output.threshold
        if threshold is not None and owner == "built-in" and "/" in name:
            threshold = max(threshold, MIN_CATCH_ALL)
        if self._owner is not None and owner != self._owner:
            threshold = None
        return Tag(
            name=name,
            facts=self.facts,
            owner=owner,
            learnt=learnt,
            column=column,
            hidden=name in self.facts.hidden,
            threshold=threshold,
            evidence=self._evidence,
        )

    @cached_property
    def predicted(self) -> tuple[Tag, ...]:
        """The tags that the model gives to tracks, in the order of their columns."""
        tags = (self[name] for name in self._columns)
        return tuple(tag for tag in tags if tag.predicted)

    @cached_property
    def trained(self) -> tuple[Tag, ...]:
        """Those of them that the model was trained with, rather than learnt from answers alone."""
        return tuple(tag for tag in self.predicted if tag.learnt & {"tracks", "built-in"})

    @cached_property
    def _least(self) -> tuple[Places, Steps]:
        """The columns of predicted tags, and their thresholds as stored, (n_predicted,)."""
        columns = [tag.place for tag in self.predicted]
        least = [packed_number(tag.threshold or 0) for tag in self.predicted]
        return np.array(columns, np.intp), np.array(least, np.uint16)

    def reached(self, steps: Steps) -> Mask:
        """Which of `predicted` a track's stored probabilities (n_columns,) reach."""
        columns, least = self._least
        known = columns < len(steps)  # a word learnt from other features has none
        stored = np.full(len(columns), MISSING, np.uint16)
        stored[known] = steps[columns[known]]
        return (stored >= least) & (stored != MISSING)

    def written(self, precision: float | None) -> dict[str, WriteDecision]:
        """Tag → from which probability it is written, or why not, for all predicted tags."""
        return {tag.name: tag.written(precision) for tag in self.predicted}

    @property
    def has_curves(self) -> bool:
        """Whether precision was measured, so that one can be asked for."""
        return bool(self._evidence.curves)

    @cached_property
    def aliases(self) -> Mapping[str, str]:
        """Another word → the tag that it means: former names, genres, the model's other words."""
        renamed = self.facts.renamed
        words = {**builtin_tree().aliases, **self.facts.words, **builtin_aliases()}
        words = {word: renamed.get(tag, tag) for word, tag in words.items()}
        return {word: tag for word, tag in {**words, **renamed}.items() if tag in self.names}

    def name(self, text: str) -> str:
        """The name of a tag given in any spelling, or of the tag that a word means."""
        name = normalise_tag(text)
        return name if name in self.names else self.aliases.get(name, name)

    def find(self, text: str) -> Tag:
        """The tag with this name, in any spelling; an UnknownTagError if there is none."""
        name = self.name(text)
        if name not in self.names:
            raise unknown_tag(text, self.names)
        return self[name]

    @cached_property
    def synonyms(self) -> Mapping[str, str]:
        """Another word → its tag, without words that people use alongside it: those are two."""
        used = self.facts.used
        renamed = self.facts.renamed
        return {
            word: tag
            for word, tag in self.aliases.items()
            if word in renamed or not {word, tag} <= used
        }

    @cached_property
    def _of_meaning(self) -> Mapping[str, list[str]]:
        """The tag that words mean → these words, where there are several with a row."""
        words = {*self.synonyms, *self.synonyms.values()} & self.names
        meanings: dict[str, list[str]] = {}
        for word in words:
            meanings.setdefault(self.synonyms.get(word, word), []).append(word)
        return {tag: words for tag, words in meanings.items() if len(words) > 1}

    def synonyms_of(self, name: str) -> list[str]:
        """The other tags that mean the same."""
        words = self._of_meaning.get(self.synonyms.get(name, name), ())
        return [word for word in words if word != name]

    def has_synonym(self, name: str, given: Iterable[str]) -> bool:
        """Whether another one of these words means the same as a tag."""
        meaning = self.synonyms.get(name, name)
        return any(self.synonyms.get(word, word) == meaning for word in given if word != name)

    def holds(self, tag: Tag, said: Mapping[str, bool], probability: float | None) -> bool:
        """Whether a track has the tag, given all that people agree on about it; see `Tag.holds`."""
        own = self._said(tag, said)
        if own is not None:
            return own
        return self.predicts(tag, said, probability)

    def predicts(self, tag: Tag, said: Mapping[str, bool], probability: float | None) -> bool:
        """Whether the model gives a track the tag, whatever people say about the tag itself."""
        if not tag.predicted:
            return False
        given = [name for name, holds in said.items() if holds]
        return tag.holds(None, probability, synonym_given=self.has_synonym(tag.name, given))

    def _said(self, tag: Tag, said: Mapping[str, bool]) -> bool | None:
        return said.get(self.facts.words.get(tag.name, tag.name))


def evidence_of(library: Library, model: StoredModel) -> Evidence:
    """What is known about a stored model; its bytes are read when needed."""

    def load() -> bytes:
        if model.bytes or not model.id:
            return model.bytes
        return library.models.get(model.id).bytes

    return Evidence(model, load)


def _learnt_from(output: Output | None) -> frozenset[Source]:
    if output is None or output.threshold is None:
        return frozenset()
    refinement = output.refinement
    if refinement is None:
        return frozenset({output.source})
    if refinement.has_model:
        return frozenset({output.source, "answers"})
    return frozenset({"answers"})


def _owner_of(learnt: frozenset[Source]) -> Owner:
    if not learnt:
        return "people"
    return "built-in" if "built-in" in learnt and "tracks" not in learnt else "own"


def quoted(name: str) -> str:
    """A tag as it is written in a query."""
    if re.fullmatch(r"\w+", name) and name not in ("AND", "OR", "NOT"):
        return name
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def unknown_tag(name: str, known: Collection[str], problem: str = "") -> UnknownTagError:
    """The error for an unknown tag, with the most similar known ones."""
    hint = did_you_mean(name, known, n=3, examples=8, quote=quoted)
    if not problem:
        problem = f"No track has the tag {quoted(name)}, and the model does not know it."
    return UnknownTagError(problem + hint)
