"""Calibration and decisions

A probability of 0.8 should come true eight times in ten. This example checks that on clips that the
model has not seen, and then turns probabilities into decisions.
"""

# %%
# **Data and model.** The clips of one track stay together, in training and in testing. `groups`
# makes the model's own folds keep them together, too.
import numpy as np

from harmonium import DiscriminativeRBM
from harmonium.audio import clip_features
from harmonium.synthetic import make_collection

music = make_collection(n_tracks=150, clips_per_track=2, users_per_clip=10)
X = np.stack([clip_features(music.samples(i), music.rate) for i in range(music.n_clips)])
Y = music.triples.counts().top(15).labels(min_count=2)
tracks = music.clips["track"].to_numpy()
test = np.isin(tracks, np.unique(tracks)[100:])
model = DiscriminativeRBM(random_state=0).fit(X[~test], Y[~test], groups=tracks[~test])
probabilities = model.predict_proba(X[test])

# %%
# **Calibration.** Each point is a group of predictions: how probable they were on average, and how
# many of them came true. The closer to the diagonal, the better.
import matplotlib.pyplot as plt

from harmonium.evaluation import reliability

diagram = reliability(Y[test], probabilities)
filled = diagram.n > 0
plt.figure(figsize=(4.2, 4.2))
plt.plot([0, 1], [0, 1], color="0.6", linewidth=1)
plt.plot(
    diagram.scores[filled] / diagram.n[filled],
    diagram.positives[filled] / diagram.n[filled],
    "o-",
    color="teal",
)
plt.xlabel("predicted probability")
plt.ylabel("share that came true")
print(f"expected calibration error: {diagram.error:.3f}")

# %%
# **Decisions.** `predict` says yes or no with a threshold for each tag. On the training clips, it
# says yes as often as the tag occurs. The rival is a threshold of 0.5 for all tags.
from harmonium.evaluation import evaluate_decisions

for name, decisions in {
    "a threshold for each tag": model.predict(X[test]),
    "0.5 for all tags": (probabilities > 0.5).astype(float),
}.items():
    scores = evaluate_decisions(Y[test], decisions)
    print(f"{name}: macro F1 {scores.macro_f1:.3f}, micro F1 {scores.micro_f1:.3f}")

# %%
# **Precision and recall.** A higher threshold makes fewer mistakes and finds less:
known = ~np.isnan(Y[test])
thresholds = np.linspace(0.1, 0.9, 17)
precision = []
recall = []
for threshold in thresholds:
    said = (probabilities >= threshold) & known
    right = said & (Y[test] == 1)
    precision.append(right.sum() / said.sum())
    recall.append(right.sum() / (Y[test] == 1).sum())
plt.figure(figsize=(6.4, 3.2))
plt.plot(thresholds, precision, color="teal", label="precision")
plt.plot(thresholds, recall, color="goldenrod", label="recall")
plt.xlabel("threshold")
plt.legend(frameon=False)
