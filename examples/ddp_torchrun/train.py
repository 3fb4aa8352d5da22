"""A classifier trained with DistributedDataParallel: small enough for two cores, the same code on InfiniBand.

Reads its place from the variables that torchrun or Azure ML's per-process launch set; takes NCCL when every rank of
this node has a GPU of its own, gloo otherwise. Rank 0 writes outputs/metrics.json.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

FEATURES, CLASSES, SAMPLES = 32, 4, 4096


def data() -> TensorDataset:
    """Points around one centre per class, with noise: the same on every rank."""
    generator = torch.Generator().manual_seed(7)
    centres = torch.randn(CLASSES, FEATURES, generator=generator)
    labels = torch.randint(CLASSES, (SAMPLES,), generator=generator)
    return TensorDataset(centres[labels] + 1.5 * torch.randn(SAMPLES, FEATURES, generator=generator), labels)


def mean(value: torch.Tensor) -> float:
    """The mean of a number over all ranks."""
    total = value.detach().clone()
    dist.all_reduce(total)
    return float(total / dist.get_world_size())


def train(model: DistributedDataParallel, device: torch.device, epochs: int, rate: float) -> list[float]:
    """Trains and returns the mean loss of each epoch, over all ranks."""
    points = data()
    sampler: DistributedSampler[tuple[torch.Tensor, ...]] = DistributedSampler(points, seed=7)
    batches = DataLoader(points, batch_size=64, sampler=sampler)
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    measure = nn.CrossEntropyLoss()
    losses = []
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        began, total = time.perf_counter(), torch.zeros((), device=device)
        for features, labels in batches:
            optimizer.zero_grad(set_to_none=True)
            loss = measure(model(features.to(device)), labels.to(device))
            loss.backward()
            optimizer.step()
            total += loss.detach()
        losses.append(mean(total / len(batches)))
        if dist.get_rank() == 0:
            seconds = time.perf_counter() - began
            print(f"epoch {epoch + 1}/{epochs} loss {losses[-1]:.4f} ({seconds:.2f} s)", flush=True)
    return losses


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--learning-rate", type=float, default=0.02)
    parser.add_argument("--world-size", type=int, help="fail unless exactly so many ranks take part")
    arguments = parser.parse_args()

    local_rank = int(os.environ["LOCAL_RANK"])
    local_size = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    cuda = torch.cuda.is_available() and torch.cuda.device_count() >= max(local_size, local_rank + 1)
    device = torch.device("cuda", local_rank) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if cuda else "gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    if arguments.world_size is not None and world != arguments.world_size:
        raise SystemExit(f"{world} ranks take part, {arguments.world_size} were asked for")
    print(f"rank {rank} of {world} on {device} with {dist.get_backend()}", flush=True)

    torch.manual_seed(7)
    layers = nn.Sequential(nn.Linear(FEATURES, 128), nn.ReLU(), nn.Linear(128, CLASSES)).to(device)
    model = DistributedDataParallel(layers, device_ids=[local_rank] if cuda else None)
    losses = train(model, device, arguments.epochs, arguments.learning_rate)
    if rank == 0:
        if losses[-1] >= losses[0]:
            raise SystemExit(f"the loss did not fall: {losses[0]:.4f} to {losses[-1]:.4f}")
        metrics = {"world_size": world, "epochs": len(losses), "loss": losses[-1], "losses": losses}
        folder = Path("outputs")
        folder.mkdir(exist_ok=True)
        (folder / "metrics.json").write_text(json.dumps(metrics, indent=1) + "\n")
        print(f"loss {losses[0]:.4f} to {losses[-1]:.4f} over {len(losses)} epochs", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
