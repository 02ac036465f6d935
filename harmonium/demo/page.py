"""The page of results: one HTML file that plays the sounds beside it."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import numpy as np

from harmonium.arrays import Floats
from harmonium.audio import decode
from harmonium.audio.extractors import DEFAULTS, decibels, mel_spectrogram, raise_to_floor
from harmonium.demo import PAGE, PEOPLE, DemoEvaluation, DemoMusic

if TYPE_CHECKING:
    from harmonium.library.snapshot import SearchResult
    from harmonium.library.store.models import StoredModel

N_CARDS = 24
TAGS_ON_A_CARD = 8
PICTURE_WIDTH = 420
"""Pixels of a spectrogram, about a frame each."""
FIRST_TAGS = 16
"""Tags whose scores are seen at once; the others unfold."""

NEXT_STEPS = (
    ("harmonium index ~/Music", "find and analyse your music"),
    ("harmonium import --from-files", "learn from the genres in your files (or: tags.csv)"),
    ("harmonium train", "learn from them; then: harmonium tag"),
)
"""(command, what it does)"""


def write_page(
    music: DemoMusic,
    model: StoredModel,
    evaluation: DemoEvaluation,
    query: str,
    found: SearchResult,
    n_given: int,
) -> Path:
    """Write the page beside the music; its path."""
    n_learnt = sum(tag["learnt"] for tag in model.report["tags"])
    path = music.path(PAGE)
    page = render_page(
        facts={
            "tracks": f"{music.collection.n_tracks:,}",
            f"tags that {PEOPLE} people gave to {music.n_tagged:,} of them": f"{n_given:,}",
            "different tags that it recognises by ear": f"{n_learnt} of {len(model.vocabulary)}",
            "mean AUC of the other half": f"{evaluation.auc.mean:.3f}",
        },
        scores=evaluation.tag_aucs(),
        query=query,
        hits=[(hit.track.name, hit.probability or 0.0) for hit in found.hits],
        cards=[_track_card(music, evaluation, i) for i in chosen_rows(len(evaluation.rows))],
    )
    path.write_text(page, encoding="utf-8")
    return path


def chosen_rows(n: int) -> list[int]:
    """At most `N_CARDS` of n rows, evenly spaced."""
    return np.linspace(0, n - 1, min(n, N_CARDS)).round().astype(int).tolist()


def _track_card(music: DemoMusic, evaluation: DemoEvaluation, i: int) -> str:
    clip = music.collection.clips.row(int(evaluation.rows[i]), named=True)
    picture = spectrogram_png(decode(music.path(clip["path"])).samples)
    return render_card(
        clip["title"], clip["artist"], clip["path"], picture, evaluation.predicted_tags(i)
    )


def spectrogram_png(samples: Floats) -> bytes:
    """A picture of a sound at the features' rate: time to the right, mel bands upwards."""
    from matplotlib.image import imsave

    mel = raise_to_floor(mel_spectrogram(samples - samples.mean(), DEFAULTS), DEFAULTS)
    levels = decibels(mel)
    step = max(1, round(len(levels) / PICTURE_WIDTH))
    usable = len(levels) // step * step
    levels = levels[:usable].reshape(-1, step, levels.shape[1]).mean(axis=1)  # (frames, bands)
    high = float(levels.max())
    file = io.BytesIO()
    low = high - DEFAULTS.dynamic_range
    imsave(file, levels.T[::-1], vmin=low, vmax=high, cmap="magma", format="png")
    return file.getvalue()


def render_page(
    *,
    facts: Mapping[str, str],
    scores: Sequence[tuple[str, int, float]],
    query: str,
    hits: Sequence[tuple[str, float]],
    cards: Sequence[str],
) -> str:
    """The whole page, as HTML.

    Parameters
    ----------
    facts : what it is → the number
    scores : (tag, examples, AUC)
    query, hits : a search, and the (track, probability) that it found
    cards : of tracks that nobody tagged, as `render_card` makes them
    """
    shown_facts = "".join(
        f"<li><b>{escape(number)}</b> <span>{escape(what)}</span></li>"
        for what, number in facts.items()
    )
    found = "".join(
        f'<li>{escape(track)} <span class="soft">{100 * probability:.0f} %</span></li>'
        for track, probability in hits
    )
    known = "".join(f'<option value="{escape(tag)}">' for tag, _, _ in scores)
    width = max(len(command) for command, _ in NEXT_STEPS)
    steps = "\n".join(f"{command:<{width}}   # {why}" for command, why in NEXT_STEPS)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Harmonium: a collection tagged</title>
