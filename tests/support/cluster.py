# SPDX-License-Identifier: Apache-2.0
"""A server, its workers and the command line as child processes, for end-to-end tests and benchmarks.

Everything that a Cluster starts carries a marker in its environment, so that after a test each process it led to can be found,
those of compilers too, whoever their parent is by then. Only such processes are ever signalled, by pid. Nothing waits without
a deadline.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
import uuid

BIN = os.path.abspath(os.environ.get("KILN_BIN_DIR", "build/release/bin"))
MARKER = "KILN_TEST_CLUSTER"


class Failure(AssertionError):
    """A process did not do what a test needs of it."""


class Answer:
    """What a `kiln` command did: exit code, texts, and the JSON object where there is one."""

    def __init__(self, arguments, code, stdout, stderr):
        self.arguments, self.code, self.stdout, self.stderr = arguments, code, stdout, stderr

    @property
    def json(self):
        try:
            return json.loads(self.stdout)
        except ValueError as error:
            raise Failure(f"{self} did not print JSON: {error}") from None

    def __str__(self):
        return f"kiln {' '.join(self.arguments)}: exit {self.code}\n{self.stdout[-3000:]}\n{self.stderr[-3000:]}"


def until(what, condition, seconds=30.0):
    """The first true value of condition(), polled; Failure after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise Failure(f"not within {seconds} s: {what}")
        time.sleep(0.02)


class Process:
    """A long-running child with its output in files."""

    def __init__(self, name, arguments, folder, environment, user=None):
        self.name = name
        self.out, self.log = os.path.join(folder, name + ".out"), os.path.join(folder, name + ".log")
        # Held open by the child; a name used again starts with an empty output and goes on in its log.
        with open(self.out, "wb") as out, open(self.log, "ab") as log:
            self.child = subprocess.Popen(arguments, stdout=out, stderr=log, stdin=subprocess.DEVNULL,
                                          env=environment, user=user, cwd=folder)

    @property
    def pid(self):
        return self.child.pid

    def text(self, path=None):
        with open(path or self.out, encoding="utf-8", errors="replace") as file:
            return file.read()

    def await_line(self, prefix, seconds=30.0):
        def find():
            match = re.search("^" + re.escape(prefix) + "(.*)$", self.text(), re.MULTILINE)
            if match is None and self.child.poll() is not None:
                raise Failure(f"{self.name} ended with {self.child.returncode} before it was ready:\n{self.text(self.log)[-3000:]}")
            return match
        return until(f"{self.name} says '{prefix}'", find, seconds).group(1).strip()

    def signal(self, number):
        if self.child.poll() is None:
            self.child.send_signal(number)

    def wait(self, seconds=20.0):
        try:
            return self.child.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Failure(f"{self.name} did not end within {seconds} s:\n{self.text(self.log)[-3000:]}") from None

    def kill(self):
        """kill -9, and reaps."""
        self.signal(signal.SIGKILL)
        self.child.wait()

    def stop(self, seconds=20.0):
        """Asks it to end; its exit code."""
        self.signal(signal.SIGTERM)
        return self.wait(seconds)


