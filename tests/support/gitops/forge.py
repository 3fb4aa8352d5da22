"""A repository on a forge: its branches, pull requests, runs and artifacts, and who may sign in as whom."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import ssl
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import trustme

from tests.support.gitops import gh

if TYPE_CHECKING:
    from collections.abc import Mapping

AUDIENCE = "api://AzureADTokenExchange"
WHO = ("-c", "user.name=ann", "-c", "user.email=ann@example.org", "-c", "commit.gpgsign=false")


@dataclass
class Forge:
    """One repository.

    Attributes:
        folder: Where all of it lies.
        assertion: What is handed out to a job that may have a token of its run: what the sandbox takes from a workload.
        name: ``owner/repository``.
    """

    folder: Path
    assertion: str
    name: str = "team/training"
    _server: ThreadingHTTPServer | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        for each in ("artifacts", "bin"):
            (self.folder / each).mkdir(parents=True)
        lists = ("comments", "issues", "labels", "pulls", "runs", "asked")
        self.save({"repository": self.name, "tokens": {}, **{each: [] for each in lists}})
        script = self.folder / "bin" / "gh"
        script.write_text(f"#!{sys.executable}\n{Path(gh.__file__).read_text('utf-8')}", "utf-8")
        script.chmod(0o755)
        self.git("init", "--quiet", "--bare", "--initial-branch=main", str(self.origin))
        forge = self

        class Tokens(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked = parse_qs(urlsplit(self.path).query)
                scheme, _, bearer = (self.headers.get("Authorization") or "").partition(" ")
                rights = forge.state()["tokens"].get(bearer.removeprefix("request-"), {})
                good = (
                    scheme.lower() == "bearer" and bearer.startswith("request-") and rights.get("id-token") == "write"
                )
                good = good and asked.get("audience") == [AUDIENCE]
                content = json.dumps({"value": forge.assertion} if good else {"message": "no"}).encode()
                self.send_response(200 if good else 403)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *args: object) -> None:
                """Nothing: tests look at what the steps print."""

        authority = trustme.CA()
        authority.cert_pem.write_to_path(self.folder / "authority.pem")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1").configure_cert(context)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Tokens)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        if self._server:
            self._server.shutdown()
            self._server.server_close()

    @property
    def origin(self) -> Path:
        return self.folder / "origin.git"

    @property
    def tokens_at(self) -> str:
        assert self._server
        return f"https://127.0.0.1:{self._server.server_port}/token?api-version=2.0"

    def state(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "state.json").read_text())
        return found

    def save(self, state: Mapping[str, Any]) -> None:
        (self.folder / "state.json").write_text(json.dumps(state))

    def token(self, rights: Mapping[str, str]) -> str:
        """A token of a job with these rights."""
        state, token = self.state(), secrets.token_hex(8)
        state["tokens"][token] = dict(rights)
        self.save(state)
        return token

    def begin(self, workflow: str, commit: str) -> str:
        """The id of a new run."""
        state = self.state()
        run = str(len(state["runs"]) + 1)
        state["runs"].append({"id": run, "workflow": workflow, "commit": commit, "conclusion": ""})
        self.save(state)
        return run

    def end(self, run: str, conclusion: str) -> None:
        """Notes how a run has ended, so far."""
        state = self.state()
        state["runs"][int(run) - 1]["conclusion"] = conclusion
        self.save(state)

    def artifacts(self, run: str) -> Path:
        return self.folder / "artifacts" / run

    def keep(self, run: str, name: str, source: Path) -> str:
        """Uploads an artifact: its address."""
        target = self.artifacts(run) / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
        return f"https://github.com/{self.name}/actions/runs/{run}/artifacts/{name}"

    def git(self, *words: str, at: Path | None = None) -> str:
        env = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
        command = ["git", *WHO, *words]
        done = subprocess.run(command, cwd=at or self.folder, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout.strip()

    def pull(self, branch: str, at: Path, number: int | None = None) -> dict[str, Any]:
        """Opens a pull request of a branch, which is pushed from a clone, or pushes to an open one; its event."""
        head = self.git("rev-parse", "HEAD", at=at)
        self.git("push", "--quiet", "--force", str(self.origin), f"HEAD:refs/heads/{branch}", at=at)
        base = self.git("rev-parse", "refs/heads/main", at=self.origin)
        state = self.state()
        if number is None:
            number = len(state["pulls"]) + 1
            state["pulls"].append({"number": number, "base": {"ref": "main", "sha": base}, "state": "open"})
        pull = state["pulls"][number - 1]
        pull |= {"head": {"ref": branch, "sha": head, "repo": {"full_name": self.name}}, "merge_commit_sha": ""}
        self.save(state)
        return {"number": number, "pull_request": pull}

    def merged(self, head: str) -> str:
        """The merge of a commit into main that a service checks for a pull request; no branch has it."""
        main = self.git("rev-parse", "refs/heads/main", at=self.origin)
        tree = self.git("merge-tree", "--write-tree", main, head, at=self.origin)
        return self.git("commit-tree", tree, "-p", main, "-p", head, "-m", f"Merge {head}", at=self.origin)

    def merge(self, number: int, at: Path) -> str:
        """Merges a pull request of this clone by fast forward: the commit of main."""
        state = self.state()
        pull = state["pulls"][number - 1]
        self.git("push", "--quiet", str(self.origin), f"{pull['head']['sha']}:refs/heads/main", at=at)
        pull |= {"state": "merged", "merge_commit_sha": pull["head"]["sha"]}
        self.save(state)
        return str(pull["head"]["sha"])
