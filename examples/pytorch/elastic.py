"""Elastic DistributedDataParallel learns y = 2*x1 - 3.4*x2 + 4.2, whoever comes and goes.

Every worker of linear-elastic.yaml starts this file by ``torch.distributed.run``, which starts it
anew wherever it runs when a worker is lost or joins. Training goes on from the newest checkpoint.
"""

import os
import sys
import time
from datetime import timedelta
from pathlib import Path

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

WEIGHTS, BIAS, NOISE = torch.tensor([[2.0], [-3.4]]), 4.2, 0.01
BATCH, STEPS, EPOCHS, RATE, TOLERANCE = 20, 50, 24, 0.05, 0.05
# So long that there is something to survive; real models take longer.
EPOCH_S = 0.5
CHECKPOINT = Path(os.environ["CHECKPOINTS"]) / "newest.pt"

torch.set_num_threads(1)
distributed.init_process_group("gloo", timeout=timedelta(seconds=20))
rank, size = distributed.get_rank(), distributed.get_world_size()
model = torch.nn.Linear(2, 1)
done = torch.zeros(1, dtype=torch.int64)


def restore():
    """Take over the newest of all checkpoints; a worker that is new has none."""
    if CHECKPOINT.exists():
        saved = torch.load(CHECKPOINT)
        model.load_state_dict(saved["model"])
        done.fill_(saved["epoch"])
    epochs = [torch.zeros_like(done) for _ in range(size)]
    distributed.all_gather(epochs, done)
    newest = max(range(size), key=lambda each: int(epochs[each]))
    for tensor in (done, *model.state_dict().values()):
        distributed.broadcast(tensor, src=newest)


def save(epoch):
    written = CHECKPOINT.with_suffix(".new")
    torch.save({"model": model.state_dict(), "epoch": epoch}, written)
    # In one step: a worker may be killed at any time.
    written.replace(CHECKPOINT)


def train(epoch, trained, optimizer):
    total = 0.0
    for _ in range(STEPS):
        inputs = torch.randn(BATCH, 2)
        wanted = inputs @ WEIGHTS + BIAS + NOISE * torch.randn(BATCH, 1)
        loss = (trained(inputs) - wanted).square().mean() / 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch:2d} of {EPOCHS} with {size} workers  loss {total / STEPS:.6f}", flush=True)


restore()
print(f"rank {rank} of {size} goes on after epoch {int(done)}", flush=True)
replica = DistributedDataParallel(model)
sgd = torch.optim.SGD(model.parameters(), lr=RATE)
for number in range(int(done) + 1, EPOCHS + 1):
    train(number, replica, sgd)
    save(number)
    time.sleep(EPOCH_S)

learned = torch.cat([parameter.detach().ravel() for parameter in model.parameters()])
print("learned y = {:.3f}*x1 {:+.3f}*x2 {:+.3f}".format(*learned.tolist()), flush=True)
off = (learned - torch.tensor([*WEIGHTS.ravel(), BIAS])).abs().max().item()
if off > TOLERANCE:
    sys.exit(f"not converged: off by {off:.3f}, and {TOLERANCE} is allowed")
distributed.barrier()
