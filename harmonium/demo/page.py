"""The page of results: one HTML file that plays the sounds beside it."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import NamedTuple
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from harmonium.audio.paper_features import DEFAULTS
from harmonium.audio.spectrum import decibels, mel_spectrogram, raise_to_floor

SHOWN = 8
"""Tags on the card of a track."""
PICTURE_WIDTH = 420
"""Pixels of a spectrogram, about a frame each."""
FIRST_TAGS = 16
"""Tags whose scores are seen at once; the others unfold."""


class Guess(NamedTuple):
    """What the model says of one tag of a track, and what is so."""

    tag: str
    probability: float
    true: bool


@dataclass(frozen=True)
class Card:
    """A track that nobody tagged."""

    title: str
    artist: str
    audio: str
    """Path of the sound, from the page's folder."""
    picture: bytes
    """A PNG file."""
    guesses: Sequence[Guess]
    """Of every tag, the likeliest first."""


@dataclass(frozen=True)
class TagScore:
    """How well the model knows a tag."""

    tag: str
    examples: int
    auc: float


@dataclass(frozen=True)
class Results:
    """All that the page shows."""

    facts: Mapping[str, str]
    """What it is → the number."""
    scores: Sequence[TagScore]
    query: str
    hits: Sequence[tuple[str, float]]
    """(track, probability) of what the query found."""
    cards: Sequence[Card]
    next_steps: Sequence[tuple[str, str]]
    """(command, what it does)"""


def spectrogram_png(samples: NDArray[np.float32]) -> bytes:
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


def render_page(results: Results) -> str:
    """The whole page, as HTML."""
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
{_facts(results.facts)}
</header>
<main>
<h2>How well it knows each tag</h2>
<p class="soft">The AUC of the tag among the tracks that nobody tagged, against the truth:
0.5 is chance, 1 is perfect. Beside each tag the number of tracks that it was learnt from.</p>
{_scores(results.scores)}
<h2>Search: <code>{escape(results.query)}</code></h2>
{_hits(results.hits)}
<h2>Tracks that nobody tagged</h2>
<div class="finder"><label for="tag">Order by a tag</label>
<input id="tag" list="known" placeholder="guitar, calm, …" autocomplete="off">
<datalist id="known">{_known(results.scores)}</datalist>
<span id="found" class="soft" role="status"></span></div>
<p class="soft">The likeliest tags of each track; <span class="yes">✓</span> is true of it.
Click into a picture to hear that place.</p>
<div class="cards">
{"".join(map(_card, results.cards))}</div>
<h2>Next, with your own music</h2>
{_steps(results.next_steps)}
</main>
<script>
{_resource("page.js")}</script>
</body>
</html>
"""


def _resource(name: str) -> str:
    return files("harmonium.demo").joinpath(name).read_text(encoding="utf-8")


def _facts(facts: Mapping[str, str]) -> str:
    items = "".join(
        f"<li><b>{escape(number)}</b> <span>{escape(what)}</span></li>"
        for what, number in facts.items()
    )
    return f'<ul class="facts">{items}</ul>'


def _scores(scores: Sequence[TagScore]) -> str:
    lists = [_score_list(part) for part in (scores[:FIRST_TAGS], scores[FIRST_TAGS:]) if part]
    if len(lists) < 2:
        return "".join(lists)
    others = f"The other {len(scores) - FIRST_TAGS} tags"
    return f"{lists[0]}<details><summary>{others}</summary>{lists[1]}</details>"


def _score_list(scores: Sequence[TagScore]) -> str:
    rows = "".join(
        "<li>"
        + _row(
            score.tag,
            2 * score.auc - 1,  # a bar from chance to perfection
            f"{score.auc:.2f}",
            f" <small>{score.examples}</small>",
        )
        + "</li>"
        for score in scores
    )
    return f'<ul class="tags">{rows}</ul>'


def _row(name: str, share: float, number: str, mark: str = "") -> str:
    """A name, a bar and a number."""
    width = 100 * min(max(share, 0.0), 1.0)
    return (
        f'<div class="row"><span>{escape(name)}{mark}</span>'
        f'<span class="track"><i style="width:{width:.0f}%"></i></span>'
        f"<span>{escape(number)}</span></div>"
    )


def _hits(hits: Sequence[tuple[str, float]]) -> str:
    if not hits:
        return "<p>Nothing was found.</p>"
    items = "".join(
        f'<li>{escape(track)} <span class="soft">{100 * probability:.0f} %</span></li>'
        for track, probability in hits
    )
    return f'<ol class="hits">{items}</ol>'


def _known(scores: Sequence[TagScore]) -> str:
    return "".join(f'<option value="{escape(score.tag)}">' for score in scores)


def _card(card: Card) -> str:
    picture = base64.b64encode(card.picture).decode()
    tags = json.dumps({guess.tag: round(guess.probability, 4) for guess in card.guesses})
    rows = "".join(
        _row(
            guess.tag,
            guess.probability,
            f"{100 * guess.probability:.0f} %",
            ' <span class="yes" title="true of this track">✓</span>' if guess.true else "",
        )
        for guess in card.guesses[:SHOWN]
    )
    return f"""<article class="card" data-tags="{escape(tags)}">
<h3>{escape(card.title)}</h3>
<p class="soft">{escape(card.artist)}</p>
<div class="sound"><img alt="Spectrogram" src="data:image/png;base64,{picture}"><i></i></div>
<audio controls preload="metadata" src="{quote(card.audio)}"></audio>
{rows}
</article>
"""


def _steps(steps: Sequence[tuple[str, str]]) -> str:
    width = max((len(command) for command, _ in steps), default=0)
    lines = "\n".join(f"{command:<{width}}   # {why}" for command, why in steps)
    return f"<pre><code>{escape(lines)}</code></pre>"
