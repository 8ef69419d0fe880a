"""Joins its peers as a v1 program of any framework did: argv names the variables for host, port, size and rank.

Rank 0 listens at the port; every process, rank 0 too, connects to host:port and says who it is. Nothing but the
standard library. Prints one line that begins with `joined`; a wrong answer or no peer within two minutes fails.
"""

import json
import os
import socket
import sys
import threading
import time

host, port, size, rank = (os.environ[name] for name in sys.argv[1:5])
more = {name: os.environ.get(name) for name in sys.argv[5:]}
seen: dict[int, str] = {}
END = time.monotonic() + 120


def listen(server: socket.socket) -> None:
    while len(seen) < int(size):
        peer, _ = server.accept()
        with peer, peer.makefile("rw") as stream:
            hello = json.loads(stream.readline())
            seen[hello["rank"]] = hello["host"]
            while len(seen) < int(size) and time.monotonic() < END:
                time.sleep(0.05)
            print(json.dumps(sorted(seen)), file=stream, flush=True)


def serve() -> list[threading.Thread]:
    server = socket.create_server(("", int(port)))
    threads = [threading.Thread(target=listen, args=(server,), daemon=True) for _ in range(int(size))]
    for thread in threads:
        thread.start()
    return threads


def join() -> list[int]:
    """The ranks that rank 0 saw. Its name may take a moment to resolve."""
    while True:
        try:
            peer = socket.create_connection((host, int(port)), timeout=10)
            break
        except OSError:
            if time.monotonic() > END:
                raise
            time.sleep(0.5)
    peer.settimeout(120)
    with peer, peer.makefile("rw") as stream:
        print(json.dumps({"rank": int(rank), "host": socket.gethostname()}), file=stream, flush=True)
        return json.loads(stream.readline())


if int(rank) == 0:
    serve()
ranks = join()
assert ranks == list(range(int(size))), ranks
print("joined", json.dumps({"rank": int(rank), "size": int(size), "host": host, "port": port, "ranks": ranks} | more))
if int(rank) == 0:  # the others read their answers from it
    time.sleep(3)
