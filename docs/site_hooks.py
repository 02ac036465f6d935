"""What the site shows besides docs/: three pages, the files that pages link to, formulas.

MkDocs calls these functions (``hooks`` in mkdocs.yml).
"""

import html
import posixpath
import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File, Files

PROJECT = Path(__file__).parents[1]
PAGES = {
    "harmonium/library/builtin/card.md": "model-card.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
}
"""Project files that become pages of the site: path → place on the site."""
LINK = re.compile(r"(\]\()([^)#\s]+)(#[^)\s]*)?(?=\))")
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.S)
"""How pymdownx.arithmatex marks a formula: in a line of text, or as a block."""


def on_files(files: Files, config: Any) -> Files:
    """Add the pages from elsewhere, and the other files that pages link to."""
    for path, shown in PAGES.items():
        files.append(File.generated(config, shown, abs_src_path=str(PROJECT / path)))
    for page in files.documentation_pages():
        for _, target, _ in LINK.findall(page.content_string):
            path = _in_project(page.src_uri, target)
            if path and _shown(path) not in files.src_uris and (PROJECT / path).is_file():
                files.append(File.generated(config, _shown(path), abs_src_path=str(PROJECT / path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Point links that leave docs/ to the file's place on the site."""

    def moved(link: re.Match[str]) -> str:
        path = _in_project(page.file.src_uri, link[2])
        if path is None:
            return link[0]
        target = posixpath.relpath(_shown(path), posixpath.dirname(page.file.src_uri) or ".")
        return f"{link[1]}{target}{link[3] or ''}"

    return LINK.sub(moved, markdown)


def on_page_content(content: str, **_: Any) -> str:
    """Write formulas as MathML, which browsers show without scripts or extra fonts."""

    def shown(formula: re.Match[str]) -> str:
        display = "block" if formula[1] == "div" else "inline"
        return convert(html.unescape(formula[2]), display=display)

    return FORMULA.sub(shown, content)


def _in_project(src_uri: str, target: str) -> str | None:
    """The linked file, from the project's folder; None for addresses and links within docs/."""
    if "://" in target or target.startswith(("mailto:", "/")):
        return None
    home = {shown: path for path, shown in PAGES.items()}.get(src_uri)
    place = home or f"docs/{src_uri}"
    path = posixpath.normpath(posixpath.join(posixpath.dirname(place), target))
    if home is None and path.startswith("docs/"):
        return None
    return path


def _shown(path: str) -> str:
    """Where the site has a file of the project."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return PAGES.get(path, f"source/{path}")
