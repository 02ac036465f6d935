"""The page as its owner uses it, in Chromium: with the mouse, with the keyboard, at both widths."""

import base64
import re
from dataclasses import replace
from pathlib import Path

import httpx
import numpy as np
import pytest
from browser_pages import JOB_PATIENCE, opened_page
from heard_library import N_TRACKS, copy_library, work_quickly
from mutagen.flac import FLAC
from playwright.sync_api import expect
from web_server import root, serving

from harmonium.data.tag_names import AUDIO_FEATURES
from harmonium.library import Library
from harmonium.library.search import parse
from harmonium.library.store.tracks import Track
from harmonium.web import jobs

QUESTION = """() => [".question-text", ".question .hit-title"].map(
    (one) => document.querySelector(one)?.innerText).join(" ")"""
NOT_FOUND = "404 (Not Found)"


def go(page, address, hash=""):
    page.goto(f"{address}/{hash}")
    page.locator("main h1").wait_for(state="attached")


def row(page, tag):
    return page.locator(f'[data-tag="{tag}"]')


def track_of(address, title):
    """The number of a track. Songs 37, 41 and 45 have bass, are not bright, and have no tags."""
    hits = httpx.get(f"{address}/api/v1/search", params={"limit": 100}).json()["hits"]
    return next(hit["id"] for hit in hits if hit["title"] == title)


def test_search_leads_from_a_word_to_tracks(browser, address):
    with opened_page(browser, expected=[NOT_FOUND]) as page:
        go(page, address)
        expect(page.get_by_role("heading", name=f"{N_TRACKS} tracks")).to_be_visible()
        field = page.get_by_role("combobox", name=re.compile("Search"))
        field.press_sequentially("brig")
        expect(page.get_by_role("option", name="bright")).to_be_visible()
        field.press("ArrowDown")
        field.press("Enter")
        expect(field).to_have_value("bright ")
        expect(page.locator(".hit-score").first).to_contain_text("%")
        kinds = page.locator(".facets h3").all_text_contents()
        assert set(kinds) <= {"Your tags", "Genre", "Mood", "Instruments", "Voice", "Era", "Sound"}
        assert len(kinds) > 1
        n = int(page.locator("#found").inner_text().split()[0])
        assert 0 < n < N_TRACKS
        page.get_by_role("button", name=re.compile("^drums")).click()
        expect(page).to_have_url(re.compile("q=bright\\+drums"))
        expect(page.locator("#found")).not_to_have_text(re.compile(rf"^{n} "))  # the list is new
        page.get_by_role("button", name="Exclude drums").click()
        expect(page).to_have_url(re.compile("q=bright\\+-drums"))
        expect(page.locator(".facet.off")).to_have_count(1)
        page.get_by_role("button", name="Clear the search").click()
        expect(page.get_by_role("heading", name=f"{N_TRACKS} tracks")).to_be_visible()
        field.fill("song 41")
        page.get_by_role("option", name="Titles and artists with “song 41”").click()
        expect(page.get_by_role("heading", name="1 track")).to_be_visible()
        field.fill("brihgt")
        field.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("bright")
        odd = '12" \\ single'
        query = page.evaluate("async (tag) => (await import('/static/words.js')).quoted(tag)", odd)
        assert parse(query, (odd, "single"), {}).tags == [odd]
        page.get_by_role("link", name="Show all tracks").click()
        expect(page.get_by_role("heading", name=f"{N_TRACKS} tracks")).to_be_visible()


def test_the_links_of_a_result(page, address):
    go(page, address, "#/search?q=bass")
    with page.expect_download() as download:
        page.get_by_role("link", name="Playlist").click()
    assert download.value.path().read_text().startswith("#EXTM3U")
    page.get_by_role("link", name=re.compile("^More like")).first.click()
    expect(page.locator(".around")).to_contain_text("similar to Song")
    expect(page.locator(".hit-score").first).to_contain_text("%")


