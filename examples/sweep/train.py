"""A linear regression that logs its loss after every epoch, where a sweep and MLflow look for it."""

from __future__ import annotations

import argparse

import mlflow
import torch
from torch import nn

FEATURES, BATCH, STEPS = 16, 64, 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--momentum", type=float, default=0.9)
    arguments = parser.parse_args()

    torch.manual_seed(7)
    model, truth = nn.Linear(FEATURES, 1), torch.randn(FEATURES, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=arguments.lr, momentum=arguments.momentum)
    mlflow.log_params({"lr": arguments.lr, "momentum": arguments.momentum})
    for epoch in range(arguments.epochs):
        total = 0.0
        for _ in range(STEPS):
            features = torch.randn(BATCH, FEATURES)
            targets = features @ truth + 0.1 * torch.randn(BATCH, 1)
            loss = nn.functional.mse_loss(model(features), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        mlflow.log_metric("loss", total / STEPS, step=epoch)
        print(f"epoch {epoch}: loss {total / STEPS:.4f}", flush=True)


if __name__ == "__main__":
    main()
