"""Smooth tags

Listeners forget tags. From (user, clip, tag) triples, `TagSmoother` learns what one more listener
would say about each clip. It fills in what was left out, and doubts what nobody else said.
"""

# %%
# **The triples.** In the generated collection each of 300 clips is tagged by three of its
# listeners, and the truth about each clip is known.
from harmonium.synthetic import make_collection

music = make_collection(n_tracks=60, clips_per_track=5, seed=0)
print(music.triples.frame().head(4))

# %%
# **Learn.** Clips of one track share a part of the model.
from harmonium import TagSmoother

smoother = TagSmoother(random_state=0)
smoother.fit(music.triples, tracks=music.clips["track"])
smoothed = smoother.smooth().frame()
print(smoothed.shape)

# %%
# **What changed.** These tags were filled in although nobody gave them, or doubted although
# somebody did.
print(smoother.changes().head(8))

# %%
# **Is it better?** How well do the raw counts and the smoothed probabilities rank the clips that
# truly have each tag?
import numpy as np
import polars as pl

from harmonium.evaluation import auc_per_tag

truth = pl.DataFrame(music.truth.astype(float), music.tags.to_list())
counts = music.triples.counts()
counted = pl.DataFrame(counts.matrix.toarray().astype(float), counts.tags.to_list())
tags = counted.columns
raw = auc_per_tag(truth.select(tags).to_numpy(), counted.to_numpy()).values
better = auc_per_tag(truth.select(tags).to_numpy(), smoothed.select(tags).to_numpy()).values
print(f"mean AUC: {np.nanmean(raw):.2f} by counts, {np.nanmean(better):.2f} smoothed")

# %%
# **Tag by tag.** Each point is a tag. Above the line, smoothing ranks clips better than counting.
import matplotlib.pyplot as plt

plt.figure(figsize=(4.2, 4.2))
plt.plot([0.5, 1], [0.5, 1], color="0.6", linewidth=1)
plt.scatter(raw, better, color="teal", s=24)
plt.xlabel("AUC of the counts")
plt.ylabel("AUC after smoothing")
plt.xlim(0.5, 1.02)
plt.ylim(0.5, 1.02)

# %%
# **Which tags go together?** People who say *piano* about a clip also say these, or do not,
# whatever the clip is:
print(smoother.related("piano", n=4))
