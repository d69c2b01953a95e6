"""Where the processes of a program are: what launchers say in the environment."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import NamedTuple

from hologram.errors import ArgumentError, DistributedError
from hologram.support.user_lines import located

SLURM_PORTS = range(20_000, 40_000)  # of which a job's number picks one


class Place(NamedTuple):
    """``rank`` of ``size`` processes, which meet at ``host`` and ``port``. ``launched``: torchrun's agent listens there."""

    host: str
    port: int
    size: int
    rank: int
    launched: bool = False

    @property
    def is_local(self) -> bool:
        """Whether the processes meet on this machine alone."""
        return self.host in ("localhost", "::1") or self.host.startswith("127.")


def find_place(address: str | None, size: int | None, rank: int | None, environment: Mapping[str, str] | None = None) -> Place:
    """What the caller says, and for the rest what torchrun, Ray Train or Slurm says. Raises DistributedError where something is missing."""
    env = os.environ if environment is None else environment
    said = _of_torchrun(env) or _of_slurm(env) or {}
    host, port = (said.get("host"), said.get("port")) if address is None else _parted(address)
    count = said.get("size") if size is None else size
    number = said.get("rank") if rank is None else rank
    if host is None or port is None or count is None or number is None:
        values = (("coordinator_address", host), ("num_processes", count), ("process_id", number))
        names = ", ".join(name for name, value in values if value is None)
        advice = "start with torchrun, Slurm (srun) or Ray Train, or give them"
        raise located(DistributedError(f"initialize: neither the arguments nor the environment say {names}: {advice}"))
    there = _integer(port, "the coordinator's port")
    n, own = _integer(count, "num_processes"), _integer(number, "process_id")
    if n < 1 or not 0 <= own < n:
        raise located(ArgumentError(f"initialize: process_id {own} of {n} processes"))
    return Place(str(host), there, n, own, launched=address is None and env.get("TORCHELASTIC_USE_AGENT_STORE") == "True")


def _integer(text: object, what: str) -> int:
    try:
        return int(str(text))
    except ValueError:
        raise located(ArgumentError(f"initialize: {what} is an integer, not {text!r}")) from None


def _parted(address: str) -> tuple[str, str]:
    host, colon, port = str(address).rpartition(":")
    if not colon or not host:
        raise located(ArgumentError(f"initialize: coordinator_address is host:port, not {address!r}"))
    return host.strip("[]"), port


def _of_torchrun(env: Mapping[str, str]) -> dict[str, str | int] | None:
    """Of torchrun, of Ray Train, and of whoever sets the same variables by hand."""
    names = {"host": "MASTER_ADDR", "port": "MASTER_PORT", "size": "WORLD_SIZE", "rank": "RANK"}
    return {key: env[name] for key, name in names.items()} if all(name in env for name in names.values()) else None


def _of_slurm(env: Mapping[str, str]) -> dict[str, str | int] | None:
    nodes = env.get("SLURM_STEP_NODELIST") or env.get("SLURM_JOB_NODELIST")
    job, rank, size = env.get("SLURM_JOB_ID"), env.get("SLURM_PROCID"), env.get("SLURM_NTASKS")
    if nodes is None or job is None or rank is None or size is None:
        return None
    return {"host": first_node(nodes), "port": SLURM_PORTS[int(job) % len(SLURM_PORTS)], "size": size, "rank": rank}


def first_node(nodes: str) -> str:
    """The first name of a list as Slurm writes it: ``gpu[03-07,11],login1`` begins with gpu03."""
    found = re.match(r"([^,\[]+)(?:\[(\d+)[^\]]*\]([^,\[]*))?", nodes)
    if found is None:
        raise located(DistributedError(f"initialize: Slurm's list of nodes {nodes!r} cannot be read"))
    return "".join(part or "" for part in found.groups())
