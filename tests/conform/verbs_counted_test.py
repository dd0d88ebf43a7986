#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 180
"""`drydock show` counts the bytes that perftest claims, and each moment of its requests.

The server is stopped while data flows: it need not run to be written to or read from, nor to be sent to when all its
receives are posted before; but the client cannot leave without its answer. So the client has done all its work and is
still there when `drydock show` looks. Then the server goes on, the client prints its table, and both figures must be
equal: iterations x size. The moments are known as well: each request was posted, fetched, executed and freed once.
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
PIECE = 65536  # so much is placed at once,
LONG_PIECE = 1 << 20  # or this, by a poller that finds nothing else to do
PORT = 21000 + os.getpid() % 10000


def show(pid):
    """What `drydock show` tells of a process; {} when it lists none such, or that does not answer."""
    text = subprocess.run([DRYDOCK, "show", "--json"], capture_output=True, text=True, timeout=20).stdout
    return next((p for p in json.loads(text or "[]") if p["process"] == pid), {})


def total(pid, field):
    return sum(q[field] for q in show(pid).get("queues", []))


def wrong_moments(now, requests, size):
    """In words, what does not fit `requests` requests of so many bytes each, all done and polled."""
    at, queues = now["moments"], now["queues"]
    rings = sum(q["rings"] for q in queues)
    completions = sum(q["completions"] for q in queues)
    known = {"post": requests, "publish": rings, "fetch": requests, "execute": requests,
             "complete": completions, "poll": completions, "free": requests}
    wrong = [f"{name} {at.get(name)} (expected {count})" for name, count in known.items() if at.get(name) != count]
    fewest, most = requests * -(-size // LONG_PIECE), requests * -(-size // PIECE)
    if not fewest <= at.get("place", 0) <= most:
        wrong.append(f"place {at.get('place')} (expected {fewest} to {most})")
    if not 0 < rings <= at.get("ring", 0):
        wrong.append(f"ring {at.get('ring')} (at least {rings})")
    return wrong


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


def settled_moments(pid, requests, size):
    """What is wrong with the moments, once the client has polled what it was told."""
    end = time.monotonic() + 2
    while (wrong := wrong_moments(show(pid), requests, size)) and time.monotonic() < end:
        time.sleep(0.02)
    return wrong


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
        moments = settled_moments(client.pid, queues * iterations, size)
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
    good = told == claimed == seen and not moments
    print(f"{'ok     ' if good else 'FAILED '} {name}: perftest claims {told} bytes, drydock show counted {seen}")
    if moments:
        print("    moments: " + ", ".join(moments))
    return good


def main():
    if not shutil.which("ib_write_bw"):
        print("skipped: not installed: perftest")
        sys.exit(77)
    cells = [
        ("ib_write_bw", [], 1, 65536, 20000),
        ("ib_write_bw", ["-q", "4"], 4, 4096, 20000),
        ("ib_read_bw", [], 1, 65536, 20000),
        ("ib_send_bw", ["-r", "4000"], 1, 262144, 4000),
        ("ib_atomic_bw", [], 1, 8, 800000),
    ]
    good = [counted(i, *cell) for i, cell in enumerate(cells)]
    sys.exit(0 if all(good) else 1)


main()
