"""Regression with Horovod, which asks MPI for its rank and sums the gradients before each step."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import horovod.torch as hvd
import torch
from torch import nn

FEATURES, BATCH, STEPS = 16, 64, 30


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--world-size", type=int, help="fail unless exactly so many ranks take part")
    arguments = parser.parse_args()

    hvd.init()
    rank, world = hvd.rank(), hvd.size()
    if arguments.world_size not in (None, world):
        raise SystemExit(f"{world} ranks take part, {arguments.world_size} were asked for")
    cuda = torch.cuda.is_available() and torch.cuda.device_count() >= hvd.local_size()
    device = torch.device("cuda", hvd.local_rank()) if cuda else torch.device("cpu")
    print(f"rank {rank} of {world}, local rank {hvd.local_rank()} of {hvd.local_size()}, on {device}", flush=True)

    truth = torch.randn(FEATURES, 1, generator=torch.Generator().manual_seed(7))
    points = torch.Generator().manual_seed(100 + rank)  # every rank draws its own share of the data
    model = nn.Linear(FEATURES, 1).to(device)
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.02), named_parameters=model.named_parameters()
    )
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    losses = []
    for epoch in range(arguments.epochs):
        total = torch.zeros((), device=device)
        for _ in range(STEPS):
            features = torch.randn(BATCH, FEATURES, generator=points)
            targets = features @ truth + 0.1 * torch.randn(BATCH, 1, generator=points)
            loss = nn.functional.mse_loss(model(features.to(device)), targets.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach() / STEPS
        losses.append(float(hvd.allreduce(total)))
        if rank == 0:
            print(f"epoch {epoch + 1}/{arguments.epochs} loss {losses[-1]:.4f}", flush=True)
    if rank == 0:
        if losses[-1] >= losses[0]:
            raise SystemExit(f"the loss did not fall: {losses[0]:.4f} to {losses[-1]:.4f}")
        Path("outputs").mkdir(exist_ok=True)
        metrics = {"world_size": world, "loss": losses[-1], "losses": losses}
        Path("outputs/metrics.json").write_text(json.dumps(metrics, indent=1) + "\n")
    hvd.shutdown()


if __name__ == "__main__":
    main()
