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
from collections import deque
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from os import PathLike
from pathlib import Path
from typing import Any

from .._native import Plan
from .engine import Cluster, Gone, Lost, Progress, Task, _results, _Told, die_with, workers
from .folder import warn, write

LIST = "tasks.jsonl"
SECONDS = 1.0
# What `fleet exec` ends with when it measured all that it should, whatever came of it.
MEASURED = (0, 1, 4, 6)
# Another pagelab works in the folder, or the host cannot just now.
HOST = 3


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
    process. Hosts are those of the workers; of each, one worker starts `binary`, one command at a
    time. `plan` and `output` must lie under the same path on all of them; every host has the binary
    and this wheel, of the plan's version. The same call goes on with what is missing.

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
    tasks = known.tasks()
    is_fleet = known.shards == 1 and len(hosts) > 1
    lost: dict[str, str] = {}
    if is_fleet or any(is_measured for _, is_measured, _ in tasks):
        if shutil.which(binary) is None and not isinstance(who, Cluster):
            raise FileNotFoundError(
                f"{binary}: measuring is the binary's; say where it is: binary=…"
            )
        command = [binary, "fleet", "exec", os.fspath(plan_folder), "--quiet"]
        command += ["--output", os.fspath(folder)]
        if not is_fleet:
            command.append("--only-measured")
        lost |= _measure(command, known.shards, hosts, is_fleet, retries, folder)
    if not is_fleet:
        lost |= _model(known, tasks, folder, who, retries, progress)
    if lost:
        raise Lost(lost, folder)
    return sorted(path for path in folder.iterdir() if Plan.of_file(path.name))


def _hosts(who: Any) -> dict[str, Any]:
    """Of each host who starts its commands: one worker of the cluster, or this process."""
    if not isinstance(who, Cluster):
        return {Plan.here(): ThreadPoolExecutor(1)}
    first: dict[str, str] = {}
    for address, worker in sorted(who.client.scheduler_info(n_workers=-1)["workers"].items()):
        first.setdefault(worker["host"], address)
    if not first:
        raise Gone("the cluster has no workers: start some")
    return {host: Cluster(who.client, [address]).executor() for host, address in first.items()}


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
    hosts: dict[str, Any],
    is_fleet: bool,
    retries: int,
    folder: Path,
) -> dict[str, str]:
    """Starts the binary on every host, one shard after the other; what could not be done."""
    # Of a fleet's plan each host has its own queue; shards that any host may take are in one.
    shared = deque((shard, 0) for shard in range(1, shards + 1))
    queues = {host: deque(shared) if is_fleet else shared for host in hosts}
    held: dict[Future[Any], tuple[str, int, int]] = {}
    lost: dict[str, str] = {}
    while True:
        busy = {host for host, _, _ in held.values()}
        for host, executor in hosts.items():
            if host not in busy and queues[host]:
                shard, tries = queues[host].popleft()
                line = [*command, "--shard", f"{shard}/{shards}"]
                held[executor.submit(measured, line)] = (host, shard, tries)
        if not held:
            return lost
        for future in wait(held, return_when=FIRST_COMPLETED).done:
            host, shard, tries = held.pop(future)
            try:
                code, words = future.result()
            except Exception as error:  # the worker died, or is no longer there
                code, words = HOST, str(error) or type(error).__name__
            if code in MEASURED:
                continue
            what = f"shard {shard} of {shards} on {host}"
            if (code == HOST or code < 0) and tries < retries:
                warn(f"{what}: {words}; it is tried again")
                queues[host].append((shard, tries + 1))
                continue
            lost[what] = f"exit {code}: {words}"


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
