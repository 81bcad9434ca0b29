"""MultiWorkerMirroredStrategy learns y = 2*x1 - 3.4*x2 + 4.2: all replicas hold the same model.

Every replica of linear-mirrored.yaml runs this file. TensorFlow reads from TF_CONFIG what it is and
where the others are; the chief is one of those that train.
"""

import json
import os
import sys
import time

import numpy as np
import tensorflow as tf

WEIGHTS, BIAS, NOISE = [[2.0], [-3.4]], 4.2, 0.01
SAMPLES, BATCH, EPOCHS, RATE, TOLERANCE = 4000, 20, 6, 0.05, 0.05

config = json.loads(os.environ["TF_CONFIG"])
size = sum(len(addresses) for addresses in config["cluster"].values())
# Before anything else, since it starts the server that the others connect to.
strategy = tf.distribute.MultiWorkerMirroredStrategy()
random = np.random.default_rng(7)
x = random.normal(size=(SAMPLES, 2)).astype("float32")
y = (x @ WEIGHTS + BIAS + random.normal(scale=NOISE, size=(SAMPLES, 1))).astype("float32")


def shard(context):
    """Give each replica its own part of the samples; all take equally many steps."""
    rank = context.input_pipeline_id
    mine = tf.data.Dataset.from_tensor_slices((x, y)).shard(size, rank)
    task = config["task"]
    print(f"{task['type']} {task['index']} is rank {rank} of {size}", flush=True)
    return mine.shuffle(SAMPLES, seed=7).batch(BATCH, drop_remainder=True)


with strategy.scope():
    weights = tf.Variable(tf.zeros((2, 1)))
    bias = tf.Variable(0.0)
batches = strategy.distribute_datasets_from_function(shard)


def step(inputs, wanted):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((inputs @ weights + bias - wanted) ** 2) / 2
    gradients = tape.gradient(loss, [weights, bias])
    summed = tf.distribute.get_replica_context().all_reduce("sum", gradients)
    for variable, gradient in zip((weights, bias), summed, strict=True):
        variable.assign_sub(RATE * gradient / size)
    return loss


@tf.function
def epoch_of(samples):
    total, count = 0.0, 0.0
    for inputs, wanted in samples:
        loss = strategy.run(step, args=(inputs, wanted))
        total += strategy.reduce("mean", loss, axis=None)
        count += 1.0
    return total / count


if strategy.num_replicas_in_sync != size:
    sys.exit(f"{strategy.num_replicas_in_sync} replicas take part, and not {size}")
started = time.monotonic()
for epoch in range(1, EPOCHS + 1):
    mean = float(epoch_of(batches))
    print(f"epoch {epoch:2d}  loss {mean:.6f}  {time.monotonic() - started:4.1f} s", flush=True)

learned = [*weights.numpy().ravel(), float(bias.numpy())]
print("learned y = {:.3f}*x1 {:+.3f}*x2 {:+.3f}".format(*learned), flush=True)
off = abs(np.subtract(learned, [2.0, -3.4, 4.2])).max()
if off > TOLERANCE:
    sys.exit(f"not converged: off by {off:.3f}, and {TOLERANCE} is allowed")
