"""Every form of report in every format: whole, escaped, the same to the byte, and legible."""

import itertools
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from operator import attrgetter

import numpy as np
import pytest
from fabricated import RECIPES, fabricate, plausible, plausible_valid
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.text import Text
from places import DOCS

from harmonium.experiments.recipe import FORMS
from harmonium.experiments.report import (
    MAX_LATEX_ROWS,
    escape_latex,
    escape_markdown,
    figures,
    html_table,
    latex_table,
    markdown_table,
    terminal_table,
    write_report,
)
from harmonium.experiments.report.forms import Bold, Faint, Picture, Table

NASTY = r"a_b & 100% $x$ #1 {y} \z ~ ^ [k] <script>alert(1)</script> | *s* `c`"


def files_of(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """Form -> the report, its files, and the folder of its results."""
    made = {}
    for form, text in RECIPES.items():
        results = tmp_path_factory.mktemp(form)
        fabricate(results, text, plausible, valid=plausible_valid)
        report, folder = write_report(results)
        made[form] = (report, files_of(folder), results)
    return made


class Page(HTMLParser):
    """Counts tags and remembers text; fails on a tag that is closed in the wrong place."""

    EMPTY = ("meta", "img", "!doctype")

    def __init__(self, text):
        super().__init__()
        self.open, self.seen, self.words = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def check_latex(text):
    """Environments and braces close, and the rows of each tabular have as many cells as columns."""
    stack = []
    for kind, name in re.findall(r"\\(begin|end)\{(\w+)\}", text):
        if kind == "begin":
            stack.append(name)
        else:
            assert stack.pop() == name
    assert stack == []
    bare = re.sub(r"\\[{}\\]", "", text)
    assert bare.count("{") == bare.count("}")
    for columns, body in re.findall(
        r"\\begin\{tabular\}\{([lrc]+)\}(.*?)\\end\{tabular\}", text, flags=re.DOTALL
    ):
        lines = [line for line in body.splitlines() if line.endswith(r"\\")]
        assert lines
        assert {len(re.findall(r"(?<!\\)&", line)) for line in lines} == {len(columns) - 1}


@pytest.mark.parametrize("form", RECIPES)
class TestEveryForm:
    def test_every_table_and_figure_is_in_every_format(self, reports, form):
        report, files, results = reports[form]
        whole = b"".join(files.values())
        assert b"<dc:date>" not in whole
        assert str(results).encode() not in whole
        tables = [f"tables/{table.name}.tex" for table in report.tables]
        images = [f"figures/{figure.name}.png" for figure in report.figures]
        assert tables
        assert images
        assert {*tables, *images} <= files.keys()
        text = files["report.html"].decode()
        page = Page(text)
        assert page.seen.count("table") == len(tables)
        assert page.seen.count("img") == len(images)
        assert page.seen.count("td") == sum(len(t.rows) * len(t.header) for t in report.tables)
        assert not re.search(r'(?:src|href)="(?!#|data:)', text)
        text = files["report.md"].decode()
        assert re.findall(r"!\[[^\]]*\]\(([^)]*)\)", text) == images
        lines = [line for line in text.splitlines() if line.startswith("|")]
        assert len(lines) == sum(2 + len(table.rows) for table in report.tables)
        document = files["report.tex"].decode()
        assert re.findall(r"\\input\{([^}]*)\}", document) == tables
        for text in (document, *(files[name].decode() for name in tables)):
            check_latex(text)
        main = report.tables[0]
        mean, error = next(c for row in main.rows for c in row if "±" in c).split(" ± ")
        assert f"{mean} ± {error}" in files["report.md"].decode()
        assert f"{mean} ± {error}" in files["report.html"].decode()
        assert rf"{mean} $\pm$ {error}" in files[f"tables/{main.name}.tex"].decode()

    def test_figures_are_for_print(self, reports, form):
        report, files, _ = reports[form]
        for figure in report.figures:
            png = files[f"figures/{figure.name}.png"]
            at = png.index(b"pHYs") + 4
            assert int.from_bytes(png[at : at + 4], "big") >= round(200 / 0.0254)
            root = ET.fromstring(files[f"figures/{figure.name}.svg"])
            assert root.tag == "{http://www.w3.org/2000/svg}svg"
            check_legible(figure)


def check_legible(picture):
    """No text leaves the figure, and no tick's label touches the next."""
    with figures.house_style():
        figure = figures.draw_picture(picture)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        renderer = canvas.get_renderer()
        width, height = figure.bbox.width, figure.bbox.height
        unseen = {id(label) for axis in figure.axes for label in labels_out_of_view(axis)}
        for text in figure.findobj(Text):
            if not text.get_text().strip() or id(text) in unseen:
                continue
            box = text.get_window_extent(renderer)
            inside = box.x0 > -1 and box.y0 > -1 and box.x1 < width + 1 and box.y1 < height + 1
            assert inside, text.get_text()
        for axis in figure.axes:
            labels = [label for label in axis.get_xticklabels() if id(label) not in unseen]
            boxes = sorted(
                (label.get_window_extent(renderer) for label in labels), key=attrgetter("x0")
            )
            for first, second in itertools.pairwise(sorted(boxes, key=attrgetter("x0"))):
                assert first.x1 <= second.x0, [label.get_text() for label in labels]


def labels_out_of_view(axis):
    """Ticks beyond the limits have labels too, which are not drawn."""
    for one, (low, high) in ((axis.xaxis, axis.get_xlim()), (axis.yaxis, axis.get_ylim())):
        for tick in one.get_major_ticks():
            if not min(low, high) <= tick.get_loc() <= max(low, high):
                yield from (tick.label1, tick.label2)


@pytest.mark.parametrize(
    ("title", "panel", "groups", "series"),
    [
        (
            "A long title that has to be broken into two lines, for it is wider than the figure is",
            "A dataset with quite a long name",
            tuple(f"a-model-with-a-long-name-{i}, 100 tags" for i in range(9)),
            ("up", "down"),
        ),
        ("$x^$", r"$\frac{1}$", (r"$a_{b", r"$\no$"), ("$u$", "$d$")),
    ],
    ids=["long", "like-formulas"],
)
def test_any_names_are_legible(title, panel, groups, series):
    up, down = series
    counts = {
        up: [(group, i, 0.0) for i, group in enumerate(groups)],
        down: [(group, -1, 0.0) for group in groups],
    }
    panels = {panel: counts}
    words = {"name": "", "title": title, "caption": "", "x_label": "$$"}
    check_legible(Picture(kind="counts", panels=panels, **words))


class TestTheSameBytes:
    def test_in_another_process_with_other_settings_that_never_imports_jax(self, reports, tmp_path):
        _, files, results = reports["comparison"]
        program = (
            "import sys\n"
            "from harmonium.experiments.report import write_report\n"
            "assert 'matplotlib' not in sys.modules\n"
            f"write_report({str(results)!r}, {str(tmp_path / 'again')!r})\n"
            "assert not {'jax', 'optax', 'matplotlib.pyplot'} & sys.modules.keys()\n"
        )
        (tmp_path / "matplotlibrc").write_text("font.size: 20\naxes.grid: True\nbackend: svg\n")
        environment = {"PYTHONHASHSEED": "7", "MATPLOTLIBRC": str(tmp_path), "LC_ALL": "C"}
        subprocess.run([sys.executable, "-c", program], check=True, env=os.environ | environment)
        assert files_of(tmp_path / "again") == files

    def test_the_last_bits_of_the_layout_do_not_matter(self, reports, monkeypatch):
        """The solver of the layout gives other last bits now and then."""
        execute = ConstrainedLayoutEngine.execute

        def execute_otherwise(engine, figure):
            execute(engine, figure)
            for axes in figure.axes:
                nudged = np.nextafter(axes.get_position().bounds, 1.0)
                axes._set_position(nudged)

        one_of_each_kind = {
            picture.kind: (picture, files)
            for report, files, _ in reports.values()
            for picture in report.figures
        }
        monkeypatch.setattr(ConstrainedLayoutEngine, "execute", execute_otherwise)
        for picture, files in one_of_each_kind.values():
            for kind, image in figures.image_files(picture).items():
                assert image == files[f"figures/{picture.name}.{kind}"], picture.name


class TestEscaping:
    def test_names_mean_nothing_to_any_format(self, tmp_path):
        text = (
            RECIPES["feature-groups"]
            .replace('datasets = ["emotify"]', f"note = '''{NASTY}'''")
            .replace("[vary]", f"[[dataset]]\nname = 'emotify'\nlabel = '''{NASTY}'''\n[vary]")
        )
        files = files_of(write_report(fabricate(tmp_path, text, plausible))[1])
        page = Page(files["report.html"].decode())
        assert "script" not in page.seen
        assert page.words.count(NASTY) >= 3
        text = files["tables/feature-groups-auc.tex"].decode()
        check_latex(text)
        assert (
            r"a\_b \& 100\% \$x\$ \#1 \{y\} \textbackslash{}z \textasciitilde{} "
            r"\textasciicircum{} {[}k{]} \textless{}script\textgreater{}" in text
        )
        text = files["report.md"].decode()
        rows = [line for line in text.splitlines() if line.startswith("| a")]
        bars = {len(re.findall(r"(?<!\\)\|", line)) for line in rows}
        assert bars == {6, 9, 15}  # the tables of 5, 8 and 14 columns
        assert r"\<script\>" in text

    def test_unusual_letters_in_latex(self):
        greek = r"$\chi$$^2$ $\pm$ 0.1 $-$ 2 $\times$ 3 -- $\beta$"
        assert escape_latex("χ² ± 0.1 − 2 × 3 – β") == greek
        assert escape_latex("two\nlines  and 0.1\u00a0×2") == r"two lines and 0.1~$\times$2"


texts = st.text(
    st.characters(min_codepoint=32, max_codepoint=382, exclude_categories=["C"]), max_size=30
)


def small_table(rows):
    return Table(name="t", title="T", caption="C", header=("Dataset", "B"), align="l", rows=rows)


@settings(deadline=None, max_examples=60)
@given(st.lists(texts, min_size=1, max_size=3))
def test_any_text_survives_in_a_table(texts):
    table = small_table([(Bold(text), Faint(text)) for text in texts])
    words = [word for text in texts for word in (text, text) if text]
    page = Page(html_table(table))
    assert [w for w in page.words if w.strip("\n") and w not in table.header] == [
        word for word in words if word not in table.header
    ]
    check_latex(latex_table(table))
    for line in markdown_table(table).splitlines():
        assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) == 3
    for text in texts:
        unescaped = re.sub(r"\\([\\`*_\[\]<>|~$])", r"\1", escape_markdown(text))
        assert unescaped == re.sub(r"[ \t\r\n]+", " ", text).strip()


