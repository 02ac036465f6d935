"""The main job, start to end, on the generated collection: what `harmonium demo` does and shows.

Three people tag half of the tracks. The library learns from those and tags the others; the truth
of the collection says how well. Here is what the demo does besides the methods of the library:
make music, give tags, compare with the truth, and write a page of results that plays the sounds.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np
import polars as pl

from harmonium.arrays import Floats, Mask
from harmonium.audio import decode
from harmonium.audio.extractors import DEFAULTS, mel_energies
from harmonium.audio.pictures import spectrum_png
from harmonium.evaluation import auc_per_tag
from harmonium.files import absolute_path
from harmonium.synthetic import SyntheticCollection, make_collection

if TYPE_CHECKING:
    from harmonium.library import Library
    from harmonium.library.imports import ImportReport
    from harmonium.library.snapshot import SearchResult
    from harmonium.library.store.models import StoredModel

PEOPLE = 3
AUDIO, LIBRARY, TAGS, PAGE = "audio", "library.db", "tags.csv", "results.html"
"""What is in the demo's folder: the music, and three files."""
N_CARDS = 24
TAGS_ON_A_CARD = 8
FIRST_TAGS = 16  # tags whose scores are seen at once; the others unfold

NEXT_STEPS = """\
harmonium index ~/Music         # find and analyse your music
harmonium import --from-files   # learn from the genres in your files (or: tags.csv)
harmonium train                 # learn from them; then: harmonium tag"""


@dataclass(frozen=True)
class DemoMusic:
    """The generated tracks, which of them people tag, and where all this is."""

    folder: Path  # absolute, as the library has it
    collection: SyntheticCollection
    is_tagged: Mask  # (n_tracks,)


@dataclass(frozen=True)
class DemoEvaluation:
    """What the model says about the tracks that nobody tagged, beside the truth."""

    clips: list[dict[str, Any]]  # (n,) the tracks: artist, title, path and so on
    tags: list[str]
    probabilities: Floats  # (n, n_tags)
    truth: Mask  # (n, n_tags)
    mean_auc: float
    tag_aucs: list[tuple[str, int, float]]
    """(tag, tracks it was learnt from, AUC) of each tag with an AUC, the most used first."""

    def predicted_tags(self, i: int) -> list[tuple[str, float, bool]]:
        """(tag, probability, whether it is true) of the i-th track, the likeliest first."""
        return [
            (self.tags[j], float(self.probabilities[i, j]), bool(self.truth[i, j]))
            for j in np.argsort(-self.probabilities[i], kind="stable")
        ]


