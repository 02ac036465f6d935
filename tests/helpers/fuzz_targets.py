"""What reads bytes that others wrote, each as a function of bytes; used by tests/fuzz.

A target returns, or raises an error of Harmonium. Whatever else it raises is a mistake.
"""

import asyncio
import io
import json
import tempfile
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from urllib.parse import quote
from xml.etree import ElementTree

import numpy as np
import polars as pl
from httpx import ASGITransport, AsyncClient
from places import PROJECT
from tagged_files import FORMATS, tagged

from harmonium.audio.decoding import decode
from harmonium.data import read_aliases, read_counts, read_triples
from harmonium.data.aliases import resolve_aliases
from harmonium.data.datasets import mulan as mulan_files
from harmonium.data.datasets.dataset import read_arrays
from harmonium.data.datasets.loaders import read_split
from harmonium.data.genres import GenreTree, read_tree
from harmonium.data.splitting import TagSplitter
from harmonium.errors import HarmoniumError, HarmoniumWarning
from harmonium.estimators import DiscriminativeRBM
from harmonium.estimators.model_files import to_bytes
from harmonium.experiments.plan import arms, missing
from harmonium.experiments.recipe import parse_recipe
from harmonium.experiments.results import ResultStore, read_results
from harmonium.library import Library, imports
from harmonium.library.export import TaggedTrack, can_be_listed, rekordbox
from harmonium.library.export import playlist as make_playlist
from harmonium.library.filetags import apply_change, audio_digest, plan_write, read_tags, undo
from harmonium.library.filetags.binary import opened
from harmonium.library.filetags.formats import read_cover
from harmonium.library.filetags.rules import make_rules, parse_pairs, read_rules
from harmonium.library.model.tagger import Tagger
from harmonium.library.search import parse
from harmonium.library.store.models import StoredModel
from harmonium.library.store.reports import ModelReport
from harmonium.library.store.tracks import Track
from harmonium.library.teaching.say import read_said
from harmonium.web.app import create_app
from harmonium.web.guard import ServerSettings

TAGS = ("rock", "hip hop", "drum and bass", "a-ha", "or", "jazz")


TARGETS = {}


def target(*seeds):
    """Make a function a target; seeds are bytes, or a function that makes them."""

    def register(function):
        def make():
            given = (seed() if callable(seed) else [seed] for seed in seeds)
            return [one for some in given for one in some]

        function.seeds, TARGETS[function.__name__] = make, function
        return function

    return register


