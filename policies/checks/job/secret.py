"""No credential in the text of a job, which everybody who sees the job can read."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from amlstack.base import credential_patterns
from amlstack.base.findings import Finding
from amlstack.base.pulumi_wire import SecretText
from policies.checks.examples import job
from policies.checks.rule import NO_JOB, Rule

RULE = Rule(
    code="secret-in-job",
    title="A job's text holds no secret.",
    what=(
        "Looks through everything that a job says, its steps and trials included: variables, command, inputs, tags. A "
        "secret is what has the form of one (a storage key, a SAS, a private key, a token of GitHub, Hugging Face, "
        "Slack or AWS, a JSON web token, a password in a URL), and what is named like one (`…_API_KEY`, `…_TOKEN`, "
        "`…PASSWORD`, `…SECRET`, `--api-key VALUE`) and has a value that can be one. Placeholders, expressions "
        "(`${{inputs.key}}`, `$HF_TOKEN`), paths and short words (`EOS_TOKEN`) are none, nor is a secret of the stack "
        "(`{secret: NAME}`, and whatever a program marks as secret). The value is never shown."
    ),
    why=(
        "Everybody who can read the workspace reads the job's record, for as long as it is kept. Here it lies in the "
        "stack's state as well, in previews, and in the logs of a pipeline that shows them."
    ),
    example=job(environmentVariables="{WANDB_API_KEY: 0a1b2c3d4e5f60718293}"),
    instead=job(environmentVariables="{KEY_VAULT: https://kv-team.vault.azure.net, WANDB_SECRET_NAME: wandb}"),
    options=(
        "It is advice until a team makes it `mandatory`. A false alarm of one job is an exception; rename what is no "
        "secret where you can."
    ),
    level="advisory",
    not_exported=NO_JOB,
)

_VALUES = frozenset({"value", "uri", "path", "default"})
"""Keys under which the wire keeps what an input is: the input's own name is one level up."""

_HOLDERS = frozenset({"environmentVariables", "environment_variables"})


def check(job: Any, *, where: str) -> tuple[Finding, ...]:
    """Judge all texts in a job.

    Args:
        job: Its properties, any JSON; other values in it than JSON's are not looked at.
        where: Their path in the declaration.
    """
    found: list[tuple[tuple[str, ...], str]] = []
    _look(job, (where,), "", found)
    return tuple(
        Finding(
            RULE.code,
            ".".join(path),
            seen=seen,
            rule="Everybody who can read the workspace reads a job's text, and its record is kept",
            remedy="Put it into a key vault, and read it in the job with the job's identity; or name a secret of the "
            "stack, {secret: NAME}, which keeps it out of files, state and previews, but not out of the record",
        )
        for path, seen in found
    )


def _look(value: Any, path: tuple[str, ...], name: str, found: list[tuple[tuple[str, ...], str]]) -> None:
    """Add place and reason of each text that looks like a secret; ``name`` is what people call the value.

    A list is filled, and nothing yielded through the levels: this goes through every value of every job.
    """
    if isinstance(value, str):
        if not isinstance(value, SecretText):  # encrypted wherever this project keeps it; docs/secrets.md
            found += [(path, seen) for seen in _seen(name, value)]
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key in _VALUES:
                _look(inner, path, name, found)
            elif key in _HOLDERS and isinstance(inner, dict):
                named = {one: each for one, each in inner.items() if not _names_a_secret(each)}
                _look(named, (*path, str(key)), str(key), found)
            else:
                _look(inner, (*path, str(key)), str(key), found)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            _look(inner, (*path, str(number)), name, found)


def _names_a_secret(value: Any) -> bool:
    """Whether a variable names a secret of the stack, `{secret: NAME}`, instead of having a value."""
    return isinstance(value, dict) and value.keys() == {"secret"}


@lru_cache(maxsize=1024)  # jobs have the same few texts under the same few names
def _seen(name: str, text: str) -> tuple[str, ...]:
    if what := credential_patterns.form(text):
        return (f"`{name}` holds what looks like {what}",)
    if credential_patterns.named(name, text):
        return (f"`{name}` is named like a secret, and has a value",)
    return tuple(f"`{each}` is named like a secret, and is set here" for each in credential_patterns.assigned(text))


def may_be(name: str) -> bool:
    """Whether a value of that name that is not known yet may be a secret."""
    return credential_patterns.named(name, "0123456789abcdefghij")
