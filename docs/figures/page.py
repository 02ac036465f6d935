"""The screenshots of the page in docs/web.md, taken in Debian's Chromium.

The library is made of Emotify's clips, which are not ours to give away (see docs/datasets.md): 30
of each genre. People's tags of the first 25 are the genre, and the emotions that more than a third
of the listeners marked.

    python docs/figures/page.py tags $HARMONIUM_DATA/emotify /home/me/Music > tags.csv
    harmonium index /home/me/Music -L Emotify.db && harmonium import tags.csv -L Emotify.db
    harmonium train -L Emotify.db && harmonium tag -L Emotify.db
    harmonium serve -L Emotify.db --no-browser --port 8050 &
    python docs/figures/page.py shots http://127.0.0.1:8050 docs/figures
"""

import csv
import json
import shutil
import sys
from collections import Counter
from pathlib import Path
from urllib.request import urlopen

FIRST = {"classical": 0, "rock": 100, "electronic": 200, "pop": 300}
"""Genre → number of its first excerpt, less one."""
N_CLIPS, N_TAGGED, SHARE = 30, 25, 0.33
PLAIN = {
    **{"amazement": "amazed", "calmness": "calm", "joyful_activation": "joyful"},
    **{"nostalgia": "nostalgic", "power": "powerful", "sadness": "sad"},
    **{"solemnity": "solemn", "tenderness": "tender", "tension": "tense"},
}
"""Emotion → the word that people use, and the built-in model."""
COLOURS = 128


def write_tags(emotify: Path, music: Path) -> None:
    """Copy the clips that are not there yet, and print the table of people's tags."""
    music.mkdir(parents=True, exist_ok=True)
    with (emotify / "data.csv").open(newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file, skipinitialspace=True)
    emotions = head[2:11]
    listeners = Counter(int(row[0]) for row in rows)
    marks = Counter(
        (int(row[0]), emotion)
        for row in rows
        for emotion, mark in zip(emotions, row[2:11], strict=True)
        if mark.strip() == "1"
    )
    out = csv.writer(sys.stdout)
    out.writerow(["person", "track", "tag"])
    for genre, before in FIRST.items():
        for i in range(1, N_CLIPS + 1):
            path = music / f"{genre}_{i}.ogg"
            if not path.exists():
                shutil.copy(emotify / "clips" / path.name, path)
            if i > N_TAGGED:
                continue
            out.writerow(["me", path, genre])
            for emotion in emotions:
                if marks[before + i, emotion] > SHARE * listeners[before + i]:
                    out.writerow(["listeners", path, PLAIN[emotion]])


def take_shots(address: str, folder: Path) -> None:
    """Six pictures of the page."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    with urlopen(f"{address}/api/v1/search?limit=200") as answer:
        ids = {hit["name"]: hit["id"] for hit in json.load(answer)["hits"]}
    track = f"#/track/{ids['pop_29.ogg']}"

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )

        def opened(place, there, *, width=1240, height=800, scheme="light"):
            page = browser.new_page(
                viewport={"width": width, "height": height}, color_scheme=scheme
            )
            page.goto(f"{address}/{place}")
            page.locator(there).first.wait_for()
            page.wait_for_timeout(2500)
            return page

        def kept(page, name):
            page.mouse.move(2, 2)
            page.wait_for_timeout(900)
            page.screenshot(path=folder / f"{name}.png")
            page.close()

        def said(page, answer, *tags):
            page.get_by_text("unlikely tags").first.click()
            for tag in tags:
                page.locator(f'[data-tag="{tag}"] button').filter(has_text=answer).first.click()
                page.wait_for_timeout(1000)
            page.evaluate("scrollTo(0, 0)")

        page = opened("#/search?q=calm+-voice", ".hit")
        page.locator(".hit .play").nth(1).click()
        kept(page, "page-search")
        page = opened(track, ".tag-row", height=860)
        said(page, "No", "classical")
        kept(page, "page-track")
        page = opened(track, ".tag-row", height=860, scheme="dark")
        said(page, "Yes", "pop", "nostalgic")
        page.locator('[data-tag="classical"] .why-button').click()
        kept(page, "page-why")
        kept(opened("#/teach?tag=rock", ".question", height=700, scheme="dark"), "page-teach")
        page = opened("#/tags?as=map", ".map-tag", height=860)
        page.locator(".map-tag").filter(has_text="classical").focus()
        page.evaluate("scrollTo(0, 0)")
        kept(page, "page-map")

        narrow = {"width": 390, "height": 844}
        kept(opened("#/search?q=nostalgic", ".hit", **narrow), "narrow-1")
        page = opened(track, ".tag-row", scheme="dark", **narrow)
        said(page, "No", "classical")
        page.mouse.wheel(0, 330)
        kept(page, "narrow-2")
        kept(opened("#/write", ".write-kinds", **narrow), "narrow-3")
        browser.close()

    parts = [folder / f"narrow-{i}.png" for i in (1, 2, 3)]
    pictures = [Image.open(part).convert("RGB") for part in parts]
    whole = Image.new("RGB", (3 * 390 + 40, 844), "white")
    for i, picture in enumerate(pictures):
        whole.paste(picture, (410 * i, 0))
    whole.save(folder / "page-narrow.png")
    for part in parts:
        part.unlink()
    for path in folder.glob("page-*.png"):  # fewer colours, smaller files
        small = Image.open(path).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
        small.save(path, optimize=True)


if __name__ == "__main__":
    deed, first, second = sys.argv[1:]
    if deed == "tags":
        write_tags(Path(first), Path(second))
    else:
        take_shots(first, Path(second))
