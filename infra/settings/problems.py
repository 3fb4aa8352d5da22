"""pydantic's errors in settings as findings: what was seen, the rule, the remedy, near misses by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amlstack.base.findings import Finding
from amlstack.base.models import errors as model_errors
from amlstack.base.models import models_in
from amlstack.base.models.errors import listed
from amlstack.base.near_misses import did_you_mean, near
from infra.settings.model import CURATED_TAG, CUSTOM_TAG, CuratedEnvironment, CustomEnvironment, Settings
from infra.settings.model.base import SettingsModel
from infra.settings.stackfile import NAMESPACE, Loc

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic import BaseModel
    from pydantic_core import ErrorDetails

# What a pattern means, in words, by the last key that it stands on.
PATTERNS = {
    ("clusters", "name"): "A cluster's name has 3 to 24 characters: a letter first, then letters, digits and '-', "
    "no '-' at the end",
    ("workspace", "name"): "A workspace's name has 3 to 33 characters: letters, digits, '-' and '_', "
    "a letter or digit first",
    ("workspace", "existing"): "A workspace that exists is given by its name in `resource_group`, or by its ARM id, "
    "/subscriptions/…/resourceGroups/…/providers/Microsoft.MachineLearningServices/workspaces/<name>",
    ("storage", "existing"): "A storage account is given by its ARM id, "
    "/subscriptions/…/resourceGroups/…/providers/Microsoft.Storage/storageAccounts/<name>",
    ("key_vault", "existing"): "A key vault is given by its ARM id, "
    "/subscriptions/…/resourceGroups/…/providers/Microsoft.KeyVault/vaults/<name>",
    ("registry", "existing"): "A container registry is given by its ARM id, "
    "/subscriptions/…/resourceGroups/…/providers/Microsoft.ContainerRegistry/registries/<name>",
    ("insights", "existing"): "Application insights are given by their ARM id, "
    "/subscriptions/…/resourceGroups/…/providers/Microsoft.Insights/components/<name>",
    ("logs", "existing"): "Log analytics are given by their ARM id, "
    "/subscriptions/…/resourceGroups/…/providers/Microsoft.OperationalInsights/workspaces/<name>",
    ("storage", "name"): "A storage account's name has 3 to 24 lower-case letters and digits",
    ("key_vault", "name"): "A key vault's name has 3 to 24 letters, digits and '-', a letter first",
    ("registry", "name"): "A container registry's name has 5 to 50 letters and digits",
    ("insights", "name"): "The name of application insights has 1 to 255 characters, no '/'",
    ("logs", "name"): "The name of log analytics has 4 to 63 letters, digits and '-', no '-' at either end",
    ("environments", "name"): "An environment's name has letters, digits, '.', '-' and '_', a letter or digit first",
    ("environments", "curated"): "A curated environment is named as in the registry, e.g. acpt-pytorch-2.8-cuda12.6",
    ("environments", "version"): 'A version is a number in quotes, e.g. "12"',
    ("datastores", "name"): "A datastore's name has lower-case letters, digits and '_'",
    ("datastores", "account"): "An account is a name of 3 to 24 lower-case letters and digits, or an ARM id, "
    "/subscriptions/…/providers/Microsoft.Storage/storageAccounts/<name>",
    ("data", "name"): "A data asset's name has letters, digits, '.', '-' and '_', a letter or digit first",
    ("data", "version"): "A version has letters, digits, '.', '-' and '_', a letter or digit first",
    ("data", "datastore"): "A datastore's name has lower-case letters, digits and '_'",
    ("principals", "id"): "A principal is given by its object id, as `az ad user show --id NAME --query id` prints it",
    ("resource_group",): "A resource group's name has 1 to 90 letters, digits, '_', '-', '.', '(' and ')', "
    "no '.' at the end",
    ("stack_id",): "A stack's id has 8 to 64 letters, digits and '-'",
    ("location",): "A region is written as Azure names it, e.g. westeurope",
    ("nodes", "idle"): "The idle time is an ISO 8601 duration: PT10M is ten minutes, PT2H two hours",
    ("subnet",): "A subnet is given by its ARM id, /subscriptions/…/virtualNetworks/<name>/subnets/<name>",
    ("identity", "user_assigned"): "An identity is given by its ARM id, "
    "/subscriptions/…/providers/Microsoft.ManagedIdentity/userAssignedIdentities/<name>",
    ("secrets",): "A secret's name has letters, digits, '-' and '_', a letter first",
    ("jobs", "secret"): "A secret's name has letters, digits, '-' and '_', a letter first",
    ("ssh", "user"): "An administrator's name has 1 to 32 lower-case letters, digits, '-' and '_', no digit first",
    ("ssh", "public_key"): "A public key is one line, `ssh-rsa …` or `ssh-ed25519 …`, as `ssh-keygen -y` prints it",
    ("rules", "name"): "An outbound rule's name has up to 80 letters, digits, '-' and '_', a letter or digit first",
    ("rules", "fqdn"): "A host is written by its full name, e.g. files.example.com or *.example.com",
    ("network", "package_hosts"): "A host is written by its full name, e.g. files.example.com or *.example.com",
    ("rules", "service_tag"): "A service tag is written as Azure names it, e.g. DataFactory or Storage.westeurope",
    ("rules", "ports"): 'Ports are numbers and ranges, e.g. "443" or "80, 8080-8089", or "*"',
    ("rules", "private_endpoint"): "A resource is given by its ARM id, /subscriptions/…/providers/<type>/<name>",
    ("rules", "target"): "A private endpoint's target is a word, e.g. blob, vault or sqlServer",
    ("vnet", "address_space"): "A range is written in CIDR notation, e.g. 10.20.0.0/16",
    ("vnet", "compute"): "A subnet is a range, e.g. 10.20.0.0/22, or its ARM id, "
    "/subscriptions/…/virtualNetworks/<name>/subnets/<name>",
    ("vnet", "endpoints"): "A subnet is a range, e.g. 10.20.4.0/26, or its ARM id, "
    "/subscriptions/…/virtualNetworks/<name>/subnets/<name>",
    ("vnet", "zones"): "A private DNS zone is given by its ARM id, "
    "/subscriptions/…/providers/Microsoft.Network/privateDnsZones/<name>",
    ("vnet", "nat_gateway"): "A NAT gateway is given by its ARM id, "
    "/subscriptions/…/providers/Microsoft.Network/natGateways/<name>",
    ("vnet", "route_table"): "A route table is given by its ARM id, "
    "/subscriptions/…/providers/Microsoft.Network/routeTables/<name>",
    ("identity", "primary"): "An identity is given by its ARM id, "
    "/subscriptions/…/providers/Microsoft.ManagedIdentity/userAssignedIdentities/<name>",
    ("identity", "principal_id"): "An object id is a UUID; `az identity show --query principalId` prints it",
    ("encryption", "key"): "A key is a name (letters, digits, '-'), which the stack makes, or the address of one that "
    "exists, https://VAULT.vault.azure.net/keys/NAME/VERSION",
    ("encryption", "key_vault"): "A key vault is given by its ARM id, "
    "/subscriptions/…/providers/Microsoft.KeyVault/vaults/<name>",
    ("image_build_compute",): "It is the name of a cluster: 3 to 24 letters, digits and '-', a letter first",
    ("tags",): "A tag's name has up to 512 characters, none of <>%&\\?/, its value up to 256",
}


_NAMES = ("tags", "secrets", "environment_variables")
"""Keys of mappings whose own keys are names that a person chooses."""


def dotted(loc: Loc) -> str:
    """``amlstack:clusters[0].nodes.max`` of ``("clusters", 0, "nodes", "max")``."""
    text = ""
    for part in loc:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return f"{NAMESPACE}:{text}"


def describe(error: ErrorDetails) -> Finding:
    """One of pydantic's errors as a finding, its place not yet in a file."""
    loc = plain(error["loc"])
    kind, seen = error["type"], error.get("input")
    where = dotted(loc)
    if kind == "extra_forbidden":
        if why := _refused(error["loc"]):
            return _refused_key(loc, why)
        return _unknown_key(loc, _keys_beside(error["loc"]))
    if kind == "missing":
        return Finding("setting-missing", where, f"`{loc[-1]}` is missing", _meaning(error["loc"]))
    if kind == "value_error":
        what, _, rule = str((error.get("ctx") or {}).get("error", "")).partition("|")
        return Finding("setting-value", where, what, rule)
    if kind == "string_pattern_mismatch":
        # What was meant as a public key may be the private one.
        shown = f"{str(seen)[:11]}…" if loc[-1] == "public_key" else seen
        return Finding(
            "setting-value", where, f"{_key(loc)} cannot be `{shown}`", _pattern(loc), _idle_remedy(loc, seen)
        )
    rule = model_errors.must(error)
    if not rule:
        return Finding("setting-value", where, f"{_key(loc)} cannot be `{_shown(seen)}`", error["msg"])
    what = f"{_key(loc)} must {rule}, got `{_shown(seen)}`"
    if kind == "literal_error":
        return Finding("setting-value", where, what, "", _meant(_shown(seen), model_errors.allowed(error)))
    why = "Quote it if YAML reads it as something else" if kind == "string_type" else ""
    return Finding("setting-value", where, what, why, _idle_remedy(loc, seen))


