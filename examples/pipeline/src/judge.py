"""Judges a trained model by data that it has not seen, and writes what it found."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from torch import nn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--report", type=Path, required=True)
    arguments = parser.parse_args()

    data = torch.load(arguments.data / "test.pt")
    model = nn.Linear(data["features"].shape[1], 1)
    model.load_state_dict(torch.load(arguments.model / "model.pt"))
    with torch.no_grad():
        loss = nn.functional.mse_loss(model(data["features"]), data["targets"]).item()
    variance = data["targets"].var().item()
    (arguments.report / "report.json").write_text(json.dumps({"loss": loss, "explained": 1 - loss / variance}) + "\n")
    print(f"loss {loss:.4f} on unseen data: {1 - loss / variance:.1%} of its variance is explained")


if __name__ == "__main__":
    main()