def test_the_life_of_a_saved_path(page, address):
    go(page, address, "#/search?like=3")
    page.get_by_role("link", name="Path from here").click()
    expect(page.locator(".around")).to_contain_text("choose where the path from Song 12 ends")
    page.get_by_role("link", name="Path to Song 44").click()
    expect(page.locator(".around")).to_contain_text("from Song 12 to Song 44")
    titles = page.locator(".hit-title")
    expect(titles).to_have_count(20)
    assert [titles.first.inner_text(), titles.last.inner_text()] == ["Song 12", "Song 44"]
    page.get_by_label("Stops").select_option("10")
    expect(titles).to_have_count(10)
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_label("Name").fill("Way home")
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    go(page, address, "#/search?q=bass&order=smooth")
    expect(page.locator(".hit-score").first).to_contain_text("%")
    page.get_by_role("link", name="Way home").click()
    expect(titles).to_have_count(10)
    expect(titles.last).to_have_text("Song 44")
    go(page, address, "#/search?q=bass")
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_label("Tracks at most").fill("3")
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    page.get_by_role("link", name="bass", exact=True).click()
    expect(titles).to_have_count(3)
    expect(page.locator(".notes")).to_contain_text("The first 3 of")
    page.get_by_role("button", name="Delete bass").click()
    page.get_by_role("button", name="Rename Way home").click()
    page.get_by_role("textbox", name="Name").fill("Way back")
    page.get_by_role("dialog").get_by_role("button", name="Rename").click()
    page.get_by_role("button", name="Delete Way back").click()
    expect(page.get_by_role("link", name="Way")).to_have_count(0)


@pytest.fixture(scope="module")
def heard(music, tmp_path_factory):
    """The address of the same library, with a model that knows audio features."""
    place = tmp_path_factory.mktemp("features") / "library.db"
    copy_library(music / "as-trained.db", place)
    with Library.open(place) as library:
        model, ids = library.models.current(), library.tracks.ids()
        P = library.predictions.probabilities(model.id, ids)
        values = np.random.default_rng(0).random((len(ids), len(AUDIO_FEATURES)), np.float32)
        number = library.models.add(
            replace(
                model,
                vocabulary=[*model.vocabulary, *AUDIO_FEATURES],
                thresholds=np.append(model.thresholds, [np.nan] * values.shape[1]),
            )
        )
        library.predictions.put(number, ids, np.concatenate([P, values], axis=1))
    with serving(place) as client:
        yield root(client)


def test_audio_features_are_bars_that_lead_to_an_order(page, heard):
    go(page, heard, "#/track/7")
    values = httpx.get(f"{heard}/api/v1/tracks/7").json()["features"]
    bars = page.get_by_role("region", name="Audio features").get_by_role("listitem")
    expect(bars).to_have_count(7)
    expect(bars.first).to_have_text(re.compile(f"energy: How loud.*: *{values['energy']:.2f}"))
    assert "happy" in bars.nth(1).get_attribute("title")
    page.get_by_role("link", name="energy").click()
    expect(page.get_by_role("heading", name=f"{N_TRACKS} tracks")).to_be_visible()
    shown = page.locator(".hit-score")
    expect(shown.first).to_contain_text("energy")
    order = [float(text.split()[0]) for text in shown.all_inner_texts()]
    assert order == sorted(order, reverse=True)
    page.get_by_label("Order").select_option("-valence")
    expect(page).to_have_url(re.compile("order=-valence"))
    expect(shown.first).to_contain_text("valence")
    field = page.get_by_role("combobox", name=re.compile("Search"))
    field.fill("energy:>0.5")
    field.press("Enter")
    n = sum(value > 0.5 for value in order)
    expect(page.get_by_role("heading", name=f"{n} tracks")).to_be_visible()


def test_play_goes_on_while_views_change(page, address):
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


@pytest.mark.parametrize("width", ["wide", "narrow"])
def test_a_missing_file_is_said_to_be_missing(browser, address, width):
    track = httpx.get(f"{address}/api/v1/search").json()["hits"][0]
    path = httpx.get(f"{address}/api/v1/tracks/{track['id']}").json()["file"]
    away = Path(path).rename(f"{path}.away")
    try:
        with opened_page(browser, width, expected=["404"]) as page:
            go(page, address)
            page.get_by_role("button", name=f"Play {track['title']}", exact=True).click()
            bar = page.get_by_role("region", name="Player")
            expect(bar).to_contain_text("This file is missing")
    finally:
        away.rename(path)


