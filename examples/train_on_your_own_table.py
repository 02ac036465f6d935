"""Train on your own table

You have a CSV file with a row for each clip: some features, and a column for each tag with 1, 0 or
nothing. This example makes such a file, trains a model on it, and tags clips that have no tags.
"""

# %%
# **The table.** Here it comes from the generated collection: 200 clips with 389 audio features
# each, and ten tags. A tag that only one of ten listeners gave is left empty. Your table may have
# any features; their columns need only a common prefix.
import numpy as np
import polars as pl

from harmonium.audio import clip_features
from harmonium.synthetic import make_collection

music = make_collection(n_tracks=200, clips_per_track=1, users_per_clip=10)
features = np.stack([clip_features(music.samples(i), music.rate) for i in range(music.n_clips)])
counts = music.triples.counts().top(10)
labels = pl.DataFrame(counts.labels(min_count=2), counts.tags.to_list())
columns = {f"feature{j}": features[:, j] for j in range(features.shape[1])}
table = pl.concat([music.clips.select("title"), labels, pl.DataFrame(columns)], how="horizontal")
table.fill_nan(None).write_csv("clips.csv")

# %%
# **Read it, and divide it.** An empty cell is an unknown label: neither a positive nor a negative
# example. The last 40 clips play the part of music that nobody has tagged.
table = pl.read_csv("clips.csv")
X = table.select(pl.col("^feature.*$")).to_numpy()
Y = table.drop("title").select(~pl.selectors.starts_with("feature"))
print(Y.head(4))

# %%
# **Train.** `fit` takes the table of tags as it is, and the model keeps the tags' names.
from harmonium import DiscriminativeRBM

model = DiscriminativeRBM(random_state=0).fit(X[:160], Y[:160])
print(f"mean AUC on other clips: {model.score(X[160:], Y[160:]):.2f}")

# %%
# **Tag the rest.** A row for each clip, a probability for each tag:
tagged = model.predict_frame(X[160:])
print(tagged.head(5).select(pl.col(pl.Float64, pl.Float32).round(2)))

# %%
# **How well is each tag recognised?** The area under the ROC curve says how often a clip with the
# tag gets a higher probability than a clip without it. Chance is 0.5.
import matplotlib.pyplot as plt

from harmonium.evaluation import auc_per_tag

scores = auc_per_tag(Y[160:].to_numpy(), tagged.select(Y.columns).to_numpy()).values
order = np.argsort(scores)
plt.figure(figsize=(6.4, 3.2))
plt.barh(np.array(Y.columns)[order], scores[order], color="teal")
plt.axvline(0.5, color="0.4", linewidth=1)
plt.xlim(0, 1)
plt.xlabel("AUC on clips that the model has not seen")

# %%
# **Keep it.** A model file has numbers and a description. Loading it runs no code.
import harmonium

model.save("model.safetensors")
again = harmonium.load("model.safetensors")
print(np.allclose(again.predict_proba(X[160:]), model.predict_proba(X[160:])))
