"""Many tasks: on processes and on a cluster, whatever dies."""

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import jobs
import pytest

import pagelab
from pagelab import distributed
from pagelab.distributed import engine, sweeps
from pagelab.distributed.folder import ENDING, JOB, Folder

POINTS = 10 * 3 * 34


@pytest.fixture(scope="module")
def serial(tmp_path_factory):
    """A sweep of a thousand points in this process."""
    return distributed.sweep(jobs.AXES, tmp_path_factory.mktemp("serial"), fixed=jobs.FIXED, on=0)


def tasks(count, *more):
    return [
        engine.Task(f"{number:04}", (number, *more), f"number {number}") for number in range(count)
    ]


def carry_out(function, some, folder, on, **how):
    with Folder(folder, "test", None) as kept:
        kept.settle(None)
        return {task.name: body for task, body in engine.carry_out(function, some, kept, on, **how)}


def same(swept, serial):
    assert len(serial.rows) == POINTS and not serial.refused
    assert swept.rows == serial.rows
    assert swept.csv.read_bytes() == serial.csv.read_bytes()


def test_a_sweep_on_processes_is_that_of_one(serial, tmp_path):
    same(distributed.sweep(jobs.AXES, tmp_path, fixed=jobs.FIXED, on=2), serial)


def test_a_sweep_on_a_cluster_is_that_of_one(client, serial, tmp_path):
    same(distributed.sweep(jobs.AXES, tmp_path, fixed=jobs.FIXED, on=client), serial)


def test_a_sweep_by_the_address_of_a_scheduler(client, tmp_path):
    axes = {"fast": ["5%", "50%"]}
    address = client.scheduler.address
    assert len(distributed.sweep(axes, tmp_path, fixed=jobs.FIXED, on=address).rows) == 2


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """A scheduler that answers late is there."""
    monkeypatch.setattr(engine, "CONNECT_SECONDS", jobs.DEADLINE)


def driver(folder, *more):
    """A driver whose tasks wait after the first few, until the gate is opened."""
    (folder / "gate").mkdir(exist_ok=True)
    command = [sys.executable, Path(jobs.__file__), folder, "40", *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def results(folder):
    return {path: path.stat().st_mtime_ns for path in Path(folder).glob(f"*{ENDING}")}


def wait_at_gate(folder, process):
    while len(results(folder)) < jobs.FREE:
        assert process.poll() is None, "it ended before it could be killed"
        time.sleep(0.01)


def open_gate(folder):
    (folder / "gate" / "open").touch()


def children(of):
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(of)], capture_output=True, text=True)
    return [int(pid) for pid in listed.stdout.split()]


def python_children(of):
    """Its workers: children that run this job, not what counts their semaphores."""
    named = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in children(of)}
    return [pid for pid, line in named.items() if b"spawn_main" in line]


def test_a_worker_that_is_killed_costs_nothing_but_time(serial, tmp_path):
    process = driver(tmp_path)
    wait_at_gate(tmp_path, process)
    os.kill(python_children(process.pid)[0], signal.SIGKILL)
    open_gate(tmp_path)
    assert json.loads(process.communicate()[0]) == POINTS
    assert (tmp_path / "points.csv").read_bytes() == serial.csv.read_bytes()


@pytest.mark.parametrize("where", ["processes", "cluster"])
def test_a_driver_that_is_killed_goes_on_with_what_is_missing(where, request, serial, tmp_path):
    more = []
    if where == "cluster":
        more = [request.getfixturevalue("client").scheduler.address]
    process = driver(tmp_path, *more)
    wait_at_gate(tmp_path, process)
    workers = python_children(process.pid)
    process.kill()
    process.wait()
    before = results(tmp_path)
    assert len(before) == jobs.FREE < POINTS // 40
    open_gate(tmp_path)
    for pid in workers:
        while Path(f"/proc/{pid}").exists():
            time.sleep(0.01)
    again = driver(tmp_path, *more)
    assert json.loads(again.communicate()[0]) == POINTS
    after = results(tmp_path)
    assert before.items() <= after.items(), "what was there was done again"
    assert (tmp_path / "points.csv").read_bytes() == serial.csv.read_bytes()


def test_a_worker_of_a_cluster_that_is_killed_is_replaced(client, tmp_path):
    (tmp_path / "marks").mkdir()
    some = tasks(8, str(tmp_path / "marks"))
    for number in range(1, 8):
        (tmp_path / "marks" / str(number)).touch()
    came = carry_out(jobs.dies_once, some, tmp_path / "out", client)
    assert came == {task.name: str(task.arguments[0]).encode() for task in some}


