"""A plan of `pagelab fleet` over workers; its results are merged by the binary."""

import json
import subprocess

import pytest

from pagelab import distributed
from pagelab._native import Plan

SUITE = """name = 'mine'
summary = 'measured, modelled and counted'
forks = 1
[[case]]
workload = 'limit/timer'
budget = 0.01
repetitions-min = 1
[[case]]
workload = 'tier/simulation'
policy = 'pghot'
size = '16m'
fast = ['10%', '20%', '30%', '40%']
accesses = '100m'
[[case]]
workload = 'trace/stats'
trace = 'fib'
ops = '10k'
"""


@pytest.mark.parametrize("where", [2, "client"])
def test_a_plan_over_workers_is_one_run(where, request, binary, plan, merged, tmp_path):
    on = request.getfixturevalue("client") if where == "client" else where
    output = tmp_path / "out"
    files = distributed.fleet(plan(2), output, on=on, binary=binary)
    assert len(files) == 6
    before = {path: path.stat().st_mtime_ns for path in files}
    again = distributed.fleet(tmp_path / "plan", output, on=on, binary=binary)
    assert {path: path.stat().st_mtime_ns for path in again} == before
    run = merged(output, tmp_path / "run")
    workloads = sorted(record["workload"] for record in run.records())
    assert workloads == ["limit/timer"] + ["tier/simulation"] * 4 + ["trace/stats"]


def test_what_is_done_in_process_is_what_the_binary_does(binary, plan, merged, tmp_path):
    distributed.fleet(plan(2), tmp_path / "ours", on=0, binary=binary)
    for shard in ("1/2", "2/2"):
        command = [binary, "fleet", "exec", tmp_path / "plan", "--shard", shard, "--quiet"]
        subprocess.run([*command, "-o", tmp_path / "theirs"], check=True, capture_output=True)

    def digests(folder):
        records = merged(folder, tmp_path / f"of-{folder.name}").records()
        counters = [record["outcome"]["measured"]["counters"] for record in records]
        kept = ("digest/pghot", "transitions", "ops")
        return [{key: of[key] for key in kept if key in of} for of in counters]

    assert digests(tmp_path / "ours") == digests(tmp_path / "theirs")


def test_only_what_is_missing_is_done(binary, plan, tmp_path):
    files = distributed.fleet(plan(2), tmp_path / "out", on=0, binary=binary)
    gone = files[::2]
    for path in gone:
        path.unlink()
    kept = {path: path.stat().st_mtime_ns for path in files if path not in gone}
    assert distributed.fleet(tmp_path / "plan", tmp_path / "out", on=0, binary=binary) == files
    assert {path: path.stat().st_mtime_ns for path in kept} == kept


def test_a_plan_of_another_version_and_a_changed_one_are_refused(binary, plan, tmp_path):
    listed = plan(2) / "tasks.jsonl"
    text = listed.read_text()
    listed.write_text(text.replace('"10k"', '"11k"'))
    with pytest.raises(ValueError, match="was changed"):
        distributed.fleet(tmp_path / "plan", tmp_path / "out", on=0, binary=binary)
    head, _, _ = text.partition("\n")
    listed.write_text(json.dumps({**json.loads(head), "pagelab": "0.0.1", "tasks": 0}) + "\n")
    with pytest.raises(ValueError, match="use one version everywhere"):
        distributed.fleet(tmp_path / "plan", tmp_path / "out", on=0, binary=binary)
    with pytest.raises(ValueError, match="fleet plan makes one"):
        distributed.fleet(tmp_path / "nowhere", tmp_path / "out", on=0, binary=binary)


def test_a_folder_of_another_plan_is_refused(binary, plan, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "tasks.jsonl").write_text("another\n")
    with pytest.raises(ValueError, match="another plan"):
        distributed.fleet(plan(2), tmp_path / "out", on=0, binary=binary)


def test_a_binary_that_is_not_there_or_fails_is_told(plan, stand_in, tmp_path):
    with pytest.raises(FileNotFoundError, match="say where it is"):
        distributed.fleet(plan(2), tmp_path / "out", on=0, binary="/nowhere/pagelab")
    broken = stand_in("import sys\nsys.stderr.write('it is broken'), sys.exit(70)\n")
    with pytest.raises(distributed.Lost, match="exit 70: it is broken"):
        distributed.fleet(tmp_path / "plan", tmp_path / "out", on=0, binary=broken)


def test_measurements_of_a_host_come_one_after_the_other(client, plan, stand_in, tmp_path):
    # In place of the binary: says when it began and ended. Two workers are one host.
    said = tmp_path / "said"
    binary = stand_in(
        "import os, time\n"
        f"log = lambda what: os.write(os.open({str(said)!r}, os.O_CREAT | os.O_APPEND"
        " | os.O_WRONLY), what.encode())\n"
        "log('begin\\n'); time.sleep(0.2); log('end\\n')\n"
    )
    distributed.fleet(plan(4), tmp_path / "out", on=client, binary=binary)
    assert said.read_text().split() == ["begin", "end"] * 4


def test_a_plan_knows_what_is_measured(plan):
    tasks = Plan.load(str(plan(1))).tasks()
    assert [is_measured for _, is_measured, _ in tasks] == [True] + [False] * 5
    assert all(seconds > 0 for _, _, seconds in tasks)
