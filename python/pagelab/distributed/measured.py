"""A plan of `pagelab fleet plan` over workers: what is measured, and what is not.

The one idea: results are the files of `pagelab fleet exec`, in one folder, for
`pagelab fleet merge`. What is measured is measured by the static binary, one command a host and
nothing of ours beside it; models and counts follow, in the workers' processes, so many at once that
they take a second.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections import deque
from concurrent.futures import (
    FIRST_COMPLETED,
    Executor,
    Future,
    ThreadPoolExecutor,
    wait,
)
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from .._native import Plan
from .engine import (
    Cluster,
    Gone,
    Here,
    Lost,
    Processes,
    Progress,
    Task,
    _results,
    _still_there,
    _Told,
    die_with,
    workers,
)
from .folder import warn, write

LIST = "tasks.jsonl"
SECONDS = 1.0
# What `fleet exec` ends with when it measured all that it should, whatever came of it.
MEASURED = (0, 1, 4, 6)
# Another pagelab works in the folder, or the host cannot just now.
HOST = 3
# What a worker declares that is to measure: ``dask worker … --resources bench=1``.
SLOT = "bench"
# Seconds that a machine whose worker died is waited for: a nanny starts another one.
AWAY = 60.0


def fleet(
    plan: str | PathLike[str],
    output: str | PathLike[str],
    *,
    on: Any = None,
    binary: str = "pagelab",
    retries: int = 2,
    progress: Progress | None = None,
) -> list[Path]:
    """Carries out a plan; returns the files of its results, which `pagelab fleet merge` reads.

    A plan of one shard is a fleet's: every host does all of it. One of more shards is divided: each
    is measured by some host, and models and counts (tier/simulation, trace/stats) are done in
    process. Hosts are those of the workers, one for each kernel that was booted; of each, one
    worker starts `binary`, one command at a time. Where workers declare the resource ``bench``
    (``dask worker ADDRESS --resources bench=1``), only those measure. `plan` and `output` must lie
    under the same path on all of them; every host has the binary and this wheel, of the plan's
    version. The same call goes on with what is missing.

    Raises ValueError for a plan of another version or a folder of another plan, `Lost`, after all
    others, for what could not be done.
    """
    plan_folder, folder = Path(plan).absolute(), Path(output).absolute()
    known = Plan.load(os.fspath(plan_folder))
    folder.mkdir(parents=True, exist_ok=True)
    listed = folder / LIST
    if listed.exists() and listed.read_text() != known.text:
        raise ValueError(f"{folder} holds results of another plan: choose another folder")
    if not listed.exists():
        write(listed, known.text.encode())
    who = workers(on)
    hosts = _hosts(who)
    if not hosts:
        raise Gone("the cluster has no worker that could measure: start some")
    tasks = known.tasks()
    is_fleet = known.shards == 1 and len(hosts) > 1
    lost: dict[str, str] = {}
    if is_fleet or any(is_measured for _, is_measured, _ in tasks):
        if shutil.which(binary) is None and not isinstance(who, Cluster):
            raise FileNotFoundError(
                f"{binary}: measuring is the binary's; say where it is: binary=…"
            )
        # What a driver that was killed began may still run: it is waited for.
        command = [binary, "fleet", "exec", os.fspath(plan_folder), "--quiet", "--wait"]
        command += ["--output", os.fspath(folder)]
        if not is_fleet:
            command.append("--only-measured")
        lost |= _measure(command, known.shards, hosts, is_fleet, retries, who, folder)
    if not is_fleet:
        lost |= _model(known, tasks, folder, who, retries, progress)
    if lost:
        raise Lost(lost, folder)
    return sorted(path for path in folder.iterdir() if Plan.of_file(path.name))


@dataclass
class _Host:
    """A machine since it booted, and who starts its commands; nobody while its worker is away."""

    name: str
    executor: Executor | None
    address: str = ""
    away_since: float = 0.0


def identity() -> str:
    """A task: the machine of its worker, as names of results say it."""
    return Plan.here()


def _hosts(who: Here | Processes | Cluster) -> dict[str, _Host]:
    """The machines, by their boot: what shares a kernel, as containers do, is one.

    One worker of each starts its commands. Where workers declare the resource `bench`, it is one of
    those, and a command takes one of it.
    """
    if not isinstance(who, Cluster):
        here = Plan.here()
        return {_boot(here): _Host(here, ThreadPoolExecutor(1))}
    known = who.client.scheduler_info(n_workers=-1)["workers"]
    slots = {address for address, worker in known.items() if worker["resources"].get(SLOT, 0) >= 1}
    hosts: dict[str, _Host] = {}
    for address, name in sorted(who.client.run(identity, on_error="return").items()):
        if isinstance(name, BaseException):
            warn(f"the worker {address} measures nothing: {name}")
        elif _boot(name) not in hosts and (not slots or address in slots):
            executor = Cluster(who.client, [address], {SLOT: 1} if slots else None).executor()
            hosts[_boot(name)] = _Host(name, executor, address)
    return hosts


def _boot(name: str) -> str:
    return name.rpartition(".")[2]


def _left(hosts: dict[str, _Host], who: Here | Processes | Cluster) -> set[str]:
    """Machines whose worker is no longer there; another one of the same machine takes over."""
    if not isinstance(who, Cluster):
        return set()
    known = who.client.scheduler_info(n_workers=-1)["workers"]
    left = {boot for boot, host in hosts.items() if host.address not in known}
    now = _hosts(who) if left else {}
    for boot in left:
        host = hosts[boot]
        away_since = host.away_since or time.monotonic()
        hosts[boot] = now.get(boot) or _Host(host.name, None, away_since=away_since)
    return left


def measured(command: list[str]) -> tuple[int, str]:
    """A task: runs the binary, which dies with this process; its exit code and last words."""
    parent = os.getpid()
    came = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: die_with(parent),
        check=False,
        text=True,
    )
    return came.returncode, "\n".join(came.stderr.strip().splitlines()[-5:])


def _measure(
    command: list[str],
    shards: int,
    hosts: dict[str, _Host],
    is_fleet: bool,
    retries: int,
    who: Here | Processes | Cluster,
    folder: Path,
) -> dict[str, str]:
    """Starts the binary on every host, one shard after the other; what could not be done."""
    # Of a fleet's plan each host has its own queue; shards that any host may take are in one.
    shared = deque((shard, 0) for shard in range(1, shards + 1))
    queues = {boot: deque(shared) if is_fleet else shared for boot in hosts}
    held: dict[str, tuple[Future[Any], int, int]] = {}
    lost: dict[str, str] = {}
    look = 0.0
    while held or any(queues.values()):
        for boot, host in hosts.items():
            if host.executor and boot not in held and queues[boot]:
                shard, tries = queues[boot].popleft()
                line = [*command, "--shard", f"{shard}/{shards}"]
                held[boot] = (host.executor.submit(measured, line), shard, tries)
        running = [future for future, _, _ in held.values()]
        wait(running, timeout=1, return_when=FIRST_COMPLETED)
        _still_there(who, folder)
        left: set[str] = set()
        if time.monotonic() >= look:
            left, look = _left(hosts, who), time.monotonic() + 1
            if not running:
                time.sleep(1)
        for boot, (future, shard, tries) in list(held.items()):
            # Dask would keep it for a worker of that very address.
            if boot in left and not future.done():
                future.cancel()
            if not future.done():
                continue
            del held[boot]
            try:
                code, words = future.result()
            except Exception as error:  # the worker died, or is no longer there
                code, words = HOST, str(error) or "its worker died"
            if code in MEASURED:
                continue
            what = f"shard {shard} of {shards} on {hosts[boot].name}"
            if (code == HOST or code < 0) and tries < retries:
                warn(f"{what}: {words}; it is tried again")
                queues[boot].append((shard, tries + 1))
                continue
            lost[what] = f"exit {code}: {words}"
        lost |= _given_up(hosts, queues, shards, is_fleet)
    return lost


def _given_up(
    hosts: dict[str, _Host], queues: dict[str, deque[tuple[int, int]]], shards: int, is_fleet: bool
) -> dict[str, str]:
    """What waits for machines that stay away."""
    lost: dict[str, str] = {}
    now = time.monotonic()
    away = [
        boot for boot, host in hosts.items() if host.away_since and now > host.away_since + AWAY
    ]
    for boot in away:
        # What any host may take waits for the last of them.
        if is_fleet or len(away) == len(hosts):
            for shard, _ in queues[boot]:
                what = f"shard {shard} of {shards} on {hosts[boot].name}"
                lost[what] = f"no worker of it came back within {AWAY:.0f} s"
            queues[boot].clear()
    return lost


def carried_out(text: str) -> list[tuple[str, str]]:
    """A task: models and counts of a part of a plan, in this process."""
    return Plan.parse(text).carry_out()


def _model(
    plan: Plan,
    tasks: list[tuple[str, bool, float]],
    folder: Path,
    who: Any,
    retries: int,
    progress: Progress | None,
) -> dict[str, str]:
    """Models and counts that have no result yet; a model is of no machine, so any result is one."""
    there = [Plan.of_file(path.name) for path in folder.iterdir()]
    done = {known[0] for known in there if known}
    chunks: list[list[str]] = []
    seconds = SECONDS
    left = [
        (name, took) for name, is_measured, took in tasks if not is_measured and name not in done
    ]
    for name, took in left:
        if seconds >= SECONDS:
            chunks.append([])
            seconds = 0.0
        chunks[-1].append(name)
        seconds += took
    work = [
        Task(names[0], (plan.part(names),), f"task {names[0]} and {len(names) - 1} more")
        for names in chunks
    ]
    tell, count, lost = progress or _Told(), 0, {}
    for task, came in _results(carried_out, work, who, retries, folder):
        if isinstance(came, BaseException):
            lost[task.what] = str(came)
            continue
        for name, content in came:
            write(folder / name, content.encode())
        count += len(came)
        tell(count, len(left))
    return lost
