"""Regression with Hugging Face Accelerate: it shards the data, moves the model and sums the gradients."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FEATURES, SAMPLES = 16, 2048


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--world-size", type=int, help="fail unless exactly so many ranks take part")
    arguments = parser.parse_args()

    accelerator = Accelerator(cpu=not torch.cuda.is_available())
    world = accelerator.num_processes
    if arguments.world_size not in (None, world):
        raise SystemExit(f"{world} ranks take part, {arguments.world_size} were asked for")
    print(f"rank {accelerator.process_index} of {world} on {accelerator.device}", flush=True)

    set_seed(7)
    truth = torch.randn(FEATURES, 1)
    features = torch.randn(SAMPLES, FEATURES)
    points = TensorDataset(features, features @ truth + 0.1 * torch.randn(SAMPLES, 1))
    layers = nn.Sequential(nn.Linear(FEATURES, 32), nn.ReLU(), nn.Linear(32, 1))
    model, optimizer, batches = accelerator.prepare(
        layers, torch.optim.SGD(layers.parameters(), lr=0.05), DataLoader(points, batch_size=32, shuffle=True)
    )
    losses = []
    for epoch in range(arguments.epochs):
        total = torch.zeros((), device=accelerator.device)
        for batch, targets in batches:
            loss = nn.functional.mse_loss(model(batch), targets)
            optimizer.zero_grad()
            accelerator.backward(loss)
            optimizer.step()
            total += loss.detach() / len(batches)
        losses.append(float(accelerator.reduce(total, "mean")))
        accelerator.print(f"epoch {epoch + 1}/{arguments.epochs} loss {losses[-1]:.4f}", flush=True)
    if accelerator.is_main_process:
        if losses[-1] >= losses[0]:
            raise SystemExit(f"the loss did not fall: {losses[0]:.4f} to {losses[-1]:.4f}")
        Path("outputs").mkdir(exist_ok=True)
        metrics = {"world_size": world, "loss": losses[-1], "losses": losses}
        Path("outputs/metrics.json").write_text(json.dumps(metrics, indent=1) + "\n")
    accelerator.end_training()


if __name__ == "__main__":
    main()
