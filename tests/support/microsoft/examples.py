"""``make microsoft-examples``: the notebooks of azureml-examples' sdk/python for emulated kinds, run against a sandbox.

A notebook becomes a script of its code cells: without commands of the shell, with the names of the sandbox's workspace
for the placeholders. Jobs are held in the queue and cancelled as soon as they are taken: what is tried is what Azure
takes, not what the job does.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from amlstack.sandbox.server import daemon
from tests.support.microsoft import source, workspace
from tests.support.microsoft.__main__ import HERE, REASONS, Verdict, table
from tests.support.running import running_sandbox

FOLDERS: Final = ("assets", "jobs", "resources", "schedules")
_SHELL: Final = re.compile(r"\s*[!%?]")
_FILE: Final = re.compile(r"%%writefile (?P<path>\S+)\n(?P<text>.*)", re.DOTALL)
_PLACE: Final = re.compile(r"<[^<>\n]*(?P<word>subscription|resource|workspace)[^<>\n]*>", re.IGNORECASE)
PRELUDE: Final = """\
import devtools_testutils
from azure.ai.ml.operations import JobOperations
JobOperations.stream = lambda *words, **more: None
_submit = JobOperations.create_or_update
def _submitted(self, job, **more):
    made = _submit(self, job, **more)
    self.begin_cancel(made.name)
    return made
JobOperations.create_or_update = _submitted
"""
SECONDS: Final = 90


def script(notebook: Path, subscription: str) -> str:
    """The code of a notebook as a script for the sandbox's workspace."""
    cells = json.loads(notebook.read_text("utf-8"))["cells"]
    code = [_FILE.sub(_written, "".join(cell["source"])) for cell in cells if cell["cell_type"] == "code"]
    lines = [line for cell in code if not cell.startswith("%%") for line in (*cell.splitlines(), "")]
    text = "\n".join("" if _SHELL.match(line) else line for line in lines)
    named = _PLACE.sub(lambda found: subscription if found["word"].lower() == "subscription" else workspace.NAME, text)
    return PRELUDE + named


def _written(cell: re.Match[str]) -> str:
    """The code for a cell that writes a file, whose path may have variables in braces."""
    return f"with open(f{cell['path']!r}, 'w') as file:\n    file.write({cell['text']!r})"


def main() -> int:
    """Runs each notebook and prints counts and reasons; 0 when nothing failed without a reason."""
    parser = argparse.ArgumentParser(prog="make microsoft-examples", description=__doc__)
    parser.add_argument("examples", type=Path, help="a clone of github.com/Azure/azureml-examples")
    parser.add_argument("--only", default="", help="a pattern for the paths of notebooks")
    asked = parser.parse_args()
    verdicts = []
    with tempfile.TemporaryDirectory(prefix="microsoft-examples-", ignore_cleanup_errors=True) as made:
        root = Path(made) / "python"
        for name in FOLDERS:
            shutil.copytree(asked.examples / "sdk" / "python" / name, root / name)
        with running_sandbox(Path(made) / "home") as sandbox:
            daemon.hold(sandbox.home, hold=True)
            environ = {**os.environ, **sandbox.environ, **sandbox.endpoint.azure_names(), **workspace.lay_out(sandbox)}
            environ |= {"PYTHONPATH": f"{HERE / 'plugin'}{os.pathsep}{source.packages()}", "HOME": made}
            subscription = sandbox.environ["AZURE_SUBSCRIPTION_ID"]
            config = {
                "subscription_id": subscription,
                **dict.fromkeys(("resource_group", "workspace_name"), workspace.NAME),
            }
            (root / "config.json").write_text(json.dumps(config))
            for notebook in sorted(root.rglob("*.ipynb")):
                name = str(notebook.relative_to(root))
                if re.search(asked.only, name):
                    one = verdict(notebook, name, script(notebook, subscription), environ)
                    sys.stdout.write(f"{one.column:13}{one.test}\n" + (f"{'':13}{one.reason}\n" if one.reason else ""))
                    sys.stdout.flush()
                    verdicts.append(one)
    sys.stdout.write(table(verdicts) + "\n")
    return int(not all(one.known for one in verdicts))


def verdict(notebook: Path, name: str, text: str, environ: dict[str, str]) -> Verdict:
    """The verdict on one notebook, run in its own folder."""
    if (why := next((row for pattern, row in REASONS.examples.items() if re.search(pattern, name)), None)) is not None:
        return Verdict(name, name.split("/", 1)[0], "not emulated", why)
    path = notebook.with_suffix(".sandbox.py")
    path.write_text(text)
    command = [sys.executable, "-W", "ignore", path.name]
    try:
        done = subprocess.run(
            command, cwd=path.parent, env=environ, capture_output=True, text=True, check=False, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        return Verdict(name, name.split("/", 1)[0], "failed", f"it ran longer than {SECONDS} seconds", known=False)
    words = [
        f"E {line}" for line in done.stderr.splitlines() if re.match(r"[A-Za-z_.]+(Error|Exception)\b|Message:", line)
    ]
    outcome = "failed" if done.returncode else "passed"
    text = "\n".join([done.stderr, *words[-2:]]) if done.returncode else ""
    return REASONS.verdict({"test": name, "outcome": outcome, "text": text})


if __name__ == "__main__":
    sys.exit(main())
