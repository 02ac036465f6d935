"""From the story's results to its page."""

from __future__ import annotations

import numpy as np

from harmonium.audio import decode
from harmonium.collection.answering.search import SearchResult
from harmonium.collection.store.models import StoredModel
from harmonium.demo.page import Card, Guess, Results, TagScore, render_page, spectrogram_png
from harmonium.demo.story import PAGE, PEOPLE, Music, Scored

CARDS = 24
"""Tracks on the page."""

NEXT_STEPS = (
    ("harmonium index ~/Music", "find your music, and listen to it"),
    ("harmonium import --from-files", "learn from the genres in your files (or: tags.csv)"),
    ("harmonium train", "learn from them; then: harmonium tag"),
)
"""(command, what it does)"""


def write_page(
    music: Music,
    model: StoredModel,
    scored: Scored,
    query: str,
    found: SearchResult,
    *,
    n_said: int,
) -> str:
    """Write the page of results beside the music; its path."""
    n_learnt = sum(tag["learnt"] for tag in model.report["tags"])
    results = Results(
        facts={
            "tracks": f"{music.collection.n_tracks:,}",
            f"tags that {PEOPLE} people gave to {music.n_tagged:,} of them": f"{n_said:,}",
            "different tags that it can tell by ear": f"{n_learnt} of {len(model.vocabulary)}",
            "mean AUC of the other half": f"{scored.auc.mean:.3f}",
        },
        scores=tag_scores(model, scored),
        query=query,
        hits=[(hit.track.name, hit.probability) for hit in found.hits],
        cards=[_card(music, scored, int(i)) for i in _chosen(len(scored.rows))],
        next_steps=NEXT_STEPS,
    )
    path = music.path(PAGE)
    path.write_text(render_page(results), encoding="utf-8")
    return str(path)


def tag_scores(model: StoredModel, scored: Scored) -> list[TagScore]:
    """How well each tag is known, by the truth; the most used first."""
    examples = {tag["tag"]: int(tag["examples"]) for tag in model.report["tags"]}
    found = [
        TagScore(tag, examples[tag], float(auc))
        for tag, auc in zip(scored.tags, scored.auc.values, strict=True)
        if np.isfinite(auc)
    ]
    return sorted(found, key=lambda score: (-score.examples, score.tag))


def best_guesses(scored: Scored, i: int) -> list[Guess]:
    """All tags of a track, the likeliest first."""
    order = np.argsort(-scored.probabilities[i], kind="stable")
    return [
        Guess(scored.tags[j], float(scored.probabilities[i, j]), bool(scored.truth[i, j]))
        for j in order
    ]


def _chosen(n: int) -> list[int]:
    """Some of n, all over them."""
    return list(dict.fromkeys(np.linspace(0, n - 1, min(n, CARDS)).round().astype(int).tolist()))


def _card(music: Music, scored: Scored, i: int) -> Card:
    clip = music.collection.clips.row(int(scored.rows[i]), named=True)
    sound = decode(music.path(clip["path"]))
    return Card(
        title=clip["title"],
        artist=clip["artist"],
        audio=clip["path"],
        picture=spectrogram_png(sound.samples),
        guesses=best_guesses(scored, i),
    )
