"""Signing a browser in and out, where the server wants a token."""

from fastapi import APIRouter, Response

from harmonium.web import answers
from harmonium.web.guard import SESSION_SECONDS, cookie_name, new_session, same_secret
from harmonium.web.problems import Problem
from harmonium.web.service import UsedService

router = APIRouter(prefix="/session", tags=["session"])


@router.post("", status_code=204, response_class=Response)
def sign_in(service: UsedService, asked: answers.Token) -> Response:
    """Show the token once; a cookie that scripts cannot read serves from then on."""
    token = service.settings.token
    response = Response(status_code=204)
    if token is None:
        return response
    if not same_secret(asked.token, token):
        raise Problem(401, "That is not the token of this server.", field="token")
    response.set_cookie(
        cookie_name(service.settings),
        new_session(token),
        max_age=SESSION_SECONDS,
        path="/",
        httponly=True,
        samesite="strict",
    )
    return response


@router.delete("", status_code=204, response_class=Response)
def sign_out(service: UsedService) -> Response:
    """Forget the cookie."""
    response = Response(status_code=204)
    response.delete_cookie(
        cookie_name(service.settings), path="/", httponly=True, samesite="strict"
    )
    return response
