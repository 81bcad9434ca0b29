"""Elastic Horovod learns y = 2*x1 - 3.4*x2 + 4.2, while workers come and go.

The launcher of elastic.yaml has horovodrun start this file in each worker that its host file names.
What training has come to is kept in a state that Horovod hands to whoever joins.
"""

import os
import socket
import sys
import time

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

TRUTH, NOISE = np.array([2.0, -3.4, 4.2], dtype="float32"), 0.01
BATCH, RATE, TOLERANCE = 64, 0.05, 0.05
STEPS = int(os.environ.get("STEPS", "600"))
# So long that there is something to survive; real models take longer.
STEP_S = float(os.environ.get("STEP_S", "0.1"))
COMMIT = 10


def say(text):
    print(f"{time.time():.3f} {text}", flush=True)


def gradient_of(weights, step):
    """Return the gradient and the loss of this worker's samples: others at each step and rank."""
    random = np.random.default_rng([step, hvd.rank()])
    x = np.column_stack([random.normal(size=(BATCH, 2)), np.ones(BATCH)]).astype("float32")
    y = x @ TRUTH + random.normal(scale=NOISE, size=BATCH).astype("float32")
    learned = tf.Variable(weights)
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((tf.linalg.matvec(x, learned) - y) ** 2) / 2
    return tf.concat([tape.gradient(loss, learned), [loss]], 0)


@hvd.elastic.run
def train(state):
    """Go on from the state to the last step; begun anew, by Horovod, whenever workers change."""
    rank, size, host = hvd.rank(), hvd.size(), socket.gethostname()
    say(f"rank {rank} size {size} on {host} goes on after step {state.step}")
    while state.step < STEPS:
        *downhill, loss = hvd.allreduce(gradient_of(state.weights, state.step)).numpy()
        # Nothing in the state is changed in place: a commit keeps what is there, no copy of it.
        state.weights = state.weights - RATE * np.array(downhill)
        state.losses = [*state.losses, float(loss)]
        state.step += 1
        if state.step % COMMIT == 0 or state.step == STEPS:
            state.sizes = [*state.sizes, size]
            if rank == 0:
                say(f"step {state.step} size {size} rank 0 loss {loss:.6f}")
            # Here training stops for workers that have joined or are to leave.
            state.commit()
        time.sleep(STEP_S)


hvd.init()
tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(1)
# Unlike the state for TensorFlow's models, this one waits for nobody when it is made.
progress = hvd.elastic.ObjectState(
    hvd.broadcast_object, hvd.rank, step=0, weights=np.zeros(3, "float32"), losses=[], sizes=[]
)
train(progress)

if hvd.rank() == 0:
    say("learned y = {:.3f}*x1 {:+.3f}*x2 {:+.3f}".format(*progress.weights))
    say(f"sizes {' '.join(str(size) for size in dict.fromkeys(progress.sizes))}")
off = abs(progress.weights - TRUTH).max()
if off > TOLERANCE:
    sys.exit(f"not converged: off by {off:.3f}, and {TOLERANCE} is allowed")
if not len(progress.losses) == progress.step == STEPS:
    sys.exit(f"{len(progress.losses)} losses of {progress.step} steps, and {STEPS} are to be")
if not progress.losses[-1] < progress.losses[0]:
    sys.exit(f"the loss has not fallen: {progress.losses[0]:.3f}, {progress.losses[-1]:.3f}")
