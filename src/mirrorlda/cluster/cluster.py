"""A Ray cluster: connecting to it, checking that its machines agree, and running pure functions on it.

All that runs on a cluster is a task: a function of what it is given, which Ray repeats elsewhere when a process or machine dies.
"""

from __future__ import annotations

import os
import socket
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import ray
from ray.exceptions import RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from mirrorlda import _core
from mirrorlda.cluster.training import ClusterSteps
from mirrorlda.cluster.versions import ClusterError, check_same, versions

I = TypeVar("I")  # noqa: E741
R = TypeVar("R")

# Seconds that a machine has to answer before it counts as unreachable; Ray itself would go on trying for minutes.
_PATIENCE = 10.0
# Processes that may die of one task before it is the task's fault.
_MOST_DEATHS = 20
# Tasks that wait for each worker, so that none waits for the driver.
_AHEAD = 2


@dataclass(frozen=True)
class Node:
    """A machine of the cluster: its id, its address and how many processors tasks may have there."""

    id: str
    address: str
    n_cpus: int


class Cluster:
    """A Ray cluster to train, prepare and predict on, in place of this machine alone.

    Parameters
    ----------
    address : str, default="auto"
        "auto" is the cluster that this machine belongs to (or that RAY_ADDRESS names), "local" this machine's own processors,
        with nothing to start before; otherwise the address of its head, host:port.
    n_workers : int, optional
        Processes that work at the same time; as many as the cluster has processors for by default. The result does not depend
        on it.
    sync_every : int, default=100
        Batches between two exchanges of what the workers have learned. With 1 they exchange gradients: the result is that of one
        machine, to the bit.

    Examples
    --------
    >>> import tempfile
    >>> from mirrorlda import Corpus, CorpusWriter, Target, TopicRegressor
    >>> from mirrorlda.datasets import make_topics
    >>> from mirrorlda.distributed import Cluster
    >>> data = make_topics(n_docs=600, n_words=60, n_topics=3, n_outputs=1, random_state=0)
    >>> path = tempfile.mkdtemp() + "/planted.corpus"
    >>> with CorpusWriter(path, n_words=60, target=Target("numbers", ("score",))) as writer:
    ...     writer.add(data.X, data.y)
    >>> with Cluster("local", n_workers=1) as cluster:
    ...     model = TopicRegressor(random_state=0).fit(Corpus(path), cluster=cluster)
    >>> model.score(Corpus(path)) > 0.9
    True
    """

    def __init__(self, address: str = "auto", *, n_workers: int | None = None, sync_every: int = 100) -> None:
        for name, value in (("n_workers", n_workers), ("sync_every", sync_every)):
            if value is not None and not (isinstance(value, int) and not isinstance(value, bool) and value >= 1):
                raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}")
        self.address, self.sync_every = address, sync_every
        self.most_workers = n_workers
        self._is_ours = not ray.is_initialized()
        if self._is_ours:
            _connect(address)
        elif ":" in address and (here := ray.get_runtime_context().gcs_address).rpartition(":")[2] != address.rpartition(":")[2]:
            raise ClusterError(f"this process is connected to the cluster at {here}: ray.shutdown() first, to use {address!r}")

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave the cluster; a "local" one ends."""
        if self._is_ours and ray.is_initialized():
            ray.shutdown()

    def __repr__(self) -> str:
        return f"<Cluster {self.address!r} of {len(self.nodes())} machines>"

    def nodes(self) -> list[Node]:
        """The machines that are there now, in the order of their ids."""
        alive = [node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1]
        return sorted(
            (Node(node["NodeID"], node["NodeManagerAddress"], int(node["Resources"]["CPU"])) for node in alive),
            key=lambda node: node.id,
        )

    def slots(self, n_threads: int = 1) -> list[str]:
        """For each process of `n_threads` threads that works at the same time, the machine that has room for it."""
        possible = [node.id for node in self.nodes() for _ in range(node.n_cpus // n_threads)]
        if not possible:
            raise ClusterError(
                f"no machine of the cluster has {n_threads} processors for a worker of n_jobs={n_threads} threads: "
                f"there are {[f'{node.address}: {node.n_cpus}' for node in self.nodes()]}"
            )
        return possible if self.most_workers is None else possible[: self.most_workers]

    def n_workers(self, n_threads: int = 1) -> int:
        """Processes of `n_threads` threads that work at the same time."""
        return len(self.slots(n_threads))

    def steps(self) -> ClusterSteps:
        """Who takes the steps of a fit, for the loop of training."""
        return ClusterSteps(self)

    def submit(
        self, function: Callable[..., Any], *arguments: Any, n_threads: int = 1, node: str | None = None, n_returns: int = 1
    ) -> Any:
        """Begin a task, on `node` where that can be; returns a reference, or several."""
        return _task(function, n_threads, node, n_returns).remote(*arguments)

    def put(self, value: Any) -> Any:
        """A reference to a value that all workers can read."""
        return ray.put(value)

    def get(self, references: Any) -> Any:
        """What tasks have returned; the error of one that failed is raised as it was."""
        try:
            return ray.get(references)
        except RayTaskError as error:
            raise _original(error) from None
        except RayError as error:
            raise ClusterError(f"the cluster could not finish a task: {_first_line(error)}") from None

    def map(self, function: Callable[..., R], items: Iterable[I], *shared: Any, n_threads: int = 1) -> Iterator[R]:
        """What a function makes of every item, and of what all share, in the order of the items; few are under way at a time."""
        with closing(self._begun(function, items, shared, n_threads, 1)) as begun:
            for reference in begun:
                yield self.get(reference)

    def map_kept(
        self, function: Callable[..., tuple[R, Any]], items: Iterable[I], *shared: Any, n_threads: int = 1
    ) -> Iterator[tuple[R, Any]]:
        """As `map`, of a function that returns two values: the first, and a reference to the second, which stays where it is."""
        with closing(self._begun(function, items, shared, n_threads, 2)) as begun:
            for told, kept in begun:
                yield self.get(told), kept

    def reduce(self, function: Callable[[Any, Any], Any], references: list[Any], leave: int = 1) -> list[Any]:
        """References to what a function makes of neighbours, and of neighbours of these, until at most so many are left."""
        while len(references) > leave:
            pairs = zip(references[::2], references[1::2], strict=False)
            references = [self.submit(function, *pair) for pair in pairs] + references[len(references) // 2 * 2 :]
        return references

    def _begun(
        self, function: Callable[..., Any], items: Iterable[Any], shared: tuple[Any, ...], n_threads: int, n_returns: int
    ) -> Generator[Any, None, None]:
        """References to what tasks return, in the order of the items. Who stops early waits a while for those under way."""
        waiting: deque[Any] = deque()
        most = _AHEAD * self.n_workers(n_threads)
        # Ray hands out a value behind a reference that is an argument.
        references = [ray.put(value) for value in shared]
        try:
            for item in items:
                waiting.append(self.submit(function, item, *references, n_threads=n_threads, n_returns=n_returns))
                if len(waiting) >= most:
                    yield waiting[0]
                    waiting.popleft()
            while waiting:
                yield waiting[0]
                waiting.popleft()
        finally:
            if waiting:
                # Cancelling a task that is about to end can bring down the driver (Ray 2.60): they end, and nobody asks for what
                # they return.
                first = [reference if n_returns == 1 else reference[0] for reference in waiting]
                ray.wait(first, num_returns=len(first), timeout=_PATIENCE)

    def check(self, probe: Callable[[], Any] = lambda: None) -> None:
        """That all machines have the driver's version, and that `probe` succeeds on each of them."""
        here, nodes = versions(), self.nodes()
        asked = [ray.remote(_answer).options(**self._there(node)).remote(probe) for node in nodes]
        for node, reference in zip(nodes, asked, strict=True):
            try:
                found, failure = self.get(reference)
            except ClusterError as error:
                if node not in self.nodes():
                    # Dead, not incapable.
                    continue
                raise ClusterError(f"machine {node.address} cannot run mirrorlda: {error}") from None
            except (ImportError, RuntimeError) as error:
                # What cannot be imported there is either, depending on where Ray notices it.
                raise ClusterError(f"machine {node.address} has no mirrorlda that runs: {_first_line(error)}") from None
            check_same(found, here, node.address)
            if failure is not None:
                raise ClusterError(f"machine {node.address}: {failure}")

    def _there(self, node: Node) -> dict[str, Any]:
        strategy = NodeAffinitySchedulingStrategy(node.id, soft=False)
        return {"num_cpus": 0, "scheduling_strategy": strategy, "runtime_env": _environment()}


