"""Search over what people say and what the model predicts."""

from itertools import product

import numpy as np
import pytest
import small_library
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st
from small_library import NOISE, TAGS, new_change
from some_tracks import a_model

from harmonium.data import normalise_tag
from harmonium.errors import DataError, LibraryError
from harmonium.library.search import MAX_DEPTH, Query, parse
from harmonium.library.searching.likeness import N_TAGS_LIKE_SOUND, alike
from harmonium.library.sound import SoundVectors
from harmonium.library.store.schema import BLOCK, EXTRACTOR
from harmonium.library.store.schema import track as track_table
from harmonium.library.store.tracks import Track

N_TAGGED = 25


@pytest.fixture
def world(library):
    model, ids, truth = small_library.trained(library, tagged=N_TAGGED)
    return library, model, ids, truth


def brute_force(library, model, ids, text):
    """(certain, score, id) of every track with a chance, one by one, best first."""
    query, votes, found = parse(text, {*TAGS, NOISE}), {}, []
    for row in library.opinions.triples().iter_rows(named=True):
        votes.setdefault((row["track_id"], row["tag"]), set()).add(row["value"])
    P = library.predictions.probabilities(model.id, ids)
    for track, p in zip(ids.tolist(), P, strict=True):
        own, mixed, masks = {}, {}, {}
        for name in query.tags:
            j = model.vocabulary.index(name)
            own[name] = np.float32([p[j] if model.thresholds[j] <= 1 else 0.0])
            said = votes.get((track, name), set())
            mixed[name] = {(1,): np.ones(1), (-1,): np.zeros(1)}.get(tuple(said), own[name])
            masks[name] = np.array([said == {1}]), np.array([said != {-1}])
        score = float(query.probability(mixed.__getitem__)[0])
        certain = bool(query.answered(masks)[0][0])
        order = float(query.probability(own.__getitem__)[0]) if certain else score
        if score > 0:
            found.append((not certain, -order, track, score))
    return sorted(found)


@pytest.mark.parametrize(
    "text",
    ["rock", "rock -mellow", "hip hop OR jazz", "NOT rock", NOISE, f"jazz -{NOISE}", "(rock live)"],
)
def test_the_order_is_that_of_looking_at_each_track(world, text):
    library, model, ids, _ = world
    library.opinions.say("bob", int(ids[0]), absent=["rock"], change=new_change(library))
    library.opinions.say("bob", int(ids[40]), absent=["rock"], change=new_change(library))
    expected = brute_force(library, model, ids, text)
    found = library.search(text, limit=100, min_probability=0)
    np.testing.assert_allclose(
        [hit.probability for hit in found.hits], [score for *_, score in expected], atol=1e-6
    )
    # equal scores, as of tags that the model cannot tell, are in the order of numbers
    assert [hit.track.id for hit in found.hits] == [track for _, _, track, _ in expected]
    if text == "rock":
        assert [hit.source != "people" for hit in found.hits] == [open for open, *_ in expected]


@pytest.mark.parametrize(
    "text", ["rock", "rock -mellow", "hip hop OR jazz", "-rock", "(rock live)"]
)
def test_tracks_that_have_the_tags_come_before_less_likely_ones(world, text):
    library, _, ids, _ = world
    library.opinions.say("bob", int(ids[40]), absent=["rock"], change=new_change(library))
    matching = set(library.snapshot().matching(text).tolist())
    found = library.search(text, limit=100)
    assert 0 < len(matching) < len(found)
    assert {hit.track.id for hit in found if hit.holds} == matching
    assert [hit.holds for hit in found] == sorted((hit.holds for hit in found), reverse=True)
    for holds in (True, False):
        likely = [hit.probability for hit in found if hit.holds is holds and hit.source != "people"]
        assert likely == sorted(likely, reverse=True)
    assert found.total == len(matching)
    assert found.total + found.n_below + found.n_other == len(ids)


