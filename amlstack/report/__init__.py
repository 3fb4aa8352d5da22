"""The report of a run as one HTML file: declaration, verdict, ranks over time, numbers, logs.

`job.gather` and `folder.gather` collect a `subject.Report`, `page.render` makes the page, `file.write` keeps it.
"""

from __future__ import annotations

from amlstack.report.content import Report
from amlstack.report.page import render

__all__ = ["Report", "render"]