@cache
def _environment() -> dict[str, Any]:
    """Every worker computes with the instruction set of the driver, and leaves threads to us."""
    return {"env_vars": {"MIRRORLDA_ISA": _core.instruction_set(), "OMP_NUM_THREADS": "1"}}


@cache
def _task(function: Callable[..., Any], n_threads: int, node: str | None, n_returns: int) -> Any:
    """The function as Ray calls it: wherever that can be, and again where a process or a machine died."""
    return ray.remote(function).options(
        num_cpus=n_threads,
        max_retries=_MOST_DEATHS,
        num_returns=n_returns,
        scheduling_strategy="DEFAULT" if node is None else NodeAffinitySchedulingStrategy(node, soft=True),
        name=function.__qualname__,
        runtime_env=_environment(),
    )


def _connect(address: str) -> None:
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # An error is raised where its task is asked for; Ray would print those of all other tasks too.
    os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")
    if address == "local":
        ray.init(address="local", include_dashboard=False, **options)
        return
    if ":" in address and "://" not in address:
        _check_reachable(address)
    try:
        ray.init(address=address, **options)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise ClusterError(
            f"no Ray cluster at {address!r}: {_first_line(error)} Start one with `ray start --head`, or use 'local' for this "
            "machine alone"
        ) from None


def _check_reachable(address: str) -> None:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_PATIENCE).close()
    except (OSError, ValueError, OverflowError) as error:
        raise ClusterError(
            f"no Ray cluster at {address!r}: {error}. Expected host:port of a head that `ray start --head` has started"
        ) from None


def _answer(probe: Callable[[], Any]) -> tuple[dict[str, str], str | None]:
    """What a machine says of itself, and what the probe fails with."""
    try:
        probe()
    except (OSError, ValueError) as error:
        return versions(), str(error)
    return versions(), None


def _original(error: RayTaskError) -> BaseException:
    """The error that a task ended with."""
    cause = error.cause
    if isinstance(cause, RayError):
        return ClusterError(f"the cluster could not run a task: {_first_line(cause)}")
    return cause if isinstance(cause, BaseException) else ClusterError(_first_line(error))


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
