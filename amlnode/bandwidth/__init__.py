"""All-reduce bandwidth through the job's own torch, judged, with the slow node named."""

from __future__ import annotations
