"""The statistics of one big trace, in shards.

The one idea: a shard's statistics can be put together exactly, by its pages (`pagelab_trace`'s
`Whole`), LRU stacks too. Where records begin is guessed near the cut and proven by the shard
before: one that was guessed wrong is collected again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from itertools import pairwise
from os import PathLike
from typing import Any

from .. import _native
from .engine import Progress, Task, carry_out
from .folder import Folder, digest, warn

# Bytes of a second's work: some 10 ns for an operation of 11 bytes, six times that with stacks.
BYTES = 1 << 30
STACK_BYTES = BYTES // 6
SAMPLED = 32
STACKS = {"off": 0, "exact": 1, "sampled": SAMPLED}


def trace_stats(
    trace: str | PathLike[str],
    folder: str | PathLike[str],
    *,
    page_shift: int = 12,
    top_k: int = 20,
    cache_sizes: Sequence[int] = (4, 8, 16, 32),
    stack: str = "off",
    tlb: bool = False,
    shards: int | None = None,
    on: Any = None,
    retries: int = 2,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """What `pagelab.trace_stats` says of a file, collected in shards by many workers.

    Every worker reads its part of the file, which must lie there under the same absolute path and
    not be compressed. Counts, histograms, ``top_pages``, caches, ``tlb`` and exact stacks are those
    of one pass, to the last digit. How absent pages are used again is not known to shards:
    ``absent["reuse"]`` has no ``distances`` and no ``caches``.

    An exact stack keeps some 100 bytes for each distinct page, on every worker and here. Where that
    is too much, ``stack="sampled"`` looks at one page in 32 (SHARDS); ``stack["error"]`` then says
    how far the sampled miss ratio of the first shard is from its exact one, at most, anywhere on
    the curve.

    `shards` is how many; by default each takes a second or more. `folder` is where results are
    kept: the same call goes on after whatever happened. The trace is known again by its size and
    time.

    Raises ValueError for a trace that is damaged, compressed, or another one than the folder's.
    """
    path = os.path.abspath(trace)
    status = os.stat(path)
    if stack not in STACKS:
        raise ValueError(f"stack={stack!r}: one of {', '.join(STACKS)}")
    one_in = STACKS[stack]
    options = (page_shift, top_k, list(cache_sizes), one_in, tlb)
    exact: tuple[int, int, list[int], int, bool] = (page_shift, 0, [], 1, False)
    size = status.st_size
    asked = [path, size, status.st_mtime_ns, options]
    with Folder(folder, "trace-stats", asked) as kept:
        bytes_each = STACK_BYTES if one_in or tlb else BYTES
        kept.settle(shards or max(1, -(-size // bytes_each)))
        bounds = [size * place // kept.cut for place in range(kept.cut + 1)]
        cuts = list(pairwise(bounds))
        tasks = [_task(asked, path, start, end, options) for start, end in cuts]
        if one_in > 1:
            tasks.append(_task(asked, path, *cuts[0], exact))
        for _ in carry_out(_native.part_of_trace, tasks, kept, on, retries, progress):
            pass
        merger = _native.Merger(options)
        for task, (_, end) in zip(tasks, cuts, strict=False):
            begin = merger.append(_read(kept, task))
            if begin is not None:
                warn(f"{task.what}: no record begins where it seemed; it is collected again")
                again = _native.part_of_trace(path, begin, max(begin, end), True, options)
                kept.keep(task.name, again)
                merger.append(again)
        stats: dict[str, Any] = json.loads(merger.finish())
        for unknown in ("distances", "caches"):
            stats["absent"]["reuse"][unknown] = None
        if one_in > 1:
            stats["stack"]["error"] = _error(
                _read(kept, tasks[0]), options, _read(kept, tasks[-1]), exact
            )
        return stats


def _task(asked: Any, path: str, start: int, end: int, options: Any) -> Task:
    name = digest([asked, start, end, options])
    return Task(name, (path, start, end, start == 0, options), f"bytes {start} to {end} of {path}")


def _read(folder: Folder, task: Task) -> bytes:
    body = folder.read(task.name)
    if body is None:
        raise ValueError(f"{folder.path}: somebody changed it meanwhile; call again")
    return body


def _error(sampled: bytes, options: Any, exact: bytes, exact_options: Any) -> dict[str, Any]:
    """The largest difference of the miss ratio, sampled against exact, of one shard."""

    def curve(shard: bytes, options: Any) -> tuple[int, dict[int, float]]:
        merger = _native.Merger(options)
        merger.append(shard)
        stats = json.loads(merger.finish())
        points = stats["stack"]["curve"]
        return stats["ops"], {point["pages"]: point["miss_ratio"] for point in points}

    ops, estimated = curve(sampled, options)
    _, true = curve(exact, exact_options)
    # Beyond the last point of a curve only first uses miss.
    most = max(true)
    differences = [abs(ratio - true[pages]) for pages, ratio in estimated.items() if pages in true]
    ends = [abs(ratio - true[most]) for pages, ratio in estimated.items() if pages > most]
    return {
        "miss_ratio_max": max(differences + ends, default=0.0),
        "of": f"the first {ops} operations, sampled against exact",
    }