@pytest.mark.parametrize("where", [2, "client"])
def test_a_task_that_kills_every_worker_is_named_and_the_rest_is_done(where, request, tmp_path):
    on = request.getfixturevalue("client") if where == "client" else where
    with pytest.raises(distributed.Lost, match=r"number 3.*its worker died in each of 2") as lost:
        carry_out(jobs.dies_if, tasks(8, [3]), tmp_path, on, retries=1)
    assert list(lost.value.tasks) == ["0003"]
    assert len(results(tmp_path)) == 7


def test_a_task_that_fails_is_named_after_its_retries(tmp_path):
    with pytest.raises(distributed.Lost, match="no luck with 0"):
        carry_out(jobs.fails, tasks(1), tmp_path, 0)


def test_results_come_as_they_are_done(tmp_path):
    told = []
    came = carry_out(
        jobs.echo, tasks(20), tmp_path, 2, progress=lambda *so_far: told.append(so_far)
    )
    assert len(came) == 20 and told[0] == (0, 20) and told[-1] == (20, 20)


def test_a_cluster_that_is_killed_is_told_with_what_to_do(mortal, tmp_path):
    cluster, client, address = mortal

    def kill_at_two(done, _):
        if done == 2:
            cluster.kill()

    with pytest.raises(distributed.Gone, match=f"{address} went away.*the same call goes on"):
        carry_out(jobs.echo, tasks(30), tmp_path, client, progress=kill_at_two)
    cluster.wait()
    assert 2 <= len(results(tmp_path)) < 30
    assert len(carry_out(jobs.echo, tasks(30), tmp_path, 0)) == 30