def test_bars_lead_to_where_a_tag_is_strongest(page, address):
    track = track_of(address, "Song 37")
    tags = {"bass": [0.9, 0.8, 0.9, 0.9], "dark": [0.1, 0.2, 0.97, 0.3], "calm": [0.2] * 4}
    places = {"begins": [0.2, 0.8, 1.4, 2.0], "ends": [0.5, 1.1, 1.7, 2.3], "tags": tags}
    page.route("**/over-time", lambda route: route.fulfill(json=places))
    go(page, address, f"#/track/{track}")
    expect(page.locator(".course-bars")).to_have_count(0)
    page.get_by_role("button", name="Tags over time").click()
    expect(page.get_by_role("img", name="How likely dark is over time")).to_be_visible()
    expect(page.locator(".course-bar")).to_have_count(4)
    spectrum, bars = (page.locator(name).bounding_box() for name in (".spectrum", ".course-bars"))
    assert (bars["x"], bars["width"]) == pytest.approx((spectrum["x"], spectrum["width"]), abs=1)
    page.get_by_role("button", name="Strongest at 0:01, 97%").click()
    expect(page.get_by_role("region", name="Player")).to_be_visible()
    page.locator(".course-tools select").select_option("calm")
    expect(page.get_by_role("img", name="How likely calm is over time")).to_be_visible()
    page.locator(".course-bars").click(position={"x": 0.9 * bars["width"], "y": 20})
    page.wait_for_function("() => document.querySelector('.player input').value >= 2")


def test_a_saved_correction_moves_other_tags(page, address):
    track = track_of(address, "Song 41" if page.viewport_size["width"] > 1000 else "Song 45")
    go(page, address, f"#/track/{track}")
    dark = row(page, "dark")
    before = dark.locator(".tag-p").inner_text()
    row(page, "bass").get_by_role("button", name=re.compile("^No")).click()
    expect(page.locator(".save-bar")).to_contain_text("1 unsaved answer")
    expect(dark.locator(".moved.down")).to_be_visible()
    now = dark.locator(".tag-p").inner_text()
    assert int(re.sub(r"\D", "", now)) < int(re.sub(r"\D", "", before))
    expect(page.locator("[role=status]").filter(has_text="moved")).to_contain_text("dark down")
    dark.get_by_role("button", name="Why dark?").click()
    expect(dark.locator(".why")).to_contain_text("bass: no")
    page.get_by_role("button", name="Discard").click()
    expect(dark.locator(".tag-p")).to_have_text(before)
    row(page, "bass").get_by_role("button", name=re.compile("^Yes")).focus()
    page.keyboard.press("y")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("n")
    expect(page.locator(".save-bar")).to_contain_text("2 unsaved answers")
    page.keyboard.press("u")
    expect(page.locator(".save-bar")).to_contain_text("1 unsaved answer")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".toast")).to_contain_text("Saved 1 answer.")
    page.reload()
    said = row(page, "bass").get_by_role("button", name=re.compile("^Yes"))
    expect(said).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".save-inner")).to_have_count(0)


def test_answers_wait_for_a_save_that_undo_takes_back(browser, address):
    track = track_of(address, "Song 37")
    with opened_page(browser) as page:
        go(page, address, f"#/track/{track}")
        field = page.get_by_role("combobox", name="Add a tag of your own")
        field.fill("Sunday-<b>Morning</b>")
        field.press("Enter")
        expect(page.locator(".save-bar")).to_contain_text("1 unsaved answer")
        page.get_by_role("link", name="Changes").click()
        page.go_back()
        expect(page.locator(".save-bar")).to_contain_text("1 unsaved answer")
        page.get_by_role("button", name="Save").click()
        expect(page.locator(".save-inner")).to_have_count(0)
        expect(page.locator(".tag-row").filter(has_text="Sunday-<b>Morning</b>")).to_have_count(1)
        page.locator(".toast").get_by_role("button", name="Undo").click()
        expect(page.locator(".toast").filter(has_text="Undone.")).to_be_visible()
        expect(page.locator(".tag-row").filter(has_text="<b>morning</b>")).to_have_count(0)


