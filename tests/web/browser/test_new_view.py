"""A view is added by the files that docs/design.md names, and by no others."""

import shutil
from types import SimpleNamespace

import pytest
from browser_pages import opened_page
from fastapi import APIRouter
from heard_library import N_TRACKS
from playwright.sync_api import expect
from pydantic import BaseModel
from web_server import root, serving

from harmonium.web import app, routes
from harmonium.web.service import UsedService

VIEW = """
import { html } from "../vendor/preact.js";
import { get } from "../api.js";
import { useLoad } from "../state.js";
import { counted } from "../words.js";
import { Pending, View } from "../components/bits.js";

export function Hello() {
  const greeting = useLoad((signal) => get("/hello", {}, signal), []);
  const { data } = greeting;
  return html`<${View} title="Hello">
    ${data ? html`<p>${counted(data.tracks, "track")}</p>` : html`<${Pending} load=${greeting} />`}
  <//>`;
}
"""


class Greeting(BaseModel):
    tracks: int


def hello(service: UsedService) -> Greeting:
    return Greeting(tracks=service.library().tracks.count("present"))


@pytest.fixture
def extended(music, tmp_path, monkeypatch):
    """The address of a server with another view and another route."""
    static = shutil.copytree(app.STATIC, tmp_path / "static")
    (static / "views" / "hello.js").write_text(VIEW)
    views = static / "views.js"
    text = views.read_text()
    entry = 'export const VIEWS = {\n  hello: { label: "Hello", view: Hello },'
    assert "export const VIEWS = {" in text
    text = text.replace("export const VIEWS = {", entry)
    views.write_text('import { Hello } from "./views/hello.js";\n' + text)
    router = APIRouter()
    router.get("/hello")(hello)
    monkeypatch.setattr(app, "STATIC", static)
    monkeypatch.setattr(routes, "SUBJECTS", (*routes.SUBJECTS, SimpleNamespace(router=router)))
    with serving(music / "library.db") as client:
        yield root(client)


def test_a_new_view_is_in_the_navigation(browser, extended):
    with opened_page(browser) as page:
        page.goto(extended)
        page.get_by_role("link", name="Hello").click()
        expect(page.get_by_role("heading", name="Hello", level=1)).to_be_visible()
        expect(page.get_by_role("main")).to_contain_text(f"{N_TRACKS} tracks")
