"""Many simulations: a grid of parameters, or a Sobol sample of them, and what is best.

The one idea: a point is the parameters of one case, numbered in an order that follows from what is
asked; a task is so many points that they take a second. So a sweep that was cut off, or was done by
other workers, has the same rows.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from .. import Value, _native
from . import page
from .engine import Progress, Task, carry_out, workers
from .folder import Folder, digest, digest_of_file, write

# What a task should take at least, and what is spent on finding out how long a point takes.
SECONDS = 1.5
PROBE_SECONDS = 0.2
POINTS_MAX = 2_000_000
# Prefix of an axis that is a parameter of the policy.
POLICY = "policy."


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`, both included, for a Sobol sample.

    `log` spreads them evenly by their logarithm, `whole` makes whole numbers of them, and `text`
    says how one is written as a parameter: ``"{}%"``.
    """

    low: float
    high: float
    log: bool = False
    whole: bool = False
    text: str = "{}"

    def at(self, share: float) -> tuple[float, str]:
        """The number at a share of the range, and its text."""
        if self.log:
            value = math.exp(
                math.log(self.low) + share * (math.log(self.high) - math.log(self.low))
            )
        else:
            value = self.low + share * (self.high - self.low)
        # Six digits: as much as a parameter needs, and the same on every machine.
        value = round(value) if self.whole else float(f"{value:.6g}")
        return value, self.text.format(value)


Axis = Sequence[Value] | Range


@dataclass
class Swept:
    """What a sweep came to.

    `rows` has a dictionary for each point and policy, in the order of the points: ``point``, the
    value of each axis, and all of `pagelab.simulate`. `refused` has the points that make no sense,
    with the reason. `csv` and `report` are files of both.
    """

    rows: list[dict[str, Any]]
    refused: list[dict[str, Any]]
    objectives: tuple[str, str]
    csv: Path = field(default_factory=Path)
    report: Path = field(default_factory=Path)

    def front(self) -> list[dict[str, Any]]:
        """The Pareto front: rows that no other one beats in one objective without losing in the
        other; both are better when they are smaller. Rising in the first.
        """
        first, second = self.objectives
        best: list[dict[str, Any]] = []
        for row in sorted(self.rows, key=lambda row: (row[first], row[second], row["point"])):
            if not best or row[second] < best[-1][second]:
                best.append(row)
        return best


def sweep(
    axes: Mapping[str, Axis],
    folder: str | PathLike[str],
    *,
    fixed: Mapping[str, Value] | None = None,
    sample: int | None = None,
    objectives: tuple[str, str] = ("time_ns", "migrated_bytes"),
    on: Any = None,
    retries: int = 2,
    progress: Progress | None = None,
) -> Swept:
    """Simulates every point of a grid, or a Sobol sample of `sample` points.

    `axes` are parameters of tier/simulation with their values: lists make a grid; for a sample an
    axis may also be a `Range`, and each point takes one value of every axis. An axis
    ``"policy.NAME"`` is a parameter of the one policy that `fixed` names. `fixed` are parameters
    that do not vary. `objectives` are two counts of `pagelab.simulate`, both better when smaller.

    Leaves in `folder` a file for each task, ``points.csv``, and ``report.html``: heat map and
    Pareto front. The same call goes on after whatever happened, with the same rows to the last bit.

    Raises ValueError for axes that make no sense; `Lost`, after all others, for tasks that could
    not be done. A point that the simulator refuses is no error: it is in `refused`.
    """
    fixed = dict(fixed or {})
    asked = {
        "axes": {
            name: asdict(axis) if isinstance(axis, Range) else list(axis)
            for name, axis in axes.items()
        },
        "fixed": fixed,
        "sample": sample,
        "files": _files(axes, fixed),
    }
    points = list(_points(axes, sample))
    with Folder(folder, "sweep", asked) as kept:
        who = workers(on)
        if kept.cut is None:
            kept.settle(_points_each([_case(point, fixed) for point in points], who.slots))
        tasks, places = [], {}
        for start in range(0, len(points), kept.cut):
            cases = [_case(point, fixed) for point in points[start : start + kept.cut]]
            task = Task(digest([asked["files"], cases]), (cases,), f"points from {start} on")
            tasks.append(task)
            places[task.name] = start
        came: dict[int, Any] = {}
        for task, body in carry_out(simulate, tasks, kept, who, retries, progress):
            came.update(enumerate(json.loads(body), places[task.name]))
        swept = Swept([], [], objectives)
        for number, point in enumerate(points):
            said = {"point": number, **{name: value for name, (value, _) in point.items()}}
            if isinstance(came[number], str):
                swept.refused.append({**said, "why": came[number]})
            else:
                # Where a count has the name of an axis, the axis stands.
                swept.rows += [{**said, **arm, **said} for arm in came[number]]
        return _told(swept, kept.path, list(axes), fixed)


