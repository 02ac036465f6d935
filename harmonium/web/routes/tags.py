"""The tags of a library: how well they are known, how they relate, and other names for them."""

from typing import Annotated

from fastapi import APIRouter, Path

from harmonium.collection.answering.tag_table import TagEntry, list_tags
from harmonium.collection.correcting.tags import hide_tag, rename_tag
from harmonium.web import answers
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


@router.post("/{tag:path}/rename")
def rename(service: UsedService, tag: TagPath, asked: answers.Renamed) -> answers.RenameAnswer:
    """Give a tag another name; if that is a tag already, the two become one."""
    service.view()
    done = rename_tag(service.library(), tag, asked.to)
    return answers.RenameAnswer(
        change=done.change, merged=done.merged, needs_training=done.needs_training
    )


@router.post("/{tag:path}/hide")
def hide(service: UsedService, tag: TagPath) -> answers.ChangeNumber:
    """Predict, suggest and write a tag no more."""
    service.view()
    return answers.ChangeNumber(change=hide_tag(service.library(), tag))
