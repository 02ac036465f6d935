"""A real browser, one server and one library for all its tests."""

import pytest
from browser_pages import CHROMIUM, FLAGS, PATIENCE, WIDTHS, opened_page
from heard_library import copy_library, make_heard_library
from web_server import root, serving

from harmonium.library.store import database


@pytest.fixture(scope="package")
def music(tmp_path_factory):
    """A folder of music, with a trained library beside it, and a copy that no test changes."""
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed: apt-get install chromium")
    top = tmp_path_factory.mktemp("browser")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "SYNCHRONOUS", "OFF")
        make_heard_library(top / "music", top / "library.db")
        copy_library(top / "library.db", top / "as-trained.db")
    return top


@pytest.fixture(scope="package")
def address(music):
    with serving(music / "library.db") as client:
        yield root(client)


@pytest.fixture(scope="package")
def browser(music):
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(params=list(WIDTHS))
def page(request, browser):
    """A page at both widths."""
    with opened_page(browser, request.param) as page:
        yield page
