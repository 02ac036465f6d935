"""The questions that the model asks."""

from dataclasses import replace


def test_questions_about_tags_that_were_learnt_here_come_first(tagged):
    """And each says where its threshold is, by which it is doubtful."""
    model = tagged.models.current()
    number = tagged.models.add(replace(model, report=replace(model.report, own=1)))
    ids = tagged.tracks.ids()
    tagged.predictions.put(number, ids, tagged.predictions.probabilities(model.id, ids))
    questions = tagged.review.doubts(limit=5)
    assert {one.tag for one in questions} == {model.vocabulary[0]}
    for one in questions:
        assert one.guess == (one.probability >= one.threshold)
    assert len({one.tag for one in tagged.review.doubts(limit=60)}) > 1  # and then the others
