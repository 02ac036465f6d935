"""The stream of events."""

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse

router = APIRouter(tags=["events"])


@router.get(
    "/events",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}, "description": "Events, as they come."}},
)
async def events(request: Request) -> StreamingResponse:
    """Server-sent events: "job" with a job, "change" with the number and command of a change."""
    lines = request.app.state.events.listen()
    return StreamingResponse(lines, media_type="text/event-stream")
