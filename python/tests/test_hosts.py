"""A plan over several hosts, and while something is killed that measures.

Two machines on one: namespaces give each a name and a boot of its own, which is what tells hosts
apart.
"""

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import jobs
import pytest
from jobs import until

from pagelab import distributed
from pagelab._native import Plan
from pagelab.distributed import engine, measured

SUITE = "name = 'mine'\nsummary = 'measured'\nforks = 1\nbudget = 0.2\n" + "".join(
    f"[[case]]\nworkload = 'limit/{workload}'\nlevel = ['l1', 'l2']\n"
    for workload in ("clear", "copy", "read")
)
TASKS = 6
# Two tasks each; the binary is kept waiting before the last one, so that nothing is over too soon.
SHARDS, LAST = 3, "3/3"
ALONE = 'hostname "$1" && mount --bind "$2" /proc/sys/kernel/random/boot_id && shift 2 && exec "$@"'


def results(folder):
    return {
        path: path.stat().st_mtime_ns for path in folder.glob("*.jsonl") if Plan.of_file(path.name)
    }


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """A scheduler that answers late is there, and so is a worker that comes back late."""
    monkeypatch.setattr(engine, "CONNECT_SECONDS", jobs.DEADLINE)
    monkeypatch.setattr(measured, "AWAY", jobs.DEADLINE)


