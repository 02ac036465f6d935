"""Many files through `iterate_files`: memory, the rate, and what the cache saves.

    HARMONIUM_DATA=... python benchmarks/many_files.py [--files 10000] [--jobs 2] [--folder DIR]

Copies the Emotify clips (Ogg, 15 s; elsewhere clips of the generated collection, FLAC), each copy
with a number at its end, until there are --files different ones (about 85 kB each). Extracts them
with a cache, and notes the memory of this process and of its workers after each tenth. Then once
more, and once more with every file renamed. As in an index, the features themselves are not kept.
Last, how many tasks a second the engine could pass to its workers and back.
"""

import argparse
import multiprocessing
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import soundfile

from harmonium.audio.cache import CACHE_FILE
from harmonium.audio.extraction import iterate_files
from harmonium.engine import Runner, available_cores


def sources(folder: Path) -> list[Path]:
    clips = Path(os.environ.get("HARMONIUM_DATA", "")) / "emotify" / "clips"
    if clips.is_dir():
        return sorted(clips.glob("*.ogg"))
    from harmonium.synthetic import make_collection

    collection = make_collection(100, 1)
    paths = [folder / f"source-{i}.flac" for i in range(collection.n_clips)]
    for i, path in enumerate(paths):
        soundfile.write(path, collection.samples(i), collection.rate)
    return paths


def make_files(folder: Path, n_files: int) -> list[Path]:
    originals = sources(folder)
    files = []
    for number in range(n_files):
        source = originals[number % len(originals)]
        file = folder / f"{number:06d}{source.suffix}"
        shutil.copyfile(source, file)
        with file.open("ab") as end:  # decoders do not mind, and the content is another
            end.write(number.to_bytes(8, "little"))
        files.append(file)
    return files


def resident_mib(pid: int | str = "self") -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s*(\d+) kB", status)[1]) / 1024  # type: ignore[index]


def extract(name: str, files: Iterable[Path], n_files: int, cache: Path, jobs: int) -> None:
    """Go through the files, and print the rate and the memory at each tenth."""
    own, workers = [], []
    n_cached = n_failed = 0
    began = time.perf_counter()
    for n_done, found in enumerate(iterate_files(files, jobs=jobs, cache=cache), 1):
        n_cached += found.cached
        n_failed += found.vector is None
        if n_done % max(1, n_files // 10) == 0:
            own.append(resident_mib())
            children = multiprocessing.active_children()
            workers.append(
                max((resident_mib(child.pid or "self") for child in children), default=0)
            )
    seconds = time.perf_counter() - began
    print(
        f"{name}: {n_done:,} files in {seconds:.1f} s, {n_done / seconds:,.0f} a second; "
        f"{n_cached:,} from the cache, {n_failed:,} failed"
    )
    print(f"  MiB of this process at each tenth: {', '.join(f'{x:.0f}' for x in own)}")
    print(f"  MiB of the largest worker:         {', '.join(f'{x:.0f}' for x in workers)}")


def print_engine(jobs: int, n_tasks: int = 20_000) -> None:
    began = time.perf_counter()
    with Runner[int, int](abs, jobs=jobs) as runner:
        for task in range(n_tasks):
            if runner.full:
                runner.next()
            runner.submit(task)
        while runner.pending:
            runner.next()
    rate = n_tasks / (time.perf_counter() - began)
    print(f"The engine alone: {rate:,.0f} empty tasks a second")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, default=available_cores())
    parser.add_argument("--folder", type=Path, help="where the files are made, below it")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as temporary:
        folder, cache = Path(temporary) / "files", Path(temporary) / "cache"
        folder.mkdir()
        files = make_files(folder, options.files)
        time.sleep(3)  # a file that has just been written is not taken to be unchanged
        extract("First run", files, len(files), cache, options.jobs)
        extract("Second run", files, len(files), cache, options.jobs)
        renamed = [file.rename(file.with_stem(f"renamed-{file.stem}")) for file in files]
        time.sleep(3)
        extract("All renamed", renamed, len(files), cache, options.jobs)
        size = sum(path.stat().st_size for path in cache.glob(f"{CACHE_FILE}*"))
        print(f"The cache: {size / len(files) / 1000:.1f} kB a file")
    print_engine(options.jobs)


if __name__ == "__main__":
    main()
