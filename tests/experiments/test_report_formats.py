"""Every form of report in every format: whole, escaped, the same to the byte, and legible."""

import itertools
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from operator import attrgetter

import numpy as np
import pytest
from fabricated import RECIPES, fabricate, plausible, plausible_valid
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.text import Text
from parsed_page import Page
from places import DOCS

from harmonium.experiments import report
from harmonium.experiments.report import figures, formats
from harmonium.experiments.report.forms import FORMS
from harmonium.experiments.report.items import Bold, Faint, Picture, Point, Table

NASTY = r"a_b & 100% $x$ #1 {y} \z ~ ^ [k] <script>alert(1)</script> | *s* `c`"


def files_of(folder):
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """Form -> the report, its files, and the folder of its results."""
    made = {}
    for form, text in RECIPES.items():
        results = tmp_path_factory.mktemp(form)
        fabricate(results, text, plausible, valid=plausible_valid)
        written, folder = report.write_report(results)
        made[form] = (written, files_of(folder), results)
    return made


def check_latex(text):
    """Environments and braces close, and all rows of a table have as many cells as columns."""
    begun, ended = (re.findall(rf"\\{word}\{{(\w+)\}}", text) for word in ("begin", "end"))
    assert begun == ended != []
    bare = re.sub(r"\\[{}\\]", "", text)
    assert bare.count("{") == bare.count("}")
    for columns, body in re.findall(r"longtable\}\{([lrc]+)\}(.*?)\\end\{", text, flags=re.DOTALL):
        lines = [line for line in body.splitlines()[2:] if line.endswith(r"\\")]
        assert {len(re.findall(r"(?<!\\)&", line)) for line in lines} == {len(columns) - 1}


@pytest.mark.parametrize("form", RECIPES)
class TestEveryForm:
    """Every table and figure is in every format."""

    def test_no_file_says_when_or_where_it_was_made(self, reports, form):
        _, files, results = reports[form]
        whole = b"".join(files.values())
        assert b"<dc:date>" not in whole
        assert str(results).encode() not in whole

    def test_html(self, reports, form):
        written, files, _ = reports[form]
        text = files["report.html"].decode()
        page = Page(text)
        assert len(page.of("table")) == len(written.tables) > 0
        assert len(page.of("img")) == len(written.figures) > 0
        assert len(page.of("td")) == sum(len(t.rows) * len(t.header) for t in written.tables)
        assert not re.search(r'(?:src|href)="(?!#|data:)', text)

    def test_markdown(self, reports, form):
        written, files, _ = reports[form]
        text = files["report.md"].decode()
        images = [f"figures/{figure.name}.png" for figure in written.figures]
        assert re.findall(r"!\[[^\]]*\]\(([^)]*)\)", text) == images
        assert set(images) <= files.keys()
        lines = [line for line in text.splitlines() if line.startswith("|")]
        assert len(lines) == sum(2 + len(table.rows) for table in written.tables)

    def test_latex(self, reports, form):
        written, files, _ = reports[form]
        text = files["tables.tex"].decode()
        check_latex(text)
        assert text.count(r"\begin{longtable}") == len(written.tables)

    def test_a_score_is_the_same_in_every_format(self, reports, form):
        written, files, _ = reports[form]
        cells = [cell for row in written.tables[0].rows for cell in row]
        mean, error = next(cell for cell in cells if "±" in cell).split(" ± ")
        assert f"{mean} ± {error}" in files["report.md"].decode()
        assert f"{mean} ± {error}" in files["report.html"].decode()
        assert rf"{mean} $\pm$ {error}" in files["tables.tex"].decode()

    def test_figures_are_for_print(self, reports, form):
        written, files, _ = reports[form]
        for figure in written.figures:
            png = files[f"figures/{figure.name}.png"]
            at = png.index(b"pHYs") + 4
            assert int.from_bytes(png[at : at + 4], "big") >= round(200 / 0.0254)
            root = ET.fromstring(files[f"figures/{figure.name}.svg"])
            assert root.tag == "{http://www.w3.org/2000/svg}svg"
            check_legible(figure)


def check_legible(picture):
    """No text leaves the figure, no tick's label touches the next, and counts are whole."""
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
            boxes = (label.get_window_extent(renderer) for label in labels)
            for first, second in itertools.pairwise(sorted(boxes, key=attrgetter("x0"))):
                assert first.x1 <= second.x0, [label.get_text() for label in labels]
            if axis.patches:  # bars, of counts
                assert all(label.get_text().isdecimal() for label in labels)


