"""The pack on Pulumi's analyzer protocol: every resource is read once, judged by all rules, answered rule by rule.

The SDK's own server reads a resource anew for every policy, which makes each further rule as dear as the first; and a
policy there has one level, while a rule here may also note that it has to wait. Hence a server of our own. Rules that
have one safe answer write it into the resource.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Mapping
from concurrent import futures
from typing import TYPE_CHECKING, Any

import grpc
from google.protobuf import empty_pb2
from google.protobuf.struct_pb2 import Struct
from pulumi.runtime.proto import analyzer_pb2 as proto
from pulumi.runtime.proto import analyzer_pb2_grpc, plugin_pb2

from amlstack import __version__
from amlstack.base import text
from amlstack.base.pulumi_wire import SIGNATURE, decode, opened_but_known
from amlstack.catalog import overlay
from amlstack.catalog.clock import today
from policies import config
from policies.checks import OWN_WRONG, Rule
from policies.checks.governance import written_tags
from policies.evaluation.bindings import BINDINGS, size_of
from policies.evaluation.facts import Undecided
from policies.evaluation.requests import canonical, judged
from policies.evaluation.resource_subjects import subjects
from policies.evaluation.subjects import Context, Subject
from policies.evaluation.verdicts import Weight, judge_all, judge_early, judge_resource, weigh

if TYPE_CHECKING:
    from datetime import date

    from amlstack.base.findings import Finding
    from policies.config import Config


Written = tuple[tuple[tuple[str, ...], Any], ...]


def _idle(subject: Subject, config: Mapping[str, Any], _: Context) -> Written:
    return ((subject.facts.path("idle"), f"PT{int(config['minutes'])}M"),)


def _tags(subject: Subject, config: Mapping[str, Any], _: Context) -> Written:
    tags, values = subject.facts.mapping("tags"), config["values"] or {}
    there = written_tags(tags)
    path = subject.facts.path("tags")
    return tuple(
        ((*path, name), values[name]) for name in config["required"] if name.lower() not in there and name in values
    )


def _shm(subject: Subject, _: Mapping[str, Any], context: Context) -> Written:
    size = size_of(subject, context)
    value = size.shm_size() if size else None
    return ((subject.facts.path("shm"), value),) if value else ()


REMEDIES: Mapping[str, Callable[[Subject, Mapping[str, Any], Context], Written]] = {
    "idle-time": _idle,
    "tags-required": _tags,
    "shared-memory": _shm,
}
"""The rules that have one safe answer."""

_JUDGES = {binding.rule.code: binding for binding in BINDINGS}


def apply_remedy(code: str, resource_type: str, properties: Struct, config: Config, context: Context) -> bool:
    """Put right what one rule finds, in place.

    Args:
        code: The rule.
        resource_type: Pulumi's type token.
        properties: The resource's properties, off the wire.
        config: The pack's configuration.
        context: What is known of the stack.

    Returns:
        Whether anything was written. What is not known yet is left alone, and so is what is inside a list.
    """
    binding, changed = _JUDGES[code], False
    given = decode(properties)
    read, _ = canonical(given)
    # In another spelling of its names nothing is written: it would stand beside what is there.
    for subject in subjects(resource_type, read) if read == given else ():
        if subject.kind not in binding.rule.kinds or not subject.facts.known:
            continue
        settings = config.settings(code)
        try:
            if not any(binding.judge(subject, settings, context)):
                continue
            for path, value in REMEDIES[code](subject, settings, context):
                if not any(part.isdigit() for part in path):
                    put(properties, path, value)
                    changed = True
        except Undecided:
            continue
    return changed


def put(struct: Struct, path: tuple[str, ...], value: Any) -> None:
    """Write one value into properties, in place; everything beside it stays as it is, secrets included.

    Args:
        struct: The properties.
        path: Property names, outermost first; maps on the way are made where they are missing.
        value: Text, a number, or a map of texts.
    """
    at = struct
    for name in path[:-1]:
        inner = at.fields[name]
        at = inner.struct_value
        if SIGNATURE in at.fields:  # a secret map: its content is one level further down
            at = at.fields["value"].struct_value
    if isinstance(value, dict):
        put_all = at.fields[path[-1]].struct_value
        put_all.Clear()
        put_all.update(value)
    else:
        at.update({path[-1]: value})


# ruff: noqa: N802, ARG002  the engine names the methods


_LEVELS = {
    "advisory": proto.ADVISORY,
    "mandatory": proto.MANDATORY,
    "disabled": proto.DISABLED,
    "remediate": proto.REMEDIATE,
}
_NAMES = {number: name for name, number in _LEVELS.items()}
_BY_CODE = {rule.code: rule for rule in config.ALL}
_OF_STACKS = {"stack-budget", "exception-expired", "catalogue-old"}
_BIG = [("grpc.max_receive_message_length", 400 * 1024 * 1024)]
PAGE = "docs/reference/policies.md"


class Pack(analyzer_pb2_grpc.AnalyzerServicer):
    """The analyzer that the engine talks to."""

    def __init__(self, name: str, version: str, on: date, given: Mapping[str, Any] | None = None) -> None:
        """Make a pack that judges as of a day.

        Args:
            name: The pack's name.
            version: Its version, which every verdict names.
            on: The day of the judgement.
            given: The configuration built into the pack; what the engine is given goes on top of it.

        Raises:
            ValueError: The configuration is wrong.
        """
        self.name, self.version = name, version
        self._built_in = dict(given or {})
        self._config = config.read(self._built_in)
        self._context = Context(on)

    def GetAnalyzerInfo(self, request: Any, context: Any) -> Any:
        """The rules, each a policy of its own with its level and settings."""
        policies = [self._info(rule) for rule in config.ALL]
        return proto.AnalyzerInfo(name=self.name, version=self.version, supportsConfig=True, policies=policies)

    def _info(self, rule: Rule) -> Any:
        properties = config.schema(rule)
        built_in = self._built_in.get(rule.code)
        values = built_in if isinstance(built_in, dict) else {}
        info = proto.PolicyInfo(
            name=rule.code,
            description=rule.title,
            enforcementLevel=_LEVELS[self._config.level(rule.code)],
            policy_type=proto.POLICY_TYPE_STACK if rule.code in _OF_STACKS else proto.POLICY_TYPE_RESOURCE,
            url=f"{PAGE}#{rule.code}",
            remediation_steps=rule.words.fix,
        )
        for name, schema in properties.items():
            known = {**schema, "default": values[name]} if name in values else schema
            info.configSchema.properties.update({name: known})
        return info

    def GetPluginInfo(self, request: Any, context: Any) -> Any:
        """The version."""
        return plugin_pb2.PluginInfo(version=self.version)

    def Configure(self, request: Any, context: Any) -> Any:
        """Take the levels and values that the engine was given, defaults filled in by it."""
        given = {
            code: {"enforcementLevel": _NAMES[one.enforcementLevel], **decode(one.properties)}
            for code, one in request.policyConfig.items()
        }
        try:
            self._config = config.read(given)
        except ValueError as error:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"policy pack {self.name}: {error}")
        return empty_pb2.Empty()

    def ConfigureStack(self, request: Any, context: Any) -> Any:
        """Nothing here depends on the stack."""
        return proto.AnalyzerStackConfigureResponse()

    def Analyze(self, request: Any, context: Any) -> Any:
        """Judge one resource."""
        response = proto.AnalyzeResponse()
        if not judged(request.type, everything=self._config.everything):
            return response
        props = decode(request.properties, opened_but_known)
        verdict = judge_resource(request.type, props, self._config, self._context, name=request.name, urn=request.urn)
        for finding in (*verdict.findings, *verdict.notes):
            weight = weigh(finding, self._config, self._context.on, name=request.name, urn=request.urn)
            response.diagnostics.append(self._diagnostic(finding, weight))
        return response

    def Remediate(self, request: Any, context: Any) -> Any:
        """Put right what has one safe answer, where a rule's level is ``remediate``."""
        response = proto.RemediateResponse()
        active = [code for code in REMEDIES if self._config.level(code) == "remediate"]
        if not active or not judged(request.type, everything=self._config.everything):
            return response
        properties = Struct()
        properties.CopyFrom(request.properties)
        for code in active:
            if apply_remedy(code, request.type, properties, self._config, self._context):
                response.remediations.append(
                    proto.Remediation(
                        policyName=code,
                        policyPackName=self.name,
                        policyPackVersion=self.version,
                        description=_BY_CODE[code].title,
                        properties=properties,
                    )
                )
        return response

    def AnalyzeStack(self, request: Any, context: Any) -> Any:
        """Judge the stack as a whole, jobs shown before their clusters, the exceptions and the catalogue."""
        response = proto.AnalyzeResponse()
        for finding, early in judge_early(self._config, self._context):
            weight = weigh(finding, self._config, self._context.on, name=early.name, urn=early.urn)
            response.diagnostics.append(self._diagnostic(finding, weight, urn=early.urn))
        # Read one by one, and only when a rule asks: most stacks have no budget.
        resources = (
            (one.type, decode(one.properties, opened_but_known) if judged(one.type) else None)
            for one in request.resources
        )
        for finding in judge_all(resources, self._config, self._context.on, version=self.version):
            weight = weigh(finding, self._config, self._context.on, name="")
            response.diagnostics.append(self._diagnostic(finding, weight))
        return response

    def _diagnostic(self, finding: Finding, weight: Weight, urn: str = "") -> Any:
        rule = _BY_CODE[finding.code]
        return proto.AnalyzeDiagnostic(
            policyName=rule.code,
            policyPackName=self.name,
            policyPackVersion=self.version,
            description=rule.title,
            message=text.output(f"{rule.title}\n{finding}{weight.exception}"),
            enforcementLevel=_LEVELS[weight.level],
            urn=urn,
        )


def serve(pack: Pack) -> None:
    """Serve the pack on loopback, tell the engine the port, stay until it ends this process."""
    # One thread: what is remembered of a stack is not for two at a time, and the engine asks one thing after the other.
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=1), options=_BIG)
    analyzer_pb2_grpc.add_AnalyzerServicer_to_server(pack, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    gc.freeze()  # rules and catalogue stay for good: no collection between two resources looks at them again
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    try:
        server.wait_for_termination()
    except KeyboardInterrupt:  # how the engine says that it is done
        server.stop(grace=None)
        os._exit(0)  # it waits for this process to end, and there is nothing to tidy up


NAME = "amlstack"


def pack(on: date | None = None) -> Pack:
    """The pack.

    Args:
        on: The day of the judgement; today, or the day in ``AMLSTACK_TODAY``, when None.

    Raises:
        ValueError: That day is none, or the built-in configuration, the team's catalogue or rules are wrong.
    """
    overlay.current()
    if OWN_WRONG:
        raise ValueError(OWN_WRONG)
    return Pack(NAME, __version__, on or today(), config.load(config.BUILT_IN))
