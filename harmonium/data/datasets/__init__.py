"""Public datasets: `load("majorminer")` reads one from the data folder; `names()` lists them.

See docs/datasets.md for what each holds, where its files come from, and the options of its loader.
"""

import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from harmonium.data.datasets import loaders, mulan
from harmonium.data.datasets.dataset import INFOS, TABLES, reading
from harmonium.data.datasets.dataset import Dataset as Dataset
from harmonium.data.datasets.dataset import DatasetInfo as DatasetInfo
from harmonium.data.datasets.dataset import Labels as Labels
from harmonium.data.datasets.dataset import data_folders as data_folders
from harmonium.data.datasets.dataset import is_found as is_found
from harmonium.errors import DataError, did_you_mean

_LOADERS: dict[str, Callable[..., Dataset]] = {
    "mturk": partial(loaders.load_paper_files, "mturk"),
    "majmin": partial(loaders.load_paper_files, "majmin"),
    "majorminer": loaders.load_majorminer,
    "emotify": loaders.load_emotify,
    "4q": partial(loaders.load_listening, "4q"),
    "gtzan": partial(loaders.load_listening, "gtzan"),
    "hetrec": loaders.load_hetrec,
    "hetrec-msd": loaders.load_hetrec_msd,
    "msd": loaders.load_msd,
}


def names(folder: str | Path | None = None) -> list[str]:
    """The names that `load` takes: the known ones, and any other Mulan set in the data folder."""
    known = [*_LOADERS, *(mulan.PREFIX + name for name in TABLES["mulan"])]
    others = set()
    for root in data_folders(folder):
        for path in root.glob("mulan/*/*.xml"):
            if path.stem == path.parent.name:
                others.add(mulan.PREFIX + path.parent.name)
    return known + sorted(others - set(known))


def info(name: str) -> DatasetInfo:
    """What is known about a dataset without reading it."""
    dataset_info, _ = _find(name)
    return dataset_info


def load(name: str, folder: str | Path | None = None, **options: Any) -> Dataset:
    """Read a public dataset.

    Parameters
    ----------
    name : one of `names()`; "mulan:NAME" reads any set in Mulan's form
    folder : the data folder, with one subfolder per dataset, or the dataset's own folder; by
        default the folder that HARMONIUM_DATA names, then the per-user folder
    options : the loader's own, see docs/datasets.md

    Raises DatasetNotFoundError if files are missing, and DataError if one cannot be read; warns if
    one is not the published version.

    Examples
    --------
    >>> data = load("majorminer", features="all")      # doctest: +SKIP
    >>> Y, tags = data.labels(n_tags=40)               # doctest: +SKIP
    """
    known = options_of(name)
    for option in options:
        if option not in known:
            listed = ", ".join(known) or "none"
            raise DataError(f"Dataset '{name}' has no option '{option}'. Its options: {listed}.")
    dataset_info, loader = _find(name)
    way_out = f"Its files are not the published ones. {dataset_info.how_to_get}"
    with reading(f"Dataset '{name}'", way_out):
        return loader(folder, **options)


def options_of(name: str) -> list[str]:
    """The options that `load` takes for a dataset."""
    _, loader = _find(name)
    parameters = inspect.signature(loader).parameters.values()
    return [parameter.name for parameter in parameters if parameter.kind == parameter.KEYWORD_ONLY]


def _find(name: str) -> tuple[DatasetInfo, Callable[..., Dataset]]:
    if name in _LOADERS:
        return INFOS[name], _LOADERS[name]
    if name.startswith(mulan.PREFIX) and len(name) > len(mulan.PREFIX):
        set_name = name.removeprefix(mulan.PREFIX)
        if Path(set_name).name == set_name:
            return mulan.info(set_name), partial(mulan.load, set_name)
    known = names()
    hint = did_you_mean(name, known)
    raise DataError(
        f"There is no dataset '{name}'.{hint} The datasets are {', '.join(known)}, and mulan:NAME "
        "for any other set in Mulan's format."
    )