def draw_music(folder: Path | str, n_tracks: int, *, seed: int) -> DemoMusic:
    """Draw tracks of 10 seconds, and the half of them that people tag."""
    collection = make_collection(n_tracks, 1, n_users=PEOPLE, users_per_clip=PEOPLE, seed=seed)
    is_tagged = np.zeros(n_tracks, bool)
    is_tagged[np.random.default_rng(seed).permutation(n_tracks)[: n_tracks // 2]] = True
    return DemoMusic(Path(absolute_path(folder)), collection, is_tagged)


def make_music(
    folder: Path, n_tracks: int, *, seed: int, jobs: int, progress: Callable[[int, int], None]
) -> DemoMusic:
    """Draw the tracks, and write those to the folder that are not there yet."""
    from mutagen import id3
    from mutagen.wave import WAVE

    music = draw_music(folder, n_tracks, seed=seed)
    clips = music.collection.clips
    paths = [music.folder / path for path in clips["path"]]
    if all(path.is_file() and WAVE(path).tags for path in paths):
        return music
    music.collection.write(music.folder, jobs=jobs, progress=progress)
    frames = {"title": id3.TIT2, "artist": id3.TPE1, "album": id3.TALB}
    for path, clip in zip(paths, clips.iter_rows(named=True), strict=True):
        file: Any = WAVE(path)
        if file.tags is None:
            file.add_tags()
        for name, frame in frames.items():  # as music from a shop has them
            file.tags.add(frame(encoding=3, text=[clip[name]]))
        file.save()
    return music


def given_tags(music: DemoMusic) -> pl.DataFrame:
    """What the three say about their half: user, item (the path of the track), tag."""
    tagged = music.collection.clips.filter(pl.Series(music.is_tagged)).select("item", "path")
    given = music.collection.triples.frame().join(tagged, on="item")
    return given.select("user", pl.col("path").alias("item"), "tag")


def import_tags(library: Library, music: DemoMusic) -> ImportReport:
    """Write what the three say to a table, and import it."""
    given_tags(music).write_csv(music.folder / TAGS)
    return library.import_tags(music.folder / TAGS)


def evaluate(library: Library, music: DemoMusic, model: StoredModel) -> DemoEvaluation:
    """Compare what the model says about the other half with the truth."""
    assert model.id is not None
    numbers = {track.path: track.id for track in library.tracks.all()}
    clips = music.collection.clips.filter(pl.Series(~music.is_tagged)).to_dicts()
    ids = [numbers[str(music.folder / clip["path"])] for clip in clips]
    probabilities = library.predictions.probabilities(model.id, ids)
    known, tags = music.collection.tags.to_list(), model.vocabulary
    truth = music.collection.truth[~music.is_tagged][:, [known.index(tag) for tag in tags]]
    auc = auc_per_tag(truth.astype(np.float32), probabilities)
    examples = {tag["tag"]: int(tag["examples"]) for tag in model.report["tags"]}
    aucs = zip(tags, auc.values.tolist(), strict=True)
    scores = [(tag, examples[tag], value) for tag, value in aucs if np.isfinite(value)]
    scores.sort(key=lambda one: (-one[1], one[0]))
    return DemoEvaluation(clips, tags, probabilities, truth, auc.mean, scores)


def choose_query(evaluation: DemoEvaluation, model: StoredModel) -> str:
    """A question that the model can answer: its best tag, without one that goes with it."""
    # It is chosen by what training found, without a look at the truth.
    known = [tag for tag in model.report["tags"] if tag["auc"] is not None and tag["learnt"]]
    known.sort(key=lambda tag: -tag["auc"])
    best, *others = [tag["tag"] for tag in known] or model.vocabulary[:1]
    if not others:
        return f'"{best}"'
    p = dict(zip(evaluation.tags, evaluation.probabilities.T, strict=True))
    likely = p[best] >= np.median(p[best])
    return f'"{best}" AND NOT "{max(others, key=lambda tag: float(p[tag][likely].mean()))}"'


# The page


def write_page(
    music: DemoMusic, model: StoredModel, evaluation: DemoEvaluation, query: str, hits: SearchResult
) -> Path:
    """Write the page beside the music; its path."""
    n_learnt = sum(tag["learnt"] for tag in model.report["tags"])
    path, n_tagged, n_given = music.folder / PAGE, music.is_tagged.sum(), len(given_tags(music))
    cards = []
    for i in chosen_rows(len(evaluation.clips)):
        clip = evaluation.clips[i]
        sound = decode(music.folder / clip["path"])
        picture = spectrum_png(mel_energies(sound.samples, sound.rate, DEFAULTS))
        cards.append(render_card(clip, picture, evaluation.predicted_tags(i)))
    page = render_page(
        facts={
            "tracks": f"{music.collection.n_tracks:,}",
            f"tags that {PEOPLE} people gave to {n_tagged:,} of them": f"{n_given:,}",
            "different tags that it recognises by ear": f"{n_learnt} of {len(model.vocabulary)}",
            "mean AUC of the other half": f"{evaluation.mean_auc:.3f}",
        },
        scores=evaluation.tag_aucs,
        query=query,
        hits=[(hit.track.name, hit.probability or 0.0) for hit in hits],
        cards=cards,
    )
    path.write_text(page, encoding="utf-8")
    return path


def chosen_rows(n: int) -> list[int]:
    """At most `N_CARDS` of n rows, evenly spaced."""
    return np.linspace(0, n - 1, min(n, N_CARDS)).round().astype(int).tolist()


def render_page(
    *,
    facts: Mapping[str, str],
    scores: Sequence[tuple[str, int, float]],
    query: str,
    hits: Sequence[tuple[str, float]],
    cards: Sequence[str],
) -> str:
    """The whole page: scores are (tag, examples, AUC), hits (track, probability)."""
    shown_facts = "".join(
        f"<li><b>{escape(number)}</b> <span>{escape(what)}</span></li>"
        for what, number in facts.items()
    )
    found = "".join(
        f'<li>{escape(track)} <span class="soft">{100 * probability:.0f} %</span></li>'
        for track, probability in hits
    )
    known = "".join(f'<option value="{escape(tag)}">' for tag, _, _ in scores)
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
<h1>Harmonium on a generated collection</h1>
<p>Three people tagged half of the tracks. The model learnt from them and tagged the other half,
held out from training. The music is generated, so the truth about each track is known.</p>
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
<pre><code>{escape(NEXT_STEPS)}</code></pre>
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
    first, others = ("".join(part) for part in (rows[:FIRST_TAGS], rows[FIRST_TAGS:]))
    summary = f"<summary>The other {len(rows) - FIRST_TAGS} tags</summary>"
    more = f'<details>{summary}<ul class="tags">{others}</ul></details>' if others else ""
    return f'<ul class="tags">{first}</ul>{more}'


def _row(name: str, share: float, number: str, mark: str = "") -> str:
    """A name, a bar and a number."""
    width = 100 * min(max(share, 0.0), 1.0)
    return (
        f'<div class="row"><span>{escape(name)}{mark}</span>'
        f'<span class="track"><i style="width:{width:.0f}%"></i></span>'
        f"<span>{escape(number)}</span></div>"
    )


def render_card(
    clip: Mapping[str, str], picture: bytes, tags: Sequence[tuple[str, float, bool]]
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
<h3>{escape(clip["title"])}</h3>
<p class="soft">{escape(clip["artist"])}</p>
<div class="sound"><img alt="Spectrogram" src="data:image/png;base64,{encoded}"><i></i></div>
<audio controls preload="metadata" src="{quote(clip["path"])}"></audio>
{rows}
</article>
"""
