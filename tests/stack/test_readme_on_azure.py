"""README's section "On Azure" as printed, typed into a terminal: only `az login` is replaced.

In its place stand the variables of a sandbox of its own, which is Azure here; `--sandbox` has another one, the clone's.
The story goes on with what a person does next: an edit, another command at the same time, the end.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from amlstack.base.paths import PROJECT
from amlstack.cli.stack import pulumi_stack
from amlstack.sandbox.server import daemon
from tests.support.running import ended_with_us
from tests.support.stack import printed_commands
from tests.support.stack.fresh_clone import Clone, Output
from tests.support.stack.small_jobs import store_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tests.support.running import Engine

pytestmark = [pytest.mark.engine, pytest.mark.timeout(3600)]

LOGIN = 'eval "$(AMLSTACK_HOME={azure} amlstack sandbox env)"; unset AMLSTACK_HOME'
IDS = {"<subscription id>": "$ARM_SUBSCRIPTION_ID", "<tenant id>": "$ARM_TENANT_ID"}
REAL = "pulumi/.pulumi/stacks/amlstack/dev.json"
"""State of the stack in the backend that the login leads to; on Azure it is the user's own."""
TRIED = "stacks/dev/state/.pulumi/stacks/amlstack/dev.json"
"""State of the same settings brought up with `--sandbox`."""
SECRET = "canary-of-the-settings"
WITHOUT = "up --stack dev --preview --without-secrets"


