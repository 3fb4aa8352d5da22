"""Regression that writes a checkpoint after every epoch and goes on from the last one it finds.

Every epoch draws its data by its own number, so that a resumed training sees exactly what an uninterrupted one sees.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

FEATURES, BATCH, STEPS = 16, 64, 20


def save(file: Path, state: dict[str, Any]) -> None:
    """Writes a checkpoint whole or not at all: a node may go at any moment."""
    part = file.with_suffix(".part")
    torch.save(state, part)
    part.replace(file)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--world-size", type=int, help="fail unless exactly so many ranks take part")
    parser.add_argument("--checkpoints", type=Path, required=True, help="a mounted output, the same for every run")
    arguments = parser.parse_args()

    local_rank = int(os.environ["LOCAL_RANK"])
    cuda = torch.cuda.is_available() and torch.cuda.device_count() > local_rank
    device = torch.device("cuda", local_rank) if cuda else torch.device("cpu")
    dist.init_process_group("nccl" if cuda else "gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    if arguments.world_size not in (None, world):
        raise SystemExit(f"{world} ranks take part, {arguments.world_size} were asked for")

    torch.manual_seed(7)
    model = DistributedDataParallel(nn.Linear(FEATURES, 1).to(device), device_ids=[local_rank] if cuda else None)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    file = arguments.checkpoints / "last.pt"
    losses: list[float] = []
    if file.is_file():
        state = torch.load(file, map_location=device)
        model.module.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        losses = state["losses"]
    dist.barrier()  # the next one is written after all have read this one
    if rank == 0:
        print(
            f"{world} ranks on {device.type}; {len(losses)} of {arguments.epochs} epochs are done already", flush=True
        )

    truth = torch.randn(FEATURES, 1, generator=torch.Generator().manual_seed(7))
    for epoch in range(len(losses), arguments.epochs):
        points = torch.Generator().manual_seed(1000 * epoch + rank)
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
            save(file, {"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "losses": losses})
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