def test_a_long_table_is_continued_where_a_group_begins():
    table = small_table([(f"group {i // 30}", str(i)) for i in range(3 * MAX_LATEX_ROWS)])
    text = latex_table(table)
    check_latex(text)
    parts = text.split(r"\begin{tabular}")[1:]
    assert [len(re.findall(r"^group", part, flags=re.MULTILINE)) for part in parts] == [30] * 4
    assert text.count(r"\caption{") == 1
    assert text.count("continued") == 3


def test_a_narrow_terminal_leaves_out_standard_errors():
    table = small_table([("emotify", Bold("75.0 ± 7.2"))])
    assert "75.0 ± 7.2" in terminal_table(table, width=80).markup
    narrow = terminal_table(table, width=20).markup
    assert "**75.0**" in narrow
    assert "too narrow" in narrow


def test_differences_look_alike_in_every_panel():
    def panel(*values):
        return {"": [(i, value, np.nan) for i, value in enumerate(values)]}

    (low, high), (other_low, other_high) = figures.same_span([panel(60, 70), panel(80, 81)])
    assert low < 60 < 70 < high
    assert other_low < 80 < 81 < other_high
    assert high - low == pytest.approx(other_high - other_low)
    np.testing.assert_allclose(figures.same_span([panel(70.1, np.nan, 70.0)]), [(68.55, 71.55)])


def test_docs_name_every_form_and_file():
    assert set(RECIPES) == set(FORMS)
    text = (DOCS / "experiments.md").read_text(encoding="utf-8")
    section = text.split("## Reading the report")[1].split("\n## ")[0]
    for name in (*RECIPES, "report.md", "report.html", "report.tex", "per-tag.csv", "figures/"):
        assert f"`{name}`" in section, name
