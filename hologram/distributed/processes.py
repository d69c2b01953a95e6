"""Joining the other processes of a program, and leaving them."""

from __future__ import annotations

import atexit
import contextlib
import os
import socket
import sys
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from hologram.distributed.environment import Place, find_place
from hologram.distributed.network import known
from hologram.errors import ArgumentError, DistributedError, DistributedTimeoutError
from hologram.support.forks import in_child
from hologram.support.user_lines import located
from hologram.support.world import Network, current_world, process_world, set_world
from hologram.trace.checks import number

DEFAULT_TIMEOUT = 300.0
_INTERFACE = "GLOO_SOCKET_IFNAME"
_joined: list[bool] = []  # whether the process group is ours to end
_joins: list[None] = []  # one for each time
_inherited: list[Any] = []  # worlds of the processes that this one was forked from


def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    *,
    initialization_timeout: float = DEFAULT_TIMEOUT,
    timeout: float = DEFAULT_TIMEOUT,
) -> None:
    """Joins the other processes of the program, by torch.distributed's Gloo; all call it once, before they use meshes.

    What is not given is read from the environment of torchrun, Ray Train or Slurm. ``coordinator_address`` is host:port of process 0. Where torch's
    default process group is there already, its processes are taken. ``initialization_timeout`` is how many seconds to wait for the others here,
    ``timeout`` how many in a collective.

    Where the coordinator is this machine by its loopback address, nothing listens on another. Else close the ports off from others: messages are
    neither encrypted nor authenticated.

    Raises DistributedError where the environment says too little, where it was called before, and where torch is not installed;
    DistributedTimeoutError where others do not come.

    >>> hg.distributed.initialize("localhost:1234", num_processes=8)
    Traceback (most recent call last):
    hologram.errors.DistributedError: initialize: neither the arguments nor the environment say process_id: ...
    """
    if _inherited:
        raise located(DistributedError("initialize: this process was forked from one that had joined others: start it anew (spawn)"))
    if _joined:
        raise located(DistributedError("initialize: this process has joined others already: see hg.distributed.shutdown"))
    waits = [number(t, "initialize", what) for t, what in ((initialization_timeout, "initialization_timeout"), (timeout, "timeout"))]
    if min(waits) <= 0:
        raise located(ArgumentError(f"initialize: a time-out is positive, not {min(waits)}"))
    try:
        import torch.distributed as engine
    except ImportError as e:
        raise located(DistributedError(f"initialize: torch.distributed carries the messages, and torch is not installed: {e}")) from None
    if not engine.is_available():
        raise located(DistributedError("initialize: this build of torch has no torch.distributed"))
    try:
        _join(engine, coordinator_address, num_processes, process_id, *waits)
    except (RuntimeError, OSError) as e:
        if isinstance(e, DistributedError):
            raise
        late = "timed out" in str(e).lower() or "timeout" in str(e).lower()
        kind = DistributedTimeoutError if late else DistributedError
        raise located(kind(f"initialize: the processes did not come together: {e}")) from None


def _join(engine: Any, address: str | None, size: int | None, rank: int | None, patience: float, timeout: float) -> None:
    from hologram.distributed.gloo import GlooWorld  # needs torch

    wait = timedelta(seconds=patience)  # for ranks that start late; from then on collectives wait as long as `timeout` says
    ours = not engine.is_initialized()
    if ours:
        place = find_place(address, size, rank)
        with _interface(place):
            store = _store(engine, place, patience)
            engine.init_process_group("gloo", store=store, rank=place.rank, world_size=place.size, timeout=wait)
            groups = [engine.group.WORLD, engine.new_group(backend="gloo", timeout=wait)]
    else:
        groups = [engine.new_group(backend="gloo", timeout=wait) for _ in range(2)]
    here = f"rank {engine.get_rank()} (host {socket.gethostname()}, process {os.getpid()})"
    size = engine.get_world_size()
    told: list[Any] = [None] * size
    figures = [known(size, is_local) or known(2, is_local) for is_local in (True, False)]
    engine.all_gather_object(told, (here, socket.gethostname(), figures), group=groups[0])
    for group in groups:
        engine.distributed_c10d._set_pg_timeout(timedelta(seconds=timeout), group)
    is_local = len({host for _, host, _ in told}) == 1
    network = told[0][2][0 if is_local else 1] or Network()  # rank 0's
    set_world(GlooWorld(groups[0], groups[1], engine.get_rank(), size, timeout, [name for name, *_ in told], _notes(engine), network))
    _joined.append(ours)


def _store(engine: Any, place: Place, patience: float) -> Any:
    """Where the processes find each other. Process 0 listens, on the loopback alone where that is its address, unless torchrun's agent does."""
    wait = timedelta(seconds=patience)
    attempt = f"hologram/{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}"
    listens = place.rank == 0 and not place.launched
    options: dict[str, Any] = {}
    if listens and place.is_local:
        family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
        listener = socket.create_server((place.host, place.port), family=family)
        options = {"master_listen_fd": listener.detach(), "use_libuv": True}
    store = engine.TCPStore(place.host, place.port, place.size, listens, wait, wait_for_workers=False, **options)
    return engine.PrefixStore(attempt, store)


def _notes(engine: Any) -> Any:
    """Where ranks leave each other notes, apart from those of whoever made the process group."""
    _joins.append(None)
    return engine.PrefixStore(f"hologram/{len(_joins)}", engine.distributed_c10d._get_default_store())


@contextlib.contextmanager
def _interface(place: Place) -> Iterator[None]:
    """Gloo listens on the loopback for a block where the processes meet there and nobody says otherwise."""
    if not place.is_local or _INTERFACE in os.environ:
        yield
        return
    os.environ[_INTERFACE] = "lo0" if sys.platform == "darwin" else "lo"
    try:
        yield
    finally:
        del os.environ[_INTERFACE]


def shutdown() -> None:
    """Leaves the other processes: collectives end. Without :func:`initialize` before it does nothing.

    >>> hg.distributed.shutdown()
    """
    if not _joined:
        return
    ours, world = _joined.pop(), process_world()
    set_world(None)
    groups = [None] if ours else list(world.groups)  # None: all
    world.end()
    import torch.distributed as engine

    if not engine.is_initialized():
        return
    while groups:
        with contextlib.suppress(ValueError):  # the user has ended it
            engine.destroy_process_group(groups.pop())


@in_child
def _leave_parent() -> None:
    """A forked child has none of the threads that its parent's connections live by: it neither uses nor ends them."""
    if _joined:
        _joined.clear()
        world = process_world()
        _inherited.append(world)
        world.is_left_by_child()


@atexit.register
def _at_exit() -> None:
    with contextlib.suppress(RuntimeError):
        shutdown()


def is_initialized() -> bool:
    """Whether this process has joined others.

    >>> hg.distributed.is_initialized()
    False
    """
    return bool(_joined)


def process_index() -> int:
    """The number of this process, or of the rank that this thread plays.

    >>> hg.distributed.process_index()
    0
    """
    return current_world().rank


def process_count() -> int:
    """How many processes run the program.

    >>> hg.distributed.process_count()
    1
    """
    return current_world().size
