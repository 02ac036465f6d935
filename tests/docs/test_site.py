"""Without building the site, which takes long: its pages, links and figures are all there.

``make docs`` builds it strictly, and reads the docstrings of the reference, too.
"""

import importlib
import re
import runpy
import unicodedata
from types import SimpleNamespace

import pytest
import yaml
from places import DOCS, PROJECT

import harmonium
from harmonium import audio, data, estimators, evaluation, synthetic

LINK = re.compile(r"\]\(([^)\s#]*)(?:#([^)\s]*))?\)")
PAGES = sorted(DOCS.rglob("*.md"))
CONFIG = yaml.safe_load((PROJECT / "mkdocs.yml").read_text(encoding="utf-8"))
GUIDE = (DOCS / "guide.md").read_text(encoding="utf-8")
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


def anchors(page) -> set[str]:
    """The names of a page's headings in links, as Markdown makes them, and those given by hand."""
    text = page.read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M)
    plain = [
        unicodedata.normalize("NFKD", one).encode("ascii", "ignore").decode() for one in headings
    ]
    names = {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", one).strip().lower()) for one in plain}
    return names | set(re.findall(r'<a id="([^"]+)">', text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_every_link_leads_somewhere(page):
    wrong, code = [], re.compile(r"^```.*?^```|`[^`\n]*`", re.M | re.S)
    for link, anchor in LINK.findall(code.sub("", page.read_text(encoding="utf-8"))):
        target = page.parent / link if link else page
        if "://" in link:
            continue
        if not target.is_file() or (anchor and anchor not in anchors(target)):
            wrong.append(f"{link}#{anchor}")
    assert wrong == []


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
    own = (
        n for n, one in vars(module).items() if module.__name__ in getattr(one, "__module__", "")
    )
    for name in getattr(module, "__all__", own):
        assert name.startswith("__") or re.search(rf"^::: .*\.{name}$", REFERENCE, re.M), name


def test_the_reference_names_what_is_there():
    for path in re.findall(r"^::: (\S+)$", REFERENCE, re.M):
        module, _, name = path.rpartition(".")
        assert hasattr(__import__(module, fromlist=[name]), name), path


def test_the_maths_names_what_is_there():
    text = (DOCS / "model.md").read_text(encoding="utf-8")
    for module, name in re.findall(r"`((?!params_)\w+)\.((?!py\b)\w+)`", text):
        assert hasattr(__import__(f"harmonium.rbm.{module}", fromlist=[name]), name), name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_files_that_a_page_names_are_there(page):
    named = re.findall(r"`((?:harmonium|recipes|tests|docs)/[\w./-]*\w)`", page.read_text("utf-8"))
    assert [
        path for path in named if not (PROJECT / path).exists() and "ALGORITHM" not in path
    ] == []


def test_every_picture_of_the_guide_is_drawn_by_the_script():
    script = (DOCS / "figures" / "guide.py").read_text(encoding="utf-8")
    drawn = re.search(r"^FIGURES = \((.*)\)$", script, re.M)[1].split(", ")
    shown = re.findall(r"\]\(figures/guide/(\w+)\.png\)", GUIDE)
    kept = [path.stem for path in (DOCS / "figures" / "guide").iterdir()]
    assert sorted(shown) == sorted(drawn) == sorted(kept)


def test_formulas_need_no_script_in_the_site():
    pytest.importorskip("mkdocs")
    hooks = runpy.run_path(str(DOCS / "site_hooks.py"))
    line = r'<p>If <span class="arithmatex">\(a &lt; b\)</span>:</p>'
    made = hooks["on_page_content"](line + r'<div class="arithmatex">\[c\]</div>')
    assert "arithmatex" not in made
    assert made.count("<math") == 2
    assert made.count('display="block"') == 1
    assert "&#x0003C;" in made  # once, not "&amp;lt;"


def test_every_section_on_reliability_names_its_tests():
    text = (DOCS / "reliability.md").read_text(encoding="utf-8")
    for section in text.split("\n## ")[1:]:
        assert re.search(r"`tests/[\w/.]+`", section), section.splitlines()[0]


@pytest.fixture(scope="module")
def report():
    return SimpleNamespace(**runpy.run_path(str(PROJECT / "benchmarks" / "report.py")))


def test_the_page_is_what_the_results_give_even_if_changed_by_hand(report):
    results, page = report.kept(), report.PAGE.read_text()
    assert results
    assert report.rendered(page, results) == page
    assert " ms" in page
    by_hand = page.replace(" ms", " s", 1)
    assert report.rendered(by_hand, results) == page


def test_every_comparison_with_results_has_a_section(report, monkeypatch):
    monkeypatch.syspath_prepend(PROJECT / "benchmarks")
    comparisons = set(importlib.import_module("bench").COMPARISONS)
    assert set(report.sections(report.PAGE.read_text())) == comparisons
    assert {file.stem for file in report.RESULTS.glob("*.json")} <= comparisons


def test_the_plots_of_results_are_there(report):
    page = report.PAGE.read_text()
    shown = {name for name in report.kept() if report.figure_name(name) in page}
    assert shown
    for name in shown:
        assert (report.FIGURES / report.figure_name(name)).read_text().startswith("<?xml")