class Cluster:
    """Everything in one temporary folder: database, socket, logs, and the TMPDIR of all that it starts."""

    def __init__(self, threads=0):
        self.folder = tempfile.mkdtemp(prefix="kiln-e2e-")
        self.tmp = os.path.join(self.folder, "tmp")
        os.mkdir(self.tmp)
        self.id = uuid.uuid4().hex
        self.database = os.path.join(self.folder, "kiln.db")
        self.address = "unix:" + os.path.join(self.folder, "kiln.sock")
        self.threads = threads
        self.server = None
        self.workers = []
        self.clients = []

    def environment(self, **more):
        environment = {**os.environ, MARKER: self.id, "TMPDIR": self.tmp, "KILN_SERVER": self.address,
                       "XDG_CACHE_HOME": os.path.join(self.folder, "cache"), **more}
        for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "OPENBLAS_NUM_THREADS"):
            environment.pop(name, None)
        return environment

    def start_server(self, *flags, wait=True, name="server", database=None, listen=None, user=None):
        arguments = [os.path.join(BIN, "kiln-server"), "--db", database or self.database, "--listen",
                     listen or self.address, *flags]
        server = Process(name, arguments, self.folder, self.environment(), user)
        self.clients.append(server)
        if wait:
            self.address = server.await_line("kiln-server ready on ")
            self.server = server
        return server

    def start_worker(self, *flags, wait=True, binary="kiln-worker", device="cpu"):
        threads = ["--threads", str(self.threads)] if self.threads else []
        arguments = [os.path.join(BIN, binary), "--server", self.address, "--device", device, *threads, *flags]
        worker = Process(f"worker{len(self.workers)}", arguments, self.folder, self.environment())
        self.workers.append(worker)
        if wait:
            worker.device = worker.await_line("kiln-worker ready: ", 60)
        return worker

    def start_kiln(self, *arguments, name=None):
        """A `kiln` command in the background."""
        process = Process(name or f"kiln{len(self.clients)}", [os.path.join(BIN, "kiln"), *arguments], self.folder,
                          self.environment())
        self.clients.append(process)
        return process

    def kiln(self, *arguments, expect=0, seconds=150.0):
        """Runs a command to its end; Failure unless its exit code is `expect` (None: any)."""
        arguments = [str(argument) for argument in arguments]
        try:
            done = subprocess.run([os.path.join(BIN, "kiln"), *arguments], capture_output=True, text=True, timeout=seconds,
                                  env=self.environment(), cwd=self.folder, stdin=subprocess.DEVNULL, check=False)
        except subprocess.TimeoutExpired:
            raise Failure(f"kiln {' '.join(arguments)}: no end within {seconds} s\n{self.logs()}") from None
        answer = Answer(arguments, done.returncode, done.stdout, done.stderr)
        if expect is not None and answer.code != expect:
            raise Failure(f"expected exit {expect}, but {answer}\n{self.logs()}")
        return answer

    def ask(self, *arguments, expect=0, seconds=150.0):
        """The JSON answer of a command."""
        return self.kiln(*arguments, "--json", expect=expect, seconds=seconds).json

    def processes(self):
        """{pid: command line} of all that lives and was started, however indirectly, by this cluster."""
        found = {}
        marker = f"{MARKER}={self.id}".encode()
        for entry in os.listdir("/proc"):
            if not entry.isdigit() or int(entry) == os.getpid():
                continue
            try:
                with open(f"/proc/{entry}/environ", "rb") as file:
                    if marker not in file.read().split(b"\0"):
                        continue
                with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as file:
                    if file.read().rsplit(")", 1)[1].split()[0] == "Z":
                        continue
                with open(f"/proc/{entry}/cmdline", "rb") as file:
                    found[int(entry)] = file.read().replace(b"\0", b" ").decode(errors="replace").strip()
            except OSError:
                continue
        return found

    def matching(self, pattern):
        """Pids whose command line matches, oldest first."""
        return sorted(pid for pid, line in self.processes().items() if re.search(pattern, line))

    def leftovers(self):
        """Temporary files that are still there."""
        return sorted(os.path.relpath(os.path.join(root, name), self.tmp)
                      for root, _, names in os.walk(self.tmp) for name in names)

    def logs(self):
        text = ""
        for process in [self.server, *self.workers]:
            if process is not None:
                text += f"--- {process.name}\n{process.text(process.log)[-3000:]}\n"
        return text

    def stop(self):
        """Ends workers, then the server; Failure if one does not end by itself."""
        for process in [*self.workers, self.server]:
            if process is not None:
                process.stop()

    def close(self):
        for process in [*self.clients, *self.workers]:
            process.kill()
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        shutil.rmtree(self.folder, ignore_errors=True)


class ClusterTest(unittest.TestCase):
    """A test with a cluster of its own. On a failure the logs are shown."""

    maxDiff = None

    def setUp(self):
        self.cluster = Cluster()
        self.addCleanup(self.cluster.close)

    def spine(self, *worker_flags):
        """Server and worker, ready."""
        self.cluster.start_server()
        return self.cluster.start_worker(*worker_flags)

    def assert_nothing_left(self, seconds=10.0):
        """No process but those of `keep`, no temporary file."""
        until(f"no process is left of {self.cluster.processes()}", lambda: not self.cluster.processes(), seconds)
        self.assertEqual(self.cluster.leftovers(), [])


def matmul(m, n, k):
    return ["matmul", "--dims", f"M={m},N={n},K={k}"]
