"""Without building the site, which takes long: its pages, links and figures are all there.

``make docs`` builds it strictly, and checks the anchors and the reference, too.
"""

import re

import pytest
import yaml
from places import DOCS, PROJECT

import harmonium
from harmonium import audio, data, estimators, evaluation, synthetic

LINK = re.compile(r"\]\(([^)\s#]+)(?:#[^)\s]*)?\)")
PAGES = sorted(DOCS.rglob("*.md"))
CONFIG = yaml.safe_load((PROJECT / "mkdocs.yml").read_text(encoding="utf-8"))
REFERENCE = "\n".join(
    page.read_text(encoding="utf-8") for page in (DOCS / "reference").glob("*.md")
)


def named(nav) -> list[str]:
    """The pages of a navigation, in order."""
    if isinstance(nav, str):
        return [nav]
    parts = nav.values() if isinstance(nav, dict) else nav
    return [page for part in parts for page in named(part)]


def test_every_page_is_in_the_navigation_once():
    pages = [page.relative_to(DOCS).as_posix() for page in PAGES]
    elsewhere = ["changelog.md", "contributing.md", "model-card.md"]  # docs/site_hooks.py adds them
    hooks = (DOCS / "site_hooks.py").read_text(encoding="utf-8")
    assert all(f'"{page}"' in hooks for page in elsewhere)
    assert sorted(named(CONFIG["nav"])) == sorted([*pages, *elsewhere])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_links_and_figures_lead_somewhere(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    text = re.sub(r"`[^`\n]*`", "", text)
    missing = [
        link
        for link in LINK.findall(text)
        if "://" not in link and not (page.parent / link).is_file()
    ]
    assert missing == []


def test_the_site_needs_nothing_from_the_network():
    assert CONFIG["theme"]["font"] is False
    named_files = [*CONFIG["extra_css"], *CONFIG["extra"]["polyfills"]]
    assert all((DOCS / name).is_file() for name in named_files)
    assert any("iframe-worker" in name for name in named_files)  # else the theme links to one


@pytest.mark.parametrize(
    "module",
    [harmonium, audio, data, evaluation, estimators, synthetic],
    ids=lambda module: module.__name__,
)
def test_every_public_name_is_in_the_reference(module):
    for name in module.__all__:
        assert name.startswith("__") or re.search(rf"^::: .*\.{name}$", REFERENCE, re.M), name


def test_the_reference_names_what_is_there():
    for path in re.findall(r"^::: (\S+)$", REFERENCE, re.M):
        module, _, name = path.rpartition(".")
        assert hasattr(__import__(module, fromlist=[name]), name), path
