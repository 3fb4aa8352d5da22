"""What the patterns of settings mean, in words, by the last key that each stands on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infra.settings.stackfile import Loc

_PATTERNS = {
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
    ("resource_group", "existing"): "A resource group's name has 1 to 90 letters, digits, '_', '-', '.', '(' and ')', "
    "no '.' at the end",
    ("resource_group", "name"): "A resource group's name has 1 to 90 letters, digits, '_', '-', '.', '(' and ')', "
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


def meaning(loc: Loc) -> str:
    """What the pattern means that the value at a path has to match."""
    words = tuple(part for part in loc if isinstance(part, str))
    if words[-2:-1] == ("environment_variables",):
        return "A variable's name has letters, digits and '_', no digit first"
    ends = (words[-2:], (words[0], words[-1]), words[-1:], words[:1], ("tags",))
    return next(_PATTERNS[end] for end in ends if end in _PATTERNS)
