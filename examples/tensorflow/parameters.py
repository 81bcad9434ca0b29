"""ParameterServerStrategy learns y = 2*x1 - 3.4*x2 + 4.2: the parameter server holds the model.

Every replica of linear-ps.yaml runs this file and reads from TF_CONFIG what it is. The chief hands
steps out to the workers, whichever is free; all others serve until they are stopped.
"""

import json
import os
import sys
import time

import numpy as np
import tensorflow as tf

WEIGHTS, BIAS, NOISE = [[2.0], [-3.4]], 4.2, 0.01
SAMPLES, BATCH, EPOCHS, STEPS, RATE, TOLERANCE = 4000, 20, 6, 100, 0.05, 0.05


def serve(cluster):
    """Be a worker or a parameter server; it has no end of its own."""
    server = tf.distribute.Server(
        cluster.cluster_spec(), job_name=cluster.task_type, task_index=cluster.task_id
    )
    print(f"{cluster.task_type} {cluster.task_id} serves", flush=True)
    server.join()


def samples():
    random = np.random.default_rng()
    x = random.normal(size=(SAMPLES, 2)).astype("float32")
    y = (x @ WEIGHTS + BIAS + random.normal(scale=NOISE, size=(SAMPLES, 1))).astype("float32")
    return tf.data.Dataset.from_tensor_slices((x, y)).shuffle(SAMPLES).batch(BATCH).repeat()


def train(cluster):
    """Be the chief: the job has succeeded when this has."""
    strategy = tf.distribute.ParameterServerStrategy(cluster)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        weights = tf.Variable(tf.zeros((2, 1)))
        bias = tf.Variable(0.0)
        steps = tf.Variable(0, dtype=tf.int64, aggregation=tf.VariableAggregation.SUM)

    @tf.function
    def step(batches):
        inputs, wanted = next(batches)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((inputs @ weights + bias - wanted) ** 2) / 2
        gradients = tape.gradient(loss, [weights, bias])
        for variable, gradient in zip((weights, bias), gradients, strict=True):
            variable.assign_sub(RATE * gradient)
        steps.assign_add(1)
        return loss

    batches = iter(coordinator.create_per_worker_dataset(samples))
    started = time.monotonic()
    for epoch in range(1, EPOCHS + 1):
        losses = [coordinator.schedule(step, args=(batches,)) for _ in range(STEPS)]
        coordinator.join()
        mean = np.mean(coordinator.fetch(losses))
        print(f"epoch {epoch:2d}  loss {mean:.6f}  {time.monotonic() - started:4.1f} s", flush=True)
    if steps.numpy() != EPOCHS * STEPS:
        sys.exit(f"{steps.numpy()} steps reached the parameter server, and not {EPOCHS * STEPS}")
    learned = [*weights.numpy().ravel(), bias.numpy()]
    print("learned y = {:.3f}*x1 {:+.3f}*x2 {:+.3f}".format(*learned), flush=True)
    off = abs(np.subtract(learned, [2.0, -3.4, 4.2])).max()
    if off > TOLERANCE:
        sys.exit(f"not converged: off by {off:.3f}, and {TOLERANCE} is allowed")


if __name__ == "__main__":
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    given = json.loads(os.environ["TF_CONFIG"])["cluster"]
    print({type_: len(addresses) for type_, addresses in given.items()}, flush=True)
    if resolver.task_type in ("worker", "ps"):
        serve(resolver)
    else:
        train(resolver)