def test_teach_ten(page, address):
    go(page, address, "#/teach")
    asked = set()
    for key in ("n", "y", "n", "Space", "y", "n", "y", "n", "y", "n", "y"):
        page.locator(".question-text").wait_for()
        text = page.evaluate(QUESTION)
        asked.add(text)
        page.keyboard.press(key)
        page.wait_for_function(f"text => ({QUESTION})() !== text", arg=text)
    assert len(asked) == 11
    expect(page.locator(".question")).to_contain_text("threshold")
    expect(page.locator(".toast")).to_have_count(0)
    expect(page.locator(".teach-progress")).to_contain_text("10 answers since")
    page.get_by_role("button", name=re.compile("Undo the last")).click()
    expect(page.locator(".toast")).to_contain_text("was undone")
    expect(page.locator(".teach-progress")).to_contain_text("9 answers since")
    assert page.evaluate(QUESTION) == text


DROP = """async ([name, text]) => {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const data = new DataTransfer();
    data.items.add(new File([bytes], name, { type: "audio/flac" }));
    for (const kind of ["dragenter", "dragover", "drop"])
        document.body.dispatchEvent(new DragEvent(kind, { dataTransfer: data, bubbles: true }));
}"""


def test_a_dropped_file_shows_its_tags_without_being_kept(page, address, music):
    file = next(music.glob("music/*/47 Song.flac"))
    go(page, address)
    page.evaluate(DROP, ["new <i>song</i>.flac", base64.b64encode(file.read_bytes()).decode()])
    dialog = page.get_by_role("dialog", name="new <i>song</i>.flac")
    expect(dialog.locator(".file-tags")).to_contain_text("bass")
    dialog.get_by_role("button", name=re.compile("^Play")).click()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    found = httpx.get(f"{address}/api/v1/library").json()
    assert found["tracks"] == N_TRACKS


def test_a_write_is_undone(browser, address, music):
    files = sorted(music.glob("music/*/*.flac"))
    before = [file.read_bytes() for file in files]
    with opened_page(browser) as page:
        go(page, address, "#/write?precision=0.60")
        first = page.get_by_role("checkbox").first
        expect(first).to_be_checked()
        page.locator(".write-kinds summary").first.click()
        label = page.locator(".write-tags tbody label").first
        name = label.inner_text().strip()
        label.click()
        expect(page.locator("tr.rejected").filter(has_text=name)).to_have_count(1)
        expect(page.locator(".plan:not(.stale)")).to_be_visible()
        expect(page.locator(".preview ins").filter(has_text=re.compile(f"^{name}$"))).to_have_count(
            0
        )
        page.locator(".write-kind input").first.set_checked(False)
        expect(page.locator(".write-kind").first).to_contain_text("0 tags")
        page.locator(".write-kinds details").first.get_by_role("button", name="All").click()
        with page.expect_response(lambda answer: answer.url.count(f"ignore={name}") == 1):
            label.click()
        expect(page.locator("tr.rejected")).to_have_count(1)
        expect(page.locator(".plan:not(.stale)")).to_be_visible()
        sums = re.findall(r"(\d+) (?:tags?|files?)", page.locator(".write-sum").inner_text())
        page.get_by_role("button", name=re.compile("^Write into")).click()
        page.get_by_role("dialog").get_by_role("button", name="Write", exact=True).click()
        done = page.get_by_role("status", name="Writing")
        expect(done).to_contain_text(
            f"{sums[0]} tags written to {sums[1]} files.", timeout=JOB_PATIENCE
        )
        assert [file.read_bytes() for file in files] != before
        done.get_by_role("button", name="Undo").click()
        expect(done).to_contain_text("as they were")
        assert [FLAC(file).get("genre") for file in files] == [None] * N_TRACKS


