"""A map of a collection

Music that people would describe alike should lie close together. Audio features alone do not give
such a map: they also keep what nobody has a word for. The log-odds of the tags do.
"""

# %%
# **Data.** `AudioFeatures` turns sounds into features, so a scikit-learn pipeline can begin with
# them. The model learns 15 tags from 200 clips. The map shows 100 others.
import numpy as np

from harmonium import AudioFeatures, DiscriminativeRBM
from harmonium.synthetic import make_collection

music = make_collection(n_tracks=300, clips_per_track=1, users_per_clip=10)
X = AudioFeatures("paper", rate=music.rate).fit_transform([music.samples(i) for i in range(300)])
counts = music.triples.counts().top(15)
tags = counts.tags.to_list()
Y = counts.labels(min_count=2)
model = DiscriminativeRBM(random_state=0).fit(X[:200], Y[:200])

# %%
# **Are neighbours alike?** How many of the true properties of two neighbours agree: in the space of
# the features, in the space of the tags' log-odds, and for two clips at random?
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

truth = np.asarray(music.truth[200:], bool)
spaces = {
    "scaled features": StandardScaler().fit(X[:200]).transform(X[200:]),
    "log-odds of the tags": model.decision_function(X[200:]),
}


def agreement(properties, others):
    """The mean share of their properties that clips have in common with others."""
    shared = (properties & others).sum(axis=-1)
    return (shared / (properties | others).sum(axis=-1)).mean()


for name, space in spaces.items():
    neighbours = NearestNeighbors(n_neighbors=4).fit(space).kneighbors(space)[1][:, 1:]
    print(f"{name:22}{agreement(truth[:, None], truth[neighbours]):.2f}")
shuffled = truth[np.random.default_rng(0).permutation(100)]
print(f"{'two clips at random':22}{agreement(truth, shuffled):.2f}")

# %%
# **The map**: the two directions in which the log-odds differ most. The colour says how probable
# each of four tags is.
import matplotlib.pyplot as plt
from sklearn.decomposition import PCA

places = PCA(2).fit_transform(spaces["log-odds of the tags"])
probabilities = model.predict_proba(X[200:])
figure, axes = plt.subplots(2, 2, figsize=(6.4, 6.0), sharex=True, sharey=True)
for axis, tag in zip(axes.flat, ["drums", "guitar", "piano", "vocals"], strict=True):
    shade = probabilities[:, tags.index(tag)]
    axis.scatter(*places.T, c=shade, cmap="viridis", vmin=0, vmax=1, s=22)
    axis.set_title(tag, loc="left")
    axis.set_xticks([])
    axis.set_yticks([])
figure.colorbar(axis.collections[0], ax=axes, label="probability", shrink=0.6)
