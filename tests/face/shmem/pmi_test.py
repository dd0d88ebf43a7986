#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PMI-1 as a launcher speaks it: a small one here starts the PEs, answers their lines, and sees that nothing stays.

Where mpiexec.hydra is installed it is tried as well.
"""
import os
import shutil
import socket
import subprocess
import sys
import threading

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
BUILD = os.environ.get("DRYDOCK_BUILD") or os.path.join(ROOT, "build/dev")
PROGRAM = os.path.join(BUILD, "tests/face/shmem/first_prog")
FAULTY = os.path.join(BUILD, "tests/face/shmem/fault_prog")


class Launcher:
    def __init__(self, size):
        self.size, self.values, self.aborted = size, {}, None
        self.barrier = threading.Barrier(size)

    def answer(self, line):
        words = dict(w.split("=", 1) for w in line.split())
        command = words["cmd"]
        if command == "init":
            return "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0"
        if command == "get_my_kvsname":
            return "cmd=my_kvsname kvsname=kvs_test_0"
        if command == "put":
            self.values[words["key"]] = words["value"]
            return "cmd=put_result rc=0 msg=success"
        if command == "get":
            return f"cmd=get_result rc=0 msg=success value={self.values[words['key']]}"
        if command == "barrier_in":
            self.barrier.wait(30)
            return "cmd=barrier_out rc=0"
        if command == "finalize":
            return "cmd=finalize_ack rc=0"
        if command == "abort":
            self.aborted = int(words["exitcode"])
        return None

    def serve(self, connection):
        with connection, connection.makefile("rw") as stream:
            for line in stream:
                reply = self.answer(line)
                if reply:
                    stream.write(reply + "\n")
                    stream.flush()

    def run(self, command):
        """The outputs, sorted, and the exit statuses."""
        started, servers = [], []
        for rank in range(self.size):
            ours, theirs = socket.socketpair()
            environment = {**os.environ, "PMI_FD": str(theirs.fileno()), "PMI_RANK": str(rank),
                           "PMI_SIZE": str(self.size)}
            started.append(subprocess.Popen(command, env=environment, pass_fds=[theirs.fileno()], text=True,
                                            stdout=subprocess.PIPE))
            theirs.close()
            servers.append(threading.Thread(target=self.serve, args=(ours,), daemon=True))
            servers[-1].start()
        outputs = []
        for process in started:
            try:
                outputs.append(process.communicate(timeout=40)[0])
            except subprocess.TimeoutExpired:
                process.kill()
                outputs.append(process.communicate()[0] + "(timed out)")
        return sorted("".join(outputs).splitlines()), [p.returncode for p in started]


def left_behind():
    return [n for n in os.listdir(os.environ["DRYDOCK_DIR"]) if n.startswith("job.")]


def expect(what, wanted, got):
    if wanted == got:
        return 0
    print(f"FAILED {what}\n  expected: {wanted}\n  got:      {got}\n"
          "  again: scripts/run-one tests/face/shmem/pmi_test.py")
    return 1


def main():
    if os.environ.get("DRYDOCK_EMULATED") == "1" or not os.path.exists(PROGRAM):
        print("skipped: emulated, or first_prog is not built")
        sys.exit(77)
    failures = 0
    for size in (1, 3):
        wanted = sorted(f"PE {i} of {size}: heap {(i - 1) % size}, static {(i - 1) % size}" for i in range(size))
        failures += expect(f"{size} PEs", (wanted, [0] * size), Launcher(size).run([PROGRAM]))
    launcher = Launcher(1)
    launcher.run([FAULTY, "no_such_case"])
    failures += expect("shmem_global_exit tells the launcher its status", 99, launcher.aborted)
    failures += expect("no file of the job stays", [], left_behind())
    if shutil.which("mpiexec.hydra"):
        done = subprocess.run(["mpiexec.hydra", "-np", "2", PROGRAM], capture_output=True, text=True, timeout=50)
        failures += expect("mpiexec.hydra", 0, done.returncode)
    print(f"{failures} failed")
    sys.exit(failures != 0)


main()
