#!/usr/bin/env python3
"""Whether a second run of `pagelab try` says the same of a program, and hyperfine the same number.

A program is repeated if both runs decide, and alike: leave it as it is, or faster, with no variant
that the other run calls anything else. A planted gain or loss has to be found.
"""

from typing import Any

from common import MOST, VARIANTS, against, end, ends, parse, results


def decision(report: Any) -> tuple[str, str]:
    """Returns the variant that a report calls faster, if any, and what it says."""
    if answers := report["tried"]["answers"]:
        best = answers[0]["rung"]
        value = (ends(against(report, best)["ratio"]) or [1.0])[0]
        return best, f"{best} {(value - 1) * 100:+.1f} %"
    # Base pages are no way to larger ones: whether they are as good is another question.
    is_open = "open" not in report["tried"] or set(report["tried"]["open"]) - {"plain"}
    return "", "open" if is_open else "leave it"


def line(row: Any, one: Any, other: Any) -> tuple[bool, str]:
    """Returns whether a program is repeated, and its line."""
    (best, words), (second, again) = decision(one), decision(other)
    repeated = words == again == "leave it"
    if best and second:  # one that the other run screened out has no verdict there
        verdicts = (against(other, best)["verdict"], against(one, second)["verdict"])
        repeated = all(verdict in ("FASTER", {}) for verdict in verdicts)
    found = bool(best)
    if row.get("planted") == "loss":
        names = [rung["rung"] for rung in one["tried"]["rungs"]]
        slower = any(against(one, name)["verdict"] == "SLOWER" for name in names)
        found = words == "leave it" and slower
    verdict = "repeated" if repeated else "NOT REPEATED"
    if "planted" in row:
        verdict += ", planted and " + ("found" if found else "NOT FOUND")
    return repeated, f"{row['name']:<12}{words:<26}{again:<26}{verdict}"


if __name__ == "__main__":
    options = parse(__doc__, "try-score", budget=60.0, **VARIANTS)
    lines, repeated, decided = [f"{'program':<12}{'one run':<26}{'another':<26}so"], 0, 0
    flags = ["--no-prediction", *MOST]
    for row, *pair in results(options, "try", flags, lines[0], ("-1", "-2")):
        is_repeated, text = line(row, *pair)
        lines.append(text)
        repeated += is_repeated
        decided += all(decision(report)[1] != "open" for report in pair)
        print(text)
    print("", *lines, "", sep="\n")
    print(f"{repeated} of {len(lines) - 1} repeated; both runs decide {decided}.")
    end(options)