def simulate(cases: list[dict[str, Any]]) -> bytes:
    """A task: of each case its arms, or why it makes no sense."""
    return json.dumps(_native.simulate_all(cases), separators=(",", ":")).encode()


def _points(axes: Mapping[str, Axis], sample: int | None) -> Iterator[dict[str, tuple[Any, Value]]]:
    """The points: of each axis its value, for people, and what is told to the simulator."""
    if not axes:
        raise ValueError("a sweep needs an axis")
    for name, axis in axes.items():
        if isinstance(axis, Range):
            if sample is None:
                raise ValueError(f"{name}: a range is for a sample; a grid needs a list of values")
            if not axis.low < axis.high or (axis.log and axis.low <= 0):
                raise ValueError(f"{name}: {axis} is no range")
        elif isinstance(axis, str) or not len(axis):
            raise ValueError(f"{name}: expected a list of values")
    if sample is None:
        values = {name: list(axis) for name, axis in axes.items() if not isinstance(axis, Range)}
        if math.prod(map(len, values.values())) > POINTS_MAX:
            raise ValueError(f"more than {POINTS_MAX} points: sample them")
        for point in itertools.product(*values.values()):
            yield {name: (value, value) for name, value in zip(values, point, strict=True)}
        return
    if not 1 <= sample <= POINTS_MAX:
        raise ValueError(f"sample={sample}: from 1 to {POINTS_MAX} points")
    for shares in _native.sobol(len(axes), sample):
        yield {
            name: axis.at(share) if isinstance(axis, Range) else (axis[int(share * len(axis))],) * 2
            for (name, axis), share in zip(axes.items(), shares, strict=True)
        }


def _case(point: Mapping[str, tuple[Any, Value]], fixed: Mapping[str, Value]) -> dict[str, Value]:
    """The parameters of a point; those of the policy stand in its text."""
    case = {"scenario": "plain", **fixed}
    of_policy = []
    for name, (_, told) in point.items():
        if name.startswith(POLICY):
            of_policy.append(f"{name.removeprefix(POLICY)}={told}")
        else:
            case[name] = told
    if of_policy:
        policy = case.get("policy")
        if not isinstance(policy, str) or "," in policy:
            raise ValueError(f"an axis {POLICY}… needs one policy, in `fixed`")
        case["policy"] = policy + ("+" if ":" in policy else ":") + "+".join(of_policy)
    return case


def _files(axes: Mapping[str, Axis], fixed: Mapping[str, Value]) -> dict[str, str]:
    """The digest of each file that is named: what it holds is part of what is asked."""
    named = [fixed.get(name) for name in ("scenario", "trace")]
    for name in ("scenario", "trace"):
        axis = axes.get(name)
        if axis is not None and not isinstance(axis, Range):
            named += axis
    paths = {str(path) for path in named if path is not None and Path(str(path)).is_file()}
    return {path: digest_of_file(path) for path in sorted(paths)}


def _points_each(cases: Sequence[dict[str, Value]], slots: int) -> int:
    """How many points take a second: a few of them are tried, spread over all.

    As many tasks for one slot as for another: with few of them one would work while others wait.
    """
    begin, tried = time.perf_counter(), 0
    # What is tried is done again: a fiftieth of the work at most.
    most = max(1, min(len(cases) // 50, 64))
    while time.perf_counter() - begin < PROBE_SECONDS and tried < most:
        _native.simulate_all([cases[tried * 7919 % len(cases)]])
        tried += 1
    seconds = (time.perf_counter() - begin) / max(tried, 1) * len(cases)
    tasks = max(1, int(seconds / SECONDS))
    slots = max(1, slots)
    return math.ceil(len(cases) / (tasks - tasks % slots if tasks > slots else tasks))


def _told(swept: Swept, folder: Path, axes: list[str], fixed: Mapping[str, Value]) -> Swept:
    text = io.StringIO()
    if swept.rows:
        writer = csv.DictWriter(text, list(swept.rows[0]), restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(swept.rows)
    swept.csv, swept.report = folder / "points.csv", folder / "report.html"
    write(swept.csv, text.getvalue().encode())
    write(swept.report, page.page(swept, axes, fixed).encode())
    return swept