<style>
{_resource("page.css")}</style>
</head>
<body>
<header>
<h1>What Harmonium made of this collection</h1>
<p>Three people tagged half of the tracks. The model learnt from them and tagged the other half,
which it had never heard. The music is generated, so what is true of each track is known.</p>
<ul class="facts">{shown_facts}</ul>
</header>
<main>
<h2>How well it knows each tag</h2>
<p class="soft">The AUC of the tag among the tracks that nobody tagged, against the truth:
0.5 is chance, 1 is perfect. Beside each tag the number of tracks that it was learnt from.</p>
{_scores(scores)}
<h2>Search: <code>{escape(query)}</code></h2>
{f'<ol class="hits">{found}</ol>' if hits else "<p>Nothing was found.</p>"}
<h2>Tracks that nobody tagged</h2>
<div class="finder"><label for="tag">Order by a tag</label>
<input id="tag" list="known" placeholder="guitar, calm, …" autocomplete="off">
<datalist id="known">{known}</datalist>
<span id="found" class="soft" role="status"></span></div>
<p class="soft">The likeliest tags of each track; <span class="yes">✓</span> is true of it.
Click into a picture to hear that place.</p>
<div class="cards">
{"".join(cards)}</div>
<h2>Next, with your own music</h2>
<pre><code>{escape(steps)}</code></pre>
</main>
<script>
{_resource("page.js")}</script>
</body>
</html>
"""


def _resource(name: str) -> str:
    return files("harmonium.demo").joinpath(name).read_text(encoding="utf-8")


def _scores(scores: Sequence[tuple[str, int, float]]) -> str:
    rows = [
        # a bar from chance to perfection
        f"<li>{_row(tag, 2 * auc - 1, f'{auc:.2f}', f' <small>{examples}</small>')}</li>"
        for tag, examples, auc in scores
    ]
    first, others = (
        f'<ul class="tags">{"".join(part)}</ul>' if part else ""
        for part in (rows[:FIRST_TAGS], rows[FIRST_TAGS:])
    )
    if not others:
        return first
    summary = f"The other {len(rows) - FIRST_TAGS} tags"
    return f"{first}<details><summary>{summary}</summary>{others}</details>"


def _row(name: str, share: float, number: str, mark: str = "") -> str:
    """A name, a bar and a number."""
    width = 100 * min(max(share, 0.0), 1.0)
    return (
        f'<div class="row"><span>{escape(name)}{mark}</span>'
        f'<span class="track"><i style="width:{width:.0f}%"></i></span>'
        f"<span>{escape(number)}</span></div>"
    )


def render_card(
    title: str,
    artist: str,
    audio: str,
    picture: bytes,
    tags: Sequence[tuple[str, float, bool]],
) -> str:
    """A track with its sound (a path from the page's folder), its picture (a PNG) and its tags."""
    encoded = base64.b64encode(picture).decode()
    probabilities = json.dumps({tag: round(probability, 4) for tag, probability, _ in tags})
    yes = ' <span class="yes" title="true of this track">✓</span>'
    rows = "".join(
        _row(tag, probability, f"{100 * probability:.0f} %", yes if is_true else "")
        for tag, probability, is_true in tags[:TAGS_ON_A_CARD]
    )
    return f"""<article class="card" data-tags="{escape(probabilities)}">
<h3>{escape(title)}</h3>
<p class="soft">{escape(artist)}</p>
<div class="sound"><img alt="Spectrogram" src="data:image/png;base64,{encoded}"><i></i></div>
<audio controls preload="metadata" src="{quote(audio)}"></audio>
{rows}
</article>
"""
