"""A repository's own rules: functions in `rules/*.py` of the project, at every gate beside those of this package."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from amlstack.base.findings import Finding
from amlstack.base.paths import PROJECT
from policies.checks.rule import Enforcement, Rule, Setting

Found = str | tuple[str, ...] | None
Judge = Callable[[Any, Mapping[str, Any], Any], Found]

KINDS = frozenset({"cluster", "job", "environment", "resource", "network", "group", "machine"})


class Binding(NamedTuple):
    """A rule bound to what it judges.

    Attributes:
        rule: The rule.
        judge: How: from a subject, the rule's settings and what is known of the stack to findings; raises `Undecided`
            where a value is missing.
    """

    rule: Rule
    judge: Callable[[Any, Mapping[str, Any], Any], Iterable[Finding | None]]


_DECLARED: list[Binding] = []


def rule(
    code: str, title: str, *kinds: str, level: Enforcement = "mandatory", settings: tuple[Setting, ...] = ()
) -> Callable[[Judge], Judge]:
    """Declares the function below as a rule of this repository.

    The function gets a subject (`policies.evaluation.subjects.Subject`: `size`, `nodes`, `facts`), the rule's settings,
    and what is known of the stack. It returns None, or what it saw and how to put it right; a third text names the fact
    that the finding is about. A fact that is not known yet ends it, and it is asked again at `up`.

    Args:
        code: Name with small letters and hyphens, for configuration and exceptions.
        title: What must hold, as one sentence.
        kinds: Of subjects: cluster, job, environment, resource, network, group or machine.
        level: How it is enforced unless it is configured otherwise.
        settings: Values that the configuration may set.
    """
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)+", code):
        raise ValueError(f"a code has words of small letters with hyphens between, got `{code}`")
    if not kinds or set(kinds) - KINDS:
        raise ValueError(f"`{code}` judges one or more of {', '.join(sorted(KINDS))}, got `{', '.join(kinds)}`")

    def declared(judge: Judge) -> Judge:
        def found(subject: Any, given: Mapping[str, Any], known: Any) -> Iterator[Finding]:
            answer = judge(subject, given, known)
            seen, remedy, fact = (*((answer,) if isinstance(answer, str) else answer or ()), "", "", "")[:3]
            if seen:
                yield Finding(code, subject.facts.at(fact) if fact else subject.where, seen, title, remedy)

        _DECLARED.append(Binding(Rule(code, title, level, settings, frozenset(kinds)), found))
        return judge

    return declared


def load(folder: Path, taken: Collection[str]) -> tuple[tuple[Binding, ...], str]:
    """The rules of a folder's files, and what is wrong with them: then none of them counts, and the gates refuse.

    Args:
        folder: The folder.
        taken: Codes that there are.
    """
    _DECLARED.clear()
    for file in sorted(folder.glob("*.py")):
        spec = importlib.util.spec_from_file_location(f"own_rules_{file.stem}", file)
        try:
            assert spec is not None and spec.loader is not None  # noqa: S101, PT018 - as for any Python file
            spec.loader.exec_module(importlib.util.module_from_spec(spec))
            codes = [one.rule.code for one in _DECLARED]
            if twice := [code for at, code in enumerate(codes) if code in taken or code in codes[:at]]:
                raise ValueError(f"there is a rule `{twice[0]}` already")  # noqa: TRY301 - told like all else
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a file of the repository does
            return (), f"{folder.name}/{file.name}: {type(error).__name__}: {error}"
    return tuple(_DECLARED), ""


FOLDER = PROJECT / "rules"
