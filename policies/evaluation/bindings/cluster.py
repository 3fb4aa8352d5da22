"""Which facts of a cluster its rules judge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from policies.checks.cluster import (
    idle_time,
    local_auth,
    managed_identity,
    node_ceiling,
    public_ip,
    scale_to_zero,
    ssh,
    subnet_overlap,
    subnet_present,
)
from policies.evaluation.binding import Binding, nodes_of, size_of, where_nodes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from policies.evaluation.binding import Found
    from policies.evaluation.context import Context
    from policies.evaluation.subject import Subject


def _least(subject: Subject, config: Mapping[str, Any], _: Context) -> Found:
    facts = subject.facts
    yield scale_to_zero.check(facts.number("least") or 0, nodes=int(config["nodes"]), where=facts.at("least"))


def _idle(subject: Subject, config: Mapping[str, Any], _: Context) -> Found:
    facts = subject.facts
    yield idle_time.check(facts.text("idle"), minutes=int(config["minutes"]), where=facts.at("idle"))


def _ceiling(subject: Subject, config: Mapping[str, Any], _: Context) -> Found:
    if subject.size is not None:
        yield node_ceiling.check(nodes_of(subject), nodes=int(config["nodes"]), where=where_nodes(subject))


def _public_ip(subject: Subject, _: Mapping[str, Any], __: Context) -> Found:
    yield public_ip.check(subject.facts.boolean("public_ip"), where=subject.facts.at("public_ip"))


def _ssh(subject: Subject, _: Mapping[str, Any], __: Context) -> Found:
    facts = subject.facts
    # The classic provider has a switch, which is off when absent.
    access = ("Enabled" if facts.boolean("ssh") else "Disabled") if facts.classic else facts.text("ssh")
    yield ssh.check(access, where=facts.at("ssh"))


def _local_auth(subject: Subject, _: Mapping[str, Any], __: Context) -> Found:
    facts = subject.facts
    enabled = facts.boolean("local_auth")
    disabled = (None if enabled is None else not enabled) if facts.classic else enabled
    yield local_auth.check(disabled, where=facts.at("local_auth"))


def _identity(subject: Subject, _: Mapping[str, Any], __: Context) -> Found:
    yield managed_identity.check(subject.facts.text("identity"), where=subject.facts.at("identity"))


def _subnet(subject: Subject, _: Mapping[str, Any], __: Context) -> Found:
    yield subnet_present.check(subject.facts.reference("subnet"), where=subject.facts.at("subnet"))


def _overlap(subject: Subject, config: Mapping[str, Any], context: Context) -> Found:
    size = size_of(subject, context)
    if size is None or not size.fabric.rdma:
        return
    name = subject.facts.named("subnet", "virtualNetworks")
    given = {key.lower(): value for key, value in config["networks"].items()}
    outside = tuple(part.strip() for part in given.get(name, "").split(",") if part.strip())
    prefixes = (*context.networks.get(name, ()), *outside)
    yield subnet_overlap.check(size, prefixes=prefixes, where=subject.facts.at("subnet"))


BINDINGS: tuple[Binding, ...] = (
    Binding(scale_to_zero.RULE, frozenset({"cluster"}), _least),
    Binding(idle_time.RULE, frozenset({"cluster"}), _idle),
    Binding(node_ceiling.RULE, frozenset({"cluster", "job"}), _ceiling, ("nodes",)),
    Binding(public_ip.RULE, frozenset({"cluster"}), _public_ip),
    Binding(ssh.RULE, frozenset({"cluster"}), _ssh),
    Binding(local_auth.RULE, frozenset({"cluster"}), _local_auth),
    Binding(managed_identity.RULE, frozenset({"cluster"}), _identity),
    Binding(subnet_present.RULE, frozenset({"cluster"}), _subnet),
    Binding(subnet_overlap.RULE, frozenset({"cluster"}), _overlap),
)
