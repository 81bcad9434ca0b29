"""DistributedDataParallel learns y = 2*x1 - 3.4*x2 + 4.2: all replicas hold the same model.

Every replica of linear-ddp.yaml runs this file. PyTorch reads from MASTER_ADDR, MASTER_PORT, RANK
and WORLD_SIZE what it is; the master is one of those that train.
"""

import os
import sys
import time
from datetime import timedelta

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

WEIGHTS, BIAS, NOISE = torch.tensor([[2.0], [-3.4]]), 4.2, 0.01
SAMPLES, BATCH, EPOCHS, RATE, TOLERANCE = 4000, 20, 6, 0.05, 0.05
START = timedelta(minutes=2)

torch.set_num_threads(1)
torch.manual_seed(7)
distributed.init_process_group("gloo", timeout=START)
rank, size = distributed.get_rank(), distributed.get_world_size()
ones = torch.ones(1)
distributed.all_reduce(ones)
if not int(ones) == size == int(os.environ["WORLD_SIZE"]):
    sys.exit(f"{int(ones)} replicas take part, and not {os.environ['WORLD_SIZE']}")

x = torch.randn(SAMPLES, 2)
y = x @ WEIGHTS + BIAS + NOISE * torch.randn(SAMPLES, 1)
samples = TensorDataset(x, y)
# Each replica sees its own part of the samples.
sampler = DistributedSampler(samples)
batches = DataLoader(samples, BATCH, sampler=sampler, drop_last=True)
print(f"rank {rank} of {size}: {len(sampler)} of {SAMPLES} samples", flush=True)

model = DistributedDataParallel(torch.nn.Linear(2, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
started = time.monotonic()
for epoch in range(1, EPOCHS + 1):
    sampler.set_epoch(epoch)
    total = 0.0
    for inputs, wanted in batches:
        loss = (model(inputs) - wanted).square().mean() / 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    seconds = time.monotonic() - started
    print(f"epoch {epoch:2d}  loss {total / len(batches):.6f}  {seconds:4.1f} s", flush=True)

learned = torch.cat([parameter.detach().ravel() for parameter in model.parameters()])
print("learned y = {:.3f}*x1 {:+.3f}*x2 {:+.3f}".format(*learned.tolist()), flush=True)
off = (learned - torch.tensor([*WEIGHTS.ravel(), BIAS])).abs().max().item()
if off > TOLERANCE:
    sys.exit(f"not converged: off by {off:.3f}, and {TOLERANCE} is allowed")
# Nobody leaves while another still talks.
distributed.barrier()