def run(name: str, data: bytes) -> None:
    """Give a target some bytes; an error of Harmonium is an answer."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", HarmoniumWarning)
        with suppress(HarmoniumError):
            TARGETS[name](data)


@cache
def folder() -> Path:
    """A folder for this process."""
    place = "/dev/shm" if Path("/dev/shm").is_dir() else None  # quicker than a disk
    made = tempfile.TemporaryDirectory(prefix="harmonium-fuzz-", dir=place)
    folder.made = made  # it lives as long as the process
    return Path(made.name)


def file(name: str, data: bytes) -> Path:
    """A file with this content; the same one each time."""
    path = folder() / name
    path.write_bytes(data)
    return path


def halves(data: bytes) -> tuple[int, bytes]:
    """The first byte, which chooses among ways, and the rest."""
    return (data[0] if data else 0), data[1:]


def parquet(**columns) -> bytes:
    out = io.BytesIO()
    pl.DataFrame(columns).write_parquet(out)
    return out.getvalue()


def npz(**arrays) -> bytes:
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


TABLE_NAMES = ("t.csv", "t.tsv", "t.parquet", "t.csv.gz")
TABLES = (
    b'\0user,item,tag\nann,c1,rock\nbob,c2,"hip, hop"\n',
    b"\1user\titem\ttag\nann\tc1\trock\n",
)


def table(data):
    """A file of one kind or another, as the first byte says."""
    way, rest = halves(data)
    return file(TABLE_NAMES[way % 4], rest)


@target(*TABLES)
def triples(data):
    read_triples(table(data)).frame()


@target(b"\0item,tag,count\nc1,rock,3\n", b"\1item\ttag\tcount\nc1\trock\t-1\n")
def counts(data):
    read_counts(table(data)).labels(min_count=1)


@target(b"\0alias,tag\nhiphop,hip hop\nrap,hip hop\n", b"\0alias,tag\na,b\nb,a\n")
def aliases(data):
    resolve_aliases(read_aliases(table(data)), normalise=True)


@target(b"Rock/Pop; Hip-Hop, R&B\nDrum & Bass\n")
def parting(data):
    texts = data.decode(errors="replace").split("\n")
    one = TagSplitter(pl.Series(texts), known=TAGS)
    for text in texts:
        assert all(part.strip() for part in one.split(text))


@cache
def tagged_library():
    library = Library.open(folder() / "library.db")
    library.tracks.put([Track(f"/m/{i}.mp3", f"{i:04}", title=f"Song {i}") for i in range(3)])
    return library


@target(
    b"\0user,path,tag\nann,/m/1.mp3,rock; pop\nbob,2.mp3,-live\n",
    b"\0title;tag;user;value\nSong 1;rock;ann;1\nSong 2;jazz;bob;-1\n",
)
def import_table(data):
    imports.import_table(tagged_library(), table(data), dry_run=True)


FEATURE_NAMES = ("f.csv", "f.tsv", "f.parquet", "f.npz")


@target(
    b"\0path,a,b\n/m/1.mp3,1,2\n/m/2.mp3,3,4.5\n",
    b"\1path\ta\n1.mp3\t1e300\n",
    b"\3" + npz(path=np.array(["1.mp3"]), X=np.ones((1, 3))),
)
def feature_table(data):
    way, rest = halves(data)
    imports.import_features(tagged_library(), file(FEATURE_NAMES[way % 4], rest), dry_run=True)


@target(
    parquet(user=["ann"], item=["1.mp3"], tag=["rock"]),
    parquet(path=["1.mp3", "2.mp3"], v=[[1.0, 2.0], [3.0, 4.0]]),
    parquet(path=["1.mp3", "2.mp3"], v=[1.0, 2.0], w=[3, 4]),
)
def parquet_table(data):
    """Each starts another process, so `tests/fuzz` tries fewer."""
    path = file("t.parquet", data)
    with suppress(HarmoniumError):
        read_triples(path)
    imports.import_features(tagged_library(), path, dry_run=True)


@target(
    b"@relation x\n@attribute a numeric\n@attribute 'b c' {0, 1}\n@data\n1.5,0\n?, 1\n{0 3, 1 1}\n",
    b"@attribute t string\n@attribute d date\n@data\n'it''s', \"a\\\"b\"\n{}\n",
)
def arff(data):
    mulan_files.read_arff(file("x.arff", data))


@target(
    b'<labels><label name="r"></label></labels>\xff'
    b"@attribute a {x, y, z}\n@attribute r {0,1}\n@data\nx,1\ny,0\n"
)
def mulan(data):
    xml, _, rows = data.partition(b"\xff")
    where = folder() / "mulan" / "x"
    where.mkdir(parents=True, exist_ok=True)
    (where / "x.xml").write_bytes(xml)
    (where / "x.arff").write_bytes(rows)
    mulan_files.load("x", folder())


@target(b"0,2 1:0.5 3:-2\n 2:1\n1\n")
def libsvm(data):
    read_split(file("x.libsvm", data), "mturk", None)


@target(npz(X=np.ones((2, 3), np.float32), ids=np.array(["a", "b"])))
def npz_arrays(data):
    read_arrays(file("x.npz", data), "X", "ids")


@target(b'mellow -rock "hip hop"', b'(rock OR jazz) AND NOT "a-ha"', b"drum and bass")
def query(data):
    found = parse(data.decode(errors="replace"), TAGS, {"rap": "hip hop"})
    assert set(found.tags) <= set(TAGS)
    p = found.probability(lambda tag: np.float32([0.0, 0.25, 1.0]))
    assert ((p >= 0) & (p <= 1)).all()


def recipes():
    return [path.read_bytes() for path in sorted((PROJECT / "recipes").glob("*.toml"))]


@target(
    recipes,
    b'title = "x"\nform = "search"\ndatasets = ["emotify"]\nn_folds = 3\n[vary]\nclips = [0]\n'
    b'[[model]]\nname = "m"\nestimator = "MLPTagger"\nsettings = {a = 1}\nsearch = [{b = [1, 2]}]\n'
    b'[tests]\nknown = [0.5, "one"]\n[[dataset]]\nname = "d"\noptions = {}\n',
)
def recipe(data):
    found = parse_recipe(data.decode(errors="replace"), trusted=True)
    if len(data) < 1000 and len(arms(found)) < 10 and found.n_folds < 5:
        missing(found, {})


@target(b'{"key": "a", "valid_auc": 0.5, "tests": []}\n{"key": "b"}\n{"key')
def results(data):
    where = folder() / "results"
    where.mkdir(exist_ok=True)
    (where / "recipe.toml").write_bytes(recipes()[0])
    (where / "results.jsonl").write_bytes(data)
    with suppress(HarmoniumError):
        read_results(where)
    ResultStore(where)


@target(b'mode = "merge"\nignore = ["x"]\nid3_version = 3\n[fields]\nmellow = "mood"\n')
def rules(data):
    said = read_rules(file("rules.toml", data))
    make_rules([said, {"ignore": ["y"]}]).place("mellow")


@target(b'compounds = ["R&B"]\n[kinds]\nRock = ["Punk"]\n[aliases]\n"Punk Rock" = "Punk"\n')
def genres(data):
    tree = read_tree(file("genres.toml", data))
    again = GenreTree.from_dict(json.loads(json.dumps(tree.to_dict())))
    assert again.parents == tree.parents
    assert again.aliases == tree.aliases


@target(b"rock, -live\n--x\n,", b"a=b\nmellow=mood")
def words(data):
    lines = data.decode(errors="replace").split("\n")
    read_said(lines)
    parse_pairs(lines, "--field")


def a_model():
    """A model that was never trained, which takes no time."""
    H, D, C = 2, 6, len(TAGS)
    shapes = {"U": (H, C), "W": (H, D), "V": (0, C), "c": (H,), "d": (C,)}
    arrays = {f"params.{k}": np.full(shape, 0.1, np.float32) for k, shape in shapes.items()}
    arrays |= {"scaling.mean": np.zeros(D), "scaling.scale": np.ones(D), "thresholds": np.ones(C)}
    arrays |= {f"history.{k}": np.ones(1) for k in ("auc", "seconds", "log_likelihood")}
    settings = DiscriminativeRBM(n_hidden=H).get_params()
    about = {"class": "DiscriminativeRBM", "version": "0", "parameters": settings, "tags": TAGS}
    about |= {"classes": None, "classes_dtype": None, "features": None, "unit_norm": False}
    return [to_bytes(arrays, about | {"best_epoch": 1})]


@target(a_model)
def model(data):
    with suppress(HarmoniumError):
        DiscriminativeRBM.from_bytes(data)
    about = {"name": "DiscriminativeRBM", "vocabulary": list(TAGS), "extractor": "x"}
    about |= {"report": ModelReport()}
    thresholds = np.full(len(TAGS), 0.5, np.float32)
    tagger = Tagger(StoredModel(thresholds=thresholds, bytes=data, **about))
    known = np.full((2, len(tagger.tags)), np.nan, np.float32)
    with np.errstate(all="ignore"):
        tagger.probabilities(np.ones((2, 6), np.float32), known)


def music():
    return [tagged(kind) for kind in FORMATS]


def read_front_cover(path):
    with opened(path) as song:
        return read_cover(song)


@target(music)
def file_tags(data):
    path = file("song", data)
    for read in (read_tags, audio_digest, read_front_cover):
        with suppress(HarmoniumError):
            read(path)
    done = apply_change(plan_write(path, ["a"]))
    if done is not None:
        undo(path, done)
    assert path.read_bytes() == data


@target(music)
def sound(data):
    found = decode(file("song", data))
    assert np.isfinite(found.samples).all()


def tracks(data):
    made = []
    for number, line in enumerate(data.split(b"\xff")[:4], start=1):
        texts = [part.decode(errors="surrogateescape") for part in line.split(b"\xfe")[:5]]
        path, title, artist, album, tag, *_ = (*texts, *[""] * 5)
        path = "/" + path.replace("\0", "")  # as no path has one
        about = {"title": title or None, "artist": artist or None, "album": album or None}
        about["file_tags"] = {"genre": [tag], "comment": [tag]} if tag else {}
        about |= {"duration": 1.5, "added_at": datetime.now(UTC)}
        made.append((Track(path, f"{number}", id=number, **about), [tag] if tag else []))
    return made


HOSTILE = b"m/a.mp3\xfe<b>T</b>\xfeA & B\xfe=1+1\xfe$(touch x)\xff-rf\n#EXTINF\xfe\x1b[31m\xfe\x00"


@target(HOSTILE)
def playlist(data):
    listed = [track for track, _ in tracks(data)]
    lines = make_playlist(listed).decode(errors="surrogateescape").split("\n")
    paths = [line for line in lines if line and not line.startswith("#")]
    assert paths == [track.path for track in listed if can_be_listed(track)]


@target(HOSTILE)
def export(data):
    given = [
        TaggedTrack(track=track, tags=tags, features={"energy": 0.5} if tags else {})
        for track, tags in tracks(data)
    ]
    root = ElementTree.fromstring(rekordbox(given, "name"))
    assert len(root.findall("COLLECTION/TRACK")) == len(given)


@cache
def web_app():
    app = create_app(ServerSettings(place=tagged_library().place))
    routes = [
        (method.upper(), path)
        for path, methods in sorted(app.openapi()["paths"].items())
        for method in sorted(methods)
        if not path.endswith(("/events", "/jobs", "/files", "/index", "/write", "/train"))
    ]
    return app, routes


def requests():
    _, routes = web_app()
    bodies = (b'{"yes": ["rock"], "no": ["live"]}', b'{"old": "rock", "new": "pop"}', b"{}")
    return [bytes([i]) + b"q=rock&limit=3\n" + bodies[i % 3] for i in range(len(routes))]


@target(requests)
def http(data):
    """Any query and body for any route but those that start work on the machine."""
    app, routes = web_app()
    way, rest = halves(data)
    method, path = routes[way % len(routes)]
    query, _, body = rest.partition(b"\n")
    path = path.replace("{id}", "1").replace("{tag}", quote(query[:8], safe=""))
    address = f"http://localhost{path}?{quote(query, safe='=&+')}"
    headers = {"content-type": "application/json"}

    async def answer():
        async with AsyncClient(transport=ASGITransport(app)) as client:
            return await client.request(method, address, content=body, headers=headers)

    with ThreadPoolExecutor(1) as thread:  # in this one, a browser's loop may be running
        status = thread.submit(asyncio.run, answer()).result().status_code
    assert status < 500 or status == 503, (method, path, status)