def test_a_search_does_not_read_the_weights_of_the_model(world):
    library, _, ids, _ = world
    statements = []
    event = "before_cursor_execute"
    sa.event.listen(library.engine, event, lambda *about: statements.append(about[2]))
    assert library.search("rock", like=int(ids[30])).hits
    asked = [statement for statement in statements if "model.vocabulary" in statement]
    assert len(asked) == 1
    assert "model.bytes" not in asked[0]


def test_what_most_people_say_of_a_track_counts_as_certain_for_its_likeness(world):
    library, _, ids, _ = world
    one, other = int(ids[40]), int(ids[41])

    def alike_to_rock():
        hits = library.search("rock", like=one, limit=100).hits
        return {hit.track.id: hit.similarity for hit in hits}

    for name in ("ann", "bob", "cy"):
        library.opinions.say(name, one, present=["rock"], change=new_change(library))
    agreed = alike_to_rock()
    library.opinions.say("zoe", one, absent=["rock"], change=new_change(library))
    assert alike_to_rock() == agreed  # three of four agree still
    for name in ("ann", "bob"):
        library.opinions.say(name, one, retract=["rock"], change=new_change(library))
    undecided = alike_to_rock()
    library.opinions.say("cy", one, retract=["rock"], change=new_change(library))
    denied = alike_to_rock()
    assert agreed[other] != undecided[other] != denied[other] != agreed[other]


def test_a_likeness_multiplies_the_probability_of_a_question(world):
    library, _, ids, _ = world
    hits = library.search("jazz", like=int(ids[30]), limit=100, min_probability=0).hits
    near = [hit for hit in hits if hit.similarity > 0]
    assert hits[: len(near)] == near  # what is less alike than chance comes last
    scores = [hit.probability * hit.similarity for hit in near]
    assert scores == sorted(scores, reverse=True)
    far = [hit.similarity for hit in hits[len(near) :]]
    assert far == sorted(far, reverse=True)
    assert len(hits) == len(ids) - 1


def test_what_is_particular_about_tracks_makes_them_alike():
    P = np.array([[0.9, 0.5, 0.9], [0.9, 0.5, 0.1], [0.8, 0.4, 0.8], [0.9, 0.6, 0.2]], np.float32)
    unknown = np.full(3, np.nan, np.float32)
    found = alike(P.T, 0, unknown)
    assert found[0] == pytest.approx(1, abs=1e-5)
    Z = (P - P.mean(axis=0)) / P.std(axis=0)
    cosine = Z @ Z[0] / np.linalg.norm(Z, axis=1) / np.linalg.norm(Z[0])
    np.testing.assert_allclose(found, cosine, atol=1e-5)
    assert alike(P.T, 0, np.array([np.nan, np.nan, 0], np.float32))[1] > found[1]
    assert np.all(alike(np.full((2, 3), 0.4, np.float32), 0, unknown[:2]) == 0)


@pytest.mark.parametrize("forgotten", [(), (BLOCK + 1, BLOCK + 2), (2,)])
def test_likeness_mixes_sound_with_tags_where_they_have_predictions(library, forgotten):
    rng = np.random.default_rng(0)
    ids = np.array([1, 2, 3, BLOCK + 1, BLOCK + 2, 3 * BLOCK, 3 * BLOCK + 1])
    files = [Track(f"/{i}.ogg", f"{i:064x}") for i in ids]
    with library.begin() as connection:
        for number, file in zip(ids.tolist(), files, strict=True):
            (given,) = library.tracks.put([file])
            connection.execute(
                sa.update(track_table).where(track_table.c.id == given).values(id=number)
            )
    X = rng.normal(size=(len(ids), 4))
    library.tracks.put_features(ids, X, extractor="x")
    library.settings.set(EXTRACTOR, "x")
    number = library.models.add(a_model(extractor="x"))
    library.predictions.put(number, ids, rng.random((len(ids), 3)))
    library.predictions.forget_tracks(forgotten)
    hits = library.search(like=3, limit=100).hits
    left = np.setdiff1d(ids, forgotten)
    P = library.predictions.probabilities(number, left)
    by_tags = alike(P.T, left.tolist().index(3), np.full(3, np.nan, np.float32))
    sounds = SoundVectors.of(library)
    by_sound = dict(zip(sounds.ids.tolist(), sounds.cosines(3).tolist(), strict=True))
    weight = 3 / (3 + N_TAGS_LIKE_SOUND)
    for hit in hits:
        sound = by_sound[hit.track.id]
        tags = by_tags[left.tolist().index(hit.track.id)] if hit.track.id in left else sound
        assert hit.similarity == pytest.approx((1 - weight) * sound + weight * tags, abs=1e-5)
    assert {hit.track.id for hit in hits} == {*ids.tolist()} - {3}


