"""Distributed MXNet learns y = 2*x1 - 3.4*x2 + 4.2 by synchronous SGD on a parameter server.

Every replica of linear-dist.yaml runs this file. MXNet reads from DMLC_ROLE what it is: in the
scheduler and in servers the import below does all of the work, and ends when the workers end.
"""

import sys
import time

import numpy as np

np.bool = bool  # MXNet 1.9 asks for a name that numpy has dropped.
import mxnet as mx  # noqa: E402
from mxnet import autograd, gluon  # noqa: E402

WEIGHTS, BIAS, NOISE = np.array([2.0, -3.4]), 4.2, 0.01
SAMPLES, BATCH, EPOCHS, TOLERANCE = 4000, 20, 12, 0.05

kv = mx.kvstore.create("dist_sync")
random = np.random.RandomState(7)
x = random.normal(size=(SAMPLES, 2)).astype("float32")
y = (x @ WEIGHTS + BIAS + random.normal(scale=NOISE, size=SAMPLES)).astype("float32")

# Each worker sees its own part of the samples, and all update the same model.
shard = gluon.data.ArrayDataset(x[kv.rank :: kv.num_workers], y[kv.rank :: kv.num_workers])
batches = gluon.data.DataLoader(shard, BATCH, shuffle=True)
print(f"rank {kv.rank} of {kv.num_workers}: {len(shard)} of {SAMPLES} samples", flush=True)

model = gluon.nn.Dense(1, in_units=2)
model.initialize(mx.init.Normal(0.01))
loss_of = gluon.loss.L2Loss()
trainer = gluon.Trainer(model.collect_params(), "sgd", {"learning_rate": 0.01}, kvstore=kv)

started = time.monotonic()
for epoch in range(1, EPOCHS + 1):
    total = 0.0
    for inputs, wanted in batches:
        with autograd.record():
            loss = loss_of(model(inputs), wanted)
        loss.backward()
        # The server adds the gradients of all workers before it updates the weights.
        trainer.step(BATCH * kv.num_workers)
        total += loss.sum().asscalar()
    seconds = time.monotonic() - started
    print(f"epoch {epoch:2d}  loss {total / len(shard):.6f}  {seconds:4.1f} s", flush=True)

weights = model.weight.data().asnumpy().ravel()
bias = model.bias.data().asscalar()
print(f"learned y = {weights[0]:.3f}*x1 {weights[1]:+.3f}*x2 {bias:+.3f}", flush=True)
error = max(abs(weights - WEIGHTS).max(), abs(bias - BIAS))
if error > TOLERANCE:
    sys.exit(f"not converged: off by {error:.3f}, and {TOLERANCE} is allowed")
