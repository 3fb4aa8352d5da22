"""Stand-in for `gh`: issues, comments and runs of one repository in a folder, and each job's own rights on them.

It takes the commands of our files, each with the right that GitHub asks for, and refuses every other.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any, NoReturn

FORGE = Path(os.environ.get("GH_STAND_IN", "."))
BOT = "github-actions[bot]"


def main(words: list[str]) -> None:
    state = json.loads((FORGE / "state.json").read_text())
    rights = state["tokens"].get(os.environ.get("GH_TOKEN", ""))
    if rights is None:
        refuse("gh: no token, or one of a job that has ended")
    answer = Gh(state, rights).do(words)
    (FORGE / "state.json").write_text(json.dumps(state, indent=1))
    if answer is not None:
        sys.stdout.write((answer if isinstance(answer, str) else json.dumps(answer)) + "\n")


class Gh:
    def __init__(self, state: dict[str, Any], rights: dict[str, str]) -> None:
        self.state, self.rights = state, rights

    def do(self, words: list[str]) -> Any:
        name = "_".join(words[:1] if words[0] == "api" else words[:2])
        method = getattr(self, f"on_{name}", None) or refuse(f"gh: the stand-in has no `gh {' '.join(words)}`")
        return method(*parsed(words[1 if words[0] == "api" else 2 :]))

    def may(self, right: str, level: str) -> None:
        have = self.rights.get(right, "none")
        if have not in {"write", level}:
            refuse(f"gh: HTTP 403: Resource not accessible by integration ({right}: {level} is needed, {have} given)")

    def on_api(self, plain: list[str], given: dict[str, str]) -> Any:
        (path,) = plain
        method = given.pop("--method", "GET")
        given.pop("--paginate", None)
        body = Path(given.pop("--field").removeprefix("body=@")).read_text() if "--field" in given else ""
        if given:
            refuse(f"gh api: {given}")
        repo = f"repos/{self.state['repository']}"
        if found := re.fullmatch(rf"{repo}/issues/(\d+)/comments", path):
            self.may("pull-requests", "write" if method == "POST" else "read")
            comments = self.state["comments"]
            if method == "GET":
                return [one for one in comments if one["issue"] == int(found[1])]
            url = f"https://github.com/{self.state['repository']}/pull/{found[1]}#{len(comments) + 1}"
            comments.append(
                {
                    "id": len(comments) + 1,
                    "issue": int(found[1]),
                    "user": {"login": BOT},
                    "body": body,
                    "html_url": url,
                    "edits": 0,
                }
            )
            return comments[-1]
        if (found := re.fullmatch(rf"{repo}/issues/comments/(\d+)", path)) and method == "PATCH":
            self.may("pull-requests", "write")
            one = self.state["comments"][int(found[1]) - 1]
            one |= {"body": body, "edits": one["edits"] + 1}
            return one
        if (found := re.fullmatch(rf"{repo}/commits/(\w+)/pulls", path)) and method == "GET":
            self.may("pull-requests", "read")
            return [one for one in self.state["pulls"] if one["merge_commit_sha"] == found[1]]
        return refuse(f"gh api: the stand-in has no {method} {path}")

    def on_run_list(self, plain: list[str], given: dict[str, str]) -> Any:
        self.may("actions", "read")
        return [
            {"databaseId": run["id"], "headSha": run["commit"]}
            for run in reversed(self.state["runs"])
            if run["workflow"] == given["--workflow"]
            and given.get("--commit", run["commit"]) == run["commit"]
            and given.get("--status", run["conclusion"]) == run["conclusion"]
        ]

    def on_run_download(self, plain: list[str], given: dict[str, str]) -> None:
        self.may("actions", "read")
        source = FORGE / "artifacts" / plain[0] / given["--name"]
        if not source.is_dir():
            refuse("no valid artifacts found to download")
        shutil.copytree(source, given["--dir"], dirs_exist_ok=True)

    def on_label_create(self, plain: list[str], given: dict[str, str]) -> None:
        self.may("issues", "write")
        if plain[0] in self.state["labels"] and "--force" not in given:
            refuse(f"label with name {plain[0]!r} already exists; use `--force` to update its color and description")
        self.state["labels"].append(plain[0])

    def on_issue_list(self, plain: list[str], given: dict[str, str]) -> Any:
        self.may("issues", "read")
        return [
            {"number": one["number"]}
            for one in self.state["issues"]
            if one["state"] == given["--state"] and given["--label"] in one["labels"]
        ]

    def on_issue_create(self, plain: list[str], given: dict[str, str]) -> str:
        self.may("issues", "write")
        if given["--label"] not in self.state["labels"]:
            refuse(f"could not add label: {given['--label']!r} not found")
        number = len(self.state["issues"]) + 1
        self.state["issues"].append(
            {
                "number": number,
                "title": given["--title"],
                "body": Path(given["--body-file"]).read_text(),
                "labels": [given["--label"]],
                "state": "open",
                "comments": [],
            }
        )
        return f"https://github.com/{self.state['repository']}/issues/{number}"

    def on_issue_edit(self, plain: list[str], given: dict[str, str]) -> None:
        self.may("issues", "write")
        self._issue(plain)["body"] = Path(given["--body-file"]).read_text()

    def on_issue_close(self, plain: list[str], given: dict[str, str]) -> None:
        self.may("issues", "write")
        one = self._issue(plain)
        one["state"] = "closed"
        one["comments"].append(given["--comment"])

    def on_pr_list(self, plain: list[str], given: dict[str, str]) -> Any:
        self.may("pull-requests", "read")
        return [
            {"number": one["number"]}
            for one in self.state["pulls"]
            if one["head"]["ref"] == given["--head"] and one["state"] == given["--state"]
        ]

    def on_pr_create(self, plain: list[str], given: dict[str, str]) -> str:
        self.may("pull-requests", "write")
        number = len(self.state["pulls"]) + 1
        self.state["pulls"].append(
            {
                "number": number,
                "head": {"ref": given["--head"], "sha": ""},
                "title": given["--title"],
                "body": Path(given["--body-file"]).read_text(),
                "state": "open",
                "merge_commit_sha": "",
            }
        )
        return f"https://github.com/{self.state['repository']}/pull/{number}"

    def on_pr_edit(self, plain: list[str], given: dict[str, str]) -> None:
        self.may("pull-requests", "write")
        self.state["pulls"][int(plain[0]) - 1]["body"] = Path(given["--body-file"]).read_text()

    def _issue(self, plain: list[str]) -> dict[str, Any]:
        found: dict[str, Any] = self.state["issues"][int(plain[0]) - 1]
        return found


def parsed(words: list[str]) -> tuple[list[str], dict[str, str]]:
    """Words, and options with their values; of our files only ``--paginate`` and ``--force`` have none."""
    plain: list[str] = []
    given: dict[str, str] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word in {"--paginate", "--force"}:
            given[word] = ""
        elif word.startswith("-"):
            given[word] = rest.pop(0)
        else:
            plain.append(word)
    return plain, given


def refuse(message: str) -> NoReturn:
    sys.exit(message)


if __name__ == "__main__":
    main(sys.argv[1:])
