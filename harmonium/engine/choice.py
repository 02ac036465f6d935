"""An engine by its name."""

from harmonium.engine.base import Engine, EngineError, Serial, available_cores
from harmonium.nearest_names import did_you_mean

ENGINES = ("processes", "serial")


def make_executor(
    engine: str = "processes", *, jobs: int | None = None, time_limit: float | None = None
) -> Engine:
    """The executor that an engine's name stands for.

    Parameters
    ----------
    engine : "processes" for worker processes on this machine; "serial" for this process; or the
        address of a Dask scheduler, such as "tcp://host:8786"
    jobs : how many processes; by default one for each core that this process may use. The other
        engines ignore it.
    time_limit : seconds that one task may take before its process is ended; None for no limit.
        The engine "serial" ignores it.

    Raises
    ------
    EngineError
        for another name, a number of jobs below 1, or a cluster that cannot be used

    >>> with make_executor("serial") as executor:
    ...     executor.submit(pow, 2, 10).result()
    1024
    """
    if jobs is not None and (not isinstance(jobs, int) or jobs < 1):
        raise EngineError(f"'jobs' must be a whole number of at least 1, got {jobs!r}.")
    if time_limit is not None and not time_limit > 0:
        raise EngineError(f"'time_limit' must be positive seconds, or None, got {time_limit!r}.")
    if engine == "serial":
        return Serial()
    if engine == "processes":
        from harmonium.engine.processes import Processes

        return Processes(jobs or available_cores(), time_limit=time_limit)
    if isinstance(engine, str) and "://" in engine:
        from harmonium.engine.dask import Cluster

        return Cluster(engine, time_limit=time_limit)
    raise EngineError(
        "'engine' must be 'processes', 'serial', or the address of a Dask scheduler such as "
        f"tcp://host:8786, got {engine!r}.{did_you_mean(engine, ENGINES)}"
    )
