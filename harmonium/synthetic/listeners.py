"""Who tags the clips, and what they say.

A listener hears what stands out, says it in the words that come to mind, stops after a few of them,
and now and then names something similar instead. Most of what is true goes unsaid.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from harmonium.arrays import Doubles, Places, Rng
from harmonium.synthetic.concepts import CONCEPTS, KINDS, TAGS, salience
from harmonium.synthetic.music import ASSIGNMENT, TAGGING, USER, SyntheticClip, generator

TAG_NAMES = tuple(TAGS)
_CONCEPT_NAMES = tuple(CONCEPTS)
# (n_tags,): each tag's concept, its kind and its familiarity.
CONCEPT_OF_TAG = np.array([_CONCEPT_NAMES.index(name) for name in TAGS.values()])
_KIND_OF_TAG = np.array([KINDS.index(CONCEPTS[name].kind) for name in TAGS.values()])
_FAMILIARITY = np.array([CONCEPTS[name].words[tag] for tag, name in TAGS.items()])

_KIND_WEIGHTS = np.array([1.4, 1.1, 0.7, 0.8, 0.45, 0.3])  # how readily people mention each kind
_SAY_TWICE = 0.3  # the chance that a second word for the same thing is also said
_HABIT = 0.3  # the share of mistakes that are a listener's habitual words, not confusions
_SHARPNESS = 2.0  # how much more often salient things are named: the power of the salience


@dataclass(frozen=True)
class Listener:
    """One user."""

    name: str  # the user's name in the triples
    readiness: Doubles  # (n_tags,) how readily each tag comes to mind; 0 for unknown words
    talkativeness: float  # mean number of tags for a clip beyond the first
    carelessness: float  # the chance that a tag is a mistake
    activity: float  # how many clips the user tags, relative to others


@lru_cache(maxsize=1024)
def make_listener(seed: int, number: int) -> Listener:
    """The listener with this number in the collection with this seed."""
    rng = generator(seed, USER, number)
    interests = _KIND_WEIGHTS * rng.gamma(0.7, 1 / 0.7, len(KINDS))
    # A gamma distribution with a small shape: one of a concept's synonyms becomes the favourite.
    taste = rng.gamma(0.35, 1 / 0.35, len(TAG_NAMES))
    is_known = rng.random(len(TAG_NAMES)) < 0.35 + 0.65 * _FAMILIARITY
    readiness = is_known * interests[_KIND_OF_TAG] * _FAMILIARITY * (0.03 + taste)
    is_careless = rng.random() < 0.12
    return Listener(
        name=f"user{number:04d}",
        readiness=readiness,
        talkativeness=float(rng.gamma(4.0, 1.22)),
        carelessness=float(rng.uniform(0.2, 0.4) if is_careless else rng.beta(2.0, 22.0)),
        activity=float(np.exp(rng.normal(0, 1.0))),
    )


def listeners_of(seed: int, clip_index: int, n_users: int, users_per_clip: int) -> Places:
    """The users who tag a clip: (users_per_clip,) distinct numbers.

    One is chosen in turn, so that nobody tags far fewer clips than the rest; the others are drawn
    in proportion to their activity.
    """
    rota, activity = _audience(seed, n_users)
    first = rota[clip_index % n_users]
    # The largest of log-weight + Gumbel noise is a draw in proportion to the weights.
    keys = np.log(activity) + generator(seed, ASSIGNMENT, clip_index).gumbel(size=n_users)
    keys[first] = np.inf
    return np.argsort(-keys, kind="stable")[:users_per_clip]


@lru_cache(maxsize=4)
def _audience(seed: int, n_users: int) -> tuple[Places, Doubles]:
    """The users in the order of their turns, and how active each is."""
    activity = np.array([make_listener(seed, number).activity for number in range(n_users)])
    return generator(seed, ASSIGNMENT).permutation(n_users), activity


def tags_said(seed: int, clip: SyntheticClip, user: int) -> list[int]:
    """The tags that a user gives to a clip, as indices into ``TAG_NAMES``; at least one."""
    listener = make_listener(seed, user)
    heard = salience(clip)
    rng = generator(seed, TAGGING, clip.track.number, clip.number, user)
    n_wanted = 1 + int(rng.poisson(listener.talkativeness))
    # what catches everybody's ear in this clip, beyond what the music explains
    ears = generator(seed, TAGGING, clip.track.number, clip.number)
    attention = np.exp(ears.normal(0, 0.6, len(CONCEPTS)))
    weight = listener.readiness * (heard * attention)[CONCEPT_OF_TAG] ** _SHARPNESS
    keys = np.where(weight > 0, np.log(np.maximum(weight, 1e-300)), -np.inf)
    keys += rng.gumbel(size=len(keys))

    said: list[int] = []
    for tag in np.argsort(-keys, kind="stable"):
        if len(said) == n_wanted or weight[tag] == 0:
            break
        is_repeated = any(CONCEPT_OF_TAG[tag] == CONCEPT_OF_TAG[other] for other in said)
        if not is_repeated or rng.random() < _SAY_TWICE:
            said.append(int(tag))
    if not said:
        said.append(int(np.argmax(heard[CONCEPT_OF_TAG] * _FAMILIARITY)))
    said = [_perhaps_mistaken(rng, listener, heard, tag) for tag in said]
    return list(dict.fromkeys(said))


def _perhaps_mistaken(rng: Rng, listener: Listener, heard: Doubles, tag: int) -> int:
    """The tag, or sometimes a wrong one: something easily confused with it, or a habit."""
    slip, habit, choice = rng.random(3)
    if slip >= listener.carelessness:
        return tag
    is_wrong = heard[CONCEPT_OF_TAG] == 0
    if habit >= _HABIT:
        concept = CONCEPTS[TAGS[TAG_NAMES[tag]]]
        similar = [_CONCEPT_NAMES.index(name) for name in concept.mistaken_for]
        is_wrong &= np.isin(CONCEPT_OF_TAG, similar)
    if not is_wrong.any():
        return tag
    weight = np.cumsum(is_wrong * (listener.readiness + 0.01))
    return int(np.searchsorted(weight, choice * weight[-1], "right"))
