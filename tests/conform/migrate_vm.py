#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Start the machine of one QEMU, move it to another, and save the memory of both.

migrate_vm.py FROM TO URI DIRECTORY [CAPABILITY]: FROM and TO are their QMP sockets; from.mem and to.mem come into
DIRECTORY. Both end. Exit status 1: the move failed, and why.
"""
import json
import os
import socket
import sys
import time

MEMORY = 64 << 20
PATIENCE = 100.0


class Monitor:
    def __init__(self, path):
        until = time.monotonic() + PATIENCE
        while True:
            self.socket = socket.socket(socket.AF_UNIX)
            try:
                self.socket.connect(path)
                break
            except OSError:
                self.socket.close()
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)
        self.stream = self.socket.makefile("rw")
        self.stream.readline()  # its greeting
        self.ask("qmp_capabilities")

    def ask(self, command, **arguments):
        self.stream.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self.stream.flush()
        while True:
            answer = json.loads(self.stream.readline())
            if "error" in answer:
                sys.exit(f"{command}: {answer['error']['desc']}")
            if "return" in answer:
                return answer["return"]


def main():
    source, target, uri, directory = sys.argv[1:5]
    both = [Monitor(source), Monitor(target)]
    for name in sys.argv[5:]:
        for monitor in both:
            monitor.ask("migrate-set-capabilities", capabilities=[{"capability": name, "state": True}])
    both[0].ask("cont")
    both[0].ask("migrate", uri=uri)
    until = time.monotonic() + PATIENCE
    state = {"status": "not begun"}
    while state.get("status") != "completed":
        if state.get("status") == "failed" or time.monotonic() > until:
            sys.exit(f"moving: {state}")
        time.sleep(0.05)
        state = both[0].ask("query-migrate")
    print(f"moved {state['ram']['transferred']} bytes")
    for monitor, name in zip(both, ("from.mem", "to.mem")):
        monitor.ask("stop")
        monitor.ask("pmemsave", val=0, size=MEMORY, filename=os.path.join(directory, name))
    for monitor in both:
        monitor.ask("quit")
    return 0


sys.exit(main())
