"""The card of the built-in model: its sources, how good each tag is, what it cannot know."""

from typing import Any

from builtin_model.vocabulary import FEATURE, GROUPS
from harmonium.data.datasets import info


def model_card(report: dict[str, Any]) -> str:
    """The card as Markdown, from the report in the model file."""
    tables = (_table(report, group) for group in GROUPS if group != FEATURE)
    features, trust = _features(report), _trust(report)
    parts = [_head(report), _sources(report), *tables, features, _how_to_read(), trust, _limits()]
    return "\n".join(filter(None, parts))


def _head(report: dict[str, Any]) -> str:
    tags = report["tags"]
    features = [tag["tag"] for tag in tags if tag["group"] == FEATURE]
    tags = [tag for tag in tags if tag["group"] != FEATURE]
    judged = [tag["auc"] for tag in tags if "auc" in tag]
    n_heads = sum("agreement" in tag for tag in tags)
    n_clips = sum(report["clips"].values())
    return f"""# The built-in model

{report["members"]} discriminative restricted Boltzmann machines (`DiscriminativeRBM`, trained by
multi-prediction) over the 400 features of musicnn. Each has learnt from all folds of the clips but
one, and their log-odds are averaged. The model knows {len(tags)} tags: {len(judged)} that people
gave to {n_clips:,} clips, and {n_heads} that it learnt only from musicnn's own two taggers. On
held-out artists, single members have a mean AUC over the former of
{sum(judged) / len(judged):.3f}; docs/builtin.md has the AUC of all members together. It also
estimates {len(features)} audio features: values between 0 and 1, such as energy.

This page is written by `recipes/make_builtin_model.py`, which makes the model.
"""


def _sources(report: dict[str, Any]) -> str:
    rows = "\n".join(
        f"| {about.title.split(':')[0]} | {n:,} | {about.citation} | {about.licence} |"
        for about, n in ((info(name), n) for name, n in report["clips"].items())
    )
    return f"""## What it learnt from

| collection | clips | source | terms |
|---|---|---|---|
{rows}

Neither the sound nor the tags of single clips are in the model, only weights. The tags of
musicnn's taggers (Pons, Serra 2019; ISC licence), which learnt from MagnaTagATune and from
Last.fm tags of the Million Song Dataset, are soft labels wherever a collection does not have
them. The music in these collections is mostly Western and recorded before 2012.
"""


def _table(report: dict[str, Any], group: str) -> str:
    tags = [tag for tag in report["tags"] if tag["group"] == group]
    lines = [f"## Tags: {group}", ""]
    lines += [
        "| tag | learnt from | examples | AUC ± | threshold | precision there | written from |",
        "|---|---|---|---|---|---|---|",
    ]
    for tag in tags:
        if "auc" in tag:
            score = f"{tag['auc']:.2f} ± {tag['error']:.2f}"
        else:
            score = f"(r = {tag['agreement']:.2f})"
        threshold = "–" if tag["threshold"] is None else f"{tag['threshold']:.2f}"
        precision = "–"
        if tag["precision"] is not None:
            precision = f"{tag['precision']:.0%} of {tag['reached']}"
        sources = ", ".join(tag["learnt_from"])
        examples = tag["examples"] or "–"
        written = "–"
        if tag.get("write_from") is not None:
            written = f"{tag['write_from']:.2f}: {tag['written']}"
        cells = (tag["tag"], sources, examples, score, threshold, precision, written)
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join([*lines, ""])


def _features(report: dict[str, Any]) -> str:
    features = [tag for tag in report["tags"] if tag["group"] == FEATURE]
    if not features:
        return ""
    lines = [
        f"| {one['tag']} | {', '.join(one['learnt_from'])} | {one['agreement']:.2f} | "
        + (f"{one['auc']:.2f} ± {one['error']:.2f} |" if "auc" in one else "– |")
        for one in features
    ]
    rows = "\n".join(lines)
    return f"""## Audio features

Values between 0 and 1, which are linear in musicnn's features except for a sigmoid. They are learnt
from what VibeNet 0.1.0 estimates for the same clips; energy and valence above all from the
quadrant of arousal and valence that 4Q's annotators gave. r is the correlation with VibeNet's
values, AUC is for the quadrants, both of held-out clips. VibeNet is under GPL-3.0; only its outputs
are used, as labels, and no part of it is in the package.

| feature | learnt from | r | quadrants: AUC ± |
|---|---|---|---|
{rows}
"""


def _how_to_read() -> str:
    return """## How to read the tables

All figures are of held-out clips: each is predicted by the member that has not learnt from its
artist. AUC is the chance that a clip with the tag ranks above one without it, with its standard
error. Precision is the share of the clips at or above the threshold that have the tag, and of how
many. "Written from" is the probability from which on `harmonium write` writes the tag, because
there the lower bound of its precision is 80 %, and how many clips reach it; moods only if two
collections confirm that, because people mean different things by them. A tag without a threshold
was not learnt: its AUC is not clearly above chance. For tags that only musicnn's taggers
know, r is the correlation with their probabilities, and precision is what these expect; nobody has
checked either, so they are not written.
"""


def _trust(report: dict[str, Any]) -> str:
    errors = "\n".join(
        f"| {info(name).title.split(':')[0]} | {error:.3f} |"
        for name, error in report["calibration"].items()
    )
    n_written = sum(tag.get("write_from") is not None for tag in report["tags"])
    text = f"""## How far to trust it

Probabilities are corrected by what is true of held-out clips. The expected calibration error is the
mean difference between a probability and the share that is true. Of clips that the correction does
not know:

| collection | error |
|---|---|
{errors}

{n_written} tags have a precision of 80 % from some probability on.
"""
    if "robustness" not in report:
        return text
    moved = "\n".join(
        f"| {one['file']} | {one['median']:.4f} | {one['most']:.3f} | {one['kept']:.0%} |"
        for one in report["robustness"]
    )
    return f"""{text}
The same sound in another file: the change of probabilities in the median and in one of a hundred
cases, and the share of the tags at or above their thresholds that stay there.

| file | median | 99 % | tags kept |
|---|---|---|---|
{moved}
"""


def _limits() -> str:
    return """## What it cannot know

- Moods are those that AllMusic's editors listed. They list a few of many that would fit: a clip
  without a mood may have it all the same, so the true precision is higher than the figures.
- Probabilities are those of the collections. In 4Q, moods are balanced over four quadrants, and
  GTZAN has each of its ten genres equally often; a real library has more of some. Ranks carry
  over; in other music, a probability of 0.3 does not promise that 3 of 10 tracks have the tag, and
  what is written is right more or less often than the 80 % of these collections. Made without one
  of them and judged by it, the model was right in far fewer or more cases (docs/builtin.md).
- GTZAN gives each clip one genre. Metal is not rock there, and disco is not pop.
- The era is guessed from the sound, as Last.fm's users tagged it.
- Its features come from thirty seconds of a file at most. It does not know lyrics, names,
  languages, or what a piece means to anybody.
- It knows what is not music from synthetic speech, noise, tones and silence. Of other sounds, such
  as animals or machines, some will pass for music.
"""
