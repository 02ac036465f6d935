"""The tags of a library: how well they are known, how they relate, and other names for them."""

from typing import Annotated

from fastapi import APIRouter, Path, Request

from harmonium.library.answering.tag_detail import tag_detail
from harmonium.library.answering.tag_map import tag_map
from harmonium.library.answering.tag_table import TagEntry, list_tags
from harmonium.library.correcting.tags import hide_tag, rename_tag
from harmonium.web import answers
from harmonium.web.problems import Problem
from harmonium.web.routes import shapes
from harmonium.web.service import UsedService

router = APIRouter(prefix="/tags", tags=["tags"])

TagPath = Annotated[str, Path(min_length=1, max_length=200)]


@router.get("")
def tags(service: UsedService) -> answers.Tags:
    """All tags that people gave or the model has learnt, the most used first."""
    return answers.Tags(tags=[entry(one) for one in list_tags(service.view())])


def entry(one: TagEntry) -> answers.TagAnswer:
    """A tag of the list."""
    return answers.TagAnswer(**one._asdict())


@router.get("/map")
def relations(service: UsedService) -> answers.TagMap:
    """How the tags relate, by the weights that the model has learnt."""
    view = service.view()
    with service.limited("drawing the map", 1, wait=20.0):
        found = service.kept(("map", view.model_id), lambda: tag_map(view))
    return answers.TagMap(
        tags=[
            answers.MapTag(**one._asdict(), shown=view.shown(one.tag), group=view.group(one.tag))
            for one in found.tags
        ],
        links=[answers.MapLink(**one._asdict()) for one in found.links],
    )


@router.post("/{tag:path}/rename")
def rename(
    service: UsedService, request: Request, tag: TagPath, asked: answers.Renamed
) -> answers.RenameAnswer:
    """Give a tag another name; if that is a tag already, the two become one."""
    service.view()
    done = rename_tag(service.library(), tag, asked.to)
    request.app.state.learner.learn()
    return answers.RenameAnswer(
        change=done.change, merged=done.merged, needs_training=done.needs_training
    )


@router.post("/{tag:path}/hide")
def hide(service: UsedService, tag: TagPath) -> answers.ChangeNumber:
    """Predict, suggest and write a tag no more."""
    service.view()
    return answers.ChangeNumber(change=hide_tag(service.library(), tag))


@router.get("/{tag:path}")
def one_tag(service: UsedService, tag: TagPath) -> answers.TagDetail:
    """A tag with how often it is right, what goes with it, and tracks to look at."""
    if tag.endswith(("/rename", "/hide")):
        raise Problem(405, "This can only be posted.")
    view = service.view()
    with service.limited("describing a tag", 2, wait=10.0):
        found = tag_detail(view, tag)
    curve = found.curve
    points = []
    if curve is not None and len(curve.chosen):
        columns = (curve.thresholds, curve.precision, curve.bounds[0], curve.recall)
        points = [
            answers.CurvePoint(threshold=t, precision=p, low=low, recall=r)
            for t, p, low, r in zip(*(column.tolist() for column in columns), strict=True)
        ]
    lists = {
        name: [shapes.hit(view, one) for one in getattr(found, name)]
        for name in ("surest", "doubtful", "surprising")
    }
    related = [
        answers.RelatedTag(
            tag=one.tag,
            probability_with=one.probability_with,
            probability_without=one.probability_without,
        )
        for one in found.related
    ]
    parts = {"curve": points, "related": related, **lists}
    return answers.TagDetail.model_validate(found.entry._asdict() | parts)
