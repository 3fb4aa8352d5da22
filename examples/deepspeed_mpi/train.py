"""Regression with DeepSpeed: the same code under mpirun and under Azure ML's PyTorch launch.

DeepSpeed finds its rank in what the launcher set. On a machine without GPUs it runs on the CPU with gloo.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

import torch

if not torch.cuda.is_available():
    os.environ.setdefault("DS_ACCELERATOR", "cpu")  # read when deepspeed is imported
    # Nothing here is compiled; without this each rank would load torch's compiler for an optimizer that is not used.
    os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")

import deepspeed
import torch.distributed as dist
from torch import nn

# Without GPUs DeepSpeed would compile sums over shared memory, which spin: with more ranks than cores they stand still.
deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False

FEATURES, STEPS = 16, 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--world-size", type=int, help="fail unless exactly so many ranks take part")
    parser.add_argument("--local_rank", type=int, default=-1, help="DeepSpeed's own launcher sets it")
    deepspeed.add_config_arguments(parser)  # --deepspeed, --deepspeed_config
    arguments = parser.parse_args()

    deepspeed.init_distributed(dist_backend="nccl" if torch.cuda.is_available() else "gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    if arguments.world_size not in (None, world):
        raise SystemExit(f"{world} ranks take part, {arguments.world_size} were asked for")

    torch.manual_seed(7)
    model = nn.Sequential(nn.Linear(FEATURES, 32), nn.ReLU(), nn.Linear(32, 1))
    engine, _, _, _ = deepspeed.initialize(args=arguments, model=model, model_parameters=model.parameters())
    print(f"rank {rank} of {world} on {engine.device} with {dist.get_backend()}", flush=True)

    batch = engine.train_micro_batch_size_per_gpu()
    truth = torch.randn(FEATURES, 1, generator=torch.Generator().manual_seed(7))
    points = torch.Generator().manual_seed(100 + rank)  # every rank draws its own share of the data
    losses = []
    for epoch in range(arguments.epochs):
        total = torch.zeros((), device=engine.device)
        for _ in range(STEPS):
            features = torch.randn(batch, FEATURES, generator=points)
            targets = features @ truth + 0.1 * torch.randn(batch, 1, generator=points)
            loss = nn.functional.mse_loss(engine(features.to(engine.device)), targets.to(engine.device))
            engine.backward(loss)
            engine.step()
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
