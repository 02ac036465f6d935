"""Tags from a track's features and observed tags: one `Tagger` with several layers.

1. The library's own model: a file of ``DiscriminativeRBM`` or ``LogisticTagger`` (safetensors)
   with a few more arrays: held-out probabilities of the tracks learnt from, and which tags people
   give together.
2. The built-in model, whose file the own model contains. The log-odds of a tag that both have are
   the mean of the two, with the weights that training chose. If training found it better, the
   built-in model's log-odds are also inputs of the own model.
3. What tags gained from answers since the model was trained (`model.gains`).
4. What people said about a track: its observed tags, which all layers use.

The built-in model also recognises what does not sound like music: silence, noise and speech. Such a
track gets no genre and no built-in tags, unless people gave it a tag.

All of it is NumPy: starting JAX would take longer than tagging some files.
"""

from functools import cached_property
from typing import Any

import numpy as np

from harmonium import logistic, stopping
from harmonium.arrays import Doubles, Floats, Ids, Mask, Places
from harmonium.data.tag_names import normalise_tag
from harmonium.errors import DataError, LibraryError
from harmonium.library.library import Library, Progress
from harmonium.library.model.builtin import (
    BUILTIN,
    PART,
    PLACES,
    model_of_file,
    musical_outputs,
)
from harmonium.library.model.gains import PAGE, Gains, refined_columns
from harmonium.library.model.model_file import ModelFile
from harmonium.library.model.odds import log_odds, mix
from harmonium.library.model.tag_table import unknown_tag
from harmonium.library.model.words import words
from harmonium.library.sound import SoundVectors, current_space, update_sound_vectors
from harmonium.library.store.models import StoredModel
from harmonium.library.store.reports import ModelReport
from harmonium.library.store.schema import EXTRACTOR

USUAL_RATE = 0.1  # of tags whose rate is unknown


def current_model(library: Library) -> StoredModel:
    """The model in use, or a LibraryError that says how to get one."""
    model = library.models.current()
    if model is None:
        raise no_model()
    return model


def no_model() -> LibraryError:
    """The error for a library without a model."""
    return LibraryError("No model yet; run `harmonium train`.")


