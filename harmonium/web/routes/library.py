"""The library in short, and whether the server works."""

from pathlib import Path

from fastapi import APIRouter, Request

from harmonium import __version__
from harmonium.files import readable
from harmonium.library import Library
from harmonium.library.answering.shipped_model import extractor_key
from harmonium.library.correcting.models import ModelEntry, list_models
from harmonium.library.store.schema import EXTRACTOR, FOLDERS
from harmonium.web import answers
from harmonium.web.service import Service, UsedService

router = APIRouter(tags=["library"])


@router.get("/health")
def health() -> answers.Health:
    """Whether the server works; it needs no token."""
    return answers.Health(status="ok", version=__version__)


@router.get("/library")
def library(service: UsedService, request: Request) -> answers.LibrarySummary:
    """The library in short; where there is none yet, it is empty."""
    opened = service.library_if_there()
    common = {
        "name": _name(service.place),
        "person": service.settings.person,
        "jobs": request.app.state.jobs.list(),
    }
    if opened is None:
        nothing = dict.fromkeys(("tracks", "missing", "unreadable"), 0)
        lists: dict[str, object] = {"folders": [], "people": [], "model": None}
        return answers.LibrarySummary.model_validate(
            common | nothing | lists | {"shipped": _shipped(None), "empty": True}
        )
    version = opened.version()
    counts = service.recent("counts", version.tracks, lambda: _counts(opened))
    people = service.recent("people", version.opinion, lambda: _people(opened))
    return answers.LibrarySummary.model_validate(
        common
        | {
            "tracks": counts["present"],
            "missing": counts["missing"],
            "unreadable": counts["unreadable"],
            "folders": [readable(folder) for folder in opened.settings.get(FOLDERS, [])],
            "people": people,
            "model": _model_in_use(service),
            "shipped": _shipped(opened),
            "empty": not any(counts.values()),
        }
    )


def _counts(library: Library) -> dict[str, int]:
    return {one: library.tracks.count(one) for one in ("present", "missing", "unreadable")}


def _people(library: Library) -> list[answers.PersonSummary]:
    return [
        answers.PersonSummary(name=one.name, n=one.n_tracks)
        for one in library.opinions.people()
        if one.n_tracks
    ]


def summary(entry: ModelEntry) -> answers.ModelSummary:
    """A model in short."""
    return answers.ModelSummary(
        id=entry.id,
        made_at=entry.made_at,
        in_use=entry.in_use,
        tags=entry.n_tags,
        learnt=entry.n_learnt,
        mean_auc=entry.mean_auc,
        tracks=entry.n_tracks,
    )


def _model_in_use(service: Service) -> answers.ModelSummary | None:
    entries = list_models(service.library())
    return next((summary(entry) for entry in entries if entry.in_use), None)


def _name(place: str) -> str:
    if "://" in place:
        return place.rpartition("/")[2].partition("?")[0] or "library"
    return readable(Path(place).stem)


def _shipped(library: Library | None) -> answers.Shipped:
    """Whether the model that comes along can hear this library."""
    from harmonium.audio.musicnn import weights_file

    key = None if library is None else library.settings.get(EXTRACTOR)
    if key == extractor_key():
        return answers.Shipped(ready=True, why=None)
    if not weights_file().is_file():
        why = "musicnn is not there yet: `harmonium extractor fetch musicnn` gets it (29 MB)."
    elif key is None:
        return answers.Shipped(ready=True, why=None)
    else:
        name = key.rpartition("@")[0] or key
        why = (
            f"The library was indexed with {name}. `harmonium index --extractor musicnn` lets the "
            "model that came along hear it."
        )
    return answers.Shipped(ready=False, why=why)