def test_without_a_model_writing_says_so(page, tmp_path):
    with Library.open(tmp_path / "library.db") as library:
        library.tracks.put([Track(str(tmp_path / "song.flac"), "ab" * 32)])
    with serving(tmp_path / "library.db") as client:
        go(page, root(client), "#/write")
        expect(page.locator(".notice")).to_contain_text("There is no model yet")
        expect(page.locator(".empty")).to_contain_text("Nothing to write.")


@pytest.mark.long
def test_a_model_taken_over_can_be_given_back(browser, address, monkeypatch):
    monkeypatch.setattr(jobs, "work", work_quickly)
    with opened_page(browser, "narrow") as page:
        go(page, address, "#/training")
        expect(page.locator("#now")).to_contain_text("model")
        in_use = page.locator("#now").inner_text()
        page.get_by_role("button", name="Train a new model").click()
        expect(page.get_by_role("progressbar")).to_be_visible()
        expect(page.locator(".busy")).to_contain_text("Training")
        take = page.locator(".compare .primary")
        take.click(timeout=JOB_PATIENCE)
        expect(page.locator("#now")).not_to_have_text(in_use)
        page.locator(".toast").get_by_role("button", name="Undo").click()
        expect(page.locator("#now")).to_have_text(in_use)


def test_the_tools_of_the_tags_page(page, address):
    go(page, address, "#/tags")
    page.get_by_role("button", name="Quality").click()
    expect(page.locator("th[aria-sort=descending]")).to_have_text(re.compile("Quality"))
    scores = [float(one) for one in page.locator("tbody .auc").all_text_contents()]
    assert scores == sorted(scores, reverse=True)
    page.get_by_role("button", name="Map").click()
    expect(page.locator(".map-tag")).not_to_have_count(0)
    page.locator(".map-tag").filter(has_text="bright").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="bright", level=1)).to_be_focused()
    page.get_by_role("slider", name=re.compile("^Threshold")).press("ArrowRight")
    page.get_by_role("button", name="Rename").click()
    field = page.get_by_role("dialog").get_by_role("combobox")
    expect(field).to_be_focused()
    field.fill("shining")
    page.get_by_role("dialog").get_by_role("button", name="Rename").click()
    expect(page.get_by_role("heading", name="shining", level=1)).to_be_visible()
    page.locator(".toast").get_by_role("button", name="Undo").click()
    expect(page.get_by_role("heading", name="bright", level=1)).to_be_visible()
    page.get_by_role("button", name="Hide").click()
    page.get_by_role("dialog").get_by_role("button", name="Hide").click()
    page.locator(".toast").get_by_role("button", name="Undo").last.click()
    page.get_by_role("link", name="Changes").click()
    expect(page.locator(".changes li").first).to_contain_text("undone")


def test_a_token_signs_in_without_staying_in_the_address(browser, music):
    token = "a token that nobody guesses"
    with serving(music / "library.db", token=token) as client:
        with opened_page(browser) as page:
            go(page, root(client), f"#token={token.replace(' ', '%20')}")
            expect(page.get_by_role("heading", name=f"{N_TRACKS} tracks")).to_be_visible()
            assert "token" not in page.url
        with opened_page(browser, "narrow", expected=["401 (Unauthorized)"]) as page:
            go(page, root(client))
            page.get_by_label("Token").fill("wrong")
            page.keyboard.press("Enter")
            expect(page.get_by_role("alert")).to_be_visible()
            page.get_by_label("Token").fill(token)
            page.keyboard.press("Enter")
            expect(page.get_by_role("heading", name=f"{N_TRACKS} tracks")).to_be_visible()


def test_tags_over_time_come_from_the_server(page, address):
    go(page, address, f"#/track/{track_of(address, 'Song 37')}")
    page.get_by_role("button", name="Tags over time").click()
    expect(page.locator(".course-bar")).to_have_count(1)  # 2.5 s are a single place
