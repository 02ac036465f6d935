"""Who tags how: vocabularies, favourite words, habits and mistakes.

A listener hears what stands out, says it in the words that come to mind, stops after a few of them,
and now and then names something similar instead. Most of what is true goes unsaid.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from harmonium.synthetic.concepts import CONCEPTS, KINDS, TAGS
from harmonium.synthetic.music import (
    ASSIGNMENT,
    TAGGING,
    USER,
    SyntheticClip,
    generator,
)
from harmonium.synthetic.truth import salience

TAG_NAMES = tuple(TAGS)
_CONCEPT_NAMES = tuple(CONCEPTS)
# (n_tags,): each tag's concept, its kind and its familiarity.
_CONCEPT_OF = np.array([_CONCEPT_NAMES.index(name) for name in TAGS.values()])
_KIND_OF = np.array([KINDS.index(CONCEPTS[name].kind) for name in TAGS.values()])
_FAMILIARITY = np.array([CONCEPTS[name].words[tag] for tag, name in TAGS.items()])

# How readily people speak of each of KINDS.
_KIND_WEIGHTS = np.array([1.4, 1.1, 0.7, 0.8, 0.45, 0.3])

# The chance that a second word for the same thing is said, too.
_SAY_TWICE = 0.3
# The share of mistakes that are words a listener uses anyway; the others are confusions.
_HABIT = 0.3
# How much more what stands out is named: the power of the salience.
_SHARPNESS = 2.0


@dataclass(frozen=True)
class Listener:
    """One user.

    Attributes
    ----------
    name : what the user is called in the triples
    readiness : (n_tags,), how readily each tag comes to mind; 0 for words not in the vocabulary
    talkativeness : mean number of tags for a clip beyond the first
    carelessness : the chance that a tag is a mistake
    activity : how many clips the user tags, relative to others
    """

    name: str
    readiness: NDArray[np.float64]
    talkativeness: float
    carelessness: float
    activity: float


@lru_cache(maxsize=1024)
def make_listener(seed: int, number: int) -> Listener:
    """The listener with this number in the collection with this seed."""
    rng = generator(seed, USER, number)
    interests = _KIND_WEIGHTS * rng.gamma(0.7, 1 / 0.7, len(KINDS))
    # A gamma distribution of small shape: of a concept's synonyms, one becomes the favourite.
    taste = rng.gamma(0.35, 1 / 0.35, len(TAG_NAMES))
    known = rng.random(len(TAG_NAMES)) < 0.35 + 0.65 * _FAMILIARITY
    readiness = known * interests[_KIND_OF] * _FAMILIARITY * (0.03 + taste)
    careless = rng.random() < 0.12
    return Listener(
        name=f"user{number:04d}",
        readiness=readiness,
        talkativeness=float(rng.gamma(4.0, 1.22)),
        carelessness=float(rng.uniform(0.2, 0.4) if careless else rng.beta(2.0, 22.0)),
        activity=float(np.exp(rng.normal(0, 1.0))),
    )


def relevant_tags(clip: SyntheticClip) -> NDArray[np.bool_]:
    """Which tags hold for a clip, synonyms included: (n_tags,) bool."""
    return _salience_vector(clip)[_CONCEPT_OF] > 0


def _salience_vector(clip: SyntheticClip) -> NDArray[np.float64]:
    found = salience(clip)
    return np.array([found.get(name, 0.0) for name in _CONCEPT_NAMES])


def listeners_of(seed: int, clip_index: int, n_users: int, users_per_clip: int) -> NDArray[np.intp]:
    """The users who tag a clip: (users_per_clip,) distinct numbers.

    One is chosen by rota, so that nobody tags far fewer clips than the rest; the others are drawn
    in proportion to their activity.
    """
    rota, activity = _audience(seed, n_users)
    first = rota[clip_index % n_users]
    # The largest of log-weight + Gumbel noise is a draw in proportion to the weights.
    keys = np.log(activity) + generator(seed, ASSIGNMENT, clip_index).gumbel(size=n_users)
    keys[first] = np.inf
    return np.argsort(-keys, kind="stable")[:users_per_clip]


@lru_cache(maxsize=4)
def _audience(seed: int, n_users: int) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    activity = np.array([make_listener(seed, number).activity for number in range(n_users)])
    return generator(seed, ASSIGNMENT).permutation(n_users), activity


def tags_said(seed: int, clip: SyntheticClip, user: int) -> list[int]:
    """The tags that a user gives to a clip, as indices into ``TAG_NAMES``; at least one."""
    listener = make_listener(seed, user)
    heard = _salience_vector(clip)
    rng = generator(seed, TAGGING, clip.track.number, clip.number, user)
    wanted = 1 + int(rng.poisson(listener.talkativeness))
    weight = listener.readiness * (heard * _attention(seed, clip))[_CONCEPT_OF] ** _SHARPNESS
    keys = np.where(weight > 0, np.log(np.maximum(weight, 1e-300)), -np.inf)
    keys += rng.gumbel(size=len(keys))
    said: list[int] = []
    for tag in np.argsort(-keys, kind="stable"):
        if len(said) == wanted or weight[tag] == 0:
            break
        again = any(_CONCEPT_OF[tag] == _CONCEPT_OF[other] for other in said)
        if not again or rng.random() < _SAY_TWICE:
            said.append(int(tag))
    said = said or [int(np.argmax(heard[_CONCEPT_OF] * _FAMILIARITY))]
    return list(dict.fromkeys(_perhaps_mistaken(rng, listener, heard, tag) for tag in said))


def _attention(seed: int, clip: SyntheticClip) -> NDArray[np.float64]:
    """What catches the ear in this clip, beyond what the music explains: the same for everybody."""
    rng = generator(seed, TAGGING, clip.track.number, clip.number)
    return np.exp(rng.normal(0, 0.6, len(_CONCEPT_NAMES)))


def _perhaps_mistaken(
    rng: np.random.Generator, listener: Listener, heard: NDArray[np.float64], tag: int
) -> int:
    """The tag, or at times a wrong one: something easily taken for it, or a mere habit."""
    slip, habit, choice = rng.random(3)
    if slip >= listener.carelessness:
        return tag
    wrong = heard[_CONCEPT_OF] == 0
    if habit >= _HABIT:
        similar = CONCEPTS[TAGS[TAG_NAMES[tag]]].mistaken_for
        wrong &= np.isin(_CONCEPT_OF, [_CONCEPT_NAMES.index(name) for name in similar])
    if not wrong.any():
        return tag
    weight = np.cumsum(wrong * (listener.readiness + 0.01))
    return int(np.searchsorted(weight, choice * weight[-1], "right"))
