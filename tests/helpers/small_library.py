"""A small world of tracks whose features are made up, and people who tag them."""

import functools

import numpy as np
import polars as pl

from harmonium import DiscriminativeRBM
from harmonium.data.tag_names import AUDIO_FEATURES
from harmonium.estimators.model_files import from_bytes
from harmonium.library.model.builtin import BUILTIN_FILE, builtin_extractor
from harmonium.library.model.tagger import tag_library
from harmonium.library.store.models import StoredModel
from harmonium.library.store.reports import ModelReport, TagReport
from harmonium.library.store.tracks import Track

EXTRACTOR = "made up"
TAGS = ("rock", "jazz", "hip hop", "mellow", "live")
NOISE = "random"
"""A tag that people give whatever they hear."""


def world(n_tracks=60, n_features=6, seed=0):
    """Features (n, D), and whether each of TAGS fits, (n, 5), which the features tell."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_tracks, n_features)).astype(np.float32)
    scores = np.stack([X[:, 0], -X[:, 0], X[:, 1], X[:, 2], X[:, 3]], axis=1)
    return X, scores > np.array([0.2, 0.2, 0.5, 0.0, 0.7])


def fill(library, n_tracks=60, *, tagged=None, people=("ann",), seed=0, artists=None):
    """Add tracks 1 … n; people tag the first of them as they are, ann the tag NOISE by chance.

    Returns the numbers of the tracks, the features, and the truth.
    """
    X, truth = world(n_tracks, seed=seed)
    files = []
    for i in range(n_tracks):
        artist = None if artists is None else f"Artist {i % artists}"
        about = {"title": f"Song {i}", "artist": artist, "duration": 60.0 + i}
        files.append(Track(f"/music/{i:03}.ogg", f"{seed:02}{i:08}", **about))
    ids = np.array(library.tracks.put(files))
    library.tracks.put_features(ids, X, extractor=EXTRACTOR)
    library.settings.set("extractor", EXTRACTOR)
    if people:
        tag(library, ids[: n_tracks if tagged is None else tagged], truth, people, seed)
    return ids, X, truth


def tag(library, ids, truth, people, seed=0):
    """Let people give tracks their tags; each forgets one in ten."""
    rng = np.random.default_rng(seed + 1)
    rows = [
        (person, int(track), TAGS[j])
        for person in people
        for i, track in enumerate(ids)
        for j in np.flatnonzero(truth[i])
        if len(people) == 1 or rng.random() < 0.9
    ]
    rows += [(people[0], int(track), NOISE) for track in ids if rng.random() < 0.5]
    frame = pl.DataFrame(rows, schema=["person", "track_id", "tag"], orient="row")
    library.opinions.add_triples(frame, change=new_change(library, "import"))


def builtin_sounds(n, seed=0, *, telling=False):
    """Features such as the built-in model takes, (n, 400); the first may tell which of TAGS fit."""
    arrays, _ = from_bytes(BUILTIN_FILE.read_bytes())
    noise = np.random.default_rng(seed).normal(size=(n, 400))
    noise[:, :5] += 3 * world(n)[1] if telling else 0
    deviation = arrays["scaling.scale"] / np.sqrt(400)
    return (arrays["scaling.mean"] + noise * deviation).astype(np.float32)


def fill_for_builtin(library, n, *, telling=False, **options):
    """`fill`, with `builtin_sounds`."""
    ids, *_ = fill(library, n, **options)
    X = builtin_sounds(n, telling=telling)
    library.tracks.put_features(ids, X, extractor=builtin_extractor())
    library.settings.set("extractor", builtin_extractor())
    return X


def new_change(library, command="say"):
    """A change for the tests to begin."""
    return library.changes.begin(command, "tests")


@functools.cache
def quick_model(features=False):
    """A model of `world`, trained at once: no settings are tried, and nothing is held out.

    It has learnt TAGS, and not NOISE; it may know audio features, too.
    """
    X, truth = world()
    chance = np.random.default_rng(3).random(len(X)) < 0.5
    values = [X[:, k % X.shape[1]] > 0 for k in range(len(AUDIO_FEATURES) if features else 0)]
    Y = np.column_stack([truth, chance, *values]).astype(np.float32)
    tags = [*TAGS, NOISE, *AUDIO_FEATURES[: len(values)]]
    model = DiscriminativeRBM(
        n_hidden=10, max_epochs=150, batch_size=10, validation_fraction=0.0, random_state=0
    )
    model.fit(X, pl.DataFrame(Y, schema=tags))
    P = model.predict_proba(X)
    more = {
        "held_out.ids": np.arange(1, len(X) + 1),
        "held_out.probabilities": P.astype(np.float16),
        "rates": Y.mean(axis=0).astype(np.float64),
    }
    reports = tuple(TagReport(tag=tag, learnt=tag != NOISE) for tag in (*TAGS, NOISE))
    aliases = {"danceable": "danceability"} if features else {}
    return StoredModel(
        name="DiscriminativeRBM",
        vocabulary=tags,
        thresholds=np.array([0.4] * len(TAGS) + [np.nan] * (1 + len(values)), np.float32),
        extractor=EXTRACTOR,
        bytes=model.to_bytes(more),
        report=ModelReport(min_count=1, min_share=0.2, aliases=aliases, tags=reports),
    )


def trained(library, *, features=False, **options):
    """`fill`, with the quick model stored and what it says of all tracks; the model, and truth."""
    ids, _, truth = fill(library, **options)
    library.models.add(quick_model(features))
    tag_library(library)
    return library.models.current(), ids, truth
