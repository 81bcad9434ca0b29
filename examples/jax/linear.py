"""Distributed JAX learns y = 2*x1 - 3.4*x2 + 4.2: each process has its samples, psum the gradients.

Every replica of linear-psum.yaml runs this file. The coordinator is the first of them.
"""

import os
import sys
import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

TRUTH, NOISE = np.array([2.0, -3.4, 4.2]), 0.01
SAMPLES, STEPS, RATE, TOLERANCE = 4000, 300, 0.1, 0.05
SIZE, RANK = int(os.environ["NUM_PROCESSES"]), int(os.environ["PROCESS_ID"])

jax.distributed.initialize(
    coordinator_address=f"{os.environ['COORDINATOR_ADDRESS']}:{os.environ['COORDINATOR_PORT']}",
    num_processes=SIZE,
    process_id=RANK,
)
mesh = Mesh(jax.devices(), "process")
everywhere, by_process = PartitionSpec(), PartitionSpec("process")
print(f"process {jax.process_index()} of {jax.process_count()}: {jax.devices()}", flush=True)


@jax.jit
@partial(jax.shard_map, mesh=mesh, in_specs=by_process, out_specs=everywhere)
def total(values):
    return jax.lax.psum(values.sum(), "process")


@jax.jit
@partial(
    jax.shard_map, mesh=mesh, in_specs=(everywhere, by_process, by_process), out_specs=everywhere
)
def step(weights, inputs, wanted):
    error = inputs @ weights - wanted
    gradient = jax.lax.psum(inputs.T @ error, "process")
    count = jax.lax.psum(len(wanted), "process")
    loss = jax.lax.psum((error**2).sum() / 2, "process") / count
    return weights - RATE * gradient / count, loss


def spread(mine):
    """Make one array of what the processes hold, without moving any of it."""
    return jax.make_array_from_process_local_data(NamedSharding(mesh, by_process), mine)


if int(total(spread(np.ones(1)))) != SIZE:
    sys.exit(f"psum of 1 from each process is not {SIZE}")
random = np.random.default_rng(RANK)
x = np.column_stack([random.normal(size=(SAMPLES // SIZE, 2)), np.ones(SAMPLES // SIZE)])
y = x @ TRUTH + random.normal(scale=NOISE, size=len(x))
inputs, wanted = spread(x), spread(y)
weights, started = jnp.zeros(3), time.monotonic()
for number in range(1, STEPS + 1):
    weights, loss = step(weights, inputs, wanted)
    if number % 50 == 0:
        seconds = time.monotonic() - started
        print(f"step {number:3d}  loss {float(loss):.6f}  {seconds:4.1f} s", flush=True)

learned = np.asarray(weights)
print("learned y = {:.3f}*x1 {:+.3f}*x2 {:+.3f}".format(*learned), flush=True)
off = abs(learned - TRUTH).max()
if off > TOLERANCE:
    sys.exit(f"not converged: off by {off:.3f}, and {TOLERANCE} is allowed")
