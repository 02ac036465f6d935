"""The tags of a library with how well each is known."""

from dataclasses import dataclass

import numpy as np

from harmonium.library.answering.shipped_model import shipped_model
from harmonium.library.snapshot import Snapshot, owner_of
from harmonium.library.store.models import Owner


@dataclass(frozen=True)
class TagEntry:
    """A tag of a library."""

    tag: str
    shown: str
    """As this library spells it."""
    group: str
    owner: Owner
    auc: float | None
    """For held-out tracks."""
    examples: int
    """Tracks that the model has learnt it from."""
    people: int
    """Tracks of which people agree that they have it."""
    predicted: int
    """Tracks that the model gives it."""
    threshold: float | None
    precision: float | None
    recall: float | None
    hidden: bool


def list_tags(view: Snapshot) -> list[TagEntry]:
    """All tags that people gave or the model has learnt, the most used first."""
    table = view.verdicts
    said = np.bincount(table.tags[table.holds], minlength=len(table.names))
    people = {name: int(n) for name, n in zip(table.names, said, strict=True) if n}
    reached = np.count_nonzero(view.reached, axis=1)
    predicted = {tag: int(n) for tag, n in zip(view.places, reached, strict=True)}
    reports = tag_reports(view)
    tags = dict.fromkeys([*people, *predicted, *view.hidden])
    found = [_entry(view, tag, people, predicted, reports.get(tag, {})) for tag in tags]
    return sorted(found, key=lambda one: (-one.people, -one.predicted, one.tag))


def tag_entry(view: Snapshot, tag: str) -> TagEntry | None:
    """One tag of the list, by its name; None where there is no such tag."""
    return next((one for one in list_tags(view) if one.tag == tag), None)


def tag_reports(view: Snapshot) -> dict[str, dict[str, float]]:
    """Tag → what training, or whoever made the model that came along, found out about it."""
    if view.model is None:
        return {}
    own = {tag["tag"]: tag for tag in view.model.report.get("tags", [])}
    if view.model.is_own.all():
        return own
    return {tag["tag"]: tag for tag in shipped_model().report["tags"]} | own


def _entry(
    view: Snapshot,
    tag: str,
    people: dict[str, int],
    predicted: dict[str, int],
    report: dict[str, float],
) -> TagEntry:
    place = view.places.get(tag)
    threshold = None
    if place is not None and view.model is not None:
        threshold = float(view.model.thresholds[place])
    return TagEntry(
        tag,
        view.shown(tag),
        view.group(tag),
        owner_of(view.model, place),
        report.get("auc"),
        int(report.get("examples") or 0),
        people.get(tag, 0),
        predicted.get(tag, 0),
        threshold,
        report.get("precision"),
        report.get("recall"),
        tag in view.hidden,
    )
