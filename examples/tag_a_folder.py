"""Tag a folder from Python

Everything that the `harmonium` command does to a folder of music is a method of `Library`. This
example makes a folder of generated music, tags it, searches it, corrects it, and writes tags into
the files.
"""

# %%
# **A folder of music.** Use your own instead.
from harmonium.synthetic import make_collection

make_collection(n_tracks=12, clips_per_track=1, seed=3).write("music")

# %%
# **Index it.** Every file is analysed once and gets the tags that the built-in model knows. The
# second time, only what changed is read.
from harmonium import Library

library = Library.open("music.db")
report = library.index("music")
print(f"{len(report.new)} new files")

# %%
# **The tags of one track**, the likeliest first:
path = report.new[0]
(tagged,) = library.tag(path)
likeliest = sorted(tagged.tags(), key=lambda tag: -tag.probability)
for tag in likeliest[:6]:
    print(f"{tag.tag:20}{tag.probability:.2f}")

# %%
# **Search.** By tags, by their opposites and by audio features:
for hit in library.search("electronic -vocal energy:>0.3", limit=5):
    print(f"{hit.probability:.2f}  {hit.track.path.rpartition('/')[2]}")

# %%
# **Correct it.** The model learns from what you say, and the other tags follow.
library.say(path, "sunday morning", "-electronic")

# %%
# **Write.** First look at what would be written, then write. By default at least four in five of a
# tag's predictions must be right. The model was made for real music and is not that sure here, so
# this asks for half. Every change can be undone, to the byte.
print(f"{library.write(dry_run=True).n_tags} tags at the default precision")
written = library.write(precision=0.5)
print(f"{written.n_tags} tags written at a precision of 50 %")
print(f"{library.undo().files_restored} files restored")
library.close()

# %%
# **Energy and valence** of the twelve tracks, as the built-in model hears them:
import matplotlib.pyplot as plt

with Library.open("music.db") as library:
    features = [library.audio_features(path) for path in report.new]
plt.figure(figsize=(4.6, 4.2))
plt.scatter([f["valence"] for f in features], [f["energy"] for f in features], color="teal")
plt.xlabel("valence")
plt.ylabel("energy")
plt.xlim(0, 1)
plt.ylim(0, 1)
