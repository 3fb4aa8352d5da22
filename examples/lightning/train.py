"""Regression with PyTorch Lightning; `--num_nodes` and `--devices` come from the job's launcher."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FEATURES, SAMPLES = 16, 2048


class Regression(lightning.LightningModule):
    """A small network; remembers the mean loss of every epoch over all ranks."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(FEATURES, 32), nn.ReLU(), nn.Linear(32, 1))
        self.losses: list[float] = []

    def training_step(self, batch: list[torch.Tensor], _: int) -> torch.Tensor:
        features, targets = batch
        loss = nn.functional.mse_loss(self.layers(features), targets)
        self.log("loss", loss, on_epoch=True, on_step=False, sync_dist=True)
        return loss

    def on_train_epoch_end(self) -> None:
        self.losses.append(float(self.trainer.callback_metrics["loss"]))
        if self.trainer.is_global_zero:
            print(f"epoch {self.current_epoch + 1}/{self.trainer.max_epochs} loss {self.losses[-1]:.4f}", flush=True)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.05)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--world-size", type=int, help="fail unless exactly so many ranks take part")
    parser.add_argument("--num_nodes", type=int, default=1)
    parser.add_argument("--devices", type=int, default=1)
    arguments = parser.parse_args()

    cuda = torch.cuda.is_available() and torch.cuda.device_count() >= arguments.devices
    trainer = lightning.Trainer(
        accelerator="gpu" if cuda else "cpu",
        devices=arguments.devices,
        num_nodes=arguments.num_nodes,
        strategy="ddp",
        max_epochs=arguments.epochs,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    if arguments.world_size not in (None, trainer.world_size):
        raise SystemExit(f"{trainer.world_size} ranks take part, {arguments.world_size} were asked for")

    lightning.seed_everything(7)
    truth = torch.randn(FEATURES, 1)
    features = torch.randn(SAMPLES, FEATURES)
    points = TensorDataset(features, features @ truth + 0.1 * torch.randn(SAMPLES, 1))
    model = Regression()
    trainer.fit(model, DataLoader(points, batch_size=32, shuffle=True))
    print(f"rank {trainer.global_rank} of {trainer.world_size} on node {trainer.node_rank}", flush=True)
    if trainer.is_global_zero:
        losses = model.losses
        if losses[-1] >= losses[0]:
            raise SystemExit(f"the loss did not fall: {losses[0]:.4f} to {losses[-1]:.4f}")
        Path("outputs").mkdir(exist_ok=True)
        metrics = {"world_size": trainer.world_size, "loss": losses[-1], "losses": losses}
        Path("outputs/metrics.json").write_text(json.dumps(metrics, indent=1) + "\n")


if __name__ == "__main__":
    main()
