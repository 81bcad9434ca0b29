"""Distributed XGBoost tells two interleaved half circles apart; each worker has its own points.

Every replica of moons.yaml runs this file: the master runs the tracker, by which the workers find
each other, and succeeds when all of them have; the workers grow one and the same forest.
"""

import os
import socket
import sys
import time

import numpy as np
import xgboost
from xgboost import collective
from xgboost.tracker import RabitTracker

POINTS, ROUNDS, ACCURACY = 2000, 20, 0.97
START_S = 120.0
HOST, PORT = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
RANK, WORKERS = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]) - 1


def moons(seed):
    random = np.random.default_rng(seed)
    angle = random.uniform(0, np.pi, size=POINTS)
    below = random.integers(0, 2, size=POINTS)
    x = np.where(below, 1 - np.cos(angle), np.cos(angle))
    y = np.where(below, 0.5 - np.sin(angle), np.sin(angle))
    noise = random.normal(scale=0.1, size=(POINTS, 2))
    return np.column_stack([x, y]) + noise, below


def track():
    tracker = RabitTracker(WORKERS, host_ip=socket.gethostbyname(HOST), port=PORT)
    tracker.start()
    print(f"waits for {WORKERS} workers on {HOST}:{PORT}", flush=True)
    tracker.wait_for()
    print(f"all {WORKERS} workers are done", flush=True)


def tracker_address():
    """Return the address of the tracker, once it answers: it may have not started yet."""
    deadline = time.monotonic() + START_S
    while True:
        try:
            return socket.gethostbyname(HOST)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)


def train():
    arguments = {
        "dmlc_tracker_uri": tracker_address(),
        "dmlc_tracker_port": PORT,
        "dmlc_task_id": f"{RANK:03d}",
        "dmlc_retry": 60,
    }
    with collective.CommunicatorContext(**arguments):
        size = collective.get_world_size()
        if size != WORKERS:
            sys.exit(f"{size} workers take part, and not {WORKERS}")
        print(f"worker {collective.get_rank()} of {size}: {POINTS} points", flush=True)
        points, label = moons(seed=RANK)
        forest = xgboost.train(
            {"objective": "binary:logistic", "tree_method": "hist", "max_depth": 3, "nthread": 1},
            xgboost.DMatrix(points, label),
            num_boost_round=ROUNDS,
        )
        # Points that none of the workers has learned from.
        points, label = moons(seed=99)
        right = float(((forest.predict(xgboost.DMatrix(points)) > 0.5) == label).mean())
        print(f"accuracy {right:.3f} after {ROUNDS} rounds", flush=True)
        if right < ACCURACY:
            sys.exit(f"not learned: {ACCURACY} is wanted")


if __name__ == "__main__":
    track() if RANK == 0 else train()
