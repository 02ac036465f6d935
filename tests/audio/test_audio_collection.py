"""What the features are for: tags of tracks that were never heard follow from them."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from harmonium.audio import clip_features
from harmonium.synthetic import make_collection


@pytest.fixture(scope="module")
def collection():
    return make_collection(n_tracks=80, clips_per_track=1, clip_seconds=6, seed=1)


@pytest.fixture(scope="module")
def features(collection):
    return np.stack([clip_features(collection.samples(i), collection.rate) for i in range(80)])


def auc_of_unseen_tracks(X, y):
    model = make_pipeline(StandardScaler(), Normalizer(), LogisticRegression(C=10))
    return roc_auc_score(y, cross_val_predict(model, X, y, cv=4, method="decision_function"))


@pytest.mark.parametrize("tag", ["drums", "vocals", "calm", "fast", "distorted"])
def test_tags_follow_from_the_features(collection, features, tag):
    y = collection.truth[:, collection.tags.to_list().index(tag)]
    assert auc_of_unseen_tracks(features, y) > 0.7


def test_tempo_is_in_the_rhythm_and_distortion_in_the_timbre(collection, features):
    timbre, rhythm = features[:, :189], features[:, 189:]
    tags = collection.tags.to_list()
    fast, distorted = (collection.truth[:, tags.index(tag)] for tag in ("fast", "distorted"))
    assert auc_of_unseen_tracks(rhythm, fast) > auc_of_unseen_tracks(timbre, fast)
    assert auc_of_unseen_tracks(timbre, distorted) > auc_of_unseen_tracks(rhythm, distorted)
