"""What held-out tracks show about a model's outputs: their quality and their precision curves."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from harmonium.arrays import Arrays
from harmonium.estimators import model_files
from harmonium.library.model import USUAL_PRECISION
from harmonium.library.model.builtin import PART, PLACES, model_of_file
from harmonium.library.model.precision import (
    OTHER_CURVES,
    PrecisionCurve,
    TagPrecision,
    curves_from_arrays,
)
from harmonium.library.store.models import StoredModel
from harmonium.library.store.reports import TagReport

GOOD, FAIR = 0.6, 0.35  # the least F1 of a tag that the model knows well, and fairly well


@dataclass(frozen=True, kw_only=True)
class Quality:
    """How well a model knows a tag, on tracks held out from training."""

    examples: int = 0  # tracks that it was learnt from; for a built-in tag, clips of other music
    auc: float | None = None  # the share of pairs, one track with the tag and one without, in order
    precision: float | None = None  # of the tracks that it gives the tag, the share that have it
    recall: float | None = None  # of the tracks that have the tag, the share that it gives it

    @property
    def word(self) -> str | None:
        """Good, fair or poor, by precision and recall; None if these are unknown."""
        if self.precision is None or self.recall is None:
            return None
        both = self.precision + self.recall
        f1 = 2 * self.precision * self.recall / both if both else 0.0
        if f1 >= GOOD:
            return "good"
        return "fair" if f1 >= FAIR else "poor"


class Evidence:
    """What is known about the outputs of a model; its file is read when it is first needed."""

    def __init__(self, model: StoredModel, load: Callable[[], bytes]) -> None:
        self._model = model.as_trained()
        self._load = load

    @cached_property
    def curves(self) -> list[PrecisionCurve]:
        """The precision curve of each output; empty if the file is so old that it has none."""
        return curves_from_arrays(self._arrays)

    def curve(self, column: int) -> PrecisionCurve | None:
        """The precision curve of an output; None if no held-out track says anything about it."""
        if column >= len(self.curves) or not len(self.curves[column].chosen):
            return None
        return self.curves[column]

    @cached_property
    def _others(self) -> list[PrecisionCurve]:
        """For each output, the curve of the collection that it was not learnt from."""
        return curves_from_arrays(self._arrays, OTHER_CURVES)

    @cached_property
    def _precisions(self) -> dict[int, TagPrecision]:
        return {}

    def precision(self, column: int) -> TagPrecision | None:
        """All that is known about the precision of an output; None if nothing is."""
        curve = self.curve(column)
        if curve is None:
            return None
        if column not in self._precisions:
            other = self._others[column] if column < len(self._others) else None
            if other is not None and not len(other.chosen):
                other = None
            taught = self._is_own(column)
            self._precisions[column] = TagPrecision(
                own=curve if taught else other,
                builtin=other if taught else curve,
                taught=taught,
            )
        return self._precisions[column]

    def quality(self, column: int) -> Quality | None:
        """How well the model knows an output; None if it was not evaluated."""
        report = self._report(column)
        if report is None:
            return None
        return Quality(
            examples=report.examples,
            auc=report.auc,
            precision=report.precision,
            recall=self._recall(column, report),
        )

    def _recall(self, column: int, report: TagReport) -> float | None:
        if report.recall is not None or report.precision is None or report.reached is None:
            return report.recall
        curve = self.curve(column)  # the built-in model's report has no recall
        if curve is None or not curve.positives:
            return None
        return report.precision * report.reached / curve.positives

    def is_confirmed(self, column: int) -> bool:
        """Whether it is no built-in mood whose precision no second collection confirms."""
        if self._is_own(column):
            return True
        report = self._report(column)
        return report is None or report.tag not in self._model.report.unconfirmed

    def is_sure(self, column: int) -> bool:
        """Whether what reaches its threshold is right often enough to be written.

        The thresholds of tags that were learnt here are trusted; those of built-in tags must have
        the usual precision.
        """
        if self._is_own(column):
            return True
        report = self._report(column)
        precision = None if report is None else self._model.report.precision.get(report.tag)
        return precision is not None and precision >= USUAL_PRECISION

    def _is_own(self, column: int) -> bool:
        return self._model.outputs[column].source == "tracks"

    def _report(self, column: int) -> TagReport | None:
        """The report of an output; its tag may have another name now."""
        if column >= len(self._model.outputs):
            return None  # a word from answers
        if self._model.outputs[column].source == "built-in":
            return self._builtin_reports.get(column)
        tags = self._model.report.tags
        return tags[column] if column < len(tags) else None

    @cached_property
    def _builtin_reports(self) -> dict[int, TagReport]:
        """Output → the built-in model's report of it; of one without a report, just its name."""
        names = [output.name for output in self._model.outputs]
        reports = {column: TagReport(tag=name) for column, name in enumerate(names)}
        if not self._model.has_own:
            reports |= enumerate(self._model.report.tags)
        elif PART in self._arrays:
            known = model_of_file(self._arrays[PART].tobytes(), self._model.extractor)
            columns = self._arrays[PLACES].tolist()
            reports |= zip(columns, known.report.tags, strict=True)
        return reports

    @cached_property
    def _arrays(self) -> Arrays:
        data = self._load()
        if not data:
            return {}
        return model_files.from_bytes(data, name="The stored model")[0]