def _key(loc: Loc) -> str:
    """The key that a value belongs to, as a message names it: an entry of a list with the list's key."""
    return f"`{loc[-2]}[{loc[-1]}]`" if len(loc) > 1 and isinstance(loc[-1], int) else f"`{loc[-1]}`"


def meant(loc: Loc) -> str | None:
    """The key that an unknown key was probably meant to be; ``loc`` is pydantic's own path."""
    if _refused(loc):
        return None
    return next(iter(near(str(loc[-1]), _keys_beside(loc))), None)


def _unknown_key(loc: Loc, names: tuple[str, ...]) -> Finding:
    return Finding(
        "setting-unknown", dotted(loc), f"Unknown key `{loc[-1]}`", f"The keys here are {listed(names)}",
        _meant(str(loc[-1]), names),
    )  # fmt: skip


def _refused_key(loc: Loc, why: str) -> Finding:
    """What other tools have here and these settings have not; a reason that says what to write is the remedy."""
    what = f"`{loc[-1]}` is no key here"
    if why.startswith("Write "):
        return Finding("setting-unknown", dotted(loc), what, "", why)
    return Finding("setting-refused", dotted(loc), f"`{loc[-1]}` cannot be declared", why)


def plain(loc: Loc) -> Loc:
    """A path without what pydantic adds to it: tags of unions, ``[key]``."""
    if len(loc) > 2 and loc[-1] == "[key]" and loc[-3] in _NAMES:
        loc = loc[:-1]
    return tuple(part for part in loc if part not in _TAGGED)


