#!/usr/bin/env python3
"""What segments do to programs: memory and time, beside plain and malloc's tunable.

Ratios are those of the rounds of one `pagelab try`. The tunable is compared in the rounds in which
its pages came; with glibc 2.35 to 2.37 that is luck.
"""

import shutil
import time
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Any

import common

SAME = 0.03  # a smaller difference is none, as `pagelab compare` has it
# Of the report of segment/fault: arm, series, statistic, the limit and the aim.
FIGURES = {
    "2m, first pass, all of THP": ("segment-2m", "first-all", "of_thp", 1.03, 0.95),
    "2m, again, of plain": ("segment-2m", "process", "of_plain", 0.06, 0.035),
    "2m, again, all of THP": ("segment-2m", "all", "of_thp", 0.6, 0.35),
    "1g, again, of plain": ("segment-1g", "process", "of_plain", 0.06, 0.035),
    "1g, again, of clearing": ("segment-1g", "process", "of_clear", 1.25, 1.05),
}
PAGES = 1 << 18  # of the memory of a round, 1g
SOURCE = str(common.ROOT / "tests/programs/segments.c")


def comparison(ratios: list[float]) -> str:
    """Returns the median of ratios, its interval, and the verdict of every comparison."""
    if not (both := common.interval(ratios)):
        return f"{median(ratios):.3f} (too few)" if ratios else "-"
    low, high = both
    verdict = "FASTER" if high < 1 else "SLOWER" if low > 1 else "INCONCLUSIVE"
    verdict = "SAME" if low > 1 - SAME and high < 1 / (1 - SAME) else verdict
    return f"{median(ratios):.3f} ({low:.3f}-{high:.3f}) {verdict}"


def line(records: list[Any], report: Any, clock: str) -> str:
    """Returns the peak of memory and the time of a program, beside plain and the tunable."""
    values: Any = defaultdict(dict)  # by series and variant, then by round
    for record in records:
        for one in record["outcome"]["measured"]["series"]:
            if "process" in one and one["values"]:
                values[one["name"], record["case"]["rung"]][one["process"]] = one["values"][0]

    def ratios(name: str, to: str, rounds: list[int] | None = None) -> list[float]:
        mine, other = values[name, "segment"], values[name, to]
        rounds = list(mine) if rounds is None else rounds
        return [mine[nth] / other[nth] for nth in rounds if nth in mine and other.get(nth)]

    tunable = common.first(report["tried"]["rungs"], rung=common.THP)
    came, count = tunable["came"] or [], tunable["rounds"] or 0
    tuned = f"{comparison(ratios(clock, common.THP, came))}, came in {len(came)} of {count}"
    if not came:
        tuned = f"as to plain: no huge page came in {count} rounds" if count else "-"
    peak = ratios("peak", "plain")
    memory = f"{median(peak):.2f}" if peak else "-"
    return f"{memory:<9} {comparison(ratios(clock, 'plain')):<30} {tuned}"


def number(case: Any, arm: str, series: str, statistic: str) -> list[float]:
    """Returns a number of CPU time and the ends of its interval."""
    of = {"arm": arm, "series": series, "statistic": statistic, "time": "cpu"}
    return common.ends(common.first(case["numbers"], **of))


def figure(case: Any, arm: str, series: str, statistic: str, limit: float, aim: float) -> str:
    """Returns a figure, or why there is none, beside its limit and its aim."""
    need = common.first(case["left_out"], arm=arm)["need"]
    here = f"left out: {need}" if need else f"none ({case['standing'] or 'unknown'})"
    if found := number(case, arm, series, statistic):
        here = "{:.3f} ({:.3f}-{:.3f})".format(*found)
    return f"{here:<20} {limit:<6} {aim}"


def cleared(case: Any) -> str:
    """Returns the share of clearing, whichever thread does it, in a round of base pages."""
    zero, plain = number(case, "segment-2m", "zero", "p50"), number(case, "plain", "process", "p50")
    # The time of a round is that of each of its pages.
    return f"{zero[0] / (plain[0] * PAGES):.3f}" if zero and plain else "-"


def pairs(plain: list[str], wrapper: list[str]) -> list[list[list[float]]]:
    """Returns what a command prints, and its milliseconds, alone and behind a wrapper, in turns."""

    def measured(command: list[str]) -> list[float]:
        begin = time.perf_counter()
        return [*map(float, common.output(command).split()), (time.perf_counter() - begin) * 1e3]

    sides = (plain, wrapper + plain)
    turns = ({side: measured(sides[side]) for side in order} for order in common.orders(20))
    return [[turn[0], turn[1]] for turn in turns]


def figures(binary: str, folder: Path) -> None:
    """Prints what segments cost by themselves."""
    calls = [str(folder / "segments"), "calls", "64", "20"]
    common.output(["gcc", "-O1", "-pthread", "-o", calls[0], SOURCE])
    segments = [binary, "segment", "run"]
    print("figure                      zero      here                 must   aim")
    for zero in ("release", "fault"):
        run = folder / f"fault-{zero}"
        shutil.rmtree(run, ignore_errors=True)
        command = [binary, "run", "segment/fault", "--quiet", "--wait", "--size", "1g"]
        command += ["--arms", "plain,thp,segment-2m,segment-1g", "--zero", zero, "--forks", "6"]
        common.output([*command, "-o", str(run)], (0, 6))  # one that is not proven has no numbers
        report = common.parsed(common.output([binary, "report", str(run), "--format", "json"]))
        case = common.first(report["cases"], workload="segment/fault")
        rows = {name: figure(case, *of) for name, of in FIGURES.items()}
        turns = pairs(calls, [*segments, "--quiet", "--mmap", "1g", "--zero", zero, "--"])
        call, cpu = (comparison([mine[n] / plain[n] for plain, mine in turns]) for n in (0, 1))
        rows["2m, its clearing, of plain"] = cleared(case)
        rows["mmap + munmap of 64 MiB"] = f"{call}, must 0.5, aim 0.2; CPU time of a round {cpu}"
        for name, text in rows.items():
            print(f"{name:<27} {zero:<9} {text}")
    more = median(mine[0] - plain[0] for plain, mine in pairs(["true"], [*segments, "--"]))
    print(f"{'segment run -- true adds':<27} {'':<9} {more:.1f} ms (must 10, aim 3)")


if __name__ == "__main__":
    rounds = 0, "rounds of each program, within the budget"
    alone = False, "what segments cost by themselves, and no program"
    options = common.parse(__doc__, "segment-score", budget=40.0, rounds=rounds, figures=alone)
    if options.figures:
        figures(options.binary, options.dir)
        raise SystemExit
    flags = ["--no-prediction", "--rung", f"segment,{common.THP}"]
    if options.rounds:
        flags += ["--rounds", str(options.rounds), "--min-rounds", str(options.rounds)]
    print("program   peak      to plain                       to glibc's hugetlb=1")
    for row, report in common.results(options, "segment", flags):
        # A server runs as long as its client, so its CPU time counts.
        clock = "cpu" if "serves" in row else "elapsed"
        print(f"{row['name']:<9} {line(common.journal(options.dir / row['name']), report, clock)}")
    common.end(options)
