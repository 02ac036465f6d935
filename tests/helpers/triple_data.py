"""Users who tag clips by known rules: what a smoother should find out is known here."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harmonium.data import Triples

# What holds of a clip comes from its two traits; the words of one trait hold together.
WORDS = {
    "loud": ("loud", "heavy", "guitar", "rock"),
    "calm": ("calm", "mellow", "piano", "classical"),
    "old": ("old", "60s"),
    "new": ("new", "modern"),
}
TAGS = tuple(word for words in WORDS.values() for word in words)


class World(NamedTuple):
    """Triples, the track of each item, and which tags are true of which item."""

    triples: Triples
    tracks: dict[str, str]
    truth: NDArray[np.bool_]  # (n_items, n_tags), in the order of the triples' items and tags


def make_world(seed=0, n_tracks=64, clips_per_track=2, n_users=25) -> World:
    """Each clip is loud or calm, and old or new; four users name some of what holds.

    User k has a pet word, tag k modulo the number of tags, and says it more readily.
    """
    rng = np.random.default_rng(seed)
    said, tracks, holds = [], {}, {}
    for clip in range(n_tracks * clips_per_track):
        if clip % clips_per_track == 0:
            traits = (rng.choice(["loud", "calm"]), rng.choice(["old", "new"]))
        name = f"clip{clip:03d}"
        tracks[name] = f"track{clip // clips_per_track:03d}"
        holds[name] = {word for trait in traits for word in WORDS[trait]}
        for user in rng.choice(n_users, 4, replace=False):
            chance = [0.45 if tag in holds[name] else 0.03 for tag in TAGS]
            pet = user % len(TAGS)
            chance[pet] = 0.95 if TAGS[pet] in holds[name] else 0.3
            words = {TAGS[j] for j in np.flatnonzero(rng.random(len(TAGS)) < chance)}
            words |= set() if words else {sorted(holds[name])[0]}
            said += [(f"user{user:02d}", name, word) for word in sorted(words)]
    triples = Triples.from_columns(*zip(*said, strict=True))
    truth = np.array([[tag in holds[item] for tag in triples.tags] for item in triples.items])
    return World(triples, tracks, truth)