def _shown(value: Any) -> str:
    if isinstance(value, dict | list | tuple):  # of any size, and perhaps holding itself
        return "{…}" if isinstance(value, dict) else "[…]"
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _meant(word: str, known: Iterable[str]) -> str:
    """Near misses only: the rule lists all that is known already."""
    close = near(word, known)
    return did_you_mean(word, close) if close else ""


def _idle_remedy(loc: Loc, seen: Any) -> str:
    """Seconds and shorthands are what people write for a duration: the same as ISO 8601."""
    if loc[-2:] != ("nodes", "idle") or not isinstance(seen, str | int):
        return ""
    text = str(seen).strip().lower()
    if text.isdigit():
        return f"For {text} seconds write PT{text}S"
    number, unit = text[:-1], text[-1:]
    return f"Write PT{number}{unit.upper()}" if number.isdigit() and unit in "hms" else ""


def _pattern(loc: Loc) -> str:
    words = tuple(part for part in loc if isinstance(part, str))
    if words[-2:-1] == ("environment_variables",):
        return "A variable's name has letters, digits and '_', no digit first"
    ends = (words[-2:], (words[0], words[-1]), words[-1:], words[:1], ("tags",))
    return next(PATTERNS[end] for end in ends if end in PATTERNS)


def _keys_beside(loc: Loc) -> tuple[str, ...]:
    return tuple(field.alias or name for name, field in _model_at(loc).model_fields.items())


def _meaning(loc: Loc) -> str:
    field = _model_at(loc).model_fields.get(str(loc[-1]))
    return (field and field.description) or "it has no default"


def _refused(loc: Loc) -> str:
    """Why a key of pydantic's own path is refused, where that has a reason of its own."""
    model = _model_at(loc)
    return model.refused.get(str(loc[-1]), "") if issubclass(model, SettingsModel) else ""


def _model_at(loc: Loc) -> type[BaseModel]:
    """The model that holds the last key of pydantic's own path, tags of unions included."""
    model: type[BaseModel] = Settings
    for part in loc[:-1]:
        if part in _TAGGED:
            model = _TAGGED[part]
        elif isinstance(part, str):
            known = {field.alias or name: field for name, field in model.model_fields.items()}
            model = next(iter(models_in(known[part].annotation)), model) if part in known else model
    return model


_TAGGED: dict[str | int, type[BaseModel]] = {CURATED_TAG: CuratedEnvironment, CUSTOM_TAG: CustomEnvironment}
