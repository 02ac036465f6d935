"""What writing tags to files would do."""

from typing import Annotated

import numpy as np
from fastapi import APIRouter, Query

from harmonium.data.normalise import normalise_tag
from harmonium.files import readable
from harmonium.library.answering.write_outline import write_outline
from harmonium.library.write import PlannedFile, plan_writes
from harmonium.web import answers
from harmonium.web.routes import shapes
from harmonium.web.service import UsedService
from harmonium.web.writing import tracks_to_write, write_rules, write_sources

router = APIRouter(prefix="/write", tags=["write"])

MOST_PREVIEWED = 100


@router.get("/plan")
def plan(
    service: UsedService,
    precision: Annotated[float, Query(ge=0, lt=1)] = 0.8,
    q: Annotated[str, Query(max_length=1000)] = "",
    ignore: Annotated[str, Query(max_length=6000, description="Tags, with commas.")] = "",
    offset: Annotated[int, Query(ge=0, le=answers.LARGEST_ID)] = 0,
    limit: Annotated[int, Query(ge=0, le=MOST_PREVIEWED)] = 20,
) -> answers.WritePlanAnswer:
    """What would go into the files, tag by tag, and what would become of some of them.

    The numbers go by what the library knows of the files; the preview reads them.
    """
    view = service.view()
    left_out = {name for tag in ignore.split(",") if (name := normalise_tag(tag))}
    with service.limited("planning", 2, wait=10.0):
        ids = tracks_to_write(view.library, q, view)
        outline = write_outline(view, ids, precision or None, left_out)
        some = outline.tracks[offset : offset + limit]
        planned = plan_writes(
            view.library,
            some.tolist(),
            write_rules(view.library, sorted(left_out)),
            source=write_sources(precision),
        )
    return answers.WritePlanAnswer(
        files=len(outline.tracks),
        tags=[
            answers.PlannedTag(
                tag=one.tag,
                shown=view.shown(one.tag),
                n=one.n,
                precision=one.precision,
                expected_wrong=one.expected_wrong,
                accepted=one.accepted,
                elsewhere=one.elsewhere,
            )
            for one in outline.tags
        ],
        not_reached=[
            answers.UnreachedTag(tag=one.tag, best=one.best) for one in outline.not_reached
        ],
        expected_wrong=outline.expected_wrong,
        guessed=outline.n_guessed,
        preview=[_file(one) for one in planned.files],
    )


def _file(one: PlannedFile) -> answers.PlannedFile:
    fields = [
        answers.FieldChange(
            field=change.field,
            before=[readable(value) for value in change.before],
            after=[readable(value) for value in change.after],
        )
        for change in one.change.fields
    ]
    guessed = {tag: float(np.float64(p)) for tag, p in one.new_guesses.items()}
    return answers.PlannedFile(track=shapes.brief(one.track), fields=fields, guessed=guessed)