@contextlib.contextmanager
def held(folder, shard, boot=None):
    """Keeps the binary waiting before it measures a shard, however fast it was with the others."""
    boot = boot or Plan.here().rpartition(".")[2]
    folder.mkdir(exist_ok=True)
    with (folder / f".shard-{shard.replace('/', '-of-')}.{boot}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def parent(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def measuring(folder):
    """The processes of the binary that measure into a folder, without one that it just forked."""
    found = {}
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
            if b"exec" in words and os.fsencode(folder) in words:
                found[int(entry.name)] = parent(entry.name)
        except OSError:
            continue
    return [pid for pid, of in found.items() if of not in found]


def is_last(pid):
    """Whether a binary is at the last shard."""
    return LAST.encode() in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")


def kill_a_worker(folder, is_meant=lambda pid: True):
    """Kills the worker of a binary that is meant, where one is there, and says which binary."""
    for pid in measuring(folder):
        with contextlib.suppress(OSError):
            if is_meant(pid):
                os.kill(parent(pid), signal.SIGKILL)
                return pid
    return None


@pytest.fixture
def same_afterwards(merged, tmp_path):
    """Whether a folder has every result, and those from before as they were."""

    def check(before, folder):
        after = results(folder)
        assert before and before.items() <= after.items(), "what was there was measured again"
        assert len(after) == TASKS
        assert len(merged(folder, tmp_path / "run")) == TASKS

    return check


def test_a_worker_that_is_killed_while_it_measures_costs_what_it_was_at(
    client, binary, plan, same_afterwards, tmp_path
):
    output, came = tmp_path / "out", []
    folder = plan(SHARDS)
    driver = threading.Thread(
        target=lambda: came.extend(distributed.fleet(folder, output, on=client, binary=binary))
    )
    with held(output, LAST):
        driver.start()
        until("a result", lambda: len(results(output)) >= 2)
        before = results(output)
        # In the middle of what it measures, as a rule; and surely one that has to wait.
        kill_a_worker(output)
        busy = until("the last shard", lambda: kill_a_worker(output, is_last))
        until("the binary to die with its worker", lambda: not Path(f"/proc/{busy}").exists())
    driver.join()
    assert len(came) == TASKS
    same_afterwards(before, output)


@pytest.mark.parametrize("where", ["processes", "cluster"])
def test_a_driver_that_is_killed_while_it_measures_goes_on(
    where, request, binary, plan, same_afterwards, tmp_path
):
    on = 2 if where == "processes" else request.getfixturevalue("client").scheduler.address
    folder, output = plan(SHARDS), tmp_path / "out"
    call = f"fleet({str(folder)!r}, {str(output)!r}, on={on!r}, binary={binary!r})"
    script = (
        "from pagelab.distributed import engine, fleet\n"
        f"engine.CONNECT_SECONDS = {jobs.DEADLINE}\n"
        f"if __name__ == '__main__':\n    {call}\n"
    )
    (tmp_path / "driver.py").write_text(script)
    with held(output, LAST):
        driver = subprocess.Popen([sys.executable, tmp_path / "driver.py"])
        until("a result", lambda: len(results(output)) >= 2)
        driver.kill()
        driver.wait()
        before = results(output)
        assert len(before) < TASKS, "what is held was measured"
    # On a cluster the binary goes on: the next call waits for it.
    assert len(distributed.fleet(folder, output, on=on, binary=binary)) == TASKS
    same_afterwards(before, output)


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    """A cluster of two hosts that measure; one has a worker beside that does not."""
    dask = pytest.importorskip("distributed")
    folder = tmp_path_factory.mktemp("hosts")
    workers = []
    with dask.LocalCluster(n_workers=0, dashboard_address=":0", protocol="tcp://") as cluster:
        for name, host, more in [
            ("alpha", "alpha", ["--resources", "bench=1"]),
            ("beside", "alpha", ["--no-nanny"]),
            ("beta", "beta", ["--resources", "bench=1"]),
        ]:
            boot, told = {"alpha": "a", "beta": "b"}[host], folder / f"boot-{host}"
            told.write_text(f"{boot * 8}-{boot * 4}-{boot * 4}-{boot * 4}-{boot * 12}\n")
            command = ["unshare", "--uts", "--mount", "sh", "-c", ALONE, "sh", host, told]
            command += [sys.executable, "-m", "distributed.cli.dask_worker"]
            command += [cluster.scheduler_address, "--nthreads", "1", "--no-dashboard"]
            command += ["--name", name, "--local-directory", folder, *more]
            log = (folder / f"{name}.log").open("w")
            workers.append(subprocess.Popen(command, stdout=log, stderr=log))
        with dask.Client(cluster) as client:
            while len(client.scheduler_info(n_workers=-1)["workers"]) < len(workers):
                if any(worker.poll() is not None for worker in workers):
                    pytest.skip("no machine of another name can be had; to run it: be root")
                time.sleep(0.05)
            yield client
        for worker in workers:
            worker.terminate()
        for worker in workers:
            worker.wait()


def test_every_host_of_a_fleet_has_one_slot(hosts, plan, stand_in, tmp_path):
    # In place of the binary: each waits for the other host to have begun, too.
    said = tmp_path / "said"
    binary = stand_in(
        "import os, socket, time\n"
        f"log = os.open({str(said)!r}, os.O_CREAT | os.O_APPEND | os.O_WRONLY)\n"
        "host = socket.gethostname()\n"
        "os.write(log, f'{host} begin\\n'.encode())\n"
        "both = {'alpha begin', 'beta begin'}\n"
        f"while not both <= set(open({str(said)!r}).read().splitlines()):\n"
        "    time.sleep(0.01)\n"
        "time.sleep(0.2)\n"
        "os.write(log, f'{host} end\\n'.encode())\n"
    )
    folder = plan(6)
    found = measured._hosts(distributed.engine.Cluster(hosts))
    known = hosts.scheduler_info(n_workers=-1)["workers"]
    names = {host.name: known[host.address]["name"] for host in found.values()}
    assert names == {"alpha.aaaaaaaa": "alpha", "beta.bbbbbbbb": "beta"}
    distributed.fleet(folder, tmp_path / "out", on=hosts, binary=binary)
    lines = said.read_text().splitlines()
    assert len(lines) == 2 * 6, "six shards, each once, by whichever host was free"
    for host in ("alpha", "beta"):
        own = [line.split()[1] for line in lines if line.startswith(host)]
        assert own and own == ["begin", "end"] * (len(own) // 2)


def test_a_fleet_of_two_hosts_is_measured_at_the_same_time_into_one_folder(
    hosts, binary, plan, merged, tmp_path
):
    output, came = tmp_path / "out", []
    folder = plan(1)
    driver = threading.Thread(
        target=lambda: came.extend(distributed.fleet(folder, output, on=hosts, binary=binary))
    )
    known = hosts.scheduler_info(n_workers=-1)["workers"]
    pids = hosts.run(os.getpid).items()
    (beta,) = [pid for address, pid in pids if known[address]["name"] == "beta"]
    with held(output, "1/1", "b" * 8):
        with held(output, "1/1", "a" * 8):
            driver.start()
            until("both hosts", lambda: len(measuring(output)) == 2)
        until("a result", lambda: results(output))
        before = results(output)
        # One of the two dies in the middle of it; the other one's slot is not touched.
        until("beta's binary", lambda: kill_a_worker(output, lambda pid: parent(pid) == beta))
    driver.join()
    assert len(came) == 2 * TASKS
    assert before.items() <= results(output).items()
    assert merged(output, tmp_path / "run").hosts == ["alpha", "beta"]
    command = [binary, "compare", tmp_path / "run", "--by", "host", "--baseline", "alpha"]
    compared = subprocess.run(command, capture_output=True, text=True)
    assert compared.returncode == 0, compared.stderr
    assert "host=alpha" in compared.stdout


def test_a_shard_that_kills_its_worker_each_time_is_named_and_the_rest_is_done(
    client, plan, stand_in, tmp_path
):
    # In place of the binary: what starts it for the second shard dies.
    said = tmp_path / "said"
    binary = stand_in(
        "import os, signal, sys\n"
        f"log = os.open({str(said)!r}, os.O_CREAT | os.O_APPEND | os.O_WRONLY)\n"
        "shard = sys.argv[sys.argv.index('--shard') + 1]\n"
        "os.write(log, f'{shard}\\n'.encode())\n"
        "if shard == '2/3':\n"
        "    os.kill(os.getppid(), signal.SIGKILL)\n"
    )
    with pytest.raises(distributed.Lost) as lost:
        distributed.fleet(plan(3), tmp_path / "out", on=client, binary=binary, retries=1)
    assert [what.split(" on ")[0] for what in lost.value.tasks] == ["shard 2 of 3"]
    assert sorted(said.read_text().split()) == ["1/3", "2/3", "2/3", "3/3"]


def test_a_cluster_that_goes_away_while_it_measures_is_told(
    mortal, binary, plan, same_afterwards, tmp_path
):
    cluster, known, address = mortal
    folder, output = plan(SHARDS), tmp_path / "out"

    def kill():
        until("a result", lambda: results(output))
        cluster.kill()

    killer = threading.Thread(target=kill)
    with held(output, LAST):
        killer.start()
        with pytest.raises(distributed.Gone, match=f"{address} went away.*the same call goes on"):
            distributed.fleet(folder, output, on=known, binary=binary)
        killer.join()
        cluster.wait()
        until("the binary to die with its worker", lambda: not measuring(output))
    before = results(output)
    assert len(distributed.fleet(folder, output, on=0, binary=binary)) == TASKS
    same_afterwards(before, output)


def test_workers_that_cannot_measure_are_named(client, monkeypatch, plan, tmp_path, capfd):
    monkeypatch.setattr(measured, "identity", jobs.cannot)
    with pytest.raises(distributed.Gone, match="no worker that could measure"):
        distributed.fleet(plan(1), tmp_path / "out", on=client, binary="pagelab")
    assert capfd.readouterr().err.count("measures nothing: no wheel here") == 2


def test_a_host_that_does_not_come_back_is_named_and_the_other_goes_on(
    hosts, monkeypatch, plan, stand_in, tmp_path
):
    monkeypatch.setattr(measured, "AWAY", 2.0)
    binary = stand_in(
        "import os, signal, socket\n"
        "if socket.gethostname() == 'beta':\n"
        "    stat = open(f'/proc/{os.getppid()}/stat').read().rpartition(')')[2].split()\n"
        "    for pid in (int(stat[1]), os.getppid()):\n"
        "        os.kill(pid, signal.SIGKILL)\n"
    )
    with pytest.raises(distributed.Lost, match=r"shard 1 of 1 on beta.*no worker of it came back"):
        distributed.fleet(plan(1), tmp_path / "out", on=hosts, binary=binary)
