"""The main job, start to end, on the generated collection: what `harmonium demo` does and shows.

Three people tag half of the tracks. The library learns from those and tags the others; the truth
of the collection says how well. `page` shows it.
"""