def labels_out_of_view(axis):
    for side, (low, high) in ((axis.xaxis, axis.get_xlim()), (axis.yaxis, axis.get_ylim())):
        for tick in side.get_major_ticks():
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
    points = [Point(group, -i, 0.0) for i, group in enumerate(groups)]
    counts = dict.fromkeys(series, points)
    check_legible(
        Picture(name="", title=title, caption="", kind="bars", panels={panel: counts}, x_label="$$")
    )


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
                axes._set_position(np.nextafter(axes.get_position().bounds, 1.0))

        one_of_each_kind = {
            picture.kind: (picture, files)
            for written, files, _ in reports.values()
            for picture in written.figures
        }
        monkeypatch.setattr(ConstrainedLayoutEngine, "execute", execute_otherwise)
        for picture, files in one_of_each_kind.values():
            for kind, image in figures.image_files(picture).items():
                assert image == files[f"figures/{picture.name}.{kind}"], picture.name


def test_names_mean_nothing_to_any_format(tmp_path):
    text = (
        RECIPES["feature-groups"]
        .replace('datasets = ["emotify"]', f"note = '''{NASTY}'''")
        .replace("[vary]", f"[[dataset]]\nname = 'emotify'\nlabel = '''{NASTY}'''\n[vary]")
    )
    files = files_of(report.write_report(fabricate(tmp_path, text, plausible))[1])
    page = Page(files["report.html"].decode())
    assert not page.of("script")
    assert page.texts.count(NASTY) >= 3
    assert (
        r"a\_b \& 100\% \$x\$ \#1 \{y\} \textbackslash{}z \textasciitilde{} "
        r"\textasciicircum{} {[}k{]} \textless{}script\textgreater{}"
        in files["tables.tex"].decode()
    )
    text = files["report.md"].decode()
    rows = [line for line in text.splitlines() if line.startswith("| a")]
    bars = {len(re.findall(r"(?<!\\)\|", line)) for line in rows}
    assert bars == {6, 9, 15}  # the tables of 5, 8 and 14 columns
    assert r"\<script\>" in text


letters = st.characters(min_codepoint=32, max_codepoint=382, exclude_categories=["C"])
texts = st.text(letters, max_size=30).map(str.strip).filter(bool)


def small_table(rows):
    records = [{"Dataset": first, "B": second} for first, second in rows]
    return Table(name="t", title="T", caption="C", records=records)


@settings(deadline=None, max_examples=60)
@given(st.lists(texts, min_size=1, max_size=3))
def test_any_text_survives_in_a_table(texts):
    table = small_table([(Bold(text), Faint(text)) for text in texts])
    page = Page(formats.html_page(report.Report(title="R", paragraphs=(), items=(table,)), {}))
    cells = [text for text in page.texts if text.strip("\n")][-1 - 2 * len(texts) : -1]
    assert cells == [re.sub(" +", " ", text) for text in texts for _ in range(2)]
    check_latex(formats.latex_table(table))
    for line in formats.markdown_table(table).splitlines():
        assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) == 3
    for text in texts:
        unescaped = re.sub(r"\\([\\`*_\[\]<>|~$&#])", r"\1", formats.escape_markdown(text))
        assert unescaped == re.sub(r"[ \t\r\n]+", " ", text).strip()


def test_a_narrow_terminal_leaves_out_standard_errors():
    table = small_table([("emotify", Bold("75.0 ± 7.2"))])
    assert "75.0 ± 7.2" in report.terminal_table(table, width=80).markup
    narrow = report.terminal_table(table, width=20).markup
    assert "**75.0**" in narrow
    assert "too narrow" in narrow


def test_differences_look_alike_in_every_panel():
    def panel(*values):
        return {"": [Point(i, value, np.nan) for i, value in enumerate(values)]}

    limits = figures.same_span([panel(60, 70), panel(80, 81)])
    np.testing.assert_allclose(limits, [(59.25, 70.75), (74.75, 86.25)])
    limits = figures.same_span([panel(70.1, np.nan, 70.0)])
    np.testing.assert_allclose(limits, [(68.55, 71.55)])


@pytest.fixture
def docs_of_reports():
    text = (DOCS / "experiments.md").read_text(encoding="utf-8")
    return text.split("## Reading the report")[1].split("\n## ")[0]


def test_docs_name_every_form(docs_of_reports):
    assert set(RECIPES) == set(FORMS)
    for name in RECIPES:
        assert f"`{name}`" in docs_of_reports, name


@pytest.mark.parametrize("name", ["report.md", "report.html", "per-tag.csv", "figures/"])
def test_docs_name_every_file(docs_of_reports, name):
    assert f"`{name}`" in docs_of_reports
