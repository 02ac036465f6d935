"""Every view, at both widths, light and dark, looked at by axe-core."""

from importlib.resources import files

import pytest
from browser_pages import WIDTHS, opened_page

pytestmark = pytest.mark.long

VIEWS = {
    "search": ("#/search", ".hit"),
    "found": ("#/search?q=bass", ".hit-score .bar"),
    "path": ("#/search?from=1&to=30", ".around"),
    "nothing": ("#/search?q=dark+energetic+calm&min_probability=1", ".empty"),
    "track": ("#/track/40", ".tag-row"),
    "teach": ("#/teach", ".question-text"),
    "tags": ("#/tags", ".tags-table tbody tr"),
    "map": ("#/tags?as=map", ".map-tag"),
    "tag": ("#/tags/bass", ".chart"),
    "write": ("#/write?precision=0.60", ".preview li"),
    "training": ("#/training", ".models tbody tr"),
    "changes": ("#/changes", ".changes li"),
    "library": ("#/library", ".keys"),
    "nowhere": ("#/nowhere", "h1"),
}
RUN = """async (rules) => (await axe.run(document, { resultTypes: ["violations"], ...rules }))
    .violations.map((one) => [one.id, one.nodes.map((node) => [node.target, node.failureSummary])])
"""
CONTRAST = {"runOnly": ["color-contrast"]}
"""What alone depends on light and dark."""


@pytest.mark.parametrize("view", VIEWS)
def test_axe_finds_nothing(browser, address, view):
    place, there = VIEWS[view]
    axe = (files("axe_playwright_python") / "axe.min.js").read_text()
    with opened_page(browser) as page:
        page.goto(f"{address}/{place}")
        page.locator(there).first.wait_for()
        page.evaluate(axe)
        for width, high in WIDTHS.values():
            page.set_viewport_size({"width": width, "height": high})
            for scheme, rules in (("light", {}), ("dark", CONTRAST)):
                page.emulate_media(color_scheme=scheme)
                assert page.evaluate(RUN, rules) == [], f"{view}, {scheme}, {width} pixels"
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.set_viewport_size({"width": WIDTHS["wide"][0], "height": 900})


def test_axe_would_find_something(browser, address):
    axe = (files("axe_playwright_python") / "axe.min.js").read_text()
    with opened_page(browser) as page:
        page.goto(f"{address}/#/changes")
        page.locator(".changes li").first.wait_for()
        page.evaluate("document.querySelector('main').append(document.createElement('button'))")
        page.evaluate(axe)
        assert [name for name, _ in page.evaluate(RUN, {})] == ["button-name"]
