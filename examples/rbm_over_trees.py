"""An RBM over trees

Trees are hard to beat on a few hundred clips with hand-made features. They treat each tag by
itself, though, and cannot be told a tag. With `estimator`, a discriminative RBM begins as any
classifier of scikit-learn, and learns what that classifier lacks.
"""

# %%
# **Data.** 300 clips of the generated collection and 20 tags. Every fourth clip is for testing.
import numpy as np

from harmonium.audio import clip_features
from harmonium.synthetic import make_collection

music = make_collection(n_tracks=300, clips_per_track=1, users_per_clip=10)
X = np.stack([clip_features(music.samples(i), music.rate) for i in range(music.n_clips)])
counts = music.triples.counts().top(20)
tags = counts.tags.to_list()
Y = counts.labels(min_count=2)
test = np.arange(len(X)) % 4 == 0

# %%
# **Three models.** Each fold's trees are fitted without the clips of that fold, so the RBM learns
# from log-odds that the trees give to clips they have not seen. scikit-learn's trees take no
# unknown labels; alone, they get 0 instead.
from sklearn.ensemble import ExtraTreesClassifier

from harmonium import DiscriminativeRBM

trees = ExtraTreesClassifier(200, min_samples_leaf=3, random_state=0)
over_trees = DiscriminativeRBM(estimator=trees, random_state=0).fit(X[~test], Y[~test])
alone = DiscriminativeRBM(random_state=0).fit(X[~test], Y[~test])
trees.fit(X[~test], np.nan_to_num(Y[~test]))

# %%
# **Beside each other.** The mean AUC over tags of the test clips:
from harmonium.evaluation import auc_per_tag

predictions = {
    "trees": np.stack([p[:, 1] for p in trees.predict_proba(X[test])], axis=1),
    "RBM": alone.predict_proba(X[test]),
    "RBM over trees": over_trees.predict_proba(X[test]),
}
aucs = {name: auc_per_tag(Y[test], p).values for name, p in predictions.items()}
for name, values in aucs.items():
    print(f"{name:16}{np.nanmean(values):.3f}")

# %%
# **And it can be told tags.** Trees cannot. Here a random half of the tags of each test clip is
# given, and the other half is ranked.
given = np.random.default_rng(0).random(Y[test].shape) < 0.5
hidden = np.where(given, np.nan, Y[test])
told = over_trees.complete(X[test], np.where(given, Y[test], np.nan))
before = np.nanmean(auc_per_tag(hidden, predictions["RBM over trees"]).values)
after = np.nanmean(auc_per_tag(hidden, told).values)
print(f"mean AUC of the hidden half: {before:.3f}, and {after:.3f} given the other half")

# %%
# **Tag by tag.** Where the triangles are to the right of the squares, the RBM has learnt something.
import matplotlib.pyplot as plt

order = np.argsort(aucs["trees"])
plt.figure(figsize=(6.4, 4.2))
for (name, values), marker in zip(aucs.items(), "so^", strict=True):
    plt.plot(values[order], np.arange(len(tags)), marker, label=name, alpha=0.8)
plt.yticks(np.arange(len(tags)), np.array(tags)[order])
plt.xlabel("AUC on clips that the models have not seen")
plt.grid(axis="y", color="0.9")
plt.legend(frameon=False)
