"""Regression with DistributedDataParallel under mpirun, which gives a rank its number, but not rank 0's address.

`amlnode`, which travels beside this file, takes that from Azure ML's variables. Code that imports the guides' own
`aml_mpienv.py` keeps its import: `python -m amlnode write . aml_mpienv.py` writes that file beside it.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from amlnode.aml_mpienv import (
    get_local_rank,
    get_local_size,
    get_world_size,
    set_environment_variables_for_nccl_backend,
)

FEATURES, BATCH, STEPS = 16, 64, 40


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--world-size", type=int, help="fail unless exactly so many ranks take part")
    arguments = parser.parse_args()

    set_environment_variables_for_nccl_backend()
    local_rank = get_local_rank()
    cuda = torch.cuda.is_available() and torch.cuda.device_count() >= get_local_size()
    device = torch.device("cuda", local_rank) if cuda else torch.device("cpu")
    dist.init_process_group("nccl" if cuda else "gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    if not world == get_world_size() == (arguments.world_size or world):
        raise SystemExit(f"{world} ranks take part, {arguments.world_size} were asked for")
    print(f"rank {rank} of {world} on {device} with {dist.get_backend()}", flush=True)

    truth = torch.randn(FEATURES, 1, generator=torch.Generator().manual_seed(7))
    points = torch.Generator().manual_seed(100 + rank)  # every rank draws its own share of the data
    torch.manual_seed(7)
    model = DistributedDataParallel(nn.Linear(FEATURES, 1).to(device), device_ids=[local_rank] if cuda else None)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    losses = []
    for epoch in range(arguments.epochs):
        total = torch.zeros((), device=device)
        for _ in range(STEPS):
            features = torch.randn(BATCH, FEATURES, generator=points)
            targets = features @ truth + 0.1 * torch.randn(BATCH, 1, generator=points)
            loss = nn.functional.mse_loss(model(features.to(device)), targets.to(device))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            total += loss.detach() / STEPS
        dist.all_reduce(total)
        losses.append(float(total) / world)
        if rank == 0:
            print(f"epoch {epoch + 1}/{arguments.epochs} loss {losses[-1]:.4f}", flush=True)
    if rank == 0:
        if losses[-1] >= losses[0]:
            raise SystemExit(f"the loss did not fall: {losses[0]:.4f} to {losses[-1]:.4f}")
        Path("outputs").mkdir(exist_ok=True)
        metrics = {"world_size": world, "loss": losses[-1], "losses": losses}
        Path("outputs/metrics.json").write_text(json.dumps(metrics, indent=1) + "\n")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
