#!/usr/bin/env python3
"""How often what `pagelab explain` predicts comes, by `pagelab try` of real programs.

The report judges each prediction: one is right if what came lies in its interval, or no farther off
than 15 % of the time in faults. What is open counts as not right.
"""

from typing import Any

from common import MOST, ROOT, VARIANTS, Json, end, ends, first, parse, results

RECORD = ROOT / "records/explain-score.txt"
HEADING = ["program", "rung", "predicted, ms", "came, ms", "off by", "so"]
CHANGE = 0.03  # a smaller share of the CPU time is nothing that could be predicted
WORDS = {"near": "within 15 %", "opposite": "WRONG SIGN"}


def span(quantity: list[float]) -> str:
    """Returns nanoseconds as milliseconds, with the interval unless it is a point."""
    value, low, high = (f"{ns / 1e6:.{int(abs(ns) < 9.95e6)}f}" for ns in quantity)
    return value if low == high else f"{value} ({low} to {high})"


def cells(name: str, one: Any) -> list[str]:
    """Returns the row of a prediction."""
    predicted, came, agreement = ends(one["predicted"]), ends(one["came"]), one.get("agreement", "")
    expected = span(predicted) if predicted else "no price"
    if predicted and one["at_most"]:
        expected = f"at most {span(predicted[2:] * 3)}"
    off = one.get("off_by_share_of_stall")
    off_by = "" if off is None else f"{off * 100:+.0f} %"
    measured = span(came) if came else one.get("nothing_came", "")
    return [name, one["rung"], expected, measured, off_by, WORDS.get(agreement, agreement)]


def aligned(rows: list[list[str]]) -> str:
    """Returns rows with columns of equal width."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "".join("  ".join(map(str.ljust, row, widths)).rstrip() + "\n" for row in rows)


def total(reports: list[Any]) -> str:
    """Returns the share that is right, and the error beside that of predicting nothing."""
    verdicts, pairs = [], []
    for report in reports:
        plain = next((one for one in report["cases"] if one["case"]["rung"] == "plain"), Json())
        cpu = first(plain["numbers"], series="cpu", time="cpu", statistic="p50").get("value")
        for one in report["predictions"]:
            verdicts += [one["agreement"]] if one["agreement"] else []
            predicted, came = ends(one["predicted"]), ends(one["came"])
            # What the interval leaves open would be mostly noise over noise.
            sure = came and (came[1] > 0 or came[2] < 0)
            if predicted and sure and cpu and abs(came[0] / cpu) >= CHANGE:
                pairs.append((predicted[0], came[0]))
    words = ("inside", "near", "off", "open", "opposite")
    inside, near, off, is_open, wrong = map(verdicts.count, words)
    text = "No prediction has anything beside it.\n"
    if judged := len(verdicts):
        text = f"{inside + near} of {judged} right ({(inside + near) / judged * 100:.0f} %): "
        text += f"{inside} inside their interval, {near} within 15 % of the time in faults.\n"
        text += f"{off} off, {is_open} open, {wrong} of the wrong sign.\n"
    if not pairs:
        return text + "None of them surely gained or lost 3 % of its CPU time.\n"
    error = sum(abs(came - hoped) for hoped, came in pairs) / sum(abs(came) for _, came in pairs)
    text += f"Of the {len(pairs)} that surely gained or lost 3 % of their CPU time, the error is "
    return f"{text}{error:.2f} of that of predicting nothing.\n"


if __name__ == "__main__":
    keep = False, "write the table into records/, for program/docs/explain.md"
    options = parse(__doc__, "explain-score", budget=120.0, keep=keep, **VARIANTS)
    rows, reports, notes = [HEADING], [], ""
    # All rounds: what is decided about a variant need not be about its prediction.
    for row, report in results(options, "explain", [*MOST, "--min-rounds", MOST[1]]):
        mine = [cells(row["name"], one) for one in report["predictions"]]
        notes += "" if mine else f"{row['name']}: no prediction\n"
        print(aligned(mine) if mine else f"{row['name']}: no prediction\n", end="")
        rows += mine
        reports.append(report)
    for row in options.missing:
        notes += f"skipped: {row['name']} is not here: {row['fix']}\n"
    table = f"{aligned(rows)}\n{total(reports)}{notes}"
    print(f"\n{table}", end="")
    if options.keep:
        RECORD.write_text(table)
        print(f"\n{RECORD}: cargo xtask splice puts it into program/docs/explain.md")
    end(options)
