"""Every number on the page beside the list that it counts, in Chromium."""

import re

import httpx
import pytest
from browser_pages import JOB_PATIENCE, opened_page
from heard_library import N_TRACKS, RARE, answer_and_hide, copy_library
from playwright.sync_api import expect
from web_server import root, serving

N_ANSWERS = 3
FIRST_FILES, MORE_FILES = 5, 20  # of the preview of a write


@pytest.fixture(scope="module")
def counts_address(music, tmp_path_factory):
    """A library with tags of every sort: trained, learnt from answers, of one track, hidden."""
    place = tmp_path_factory.mktemp("counts") / "library.db"
    copy_library(music / "as-trained.db", place)
    answer_and_hide(place)
    with serving(place) as client:
        yield root(client)


@pytest.fixture
def view(browser, counts_address):
    """Opens a view, and gives the page."""
    with opened_page(browser) as page:

        def show(hash):
            page.goto(f"{counts_address}/{hash}")
            page.locator("main h1").wait_for(state="attached")
            return page

        yield show


def numbers(text):
    """The numbers in a text, without those in names."""
    return [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", text)]


def number(locator):
    """The first number that an element shows."""
    return numbers(locator.inner_text())[0]


def tracks(n):
    return "1 track" if n == 1 else f"{n} tracks"


def expect_tracks(page, n):
    """The search has found so many tracks, and lists them."""
    expect(page.locator("#found")).to_have_text(tracks(n))
    expect(page.locator(".hit")).to_have_count(n)


def note(page, words):
    """The number in the note with these words; 0 if there is none."""
    found = page.locator(".notes p").filter(has_text=words)
    return number(found) if found.count() else 0


def all_facets(page):
    """The tags to narrow by, name → count, all of them."""
    more = page.locator(".facets-all")
    more.or_(page.locator(".facet")).first.wait_for()
    if more.count():
        n_tags = number(more)
        more.click()
        expect(page.locator(".facet")).to_have_count(n_tags)
    names = page.locator(".facet-name").all_inner_texts()
    counts = page.locator(".facet-add .num").all_inner_texts()
    return dict(zip(names, (numbers(text)[0] for text in counts), strict=True))


def test_a_click_on_a_tag_finds_as_many_tracks_as_it_says(view):
    page = view("#/search")
    expect_tracks(page, N_TRACKS)
    facets = all_facets(page)
    assert {"bass", "drizzle", RARE} <= set(facets)
    assert "energetic" not in facets
    for name, n in facets.items():
        button = page.locator(".facet").filter(has=page.get_by_text(name, exact=True))
        button.locator(".facet-add").click()
        expect_tracks(page, n)
        less_likely = note(page, "less likely")
        others = note(page, "cannot match")
        assert n + less_likely + others == N_TRACKS, name
        if less_likely:
            page.get_by_role("button", name=re.compile("^Show (it|them)$")).click()
            expect(page.locator(".hit")).to_have_count(n + less_likely)
        button.get_by_role("button", name=f"Exclude {name}").click()
        expect_tracks(page, N_TRACKS - n)
        button.get_by_role("button", name=f"Exclude {name}").click()
        expect_tracks(page, N_TRACKS)


def test_a_second_tag_narrows_to_as_many_tracks_as_it_says(view):
    page = view("#/search?q=bass")
    page.locator(".hit").first.wait_for()
    for name, n in all_facets(page).items():
        if name == "bass":
            continue
        facet = page.locator(".facet").filter(has=page.get_by_text(name, exact=True))
        facet.locator(".facet-add").click()
        expect_tracks(page, n)
        facet.locator(".facet-add").click()
        expect(page.locator(".facet.on")).to_have_count(1)


def table_rows(page):
    """Tag → its row in the table of tags, heading → text."""
    page.locator(".tags-table tbody tr").first.wait_for()
    headings = [
        re.sub(r"\W", "", text) for text in page.locator(".tags-table .sort").all_inner_texts()
    ]
    rows = {}
    for row in page.locator(".tags-table tbody tr").all():
        cells = row.locator("th, td").all_inner_texts()
        rows[cells[0]] = dict(zip(headings, cells, strict=True))
    return rows


def figures(page):
    """Name → value of the figures at the top of a view."""
    page.locator(".figures div").first.wait_for()
    names = page.locator(".figures dt").all_inner_texts()
    return dict(zip(names, page.locator(".figures dd").all_inner_texts(), strict=True))


def test_a_tag_has_the_same_numbers_wherever_it_is_shown(view):
    page = view("#/tags")
    rows = table_rows(page)
    assert "energetic" not in rows
    for name, row in rows.items():
        page.get_by_role("row").filter(
            has=page.get_by_role("link", name=name, exact=True)
        ).get_by_role("link").click()
        expect(page.get_by_role("heading", name=name, level=1)).to_be_visible()
        shown = figures(page)
        assert shown["quality (AUC)"].split() == row["Quality"].split()
        assert shown["tracks tagged"] == row["Tagged"]
        assert shown["tracks predicted"] == row["Predicted"]
        assert shown["precision"] == row["Precision"]
        assert shown["recall"] == row["Recall"]
        if page.locator(".chart").count():
            text = page.locator(".chart").get_attribute("aria-label")
            assert f"{row['Precision']} of its predictions are right" in text, name
            assert f"finds {row['Recall']} of the tracks" in text, name
        page.get_by_role("link", name="Show tracks").click()
        expect_tracks(page, int(row["Tagged"]) + int(row["Predicted"]))
        page.go_back()
        page.go_back()
        page.locator(".tags-table").wait_for()


def test_totals_of_tags_agree(view):
    page = view("#/tags")
    n_visible = len(table_rows(page))
    page.get_by_label("Show 1 hidden").check()
    expect(page.locator(".tags-table tbody tr")).to_have_count(n_visible + 1)
    rows = table_rows(page)
    n_learnt = sum(row["Quality"] != "–" for row in rows.values())
    page = view("#/training")
    assert numbers(figures(page)["tags learnt"])[0] == n_learnt
    assert number(page.locator(".models tbody td.num").first) == n_learnt


@pytest.fixture
def read_only(music):
    """Two files that cannot be written."""
    files = sorted(music.glob("music/*/*.flac"))[:2]
    for file in files:
        file.chmod(0o444)
    yield files
    for file in files:
        file.chmod(0o644)


def test_what_the_plan_says_is_written(view, read_only):
    page = view("#/write?precision=0.60")
    failures = page.locator(".write-failures summary")
    expect(failures).to_have_text("2 files cannot be written")
    total = page.locator(".write-sum")
    n_tags, n_files = numbers(total.locator("p").inner_text())[:2]
    by_kind = [number(kind) for kind in page.locator(".write-kind > .num").all()]
    assert sum(by_kind) == n_tags
    for summary in page.locator(".write-kinds > li > details > summary").all():
        summary.click()
    rows = page.locator(".write-tags tbody tr")
    columns = [
        [int(cell) for cell in row.locator("td.num").all_inner_texts()[:3]] for row in rows.all()
    ]
    assert sum(files for files, _, _ in columns) == n_tags
    assert all(files == given + predicted for files, given, predicted in columns)
    more = page.get_by_role("button", name=re.compile("^Show more files"))
    for n_shown in range(FIRST_FILES, n_files, MORE_FILES):
        expect(page.locator(".preview > li")).to_have_count(n_shown)
        expect(more).to_have_text(f"Show more files ({n_files - n_shown})")
        more.focus()
        page.keyboard.press("Enter")
        if n_shown + MORE_FILES < n_files:
            expect(page.locator(".preview > li")).to_have_count(n_shown + MORE_FILES)
            expect(more).to_be_focused()
    expect(more).to_have_count(0)
    expect(page.locator(".preview > li")).to_have_count(n_files)
    expect(page.locator(".preview ins")).to_have_count(n_tags)
    page.get_by_role("button", name=re.compile("^Write into")).click()
    dialog = page.get_by_role("dialog")
    assert numbers(dialog.inner_text())[:2] == [n_files, n_tags]
    dialog.get_by_role("button", name="Write", exact=True).click()
    done = page.get_by_role("status", name="Writing")
    expect(done).to_contain_text(f"{n_tags} tags written to {n_files} files.", timeout=JOB_PATIENCE)
    expect(done.locator(".write-failures summary")).to_have_text("2 files could not be written")
    expect(page.locator(".empty")).to_contain_text("Nothing to write.")
    expect(failures.last).to_have_text("2 files cannot be written")
    page = view("#/changes")
    last = page.locator(".changes li").first
    assert numbers(last.locator(".change-what").inner_text()) == [n_tags, n_files]
    last.get_by_role("button", name=re.compile("^Undo")).click()
    expect(page.locator(".toast").filter(has_text="Undone.")).to_be_visible(timeout=JOB_PATIENCE)
    page = view("#/write?precision=0.60")
    assert numbers(page.locator(".write-sum p").inner_text())[:2] == [n_tags, n_files]


def test_answers_are_counted_at_once(view, counts_address):
    page = view("#/teach?tag=bass")
    for n in range(1, N_ANSWERS + 1):
        question = page.locator(".question-track .hit-title").get_attribute("href")
        page.keyboard.press("y")
        counted = f"{n} answer{'' if n == 1 else 's'} since"
        expect(page.locator(".teach-progress")).to_contain_text(counted)
        expect(page.locator(".question-track .hit-title")).not_to_have_attribute("href", question)
    expect(page.locator(".teach-progress")).to_contain_text(f"Of {N_ANSWERS} answers")
    for line in page.locator(".progress-line .num").all():
        assert numbers(line.inner_text())[1] == N_ANSWERS
    page.get_by_role("button", name=re.compile("Undo the last")).click()
    left = N_ANSWERS - 1
    expect(page.locator(".teach-progress")).to_contain_text(f"Of {left} answers")


def test_the_number_of_tracks_is_the_same_everywhere(view, counts_address):
    library = httpx.get(f"{counts_address}/api/v1/library").json()
    assert library["tracks"] == N_TRACKS
    page = view("#/library")
    expect(page.locator(".library-link .num")).to_have_text(str(N_TRACKS))
    expect(page.locator(".lead")).to_contain_text(tracks(N_TRACKS))
