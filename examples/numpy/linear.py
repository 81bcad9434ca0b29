"""A parameter server in plain Python and numpy learns y = 2*x1 - 3.4*x2 + 4.2 by synchronous SGD.

Every replica of linear-dist.yaml runs this file and reads from DMLC_* what it is, as MXNet would:
the scheduler tells all where the server is, the server adds up gradients, workers compute them.
"""

import json
import os
import socket
import sys
import time

import numpy as np

TRUTH, NOISE = np.array([2.0, -3.4, 4.2]), 0.01
SAMPLES, BATCH, EPOCHS, RATE, TOLERANCE = 4000, 20, 12, 0.02, 0.05
ROOT = os.environ["DMLC_PS_ROOT_URI"], int(os.environ["DMLC_PS_ROOT_PORT"])
WORKERS = int(os.environ["DMLC_NUM_WORKER"])
START_S = 60.0


class Peer:
    """The other end of a connection; messages are lines of JSON."""

    def __init__(self, connection):
        self.address = connection.getsockname()[0]
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = connection.makefile("rw")

    def send(self, message):
        self.file.write(json.dumps(message) + "\n")
        self.file.flush()

    def receive(self):
        line = self.file.readline()
        return json.loads(line) if line else None


def dial(address):
    """Connect, with patience: the other replica may not have started yet."""
    deadline = time.monotonic() + START_S
    while True:
        try:
            return Peer(socket.create_connection(address, timeout=START_S))
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def accept(listener, count):
    return [Peer(listener.accept()[0]) for _ in range(count)]


def scheduler():
    with socket.create_server(("", ROOT[1])) as listener:
        peers = accept(listener, 1 + WORKERS)
    joined = [(peer.receive(), peer) for peer in peers]
    server = next(message["address"] for message, _ in joined if message["role"] == "server")
    workers = [peer for message, peer in joined if message["role"] == "worker"]
    for rank, worker in enumerate(workers):
        worker.send({"rank": rank, "server": server})
    for worker in workers:
        worker.receive()  # Nothing is said; the connection ends with the worker.


def server():
    with socket.create_server(("", 0)) as listener:
        root = dial(ROOT)
        address = root.address, listener.getsockname()[1]
        root.send({"role": "server", "address": address})
        workers = accept(listener, WORKERS)
    weights = np.zeros(3)
    while None not in (gradients := [worker.receive() for worker in workers]):
        weights -= RATE * np.mean(gradients, axis=0)
        for worker in workers:
            worker.send(weights.tolist())


def worker():
    root = dial(ROOT)
    root.send({"role": "worker"})
    joined = root.receive()
    rank, parameters = joined["rank"], dial(tuple(joined["server"]))
    random = np.random.default_rng(7)
    x = np.column_stack([random.normal(size=(SAMPLES, 2)), np.ones(SAMPLES)])
    y = x @ TRUTH + random.normal(scale=NOISE, size=SAMPLES)
    x, y = x[rank::WORKERS], y[rank::WORKERS]
    print(f"rank {rank} of {WORKERS}: {len(x)} of {SAMPLES} samples", flush=True)
    weights, started = np.zeros(3), time.monotonic()
    for epoch in range(1, EPOCHS + 1):
        total = 0.0
        # All workers take equally many steps, since the server waits for a gradient of each.
        for batch in np.split(random.permutation(len(x) // BATCH * BATCH), len(x) // BATCH):
            error = x[batch] @ weights - y[batch]
            total += (error**2).sum() / 2
            parameters.send((x[batch].T @ error / BATCH).tolist())
            weights = np.array(parameters.receive())
        seconds = time.monotonic() - started
        print(f"epoch {epoch:2d}  loss {total / len(x):.6f}  {seconds:4.1f} s", flush=True)
    print(f"learned y = {weights[0]:.3f}*x1 {weights[1]:+.3f}*x2 {weights[2]:+.3f}", flush=True)
    off = abs(weights - TRUTH).max()
    if off > TOLERANCE:
        sys.exit(f"not converged: off by {off:.3f}, and {TOLERANCE} is allowed")


if __name__ == "__main__":
    {"scheduler": scheduler, "server": server, "worker": worker}[os.environ["DMLC_ROLE"]]()
