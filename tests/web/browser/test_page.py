"""The page as its owner uses it, in Chromium: with the mouse, with the keyboard, at both widths."""

import re

import httpx
import pytest
from browser_pages import opened_page
from heard_library import N_TRACKS
from playwright.sync_api import expect

pytestmark = pytest.mark.xdist_group("browser")

BAD_REQUEST = "400 (Bad Request)"


def go(page, address, hash=""):
    page.goto(f"{address}/{hash}")
    page.locator("main h1").wait_for(state="attached")


def row(page, tag):
    return page.locator(f'[data-tag="{tag}"]')


def show_all(page):
    """Unlikely tags of a track, too."""
    page.locator(".tag-row").first.wait_for()
    for button in page.get_by_role("button", name=re.compile("unlikely")).all():
        button.click()


def untagged(address, i=0):
    """A track of which nobody has said anything, by its place among them."""
    hits = httpx.get(f"{address}/api/v1/search", params={"limit": 100}).json()["hits"]
    nobody = [hit for hit in hits if all(tag["source"] == "model" for tag in hit["tags"])]
    return nobody[i]["id"]


def test_search_completes_narrows_and_says_what_to_do(browser, address):
    with opened_page(browser, expected=[BAD_REQUEST]) as page:
        go(page, address)
        expect(page.get_by_role("heading", name=f"{N_TRACKS} tracks")).to_be_visible()
        field = page.get_by_role("combobox", name=re.compile("Search"))
        field.press_sequentially("brig")
        expect(page.get_by_role("option", name="bright")).to_be_visible()
        field.press("ArrowDown")
        field.press("Enter")
        expect(field).to_have_value("bright ")
        expect(page.locator(".hit-score").first).to_contain_text("%")
        n = int(page.locator("#found").inner_text().split()[0])
        assert 0 < n < N_TRACKS
        page.get_by_role("button", name=re.compile("^drums")).click()
        expect(page).to_have_url(re.compile("q=bright\\+drums"))
        page.get_by_role("button", name="Leave out drums").click()
        expect(page).to_have_url(re.compile("q=bright\\+-drums"))
        expect(page.locator(".facet.off")).to_have_count(1)
        page.get_by_role("button", name="Clear the search").click()
        expect(page.get_by_role("heading", name=f"{N_TRACKS} tracks")).to_be_visible()
        field.fill("brihgt")
        field.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("bright")
        page.get_by_role("link", name="Show all tracks").click()
        expect(page.get_by_role("heading", name=f"{N_TRACKS} tracks")).to_be_visible()


def test_a_result_is_a_playlist_and_leads_to_what_is_alike(page, address):
    go(page, address, "#/search?q=bass")
    with page.expect_download() as download:
        page.get_by_role("link", name="Playlist").click()
    assert download.value.path().read_text().startswith("#EXTM3U")
    page.get_by_role("link", name=re.compile("^More like")).first.click()
    expect(page.locator(".around")).to_contain_text("like Song")
    expect(page.locator(".hit-score").first).to_contain_text("%")


def test_play_goes_on_over_views_and_obeys_keys(page, address):
    go(page, address)
    page.get_by_role("button", name=re.compile("^Play Song")).first.click()
    bar = page.get_by_role("region", name="Player")
    expect(bar.get_by_role("button", name="Pause")).to_be_visible()
    page.wait_for_function("() => document.querySelector('.player input').value > 0")
    page.get_by_role("link", name="Tags", exact=True).click()
    expect(page.get_by_role("heading", name="Tags", level=1)).to_be_focused()
    expect(bar).to_be_visible()
    page.keyboard.press("Space")
    expect(bar.get_by_role("button", name="Play", exact=True)).to_be_visible()
    bar.get_by_role("link").click()
    spectrum = page.get_by_role("slider", name="Position in the track")
    spectrum.click(position={"x": 30, "y": 20})
    expect(bar.get_by_role("button", name="Pause")).to_be_visible()
    page.wait_for_function("() => document.querySelector('.spectrum img').naturalWidth === 1200")


def test_a_correction_moves_other_tags_and_is_saved(page, address):
    track = untagged(address, 0 if page.viewport_size["width"] > 1000 else 1)
    go(page, address, f"#/track/{track}")
    show_all(page)
    before = row(page, "energetic").locator(".tag-p").inner_text()
    row(page, "drums").get_by_role("button", name=re.compile("^Yes")).click()
    row(page, "bright").get_by_role("button", name=re.compile("^Yes")).click()
    expect(page.locator(".save-bar")).to_contain_text("2 unsaved answers")
    expect(row(page, "energetic").locator(".moved.up")).to_be_visible()
    assert row(page, "energetic").locator(".tag-p").inner_text() != before
    expect(page.locator("[role=status]").filter(has_text="moved")).to_contain_text("energetic up")
    page.get_by_role("button", name="Discard").click()
    expect(row(page, "energetic").locator(".tag-p")).to_have_text(before)
    row(page, "drums").get_by_role("button", name=re.compile("^Yes")).focus()
    page.keyboard.press("y")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("n")
    expect(page.locator(".save-bar")).to_contain_text("2 unsaved answers")
    page.keyboard.press("u")
    expect(page.locator(".save-bar")).to_contain_text("1 unsaved answer")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".toast")).to_contain_text("Saved 1 answer.")
    page.reload()
    pressed = row(page, "drums").get_by_role("button", name=re.compile("^Yes"))
    expect(pressed).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".save-inner")).to_have_count(0)


def test_answers_wait_while_one_looks_elsewhere_and_undo_takes_back(browser, address):
    track = untagged(address, 2)
    with opened_page(browser) as page:
        go(page, address, f"#/track/{track}")
        field = page.get_by_role("combobox", name="Add a tag of your own")
        field.fill("Sunday <b>morning</b>")
        field.press("Enter")
        expect(page.locator(".save-bar")).to_contain_text("1 unsaved answer")
        page.get_by_role("link", name="Changes").click()
        page.go_back()
        expect(page.locator(".save-bar")).to_contain_text("1 unsaved answer")
        page.get_by_role("button", name="Save").click()
        expect(page.locator(".tag-row").filter(has_text="<b>morning</b>")).to_have_count(1)
        page.locator(".toast").get_by_role("button", name="Undo").click()
        expect(page.locator(".toast").filter(has_text="Undone.")).to_be_visible()
        expect(page.locator(".tag-row").filter(has_text="<b>morning</b>")).to_have_count(0)


def test_teach_ten(page, address):
    go(page, address, "#/teach")
    question = page.locator(".question")
    asked = set()
    for key in ("n", "y", "n", "Space", "y", "n", "y", "n", "y", "n", "y"):
        text = question.inner_text()
        asked.add(text)
        page.keyboard.press(key)
        page.wait_for_function(
            "text => document.querySelector('.question')?.innerText !== text", arg=text
        )
    assert len(asked) == 11
    expect(page.locator(".teach-progress")).to_contain_text("10 answers since")
    page.get_by_role("button", name=re.compile("Undo the last")).click()
    expect(page.locator(".toast")).to_contain_text("taken back")
    expect(page.locator(".teach-progress")).to_contain_text("9 answers since")
