"""Load on the server: many clients that search, look at tracks and complete tags, on loopback.

    python benchmarks/serve_load.py [--seconds 60] [--clients 32] [--tracks 100000] [--train]
                                    [--library PLACE]

Makes a library as benchmarks/collection_search.py does (a temporary SQLite file, or
PLACE, which must be new or made by an earlier run), starts `harmonium serve` on it, and lets
clients ask as fast as they get answers, from this process: half of the requests are searches of one
to three tags, drawn anew each time, so that hardly any is asked twice; three in ten are tracks; two
in ten completions. With --train, a training run goes on beside it. The times are the clients'.
"""

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
from collection_search import TAGS, add_model, add_opinions, add_tracks, timed

from harmonium.library import Library
from harmonium.library.model.tagger import tag_library

KINDS = ("search", "track", "complete")


def make_library(place: str, n_tracks: int, n_triples: int) -> None:
    with Library.open(place) as library:
        if library.tracks.count():
            return
        timed("tracks stored", lambda: add_tracks(library, n_tracks))
        timed("tags stored", lambda: add_opinions(library, n_tracks, n_triples))
        timed("model", lambda: add_model(library))
        timed("all tracks tagged", lambda: tag_library(library))


class Client:
    """One connection; just enough of HTTP to be quick."""

    def __init__(self, port: int) -> None:
        self.port = port

    async def open(self) -> None:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)

    async def ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        head = f"{method} /api/v1/{path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n"
        if body:
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        self.writer.write(f"{head}\r\n".encode() + body)
        answer = await self.reader.readuntil(b"\r\n\r\n")
        lines = answer.decode().split("\r\n")
        lengths = [line for line in lines if line.lower().startswith("content-length:")]
        data = await self.reader.readexactly(int(lengths[0].partition(":")[2]))
        return int(lines[0].split()[1]), data


def request(rng: random.Random, n_tracks: int) -> tuple[str, str, str, bytes]:
    """Kind, method, path and body of a request."""
    draw, track = rng.random(), rng.randint(1, n_tracks)
    if draw < 0.5:
        tags = [f"%22{tag.replace(' ', '%20')}%22" for tag in rng.sample(TAGS, rng.randint(1, 3))]
        offset = rng.choice((0, 0, 50))
        between = rng.choice(("%20", "%20-", "%20OR%20"))
        return "search", "GET", f"search?q={between.join(tags)}&offset={offset}", b""
    if draw < 0.8:
        return "track", "GET", f"tracks/{track}", b""
    yes, no = rng.sample(TAGS, 2)
    body = json.dumps({"yes": [yes], "no": [no]}).encode()
    return "complete", "POST", f"tracks/{track}/complete", body


async def load(
    port: int, n_clients: int, seconds: float, n_tracks: int
) -> tuple[dict[str, list[float]], list[str]]:
    """Milliseconds of each kind of request, and what went wrong."""
    times: dict[str, list[float]] = defaultdict(list)
    errors: list[str] = []
    end = time.perf_counter() + seconds

    async def one(seed: int) -> None:
        rng, client = random.Random(seed), Client(port)
        await client.open()
        while time.perf_counter() < end:
            kind, method, path, body = request(rng, n_tracks)
            began = time.perf_counter()
            status, data = await client.ask(method, path, body)
            times[kind].append(1000 * (time.perf_counter() - began))
            if status != 200:
                errors.append(f"{method} {path}: {status} {data[:200]!r}")

    found = await asyncio.gather(*(one(i) for i in range(n_clients)), return_exceptions=True)
    errors += [repr(error) for error in found if error is not None]
    return times, errors


def show(what: str, times: dict[str, list[float]], errors: list[str], seconds: float) -> None:
    print(f"\n{what}\n\n| request | per second | p50, ms | p99, ms | longest, ms |")
    print("|---|---|---|---|---|")
    for kind in KINDS:
        found = np.array(times[kind] or [np.nan])
        p50, p99 = np.percentile(found, [50, 99])
        rate = len(times[kind]) / seconds
        print(f"| {kind} | {rate:.0f} | {p50:.0f} | {p99:.0f} | {found.max():.0f} |")
    total = sum(map(len, times.values()))
    print(
        f"\n{total:,} requests, {total / seconds:.0f} per second, {len(errors)} errors", flush=True
    )
    for error in errors[:5]:
        print(error)


def processor_seconds(process: int) -> float:
    """What a process has used so far; Linux says."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def alone(port: int, process: int, n_tracks: int, each: int = 200) -> None:
    """One client, one kind of request after the other: the time, and the server's own work."""
    rng, client = random.Random(-1), Client(port)
    await client.open()
    await client.ask("GET", "search?q=%22tag%2001%22")
    print(
        "\n1 client\n\n| request | p50, ms | p99, ms | processor time each, ms |\n|---|---|---|---|"
    )
    for kind in KINDS:
        wanted = (request(rng, n_tracks) for _ in range(100 * each))
        some = [one[1:] for one in wanted if one[0] == kind][:each]
        before, times = processor_seconds(process), []
        for one in some:
            began = time.perf_counter()
            await client.ask(*one)
            times.append(1000 * (time.perf_counter() - began))
        used = 1000 * (processor_seconds(process) - before) / each
        p50, p99 = np.percentile(times, [50, 99])
        print(f"| {kind} | {p50:.0f} | {p99:.0f} | {used:.1f} |", flush=True)


async def measure(port: int, process: int, options: argparse.Namespace) -> None:
    await alone(port, process, options.tracks)
    times, errors = await load(port, options.clients, options.seconds, options.tracks)
    show(f"{options.clients} clients, {options.seconds:.0f} s", times, errors, options.seconds)
    if options.train:
        client = Client(port)
        await client.open()
        _, data = await client.ask("POST", "train", b"{}")
        await asyncio.sleep(10)  # until it is at work
        times, errors = await load(port, options.clients, options.seconds, options.tracks)
        await client.open()  # the server ends connections that are idle
        _, now = await client.ask("GET", f"jobs/{json.loads(data)['id']}")
        job = json.loads(now)
        what = f"{options.clients} clients, {options.seconds:.0f} s, beside training"
        show(f"{what} ({job['state']}: {job['text']})", times, errors, options.seconds)
        await client.ask("POST", f"jobs/{job['id']}/stop", b"{}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--tracks", type=int, default=100_000)
    parser.add_argument("--triples", type=int, default=300_000)
    parser.add_argument("--train", action="store_true", help="also beside a training run")
    parser.add_argument("--library", help="the place of a library, as postgresql://…")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = options.library or str(Path(folder) / "library.db")
        make_library(place, options.tracks, options.triples)
        code = "from harmonium.cli import main; main()"
        command = [sys.executable, "-c", code, "serve", "--no-browser", "--port", "0", "-L", place]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            port = int(server.stdout.readline().rpartition(":")[2].strip().rstrip("/"))
            try:
                asyncio.run(measure(port, server.pid, options))
            finally:
                server.terminate()


if __name__ == "__main__":
    main()
