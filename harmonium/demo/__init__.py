"""The main job, start to end, on the generated collection: `story` is told by `harmonium demo`.

Half of the tracks are tagged by three people. The library learns from those and tags the others;
the truth of the collection says how well. `page` shows it.
"""
