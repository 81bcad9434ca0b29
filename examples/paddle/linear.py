"""Collective Paddle learns y = 2*x1 - 3.4*x2 + 4.2: all workers hold the same model.

Every replica of linear-collective.yaml starts this file by ``paddle.distributed.launch``, which
meets the others at PADDLE_MASTER and tells each its rank.
"""

import os
import sys
import time

import numpy as np
import paddle
from paddle import distributed

WEIGHTS, BIAS, NOISE = np.array([[2.0], [-3.4]]), 4.2, 0.01
SAMPLES, BATCH, EPOCHS, RATE, TOLERANCE = 4000, 20, 6, 0.05, 0.05

distributed.init_parallel_env()
rank, size = distributed.get_rank(), distributed.get_world_size()
ones = paddle.ones([])
distributed.all_reduce(ones)
if not int(ones) == size == int(os.environ["PADDLE_NNODES"]):
    sys.exit(f"{int(ones)} workers of {size} take part, and not {os.environ['PADDLE_NNODES']}")

random = np.random.default_rng(7)
x = random.normal(size=(SAMPLES, 2)).astype("float32")
y = (x @ WEIGHTS + BIAS + random.normal(scale=NOISE, size=(SAMPLES, 1))).astype("float32")
x, y = x[rank::size], y[rank::size]
print(f"rank {rank} of {size}: {len(x)} of {SAMPLES} samples", flush=True)

model = paddle.DataParallel(paddle.nn.Linear(2, 1))
optimizer = paddle.optimizer.SGD(learning_rate=RATE, parameters=model.parameters())
started = time.monotonic()
for epoch in range(1, EPOCHS + 1):
    total = 0.0
    for batch in random.permutation(len(x))[: len(x) // BATCH * BATCH].reshape(-1, BATCH):
        error = model(paddle.to_tensor(x[batch])) - paddle.to_tensor(y[batch])
        loss = (error**2).mean() / 2
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        total += float(loss) * BATCH
    seconds = time.monotonic() - started
    print(f"epoch {epoch:2d}  loss {total / len(x):.6f}  {seconds:4.1f} s", flush=True)

learned = np.concatenate([parameter.numpy().ravel() for parameter in model.parameters()])
print("learned y = {:.3f}*x1 {:+.3f}*x2 {:+.3f}".format(*learned), flush=True)
off = abs(learned - [2.0, -3.4, 4.2]).max()
if off > TOLERANCE:
    sys.exit(f"not converged: off by {off:.3f}, and {TOLERANCE} is allowed")
