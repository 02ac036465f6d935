"""Routes of the library as a whole: its summary, its problems, and folders to index."""

import os
from dataclasses import dataclass
from typing import Annotated, Self

from fastapi import APIRouter, Query
from platformdirs import user_music_path
from pydantic import BaseModel

from harmonium.audio.folders import Folder as FoundFolder
from harmonium.audio.folders import list_folders
from harmonium.files import absolute_path
from harmonium.library import Library
from harmonium.library import doctor as library_doctor
from harmonium.library.index import kept_extractor
from harmonium.library.model.builtin import builtin_extractor
from harmonium.library.store.database import place_name
from harmonium.library.store.opinions import Person as StoredPerson
from harmonium.library.store.schema import EXTRACTOR
from harmonium.web.problems import Problem
from harmonium.web.responses import Job, ModelSummary, Text
from harmonium.web.service import UsedService

router = APIRouter()


class Person(BaseModel):
    """Someone who has tagged tracks."""

    name: str
    n: int

    @classmethod
    def of(cls, person: StoredPerson) -> Self:
        """A person of the library."""
        return cls(name=person.name, n=person.n_tracks)


class BuiltInModel(BaseModel):
    """Whether the built-in model can tag this library, and if not, why."""

    ready: bool
    why: str | None


class LibrarySummary(BaseModel):
    """What the page shows of a library everywhere."""

    name: Text
    tracks: int
    missing: int
    unreadable: int
    folders: list[Text]
    people: list[Person]
    person: str
    model: ModelSummary | None
    built_in: BuiltInModel
    jobs: list[Job]
    empty: bool


@dataclass(frozen=True)
class _Counts:
    """The tracks of a library by state."""

    present: int = 0
    missing: int = 0
    unreadable: int = 0

    @classmethod
    def of(cls, library: Library) -> Self:
        """Count them."""
        return cls(
            present=library.tracks.count("present"),
            missing=library.tracks.count("missing"),
            unreadable=library.tracks.count("unreadable"),
        )


@router.get("/library", tags=["library"])
def summary(service: UsedService) -> LibrarySummary:
    """A summary of the library; empty if there is no library yet."""
    library = service.library_if_any()
    counts = _Counts()
    folders: list[str] = []
    people: list[StoredPerson] = []
    models: list[ModelSummary] = []
    if library is not None:
        version = library.version()
        counts = service.cached("counts", version.tracks, lambda: _Counts.of(library), may_lag=True)
        people = service.cached("people", version.opinion, library.opinions.people, may_lag=True)
        folders = library.folders()
        models = [ModelSummary.of(entry) for entry in library.models.entries()]
    return LibrarySummary(
        name=place_name(service.place),
        tracks=counts.present,
        missing=counts.missing,
        unreadable=counts.unreadable,
        folders=folders,
        people=[Person.of(person) for person in people if person.n_tracks],
        person=service.settings.person,
        model=next((model for model in models if model.in_use), None),
        built_in=_built_in(library),
        jobs=[Job.model_validate(job) for job in service.jobs.list()],
        empty=counts == _Counts(),
    )


def _built_in(library: Library | None) -> BuiltInModel:
    """Whether the built-in model can tag this library."""
    if library is None or library.settings.get(EXTRACTOR) in (builtin_extractor(), None):
        return BuiltInModel(ready=True, why=None)
    why = (
        f"The library was indexed with {kept_extractor(library)}. `harmonium index --extractor "
        "musicnn` computes the features that the built-in model needs."
    )
    return BuiltInModel(ready=False, why=why)


class UnreadableFile(BaseModel):
    """A file that could not be read."""

    path: Text
    reason: Text | None


class FileCopy(BaseModel):
    """A file with the same sound as a track."""

    path: Text
    track: Text


class SimilarTags(BaseModel):
    """Two tags that may be the same."""

    tag: str
    n_tracks: int
    other: str
    n_other: int


class DoubtedTag(BaseModel):
    """A tag by people that surprises the model."""

    id: int
    track: Text
    tag: str
    said: bool
    probability: float
    usual: float
    surprise: float

    @classmethod
    def of(cls, doubt: library_doctor.Doubt) -> Self:
        """A doubt of the library."""
        return cls(
            id=doubt.track.id,
            track=doubt.track.path,
            tag=doubt.tag,
            said=doubt.said,
            probability=doubt.probability,
            usual=doubt.usual,
            surprise=doubt.surprise,
        )


class Health(BaseModel):
    """Problems with files and tags."""

    unreadable: list[UnreadableFile]
    missing: list[Text]
    copies: list[FileCopy]
    recordings: list[list[Text]]
    unused: list[str]
    once: list[str]
    spellings: list[SimilarTags]
    doubts: list[DoubtedTag] | None

    @classmethod
    def of(cls, health: library_doctor.Health) -> Self:
        """What the library's doctor found."""
        doubts = None
        if health.doubts is not None:
            doubts = [DoubtedTag.of(doubt) for doubt in health.doubts]
        return cls(
            unreadable=[
                UnreadableFile(path=track.path, reason=track.reason) for track in health.unreadable
            ],
            missing=[track.path for track in health.missing],
            copies=[FileCopy(path=path, track=track.path) for path, track in health.copies],
            recordings=[[track.path for track in tracks] for tracks in health.recordings],
            unused=health.unused,
            once=health.once,
            spellings=[
                SimilarTags(
                    tag=pair.tag,
                    n_tracks=pair.n_tracks,
                    other=pair.other,
                    n_other=pair.n_other,
                )
                for pair in health.spellings
            ],
            doubts=doubts,
        )


@router.get("/doctor", tags=["library"])
def doctor(service: UsedService, doubts: Annotated[int, Query(ge=0, le=500)] = 20) -> Health:
    """Problems with files and tags, with at most `doubts` doubtful tags by people."""
    with service.limited("checking", 1, wait=20.0):
        return Health.of(service.library().doctor(doubts))


class Folder(BaseModel):
    """A folder of the server's machine, and how much music is in it."""

    path: Text
    name: Text
    n_sounds: int
    counted: bool

    @classmethod
    def of(cls, folder: FoundFolder) -> "Folder":
        """A folder."""
        return Folder(
            path=folder.path,
            name=folder.name,
            n_sounds=folder.n_sounds,
            counted=folder.counted,
        )


class Folders(Folder):
    """A folder, and those inside it."""

    parent: Text | None
    folders: list[Folder]


@router.get("/folders", tags=["jobs"])
def folders(service: UsedService, path: Annotated[str, Query(max_length=4096)] = "") -> Folders:
    """The folders inside a folder on the server's machine; by default inside the music folder."""
    music = user_music_path()
    place = absolute_path(path or (music if music.is_dir() else "~"))
    parent = os.path.dirname(place)  # noqa: PTH120
    with service.limited("listing folders", 2, wait=10.0):
        try:
            folder, inside = list_folders(place)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "its name is invalid"
            raise Problem(404, f"{path!r} cannot be listed: {reason}.", field="path") from None
    return Folders(
        path=folder.path,
        name=folder.name,
        n_sounds=folder.n_sounds,
        counted=folder.counted,
        parent=None if parent == place else parent,
        folders=[Folder.of(subfolder) for subfolder in inside],
    )