def test_without_a_model_people_still_find_their_tags(library):
    ids, _, truth = small_library.fill(library, 30)
    found = library.search("rock", limit=100)
    assert {hit.track.id for hit in found.hits} == set(ids[truth[:, 0]].tolist())
    assert {hit.source for hit in found.hits} == {"people"}
    alike_by_sound = library.search(like=1, limit=100).hits
    assert {hit.track.id for hit in alike_by_sound} == set(ids.tolist()) - {1}
    (unheard,) = library.tracks.put([Track("/music/new.ogg", "new")])
    with pytest.raises(LibraryError, match=f"Track #{unheard} has no features to compare it by"):
        library.search(like=unheard)


KNOWN = {"rock", "roll", "hip hop", "drum and bass", "piano", "mellow", "80s", "rock and roll"}
KNOWN |= {"indie", "indie pop", "pop rock"}

names = st.one_of(
    st.sampled_from(sorted(KNOWN)), st.text(max_size=12).map(normalise_tag).filter(bool)
)


def groups(parts):
    one, several = st.tuples(parts), st.lists(parts, min_size=2, max_size=3).map(tuple)
    return st.one_of(
        st.builds(Query, st.just("NOT"), one, st.just("")),
        st.builds(Query, st.sampled_from(["AND", "OR"]), several, st.just("")),
    )


queries = st.recursive(names.map(lambda name: Query("TAG", tag=name)), groups, max_leaves=8)


def show(query):
    """A text that asks the question."""
    if query.operator == "TAG":
        escaped = query.tag.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    parts = [f"({show(part)})" for part in query.parts]
    return f"NOT {parts[0]}" if query.operator == "NOT" else f" {query.operator} ".join(parts)


@given(queries)
@settings(deadline=None, max_examples=300)
def test_what_is_shown_is_read_as_the_same_question(query):
    assert parse(show(query), set(query.tags)) == query


@given(queries, st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=200)
def test_a_question_has_the_probability_of_independent_or_certain_tags(query, seed):
    tags = query.tags
    p = dict(zip(tags, np.random.default_rng(seed).random(len(tags)), strict=True))
    if _n_leaves(query) > len(tags):  # a tag that is asked for twice is not independent of itself
        p = {name: round(one) for name, one in p.items()}
    expected = sum(
        np.prod([p[name] if holds else 1 - p[name] for name, holds in world.items()])
        for bits in product([False, True], repeat=len(tags))
        if _logic(query, world := dict(zip(tags, bits, strict=True)))
    )
    found = query.probability(lambda name: np.array([p[name]]))
    np.testing.assert_allclose(found[0], expected, atol=1e-9)


def _logic(query, holds):
    if query.operator == "TAG":
        return holds[query.tag]
    parts = [_logic(part, holds) for part in query.parts]
    return {"NOT": not parts[0], "AND": all(parts), "OR": any(parts)}[query.operator]


def _n_leaves(query):
    return sum(map(_n_leaves, query.parts)) or 1


FEW = {"hip", "hop", "hip hop", "rock", "indie", "pop", "indie pop"}
VOICES = {"female voice", "voice", "piano"}
ALIASES = {"female": "female voice", "female vocals": "female voice", "vocals": "voice"}


