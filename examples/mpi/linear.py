"""MPI learns y = 2*x1 - 3.4*x2 + 4.2: each rank has its own samples, allreduce adds up gradients.

The launcher of linear-mpirun.yaml has mpirun start this file in each worker, and says how many
ranks there are to be.
"""

import sys
import time

import numpy as np
from mpi4py import MPI

TRUTH, NOISE = np.array([2.0, -3.4, 4.2]), 0.01
SAMPLES, STEPS, RATE, TOLERANCE = 4000, 300, 0.1, 0.05

world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()
hosts = sorted(set(world.allgather(MPI.Get_processor_name())))
print(f"rank {rank} of {size} on {MPI.Get_processor_name()}", flush=True)
if not len(hosts) == size == int(sys.argv[1]):
    sys.exit(f"{size} ranks on {hosts}: {sys.argv[1]} ranks are wanted, on a host each")

random = np.random.default_rng(rank)
x = np.column_stack([random.normal(size=(SAMPLES // size, 2)), np.ones(SAMPLES // size)])
y = x @ TRUTH + random.normal(scale=NOISE, size=len(x))
weights, started = np.zeros(3), time.monotonic()
for number in range(1, STEPS + 1):
    error = x @ weights - y
    gradient = np.append(x.T @ error, (error**2).sum() / 2)
    world.Allreduce(MPI.IN_PLACE, gradient)
    *downhill, loss = gradient / (len(x) * size)
    weights -= RATE * np.array(downhill)
    if rank == 0 and number % 50 == 0:
        print(f"step {number:3d}  loss {loss:.6f}  {time.monotonic() - started:4.1f} s", flush=True)

off = abs(weights - TRUTH).max()
if rank == 0:
    print("learned y = {:.3f}*x1 {:+.3f}*x2 {:+.3f}".format(*weights), flush=True)
if off > TOLERANCE:
    sys.exit(f"not converged: off by {off:.3f}, and {TOLERANCE} is allowed")
