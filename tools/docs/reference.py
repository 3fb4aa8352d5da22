"""Pages of the reference that are data of the code: verbs, findings, resources of the provider."""

from __future__ import annotations

import ast
import inspect
import json
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from operator import itemgetter
from string import Formatter
from typing import Any, Final

from typer.models import ParameterInfo

from amlstack.base.findings import sentence
from amlstack.base.findings import texts as words_of
from amlstack.base.paths import PROJECT
from amlstack.cli.main import VERBS, app_of
from policies.config import ALL

_SHARED: Final = 6
"""An option of so many verbs stands once."""
_CODE: Final = re.compile(r"(…|[a-z]+)(-([a-z0-9]+|…))+")
_MAKERS: Final = {"Finding", "bad", "finding_at", "wrong", "_wrong"}
"""Calls one of whose words is the code of a finding."""
_OF_WORDS: Final = {"stated", "stated_at", "refusal", "refusal_at", "wrong"}
"""Calls one of whose words is a key of `findings.json`."""
_MAKES: Final = re.compile(rf"\b({'|'.join(_MAKERS | _OF_WORDS)})\(")
_MAKING: Final = "amlstack", "infra", "jobs", "policies"


def verbs() -> str:
    """Every verb with its docstring, its arguments and its options; those of several verbs stand once, at the end."""
    every = [one for name, verb in VERBS.items() for one in _commands(f"amlstack {name}", app_of(verb))]
    times = Counter(row for _, rows in every for row in rows)
    shared = [row for row, number in times.items() if number >= _SHARED]
    sections = [
        _with_table(text, [row for row in rows if row not in shared]) + _also(rows, shared) for text, rows in every
    ]
    return "\n\n".join([*sections, _with_table("## Options of several verbs", shared)])


def _also(rows: list[str], shared: list[str]) -> str:
    names = ", ".join(row.split(" | ")[0].lstrip("| ") for row in rows if row in shared)
    return f"\n\nAlso {names}: [options of several verbs](#options-of-several-verbs)." if names else ""


def _commands(name: str, app: Any) -> Iterator[tuple[str, list[str]]]:
    for one in app.registered_commands:
        words = name if len(app.registered_commands) == 1 else f"{name} {one.name or one.callback.__name__}"
        text = inspect.cleandoc(one.callback.__doc__ or "").replace("\b\n", "") + "\n"
        text = re.sub(r"(?m)^Examples?:\n+((?: {4}.*\n*)+)", _fenced, text).strip()
        rows = [_option(*each) for each in inspect.signature(one.callback, eval_str=True).parameters.items()]
        yield f"## {words}\n\n{text}", rows


def _with_table(text: str, rows: list[str]) -> str:
    return "\n".join([text, "", "| option | meaning |", "| --- | --- |", *rows]) if rows else text


def _fenced(found: re.Match[str]) -> str:
    return f"```text\n{inspect.cleandoc('    ' + found[1].strip())}\n```\n\n"


def _option(name: str, parameter: inspect.Parameter) -> str:
    marks = (*getattr(parameter.annotation, "__metadata__", ()), parameter.default)
    info = next(each for each in marks if isinstance(each, ParameterInfo))
    given = [word for word in (info.default, *(info.param_decls or ())) if str(word).startswith("-")]
    words = ", ".join(f"`{word}`" for word in given or [f"--{name.replace('_', '-')}"])
    meaning = " ".join((info.help or "").split()).replace("|", "\\|")
    return f"| {words if type(info).__name__ == 'OptionInfo' else f'`{name.upper()}`'} | {meaning} |"


def findings() -> str:
    """Every code that a finding of this project carries, with its message as far as the source has it in one place."""
    said: dict[str, list[str]] = defaultdict(list)
    for file in sorted(each for folder in _MAKING for each in (PROJECT / folder).rglob("*.py")):
        if not _MAKES.search(text := file.read_text("utf-8")):
            continue
        tree = ast.parse(text)
        constants = {name: value for _, name, value in _named(tree.body)}
        for function in (each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)):
            nodes = [*ast.walk(function)]
            local = sorted(_named(nodes), key=itemgetter(0))
            for call in (each for each in nodes if isinstance(each, ast.Call)):
                names = constants | {name: value for line, name, value in local if line <= call.lineno}
                maker = getattr(call.func, "id", getattr(call.func, "attr", ""))
                if maker in _OF_WORDS and (key := next(filter(None, map(_key, call.args)), "")):
                    given = {f"{{{each.arg}}}": _texts(each.value, names) for each in call.keywords}
                    said[key.partition("/")[0]].append(_stated(key, given))
                    continue
                if maker not in _MAKERS:
                    continue
                words = [*call.args, *(each.value for each in call.keywords)]
                texts = [text for each in words for text in _texts(each, names)]
                for code in filter(_CODE.fullmatch, texts):
                    said[code].append(" ".join(sentence(each) for each in texts if " " in each.strip()))
    for row in tomllib.loads((PROJECT / "jobs/planning/launchers.toml").read_text("utf-8")).values():
        said[row["code"]].append(" ".join(sentence(row[part]) for part in ("seen", "rule", "remedy") if row.get(part)))
    for rule in ALL:
        said[rule.code] = [f"{rule.title} See [the rule](policies.md#{rule.code})."]
    return "\n\n".join(
        "\n\n".join([f"### {code}", *filter(None, dict.fromkeys(said[code]))]).strip() for code in sorted(said)
    )


def _key(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and node.value in words_of() else ""


def _stated(key: str, given: dict[str, list[str]]) -> str:
    """The words of `findings.json` under a key; where a value is a whole part, the texts that it may be."""
    parts = [text for part in words_of()[key] if part for text in (given.get(part) or [_without_values(part)])]
    return " ".join(sentence(part) for part in parts if part not in {"", "…"})


def _without_values(text: str) -> str:
    return "".join(f"{before}{'' if name is None else '…'}" for before, name, _, _ in Formatter().parse(text))


def _named(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str, ast.expr]]:
    """The names that a function, or a module, gives to values, alone or several at once, each with its line."""
    for node in (each for each in nodes if isinstance(each, ast.Assign)):
        target, value = node.targets[0], node.value
        pairs = [(target, value)]
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            pairs = [*zip(target.elts, value.elts, strict=False)]
        for name, each in pairs:
            if isinstance(name, ast.Name):
                yield node.lineno, name.id, each


def _texts(node: ast.expr, names: dict[str, ast.expr]) -> list[str]:
    """The texts that an argument may be; what is known at run time alone is an ellipsis."""
    match node:
        case ast.Name(id=name) if name in names:
            return _texts(names[name], {})
        case ast.Constant(value=str(text)):
            return [text]
        case ast.JoinedStr(values=parts):
            return ["".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in parts)]
        case ast.IfExp(body=first, orelse=second):
            return [*_texts(first, names), *_texts(second, names)]
    return []


def resources() -> str:
    """Every resource of the provider, with its inputs and what it answers."""
    found = json.loads((PROJECT / "amlstack/provider/schema.json").read_text("utf-8"))["resources"]
    return "\n\n".join(_resource(*each) for each in found.items())


def _resource(kind: str, said: dict[str, Any]) -> str:
    rows = []
    for name, each in {**said["properties"], **said["inputProperties"]}.items():
        given = "required" if name in said.get("requiredInputs", ()) else "optional"
        use = given if name in said["inputProperties"] else "output"
        rows.append(f"| `{name}` | {use} | {each.get('description', '')} |")
    return "\n".join([f"## {kind}\n\n{said['description']}\n\n| property | | meaning |\n| --- | --- | --- |", *rows])
