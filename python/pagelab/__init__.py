"""A laboratory for the Linux memory subsystem, from Python.

    >>> import pagelab
    >>> run = pagelab.load("pagelab-runs/quick")        # any run that the binary left
    >>> frame = pandas.DataFrame.from_arrow(run)        # or polars.DataFrame(run), or DuckDB
    >>> pagelab.simulate(policy=["pghot", "none"], fast="25%")
    >>> pagelab.trace_stats("program.trace.zst")["transitions"]

What takes time lets the interpreter go: threads run beside it. Parameters are those of the workload
of that name (`pagelab list tier/simulation`), an underscore for each hyphen, values as on the
command line: text (``"16m"``, ``"50%"``), a number, or a list of things that are compared inside a
case. `pagelab.distributed` does many of them, on many processes or machines.

A mistake in a parameter is a ValueError that names it and says what is accepted; what this machine
cannot do is a RuntimeError with its cure; a file that cannot be read is an OSError or, where its
content is at fault, a ValueError that names it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from os import PathLike, fspath
from typing import Any

from . import _native
from ._native import VERSION as __version__
from ._native import Run, Table

__all__ = ["Run", "Table", "__version__", "load", "replay", "simulate", "trace_stats"]

Value = str | int | float | Sequence["str | int | float"]


def load(run: str | PathLike[str]) -> Run:
    """Reads a run: its directory, or its journal.

    A journal that breaks off is read up to there, and `Run.damage` says where that is. Raises
    OSError where there is no journal, ValueError where the file is none.
    """
    return Run.load(fspath(run))


def simulate(scenario: str | PathLike[str] = "plain", **parameters: Value) -> list[dict[str, Any]]:
    """Simulates what a tiering policy would do with the pages of a machine that is described.

    `scenario` is a preset or the path of a scenario file (tiering/docs/presets.md); `parameters`
    are those of tier/simulation: `policy` (one, or a list), `generator` or `trace`, `size` and
    `fast` (bytes, or a share such as ``"25%"``), `accesses`, `threads`, `period`, `threshold`,
    `window` (ms), … Parameters of a policy stand in its text: ``"pghot:threshold=2+window=1000"``.

    Returns a dictionary for each policy (or run of the scenario), in their order: ``arm`` is its
    name, ``time_ns`` the model's time, all else counts that are named as the kernel's counters:
    ``pgpromote_success`` and ``pgdemote`` in pages, ``fast_accesses`` of ``accesses``,
    ``migrated_bytes``, ``stall_ns`` and ``daemon_ns``, … ``digest`` is of everything: equal
    digests are equal simulations. The same parameters give the same numbers on every machine.

    Raises ValueError for what makes no sense, RuntimeError where pages or accesses do not add up.
    """
    return _native.simulate({"scenario": fspath(scenario), **parameters})


def trace_stats(trace: str | PathLike[str], **parameters: Value) -> dict[str, Any]:
    """What a trace looks like, in one pass: a file (raw, gz, xz, zst), or a generator by its text.

    `parameters` are those of trace/stats: `ops` (how many operations), `page_shift` (12), `top_k`
    (20), `cache_sizes` (pages), `stack` (``"off"``, ``"exact"``, ``"sampled"``), `tlb`
    (``"off"``, ``"on"``).

    Returns what ``pagelab trace stats --format json`` prints: counts of operations (``ops``,
    ``reads``, ``writes``, ``read_widths`` of 1, 2, 4 and 8 bytes, ``transitions``, ``straddles``);
    ``runs`` and ``reuse["distances"]`` as lists of ``{"min", "max", "count"}``, in operations;
    ``top_pages`` as ``{"page", "ops"}``; ``reuse["caches"]`` with hits and misses;
    ``stack["curve"]`` as ``{"pages", "misses", "miss_ratio"}``.

    Raises ValueError for a trace that cannot be read, with the byte at fault.
    """
    parameters["trace"] = fspath(trace)
    stats: dict[str, Any] = json.loads(_native.trace_stats(parameters))
    return stats


def replay(trace: str | PathLike[str], budget: float = 5.0, **parameters: Value) -> Run:
    """Replays a trace into emulated memories, and times them side by side in this process.

    `parameters` are those of emu/replay: `backend` (a list: ``["noop", "base", "tlb"]``), `ops`,
    `reader`, `cache`, `image`, … `budget` is seconds to measure for.

    Returns a run of one record, whose `numbers()` have the nanoseconds of an operation: series
    ``replay``, a row for each backend, time and statistic, the ends of its 95 % interval beside it.
    The interval is of repetitions in one process: the binary measures in several.

    Raises ValueError for a trace or parameter at fault, RuntimeError where memory is too small.
    """
    parameters["trace"] = fspath(trace)
    return _native.replay(parameters, budget)
