#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 180
"""`drydock show` counts the bytes that perftest claims.

The server of a one-sided test is stopped while data flows: it need not run to be written to or read from, but the
client cannot leave without its answer. So the client has done all its work and is still there when `drydock show`
looks. Then the server goes on, the client prints its table, and both figures must be equal: iterations x size.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

BUILD = os.path.abspath(os.environ.get("DRYDOCK_BUILD", "build/dev"))
DRYDOCK = os.path.join(BUILD, "bin/drydock")
DEVICE = os.environ.get("DRYDOCK_NAME", "drydock0")
PORT = 21000 + os.getpid() % 10000


def show():
    """The queues of each live process: {pid: [queue, ...]}."""
    text = subprocess.run([DRYDOCK, "show", "--json"], capture_output=True, text=True, timeout=20).stdout
    return {p["process"]: p.get("queues", []) for p in json.loads(text or "[]")}


def total(pid, field):
    return sum(q[field] for q in show().get(pid, []))


def start(arguments):
    return subprocess.Popen([DRYDOCK, "run", "--"] + arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            text=True)


def wait_until(what, condition, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError(f"not within {seconds} s: {what}")


def listens(port):
    needle = f":{port:04X} "
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(table) as file:
                if any(needle in line and " 0A " in line for line in file):
                    return True
        except FileNotFoundError:
            pass
    return False


def settled(pid, expected):
    """The client's count once it stops growing; a count above `expected` is returned at once."""
    last, since = -1, time.monotonic()
    while time.monotonic() - since < 2 and last <= expected:
        now = total(pid, "bytes_out")
        if now != last:
            last, since = now, time.monotonic()
        elif now == expected:
            return now
        time.sleep(0.02)
    return last


def counted(number, tool, options, queues, size, iterations):
    command = [tool, "-d", DEVICE, "-x", "1", "-F", "-p", str(PORT + number), "-s", str(size), "-n", str(iterations)]
    command += options
    server = start(command)
    wait_until("the server listens", lambda: listens(PORT + number), 20)
    client = start(command + ["127.0.0.1"])
    claimed = queues * iterations * size
    try:
        wait_until("data flows", lambda: total(client.pid, "executed") > 0, 30)
        os.kill(server.pid, signal.SIGSTOP)
        seen = settled(client.pid, claimed)
        os.kill(server.pid, signal.SIGCONT)
        said, _ = client.communicate(timeout=60)
        server.communicate(timeout=60)
    finally:
        for process in (server, client):
            if process.poll() is None:
                process.kill()
                process.wait()
    row = re.search(rf"^ {size} +(\d+) ", said, re.M)
    name = " ".join([tool] + options)
    if client.returncode or not row:
        print(f"FAILED  {name}: no table (exit status {client.returncode}):\n{said}")
        return False
    told = int(row[1]) * size
    good = told == claimed == seen
    print(f"{'ok     ' if good else 'FAILED '} {name}: perftest claims {told} bytes, drydock show counted {seen}")
    return good


def main():
    if not shutil.which("ib_write_bw"):
        print("skipped: not installed: perftest")
        sys.exit(77)
    cells = [
        ("ib_write_bw", [], 1, 65536, 20000),
        ("ib_write_bw", ["-q", "4"], 4, 4096, 20000),
        ("ib_read_bw", [], 1, 65536, 20000),
    ]
    good = [counted(i, *cell) for i, cell in enumerate(cells)]
    sys.exit(0 if all(good) else 1)


main()
