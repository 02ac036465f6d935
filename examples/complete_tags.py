"""Complete tags

In a discriminative RBM the tags are variables, so what is known about some tags of a clip changes
the probabilities of the others. A model with only outputs cannot do that.
"""

# %%
# **Data and model.** 300 clips of the generated collection, 20 tags; every fourth clip is for
# testing.
import numpy as np

from harmonium import DiscriminativeRBM, MLPTagger
from harmonium.audio import clip_features
from harmonium.synthetic import make_collection

music = make_collection(n_tracks=300, clips_per_track=1, users_per_clip=10)
X = np.stack([clip_features(music.samples(i), music.rate) for i in range(music.n_clips)])
counts = music.triples.counts().top(20)
Y = counts.labels(min_count=2)
test = np.arange(len(X)) % 4 == 0
model = DiscriminativeRBM(random_state=0).fit(X[~test], Y[~test])
network = MLPTagger(random_state=0).fit(X[~test], Y[~test])

# %%
# **One clip.** What the model says from the sound alone, and after a listener says *guitar*:
import polars as pl

tags = counts.tags.to_list()
known = np.full((1, len(tags)), np.nan)
known[0, tags.index("guitar")] = 1
clip = X[test][:1]
before = model.predict_proba(clip)[0]
after = model.complete(clip, known)[0]
change = pl.DataFrame({"tag": tags, "before": before, "after": after})
change = change.with_columns((pl.col("after") - pl.col("before")).alias("change"))
others = change.filter(pl.col("tag") != "guitar")
print(others.sort(pl.col("change").abs(), descending=True).head(6))

# %%
# **All test clips.** A random part of each clip's tags is given. How well are the other tags
# ranked?
from harmonium.evaluation import auc_per_tag

rng = np.random.default_rng(0)
order = rng.random(Y[test].shape)
shares = [0, 0.2, 0.4, 0.6, 0.8]
completed = []
for share in shares:
    told = order < share
    probabilities = model.complete(X[test], np.where(told, Y[test], np.nan))
    hidden = np.where(told, np.nan, Y[test])
    completed.append(np.nanmean(auc_per_tag(hidden, probabilities).values))
    print(f"{share:.0%} of the tags given: mean AUC of the others {completed[-1]:.3f}")

# %%
# **What it is worth to be told some tags.** A network without connections between tags stays
# where it is.
import matplotlib.pyplot as plt

flat = np.nanmean(auc_per_tag(Y[test], network.predict_proba(X[test])).values)
plt.figure(figsize=(6.4, 3.4))
plt.plot(np.array(shares) * 100, completed, "o-", color="teal", label="discriminative RBM")
plt.axhline(flat, color="0.5", linestyle="--", label="multi-layer perceptron")
plt.xlabel("tags of the clip that are given (%)")
plt.ylabel("mean AUC of the other tags")
plt.legend(frameon=False)