@dataclass
class Story:
    """The output of each step, and the things that it left."""

    clone: Clone
    azure: Path
    outputs: dict[str, Output] = field(default_factory=dict)
    seen: dict[str, Any] = field(default_factory=dict)

    def do(self, step: str, words: str, *, before: str = ":") -> None:
        """``amlstack WORDS`` in a shell of the login, after a line of shell."""
        done = self.shell(f"{before}\namlstack {words}", self.signed_in)
        self.outputs[step] = Output(done.returncode, done.stdout)
        self.seen[f"{step}: errors"] = done.stderr

    def shell(self, script: str, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", script],
            cwd=self.clone.folder,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    @cached_property
    def signed_in(self) -> dict[str, str]:
        """The variables of a shell after the login."""
        done = self.shell(f". .venv/bin/activate\n{self.login}\nenv -0", self.clone.environ)
        return dict(line.partition("=")[::2] for line in done.stdout.split("\0") if line)

    @property
    def login(self) -> str:
        return LOGIN.format(azure=self.azure)

    @property
    def settings(self) -> Path:
        return self.clone.folder / "Pulumi.dev.yaml"

    def held(self, home: Path) -> dict[str, str]:
        """Id → type of what the sandbox of a home has."""
        with store_of(home) as store:
            return {row.id: row.type for row in store.resources.all()}


def printed(heading: str = "On Azure") -> list[str]:
    return printed_commands.of_section((PROJECT / "README.md").read_text("utf-8"), heading)


@pytest.fixture(scope="module")
def story(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    clone, azure = Clone.made(tmp_path_factory.mktemp("clone")), tmp_path_factory.mktemp("azure") / "home"
    with ended_with_us(clone.home), ended_with_us(azure):
        try:
            yield played(Story(clone, azure))
        finally:
            daemon.down(azure)
            clone.close()


def played(story: Story) -> Story:
    clone = story.clone
    lines = [story.login if line.split("#")[0].strip() == "az login" else line for line in printed()]
    for placeholder, variable in IDS.items():
        lines = [line.replace(placeholder, f'"{variable}"') for line in lines]
    story.outputs["printed"] = Output(*printed_commands.typed(lines, clone.folder, clone.environ))
    if story.outputs["printed"].code:
        return story
    story.seen |= {"tried": story.held(clone.home), "real": story.held(story.azure)}

    content = yaml.safe_load(story.settings.read_text("utf-8"))
    content["config"]["amlstack:clusters"][0]["nodes"]["max"] = 4
    story.settings.write_text(yaml.safe_dump(content, sort_keys=False), "utf-8")
    state = story.azure / REAL
    before = state.read_bytes()
    story.do("plan", "up --stack dev --preview --json")
    secret = f"pulumi config set --stack dev --secret --path amlstack:secrets.token {SECRET}"
    story.do("plan without secrets", f"{WITHOUT} --json", before=f"{secret}; export PULUMI_CONFIG_PASSPHRASE=another")
    story.do("up without secrets", f"{WITHOUT.replace(' --preview', '')} --yes")
    story.seen["untouched"] = before == state.read_bytes()

    with pulumi_stack.hold(clone.home / "stacks" / "dev" / "turn", "dev", "amlstack up"):
        story.do("second", "up --stack dev --sandbox --yes")
    locked = story.azure / "pulumi/.pulumi/locks/organization/amlstack/dev/other.json"
    locked.parent.mkdir(parents=True, exist_ok=True)
    since = "2026-11-22T10:00:00Z"
    holder = {"pid": os.getpid(), "username": "ann", "hostname": socket.gethostname(), "timestamp": since}
    locked.write_text(json.dumps(holder))
    story.do("locked", "up --stack dev --yes --refresh")
    locked.unlink()

    story.do("protected", "down --stack dev --yes")
    story.do("down of what was tried", "down --stack dev --sandbox --yes")
    story.seen["left"] = story.held(clone.home)
    return story


def test_every_line_of_the_section_ends_well(story: Story) -> None:
    output = story.outputs["printed"]
    assert output.code == 0, output.text
    assert output.text.count("Apply this to `dev` on") == 2
    assert "amlstack 0" in output.text, "plain Pulumi names the pack that judged"


def test_your_own_job_begins_in_a_clone(tmp_path: Path) -> None:
    """With an empty HOME; the rehearsal and `up` of the section are the tutorial's, played from a wheel."""
    page = (PROJECT / "README.md").read_text("utf-8").split("\n## Your own job\n", 1)[1].split("\n## ", 1)[0]
    begin, then = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    checked = [line for line in then.splitlines() if line.startswith(("amlstack check", "amlstack show"))]
    assert len(checked) == 2
    clone = tmp_path / "clone"
    clone.mkdir()
    (clone / ".venv").symlink_to(PROJECT / ".venv")
    env = {**Clone(clone, clone).environ, "MAKEFLAGS": ""}
    env = {name: value for name, value in env.items() if not name.startswith("P") or name == "PATH"}
    code, printed = printed_commands.typed([*begin.splitlines(), *checked], clone, env)
    assert code == 0, printed
    assert "shm_size = 450g  (fabric)" in printed, printed


def test_the_same_settings_are_tried_apart_from_the_real_stack(story: Story) -> None:
    assert sorted(story.seen["tried"].values()) == sorted(story.seen["real"].values())
    assert (story.azure / REAL).is_file()
    assert not (story.azure / TRIED).exists()
    assert "AzureML" not in story.settings.read_text()


def test_the_plan_comes_before_the_question_with_its_cost(story: Story) -> None:
    text = story.outputs["printed"].text
    for words in (
        r"plan of `dev` on Azure: \d+ created",
        "while idle: 0.00 USD per hour for nodes",
        r"at most: (unknown for 2 nodes of Standard_ND96asr_v4|[\d.,]+ USD per hour)",
        "no violation in",
        r"`dev` is up: \d+ created",
        "workspace: https://ml.azure.com/",
    ):
        assert re.search(words, text), f"{words}\n{text}"
    assert text.index("cost per hour") < text.index("Apply this to `dev` on Azure?")


def test_an_edit_is_shown_as_updates_in_place_and_nothing_is_changed(story: Story) -> None:
    output = story.outputs["plan"]
    assert output.code == 0, story.seen["plan: errors"]
    answer = json.loads(output.text)
    cluster = next(step for step in answer["plan"] if step["urn"].endswith("::a100"))
    assert cluster["operation"] == "updated in place"
    assert any("maxNodeCount" in name for name in cluster["properties"]), cluster
    assert [step for step in answer["plan"] if step["operation"] != "updated in place"] == []
    assert answer["applied"] is False
    assert story.seen["untouched"]


def test_a_plan_without_secrets_is_the_same_and_needs_no_passphrase(story: Story) -> None:
    output, errors = story.outputs["plan without secrets"], story.seen["plan without secrets: errors"]
    assert output.code == 0, errors
    assert json.loads(output.text)["plan"] == json.loads(story.outputs["plan"].text)["plan"]
    assert "secure:" in story.settings.read_text(), "the settings had a secret"
    assert SECRET not in output.text + errors
    assert story.outputs["up without secrets"].code == 2, "made-up values are never applied"


def test_who_comes_second_says_who_works_and_ends_with_a_status_of_its_own(story: Story) -> None:
    output = story.outputs["second"]
    assert output.code == pulumi_stack.BUSY
    assert output.text.count("✗") == 1
    assert f"another `amlstack up` works on the stack `dev` (process {os.getpid()}, since" in output.text


def test_the_engines_own_lock_is_said_in_the_same_way(story: Story) -> None:
    output = story.outputs["locked"]
    assert output.code == pulumi_stack.BUSY, output.text
    assert output.text.count("✗") == 1
    assert re.search(
        rf"another `pulumi` command works on the stack `dev` \(ann@\S+ process {os.getpid()}", output.text
    ), output


def test_what_is_protected_is_said_before_anything_is_destroyed(story: Story) -> None:
    output = story.outputs["protected"]
    assert output.code == 1
    for words in ("resources are protected from deletion", "Vault key-vault", "amlstack:protect false --stack dev"):
        assert words in output.text, output.text
    assert "destroying" not in output.text


def test_what_was_tried_goes_without_a_trace(story: Story) -> None:
    output = story.outputs["down of what was tried"]
    assert output.code == 0, output.text
    assert story.seen["left"] == {}
    assert not (story.clone.home / "stacks" / "dev").exists()
