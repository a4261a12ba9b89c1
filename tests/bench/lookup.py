# SPDX-License-Identifier: Apache-2.0
"""Lookups beside an echo, the rate of imports, and the server's memory. lookup.py [--records N,N,...] [--fresh]"""

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import time

from tests.bench.results import FOLDER, Results, table
from tests.support.cluster import BIN, Cluster, until

ROUNDS, CALLS = 9, 10000


def run_json(*arguments, timeout=3000):
    done = subprocess.run([str(argument) for argument in arguments], stdout=subprocess.PIPE, text=True, timeout=timeout, check=True)
    return json.loads(done.stdout)


def database(records):
    return os.path.join(FOLDER, f"records-{records}.db")


def imported(records):
    """Makes the database unless it is there, whole."""
    if os.path.exists(database(records)):
        return
    part = database(records) + ".part"
    for file in (part, part + "-wal", part + "-shm"):
        if os.path.exists(file):
            os.remove(file)
    run_json(os.path.join(BIN, "bench_import"), part, records)
    os.rename(part, database(records))


@contextlib.contextmanager
def serving(records):
    server = subprocess.Popen([os.path.join(BIN, "bench_lookup_server"), database(records)], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    try:
        kiln, echo = (server.stdout.readline().split()[1] for _ in range(2))
        yield server, kiln, echo
    finally:
        server.stdin.close()
        server.wait(60)


def answered(records):
    """Imported, and with the answers that a server makes behind an import; the seconds that these took."""
    imported(records)
    start = time.monotonic()
    with serving(records):
        return time.monotonic() - start


def looked_up(records):
    answered(records)
    with serving(records) as (server, kiln, echo):
        return run_json(os.path.join(BIN, "bench_lookup"), kiln, echo, server.pid, records, ROUNDS, CALLS)


def resident_mib(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        for line in file:
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
    return 0.0


def memory_with_records(records):
    """Of a server that has answered every record once."""
    answered(records)
    cluster = Cluster()
    try:
        server = cluster.start_server(database=os.path.abspath(database(records)), listen="127.0.0.1:0")
        started = resident_mib(server.pid)
        # The echo's side goes to the same server here; only the memory counts.
        subprocess.run([os.path.join(BIN, "bench_lookup"), cluster.address, cluster.address, str(server.pid),
                        str(records), "1", "1000"],
                       stdout=subprocess.DEVNULL, timeout=3000, check=True)
        return {"started_mib": started, "after_mib": resident_mib(server.pid)}
    finally:
        cluster.close()


def memory_with_waiters(calls):
    """Of a server on which so many operations wait for one job."""
    cluster = Cluster()
    storm = None
    try:
        server = cluster.start_server()
        cluster.start_worker().stop()  # so that the device is known
        before = resident_mib(server.pid)
        storm = subprocess.Popen([os.path.join(BIN, "storm"), cluster.address, str(calls), "64", "64", "80", "8", "20"],
                                 stdout=subprocess.PIPE, env=cluster.environment())
        start = time.monotonic()
        until("all wait", lambda: sum(job["operations"] for job in cluster.ask("jobs")["jobs"]) == calls, 300)
        asked = time.monotonic() - start
        waiting = resident_mib(server.pid)
        cluster.start_worker()
        told = json.loads(storm.communicate(timeout=300)[0])
        return {"before_mib": before, "waiting_mib": waiting, "asked_seconds": asked, "answered": told["answered"]}
    finally:
        if storm is not None:
            storm.kill()
            storm.wait()
        cluster.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", default="100000", help="numbers of records; flatness: 1000,10000,100000,1000000")
    parser.add_argument("--memory-records", type=int, default=1000000)
    parser.add_argument("--waiters", type=int, default=10000)
    parser.add_argument("--fresh", action="store_true")
    options = parser.parse_args()
    results = Results("lookup", options.fresh)

    rows = []
    for records in [int(n) for n in options.records.split(",")]:
        told = results.get(f"lookup {records}", lambda n=records: looked_up(n))
        for kind in ("cold", "uniform", "zipf"):
            row = told[kind]
            rows.append([f"{records} records, {kind}", f"{row['kiln']['per_second']:.0f}", f"{row['echo']['per_second']:.0f}",
                         f"{row['ratio']:.2f}", f"{row['ratio_least']:.2f}-{row['ratio_most']:.2f}",
                         f"{row['kiln']['p50_us']:.0f}", f"{row['echo']['p50_us']:.0f}", f"{row['kiln']['p99_us']:.0f}",
                         f"{row['echo']['p99_us']:.0f}", f"{row['p99_ratio']:.2f}", f"{row['kiln']['cpu_us']:.1f}", f"{row['echo']['cpu_us']:.1f}", row["kiln"]["errors"]])
    table(f"Lookups, {told['response_bytes']} bytes an answer, {told['in_flight']} in flight, {told['rounds']} alternate rounds "
          "(goal: ratio >= 0.70, p99 ratio <= 1.50)",
          ["", "Kiln/s", "echo/s", "ratio", "spread", "p50 us", "echo", "p99 us", "echo", "p99 ratio", "CPU us", "echo", "errors"], rows)

    def import_anew():
        folder = tempfile.mkdtemp(prefix="import-", dir=FOLDER)
        try:
            return run_json(os.path.join(BIN, "bench_import"), os.path.join(folder, "kiln.db"), 100000)
        finally:
            shutil.rmtree(folder)

    told = results.get("import", import_anew)
    table("Import, durable, four callers, 1,000 records a transaction", ["", "records/s", "seconds"],
          [[f"{told['records']} records", f"{told['per_second']:.0f}", f"{told['seconds']:.1f}"]])

    rows = []
    if options.memory_records:
        told = results.get(f"memory {options.memory_records}", lambda: memory_with_records(options.memory_records))
        rows.append([f"{options.memory_records} records", f"{told['started_mib']:.0f}", f"{told['after_mib']:.0f}"])
    if options.waiters:
        told = results.get(f"waiters {options.waiters}", lambda: memory_with_waiters(options.waiters))
        rows.append([f"{options.waiters} waiting operations", f"{told['before_mib']:.0f}", f"{told['waiting_mib']:.0f}"])
    table("Memory of the server, MiB", ["", "before", "with"], rows)


if __name__ == "__main__":
    main()