def test_nobody_at_an_address_is_told(monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(engine, "CONNECT_SECONDS", 1)
    with pytest.raises(distributed.Gone, match="no scheduler answers"):
        engine.workers("tcp://127.0.0.1:9")


def test_a_result_that_was_cut_off_or_changed_is_done_again(tmp_path, capfd):
    carry_out(jobs.echo, tasks(3), tmp_path, 0)
    (tmp_path / f"0001{ENDING}").write_bytes(b"half")
    (tmp_path / f"0002{ENDING}").write_bytes(b"0" * 64 + b"\n7")
    (tmp_path / f"other{ENDING}").write_bytes(b"?")
    assert carry_out(jobs.echo, tasks(3), tmp_path, 0)["0002"] == b"2"
    said = capfd.readouterr().err
    assert said.count("is damaged") == 2 and "of no task of this job" in said


def test_a_folder_of_something_else_is_refused(tmp_path):
    axes = {"fast": ["5%", "50%"]}
    distributed.sweep(axes, tmp_path, fixed=jobs.FIXED, on=0)
    with pytest.raises(ValueError, match="something else"):
        distributed.sweep({"fast": ["7%"]}, tmp_path, fixed=jobs.FIXED, on=0)
    job = json.loads((tmp_path / JOB).read_text())
    (tmp_path / JOB).write_text(json.dumps({**job, "pagelab": "0.0.1"}))
    with pytest.raises(ValueError, match=r"begun by pagelab 0\.0\.1"):
        distributed.sweep(axes, tmp_path, fixed=jobs.FIXED, on=0)
    (tmp_path / JOB).write_text("{")
    with pytest.raises(ValueError, match="no job"):
        distributed.sweep(axes, tmp_path, fixed=jobs.FIXED, on=0)


def test_two_drivers_do_not_work_in_one_folder(tmp_path):
    with Folder(tmp_path, "test", None), pytest.raises(BlockingIOError, match="another driver"):
        Folder(tmp_path, "test", None)


def test_a_sample_is_the_same_each_time_and_its_report_opens(tmp_path):
    axes = {
        "fast": distributed.Range(5, 90, text="{}%"),
        "policy.threshold": distributed.Range(1, 9, whole=True),
    }
    first, second = (
        distributed.sweep(axes, tmp_path / name, fixed=jobs.FIXED, sample=64, on=0) for name in "ab"
    )
    assert first.rows == second.rows and len({row["fast"] for row in first.rows}) > 15
    # Of pghot a threshold above 3 makes no sense: it is said, and the others are there.
    assert first.refused and "threshold" in first.refused[0]["why"]
    assert len({row["point"] for row in first.rows}) + len(first.refused) == 64
    page = first.report.read_text()
    assert "<rect" in page and '<path class="front"' in page
    assert "http" not in page.replace("xmlns", "")


def test_no_row_of_the_front_is_beaten(serial):
    front, (first, second) = serial.front(), serial.objectives
    assert front
    for row in front:
        better = [
            other
            for other in serial.rows
            if other[first] <= row[first]
            and other[second] <= row[second]
            and (other[first], other[second]) != (row[first], row[second])
        ]
        assert not better


@pytest.mark.parametrize(
    ("axes", "how", "says"),
    [
        ({}, {}, "needs an axis"),
        ({"fast": []}, {}, "list of values"),
        ({"fast": distributed.Range(1, 2)}, {}, "a range is for a sample"),
        ({"fast": distributed.Range(2, 1)}, {"sample": 3}, "is no range"),
        ({"fast": ["5%"]}, {"sample": 0}, "from 1 to"),
        ({"policy.threshold": [1]}, {"fixed": {}}, "needs one policy"),
        ({"seed": list(range(2000)), "window": list(range(2000))}, {}, "sample them"),
    ],
)
def test_axes_that_make_no_sense_are_told(axes, how, says, tmp_path):
    with pytest.raises(ValueError, match=says):
        distributed.sweep(axes, tmp_path, on=0, **how)


@pytest.mark.parametrize("stack", ["off", "exact"])
def test_a_trace_in_shards_has_the_statistics_of_the_whole(stack, trace, tmp_path):
    whole = pagelab.trace_stats(trace, stack=stack, tlb=True)
    shards = distributed.trace_stats(trace, tmp_path, stack=stack, tlb=True, shards=7, on=2)
    assert shards["absent"]["reuse"]["distances"] is None
    for known in (whole, shards):
        del known["absent"]["reuse"]["distances"], known["absent"]["reuse"]["caches"]
    assert shards == whole


def test_a_trace_in_shards_on_a_cluster(client, trace, tmp_path):
    shards = distributed.trace_stats(trace, tmp_path, shards=3, on=client)
    assert shards["ops"] == 60_000


def test_a_shard_that_began_at_no_record_is_collected_again(tmp_path, capfd):
    # Every two bytes look like the start of a record.
    (tmp_path / "trace.bin").write_bytes(b"\x02\x02" * 5 * 4001)
    shards = distributed.trace_stats(tmp_path / "trace.bin", tmp_path / "out", shards=3, on=0)
    assert shards["ops"] == 4001
    assert "it is collected again" in capfd.readouterr().err


def test_a_sample_of_stacks_says_how_far_it_is_off(trace, tmp_path):
    stack = distributed.trace_stats(trace, tmp_path, stack="sampled", shards=2, on=0)["stack"]
    assert 0 <= stack["error"]["miss_ratio_max"] <= 1 and "first" in stack["error"]["of"]


def test_a_trace_that_cannot_be_cut_is_told(tmp_path, trace):
    import gzip

    (tmp_path / "trace.bin.gz").write_bytes(gzip.compress(trace.read_bytes()))
    with pytest.raises(distributed.Lost, match="unpack it"):
        distributed.trace_stats(tmp_path / "trace.bin.gz", tmp_path / "out", on=0)
    with pytest.raises(ValueError, match="one of off, exact, sampled"):
        distributed.trace_stats(trace, tmp_path / "other", stack="most", on=0)


def test_a_sweep_takes_a_second_for_each_task(monkeypatch):
    # A 64th of a second from one look at the clock to the next: 12 points are tried, and the last
    # look is the 14th. All points take 36 s so, which is 24 tasks.
    looks = itertools.count()
    clock = SimpleNamespace(perf_counter=lambda: next(looks) / 64)
    monkeypatch.setattr(sweeps, "time", clock)
    cases = [{"size": "16m", "fast": "50%", "accesses": "100m"}] * 2000
    assert sweeps._points_each(cases, 1) == -(-2000 // 24)


@pytest.mark.parametrize(
    ("seconds", "slots", "tasks"), [(7.6, 1, 5), (7.6, 2, 4), (1, 2, 1), (3, 0, 2)]
)
def test_every_slot_has_as_many_tasks(seconds, slots, tasks, monkeypatch):
    cases, clock = [{}] * 1000, iter([0.0, 0.0, seconds / 1000, seconds / 1000])
    monkeypatch.setattr(sweeps, "PROBE_SECONDS", seconds / 1000)
    monkeypatch.setattr(sweeps, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    monkeypatch.setattr(sweeps, "_native", SimpleNamespace(simulate_all=lambda cases: ""))
    assert -(-len(cases) // sweeps._points_each(cases, slots)) == tasks
