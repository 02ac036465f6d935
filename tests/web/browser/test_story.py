"""From an empty home to tags in the files, and back, on the page alone."""

import re

import httpx
import pytest
from browser_pages import JOB_PATIENCE, WIDTHS, opened_page
from heard_library import work_quickly, write_music
from mutagen.flac import FLAC
from playwright.sync_api import expect
from web_server import root, serving

from harmonium.web import jobs

N_FILES, N_GENRES = 24, 20


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def home(tmp_path, monkeypatch, cache):
    """A home with 24 songs, of which 20 have a genre, and a file that is no music."""
    for name, place in (("HOME", tmp_path), ("USERPROFILE", tmp_path), ("HARMONIUM_CACHE", cache)):
        monkeypatch.setenv(name, str(place))
    monkeypatch.delenv("XDG_MUSIC_DIR", raising=False)
    monkeypatch.setattr(jobs, "work", work_quickly)
    paths, truth = write_music(tmp_path / "Music")
    for i, path in enumerate(paths):
        if i >= N_FILES:
            path.unlink()
        elif i < N_GENRES:
            file = FLAC(path)
            file["genre"] = "Dub" if truth[i][0] else "Bleep"
            file.save()
    (tmp_path / "Music" / "broken.mp3").write_bytes(b"no music")
    return tmp_path


@pytest.mark.parametrize("width", WIDTHS)
def test_from_an_empty_library_to_undone_tags_in_the_files(browser, home, width):
    songs = sorted(home.glob("Music/*/*.flac"))
    before = [song.read_bytes() for song in songs]
    with serving(home / "library.db") as client, opened_page(browser, width) as page:
        page.goto(root(client))
        expect(page.get_by_role("heading", name="Where is your music?")).to_be_visible()
        expect(page.locator(".picker-here")).to_contain_text("25 music files")
        page.get_by_role("button", name="Folder above").click()
        expect(page.locator(".picker-here .path b")).to_have_text(str(home))
        page.get_by_role("button", name=re.compile("^Music")).click()
        expect(page.locator(".picker-here .path b")).to_have_text(str(home / "Music"))
        page.get_by_role("button", name="Index this folder").click()
        expect(page.locator(".hit .chip").first).to_be_visible(timeout=JOB_PATIENCE)
        news = page.get_by_role("region", name="News")
        expect(news).to_contain_text("20 tracks have genres in their files", timeout=JOB_PATIENCE)
        expect(page.get_by_role("heading", name=f"{N_FILES} tracks")).to_be_visible()
        found = httpx.get(f"{root(client)}/api/v1/search", params={"limit": 50}).json()["hits"]
        assert len(found) == N_FILES

        page.get_by_role("button", name="Learn from them").click()
        learnt = page.locator(".toast, .news .bad")
        learnt.first.wait_for(timeout=JOB_PATIENCE)
        expect(learnt).to_contain_text("20 tracks")
        expect(page.locator(".hit .chip:not(.guess)").first).to_have_text(re.compile("Dub|Bleep"))
        expect(news).not_to_contain_text("genres")

        expect(news).to_contain_text("1 file could not be read")
        page.get_by_role("link", name="See which and why").click()
        problems = page.get_by_role("region", name="Problems")
        expect(problems).to_contain_text(str(home / "Music" / "broken.mp3"))
        expect(problems).to_contain_text("cannot be decoded")

        page.goto(f"{root(client)}/#/track/{found[0]['id']}")
        field = page.get_by_role("combobox", name="Add a tag of your own")
        field.fill("Sunday Morning")
        field.press("Enter")
        page.get_by_role("button", name="Save").click()
        expect(page.locator(".toast").filter(has_text="Saved 1 answer.")).to_be_visible()

        page.get_by_role("link", name="Write", exact=True).click()
        own = page.locator(".write-kind").filter(has_text="Your tags")
        expect(own).to_contain_text("1 tag")
        expect(own.get_by_role("combobox")).to_have_value("grouping")
        page.get_by_role("button", name=re.compile("^Write into")).click()
        page.get_by_role("dialog").get_by_role("button", name="Write", exact=True).click()
        done = page.get_by_role("status", name="Writing")
        expect(done).to_contain_text(
            re.compile(r"\d+ tags? written to \d+ file"), timeout=JOB_PATIENCE
        )
        assert any(FLAC(song).get("grouping") == ["Sunday Morning"] for song in songs)
        done.get_by_role("button", name="Undo").click()
        expect(done).to_contain_text("as they were")
        assert [song.read_bytes() for song in songs] == before
