"""The score of a sealed set counts what it says: each judgement on a small log of its own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.support.diagnose.score import score
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

KEY = (
    "Traceback (most recent call last):\n"
    '  File "train.py", line 3, in <module>\n    x["labels"]\n'
    "KeyError: 'labels'\n"
)
QUIET = "epoch 1 loss 0.5\nepoch 2 loss 0.4\ndone\n"


@for_each(
    "log, truth, judgement",
    [
        (KEY, {"truth": "KeyError", "visible": True}, "right"),
        (KEY, {"truth": "out of memory", "visible": True}, "wrong cause"),
        (KEY, {"truth": "Traceback", "wrong": "KeyError", "visible": True}, "wrong cause"),
        (KEY, {"truth": "out of memory", "visible": False}, "wrong cause where none is shown"),
        (KEY, {}, "alarm"),
        (QUIET, {"truth": "KeyError", "visible": True}, "no cause"),
        (QUIET, {"truth": "KeyError", "visible": False}, "not shown: none named"),
        (QUIET, {}, "healthy: quiet"),
    ],
)
def test_each_judgement(log: str, truth: dict[str, Any], judgement: str, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(log)
    keys = "".join(f"{name} = {json.dumps(value)}\n" for name, value in truth.items())
    (tmp_path / "set.toml").write_text(f'[[log]]\nfile = "a.log"\n{keys}')
    counts, misses = score(tmp_path, [tmp_path / "set.toml"])
    assert dict(counts) == {judgement: 1}
    assert bool(misses) == (judgement.rsplit(maxsplit=1)[-1] not in {"right", "quiet", "named"})
