"""Trains on the data that an earlier step made, each rank on its own share; the first rank writes the model."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

BATCH = 32


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", type=Path, required=True)
    arguments = parser.parse_args()

    local_rank = int(os.environ["LOCAL_RANK"])
    cuda = torch.cuda.is_available() and torch.cuda.device_count() > local_rank
    device = torch.device("cuda", local_rank) if cuda else torch.device("cpu")
    dist.init_process_group("nccl" if cuda else "gloo")
    rank, world = dist.get_rank(), dist.get_world_size()

    data = torch.load(arguments.data / "train.pt", map_location=device)
    features, targets = data["features"][rank::world], data["targets"][rank::world]
    torch.manual_seed(7)
    model = DistributedDataParallel(nn.Linear(features.shape[1], 1).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    losses = []
    for epoch in range(arguments.epochs):
        for first in range(0, len(features), BATCH):
            loss = nn.functional.mse_loss(model(features[first : first + BATCH]), targets[first : first + BATCH])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        losses.append(loss.item())
        if rank == 0:
            print(f"epoch {epoch}: loss {losses[-1]:.4f} ({world} ranks)", flush=True)
    if losses[-1] >= losses[0]:
        raise SystemExit(f"the loss did not fall: {losses[0]:.4f} to {losses[-1]:.4f}")
    if rank == 0:
        torch.save(model.module.state_dict(), arguments.model / "model.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