class Tagger:
    """A stored model, ready to predict; with a library, with what its tags learnt there."""

    def __init__(self, stored: StoredModel, library: Library | None = None) -> None:
        self.id = stored.id
        self.extractor = stored.extractor
        self._renamed = {} if library is None else library.tags.renamed()
        self._gains = self._space = None
        if library is not None and stored.refinements:
            space = current_space(library)
            if space is not None and library.settings.get(EXTRACTOR) == stored.extractor:
                self._space = space
                self._gains = Gains.of(stored.refinements, SoundVectors.of(library))
        model = stored.as_trained() if self._gains is None else stored
        self.outputs = model.outputs
        self.tags = tuple(output.name for output in self.outputs)
        self.features = model.features
        self.n_own = sum(output.source == "tracks" for output in stored.as_trained().outputs)
        """How many outputs, the first ones, were learnt from the library's tracks."""
        self._n_trained = len(stored.vocabulary)
        self._own = ModelFile(stored.bytes)
        self.arrays = self._own.arrays  # the model file's
        self._builtin: ModelFile | None = None
        self._known: ModelReport | None = None  # the built-in model's report
        if PART in self.arrays:
            known = model_of_file(self.arrays[PART].tobytes(), stored.extractor)
            self._builtin = ModelFile(known.bytes)
            self._known = known.report
            self._at = self.arrays[PLACES]
        elif BUILTIN in self._own.about:
            self._known = stored.report
            self._at = np.arange(self._n_trained)
        self.n_features = (self._builtin or self._own).n_features

    @cached_property
    def _musical(self) -> Mask:
        return musical_outputs(self.outputs, self.features)

    def is_music(self, p: Floats) -> bool:
        """Whether a track's probabilities (n_tags,) say music; otherwise music's tags are 0."""
        return not self._musical.any() or bool(np.median(p[self._musical]) > 0)

    @property
    def held_out(self) -> tuple[Ids, Floats] | None:
        """Numbers of the training tracks (n,), and their held-out probabilities (n, n_tags).

        None if the model was stored without them.
        """
        if "held_out.ids" not in self.arrays or "held_out.probabilities" not in self.arrays:
            return None
        probabilities = self.arrays["held_out.probabilities"].astype(np.float32)
        return self.arrays["held_out.ids"], probabilities

    @cached_property
    def rates(self) -> Doubles:
        """(n_tags,) the share of training tracks that have the tag."""
        rates = np.full(len(self.tags), USUAL_RATE)
        if self._known is not None:
            rates[self._at] = [
                USUAL_RATE if tag.rate is None else tag.rate for tag in self._known.tags
            ]
        own = self.arrays.get("rates", rates[:0])
        rates[: len(own)] = own
        return rates

    def information_gain(self, p: Floats) -> Doubles:
        """p log(p / r) + (1 - p) log((1 - p) / (1 - r)) for probabilities (n_tags,).

        It is small for a tag that most tracks have, whose rate r is high, and below 0 if a tag is
        less likely than usual. Lists of tags are in this order.
        """
        new = np.full(len(p) - len(self.rates), USUAL_RATE)  # words learnt from other features
        r = np.clip(np.append(self.rates, new), 1e-3, 1 - 1e-3)
        p = np.clip(p.astype(np.float64), 1e-6, 1 - 1e-6)
        return np.sign(p - r) * (p * np.log(p / r) + (1 - p) * np.log((1 - p) / (1 - r)))

    @cached_property
    def aliases(self) -> dict[str, str]:
        """Other words → the built-in tags that they mean."""
        words = dict(self._renamed)
        for word, tag in ({} if self._known is None else self._known.aliases).items():
            words.setdefault(word, self._renamed.get(tag, tag))
        return {word: tag for word, tag in words.items() if word not in self.tags}

    def place(self, tag: str) -> int:
        """The place of a tag, in any spelling, in the vocabulary; else a DataError."""
        name = normalise_tag(tag)
        name = name if name in self.tags else self.aliases.get(name, name)
        if name not in self.tags:
            problem = f"The model has no tag {name!r}; it knows {len(self.tags):,} tags."
            raise unknown_tag(name, self.tags, problem)
        return self.tags.index(name)

    def probabilities(
        self,
        X: Floats,
        observed: Floats | None = None,
        *,
        music_only: bool = True,
        lowest: bool = False,
    ) -> Floats:
        """p(y_j = 1 | x, the observed tags), (n, n_tags), from features (n, n_features).

        ``observed`` is (n, n_tags): 1 has the tag, 0 does not, NaN to be inferred. With
        ``music_only``, music's tags are 0 if it does not sound like music. With ``lowest``, a tag
        that learnt from answers has the lower of its probabilities before and after.
        """
        X = np.asarray(X, np.float32)
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise DataError(
                f"'X' must have {self.n_features} features, got the shape "
                f"{X.shape}. The model was trained on features of {self.extractor!r}."
            )
        if observed is None:
            observed = np.full((len(X), len(self.tags)), np.nan, np.float32)
        if self._gains is None or self._space is None:
            P = self._as_trained(X, observed)
        else:
            P = np.full(observed.shape, np.nan, np.float32)
            P[:, : self._n_trained] = self._as_trained(X, observed[:, : self._n_trained])
            refined = self._gains.added(P[:, self._gains.places], self._space.vectors(X))
            places = [refinement.place for refinement in self._gains.refinements]
            P[:, places] = np.fmin(P[:, places], refined) if lowest else refined
            P = np.where(np.isnan(observed), P, observed)
        if music_only:
            not_music = ~(self._builtin or self._own).is_music(X) & ~(observed == 1).any(axis=1)
            P[np.ix_(not_music, self._musical)] = 0
        return P

    def _as_trained(self, X: Floats, observed: Floats) -> Floats:
        if self._builtin is None:
            return self._own.probabilities(X, observed)
        others = self._builtin.probabilities(X, observed[:, self._at])
        n = self.n_own
        more = self._own.n_features > X.shape[1]
        inputs = np.concatenate([X, log_odds(others)], axis=1) if more else X
        P = np.empty(observed.shape, np.float32)
        P[:, self._at] = others
        own = self._own.probabilities(inputs, observed[:, :n])
        shared = np.flatnonzero(self._at < n)
        at = self._at[shared]
        weight = self.arrays["own_weight"].astype(np.float32)
        mixed = mix(own[:, at], others[:, shared], weight[at])
        P[:, :n] = own
        P[:, at] = np.where(np.isnan(observed[:, at]), mixed, observed[:, at])
        return P

    def without_sound(self, observed: Floats) -> Floats:
        """The probabilities for a track of which only some tags are known, (n_tags,); NaN unknown.

        By how the library's people combine tags, if the model learnt from several people; else by
        `Words`. If that cannot tell, log-odds change as the model's do for average sound.
        """
        P = self._together(observed)
        known = words()
        if known is None:
            return P
        rows = {self.aliases.get(tag, tag): row for row, tag in enumerate(known.tags)}
        first = self.n_own if "together.U" in self.arrays else 0
        places = [j for j, tag in enumerate(self.tags) if j >= first and tag in rows]
        rows_there = [rows[self.tags[j]] for j in places]
        y = np.full((1, len(known.tags)), np.nan)
        y[0, rows_there] = observed[places]
        others = observed.copy()
        others[places] = np.nan
        usual = log_odds(self._together(np.full_like(observed, np.nan)))
        all_add = log_odds(P) - usual
        others_add = log_odds(self._together(others)) - usual
        z = known(y)[0, rows_there]
        alone = logistic.log_odds(known.rates)[rows_there]
        z = np.where(np.isnan(z), alone + all_add[places], z + others_add[places])
        P[places] = np.where(np.isnan(observed[places]), logistic.sigmoid(z), observed[places])
        P[list(self.features.values())] = 0  # these say something about tags, but are not tags
        return P

    def _together(self, observed: Floats) -> Floats:
        """The same without `Words`; with one person, own tags as for a track of average sound."""
        P = np.zeros(len(self.tags), np.float32)
        known = observed[: self._n_trained]
        n = self._n_trained if self._builtin is None else self.n_own
        if self._builtin is not None:
            P[self._at] = self._builtin.together(known[self._at])
        own = self._own.together(known[:n])
        if own is None:
            model = self._builtin or self._own
            typical: Any = model.scaling.inverse(np.zeros((1, model.n_features), np.float32))
            own = self._as_trained(typical, known[None])[0, :n]
        P[:n] = own
        return P

    def weights(self) -> list[tuple[Places, Doubles, Doubles]]:
        """Places of tags (n,), U (n_hidden, n) and c (n_hidden,) of each RBM in the model."""
        parts = [(self._own, np.arange(self._own.n_tags))]
        if self._builtin is not None:
            parts.append((self._builtin, np.asarray(self._at, np.intp)[: self._builtin.n_tags]))
        weights = []
        for file, places in parts:
            if "params.U" in file.arrays:
                U = file.arrays["params.U"].astype(np.float64)
                c = file.arrays["params.c"].astype(np.float64)
                weights.append((places, U.reshape(-1, U.shape[-1]), c.ravel()))
        return weights


@stopping.stoppable
def tag_library(
    library: Library,
    model: StoredModel | None = None,
    *,
    again: bool = False,
    progress: Progress | None = None,
) -> int:
    """Store the model's predictions for all present tracks not tagged yet; returns how many.

    Each block of tracks is stored when done, so that an interrupted run continues from there.
    With ``again``, tracks that it has tagged already are tagged again.
    """
    model = model or current_model(library)
    tagger = Tagger(model)
    done = 0
    new = library.tracks.ids()
    if not again:
        new = np.setdiff1d(new, library.predictions.columns(model.id, [0], refined=False)[0])
    for block in np.split(new, np.flatnonzero(np.diff(new // PAGE)) + 1):
        stopping.check()
        ids, X = library.tracks.features(block, extractor=model.extractor)
        if len(ids):
            library.predictions.put(model.id, ids, tagger.probabilities(X))
            done += len(ids)
            if progress:
                progress(done, len(new))
    if done and (model := library.models.get(model.id, whole=False)).refinements:
        update_sound_vectors(library)
        columns = refined_columns(library, model, model.refinements, SoundVectors.of(library))
        library.refinements.put_columns(model.id, columns)
    return done