@pytest.mark.parametrize(
    ("text", "meant", "known", "aliases"),
    [
        ("mellow piano -rock", '"mellow" AND "piano" AND (NOT "rock")', KNOWN, {}),
        ("Hip-Hop", '"hip hop"', KNOWN, {}),
        ("-hip hop rock", '(NOT "hip hop") AND "rock"', KNOWN, {}),
        ("rock and roll", '"rock and roll"', KNOWN, {}),
        ("rock and roll and not piano", '"rock and roll" AND (NOT "piano")', KNOWN, {}),
        ("rock or roll piano", '"rock" OR ("roll" AND "piano")', KNOWN, {}),
        ("rock OR roll piano", '"rock" OR ("roll" AND "piano")', KNOWN, {}),
        ("(rock OR roll) piano", '("rock" OR "roll") AND "piano"', KNOWN, {}),
        ("NOT (rock AND NOT roll)", 'NOT ("rock" AND (NOT "roll"))', KNOWN, {}),
        ("-(rock roll)", 'NOT ("rock" AND "roll")', KNOWN, {}),
        ("--rock", 'NOT (NOT "rock")', KNOWN, {}),
        ("hip AND hop", '"hip" AND "hop"', FEW, {}),
        ("hop hip hop", '"hop" AND "hip hop"', FEW, {}),
        ("female vocals piano", '"female voice" AND "piano"', VOICES, ALIASES),
    ],
)
def test_questions_as_people_write_them(text, meant, known, aliases):
    """As the same in quotes and brackets; words side by side are the fewest tags."""
    assert parse(text, known, aliases) == parse(meant, known)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("rok", r"No track has the tag rok.*Did you mean rock"),
        ("rock or jazzy", "No track has the tag jazzy"),
        ("rock hip", "No track has the tag hip"),
        ("indie pop rock", 'indie AND "pop rock" and as "indie pop" AND rock'),  # wants quotes
        ('"hip hp"', r'the tag "hip hp".*"hip hop"'),
        ("rock AND", "its end where a tag was expected"),
        ("OR rock", "OR where a tag was expected"),
        ("rock )", "closing bracket"),
        ("(rock", "not closed"),
        ('"rock', "not closed"),
        ('""', "is not a tag"),
        ("(" * (MAX_DEPTH + 1) + "rock" + ")" * (MAX_DEPTH + 1), f"more than {MAX_DEPTH}"),
    ],
)
def test_questions_that_cannot_be_read(text, message):
    with pytest.raises(DataError, match=message):
        parse(text, KNOWN)


def test_words_that_are_not_tags_find_names(world):
    library, *_ = world
    hits = library.search("song 17").hits
    assert [(hit.track.title, hit.probability) for hit in hits] == [("Song 17", None)]


def test_a_usual_tag_that_nobody_gave_may_be_excluded(world):
    library, *_ = world
    assert library.search("rock -christmas").people_only == ["christmas"]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("song 9999", {}, "song"),
        ("song 17", {"predicted": True}, "song"),
        ("christmas", {}, "tag christmas"),
        ("-(rock -christmas)", {}, "tag christmas"),
        (None, {}, "Search for tags"),
        ("rock", {"limit": 0}, "'limit'"),
        ("rokc", {}, "Did you mean rock"),
    ],
)
def test_what_cannot_be_searched_is_refused(world, text, options, message):
    library, *_ = world
    with pytest.raises(DataError, match=message):
        library.search(text, **options)


def test_tags_that_the_model_cannot_tell_are_what_people_say(world):
    library, _, ids, _ = world
    library.opinions.say("bob", int(ids[50]), present=["Bird Song"], change=new_change(library))
    found = library.search("bird song")
    assert [hit.track.id for hit in found.hits] == [int(ids[50])]
    assert found.people_only == ["bird song"]
    assert library.search(NOISE).people_only == [NOISE]


def test_a_limit_counts_only_files_that_are_there(world):
    library, _, _, _ = world
    hits = library.search("rock", limit=100).hits
    assert len(library.search("rock", limit=3).hits) == 3
    library.tracks.set_state([hits[0].track.id], "missing")
    assert library.search("rock", limit=3).hits == hits[1:4]


def test_improbable_tracks_are_left_out(world):
    library, _, _, _ = world
    hits = library.search("rock", limit=100).hits
    library.tracks.set_state([hits[0].track.id], "missing")
    likely = library.search("rock", limit=100, min_probability=0.7).hits
    assert likely == [hit for hit in hits[1:] if hit.probability >= 0.7]
