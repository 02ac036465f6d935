"""Compare training methods

The likelihood of tags given sound has no closed form for a model of a useful size, so the paper
compares approximations of its gradient. On a model with ten hidden units the likelihood can be
computed exactly. That shows what each approximation is worth.
"""

# %%
# **Data.** 200 clips of the generated collection, eight tags, audio features that are scaled once.
import numpy as np

from harmonium.audio import clip_features
from harmonium.synthetic import make_collection

music = make_collection(n_tracks=200, clips_per_track=1, users_per_clip=10)
X = np.stack([clip_features(music.samples(i), music.rate) for i in range(music.n_clips)])
Y = music.triples.counts().top(8).labels(min_count=2)
train, test = np.arange(150), np.arange(150, 200)

# %%
# **Train.** Every model has the same size, start, learning rate and number of epochs. `"exact"`
# adds up all 2¹⁰ states of the hidden units; it is the yardstick.
from harmonium import DiscriminativeRBM

methods = {
    "exact": "exact",
    "contrastive divergence, 1 step": "cd",
    "contrastive divergence, 10 steps": "cd",
    "persistent CD": "pcd",
    "pseudo-likelihood": "pl",
    "loopy belief propagation": "lbp",
    "multi-prediction": "multi_prediction",
}
models = {}
for name, training in methods.items():
    steps = 10 if "10" in name else None
    model = DiscriminativeRBM(
        n_hidden=10,
        training=training,
        training_steps=steps,
        max_epochs=60,
        n_models=1,
        validation_fraction=0,
        random_state=0,
    )
    models[name] = model.fit(X[train], Y[train])

# %%
# **Compare.** The log-likelihood of the tags of clips that no model has seen, and the mean AUC over
# tags. Both are higher for a better model.
likelihoods = {}
for name, model in models.items():
    likelihoods[name] = float(np.mean(model.log_likelihood(X[test], Y[test])))
    print(f"{name:33}{likelihoods[name]:8.2f}{model.score(X[test], Y[test]):8.3f}")

# %%
# **The log-likelihoods as a figure.** Pseudo-likelihood and multi-prediction do not maximise this
# quantity: they maximise the probability of some tags given the others.
import matplotlib.pyplot as plt

names = list(likelihoods)[::-1]
values = np.array([likelihoods[name] for name in names])
plt.figure(figsize=(6.4, 3.0))
plt.scatter(values, names, color="teal")
plt.axvline(likelihoods["exact"], color="0.6", linewidth=1)
plt.xlabel("mean log p(y | x) of clips that the model has not seen")
plt.grid(axis="y", color="0.9")
