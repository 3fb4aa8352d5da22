"""docs/networks.md: what the settings make of a workspace's network, with the tables of the code."""

from __future__ import annotations

from typing import Final

from infra.network import links, outbound, security

HEAD: Final = """\
# Networks

`workspace.network` says what nodes reach and from where the workspace is reached ([settings.md](settings.md)). The
tables of this page are made from the code (`make docs`). Sources:
learn.microsoft.com/azure/machine-learning/how-to-managed-network, …/how-to-secure-training-vnet, …/how-to-custom-dns
and learn.microsoft.com/azure/private-link/private-endpoint-dns, read on 2026-11-22.

| you want | settings |
| --- | --- |
| nodes in a network that Azure ML manages, with the internet | nothing: a new workspace on every stack but `sandbox` has it |
| the same, and only what is approved is reached | `isolation: only_approved`, with `rules` and `package_hosts` |
| nodes in the team's network | `vnet: {{compute: …}}`, which means `isolation: off` |
| clients of the team's network reach a closed workspace | `vnet: {{endpoints: …}}`, with any isolation |
| none of it | `isolation: off` |

## A managed network

```yaml
amlstack:workspace:
  name: ml
  network:
    isolation: only_approved
    firewall: basic
    package_hosts: [packages.example.com]
    rules:
      - {{name: data, private_endpoint: /subscriptions/…/storageAccounts/NAME, target: blob}}
      - {{name: factory, service_tag: DataFactory, ports: "443"}}
      - {{name: models, fqdn: models.example.com}}
```

**There is no way back.** Isolation goes from `off` to `allow_internet_outbound` to `only_approved` and never the
other way. The stack asks Azure what the workspace has when the setting changes, and refuses such a step at preview.
Whether `allow_internet_outbound` can become `only_approved` is unknown: one page of the documentation says so,
another denies it; the preview warns, and Azure decides.

**A workspace that exists keeps what it has**, as long as the settings leave `isolation` out. A stack of an earlier
version therefore goes on without a managed network. To turn one on later, Azure wants a workspace without computes:
take the clusters out of the settings, `up`, write `isolation`, put them back, `up`. The preview refuses anything
shorter and names the computes.

**All nodes are in it**: a cluster with a `subnet`, or in another region than the workspace, is refused. Where
`isolation` is absent, a stack with such a cluster makes its new workspace without a managed network.

**Provisioned before the first cluster.** Azure provisions the network when the first compute comes, which then takes
about half an hour or times out (ten minutes more with a firewall). The stack starts provisioning itself and waits,
with the minutes shown beside the resource `network`. Ctrl-C ends the wait and not the work; the next `up` goes on
from what Azure has.

**The rules of the settings are all rules.** One that was added elsewhere goes with the next `up`; the preview shows
it as `rules.NAME`. For that each preview reads the rules of the network. Rules are written one after the other.

**The first refresh** shows the workspace as updated: Azure has added the state of the network and its own rules to it.
Nothing is planned for that.

**What it costs.** The network is free, its private endpoints are billed, and so is the Azure Firewall that Azure ML
makes for the first rule of a host: by the hour, while no cluster runs as well. `check` warns until `firewall: basic`
or `firewall: standard` says that it is meant.

### What is reached under `only_approved`

Azure ML makes these rules itself, and the stack makes none for them: private endpoints to the workspace, its storage
account, vault and registry (also where these are given by `existing`; they must be in the same tenant), and service
tags for what the service itself needs, Microsoft's images (`mcr.microsoft.com`) among them. Under
`allow_internet_outbound` it makes the endpoints of what has no public access. Whether `dfs` is among the endpoints of
the storage account is unknown: write a rule with `target: dfs` for Data Lake Storage.

The stack adds what follows from other settings:

| rule | from | why |
| --- | --- | --- |
| `packages-HOST` | each of `package_hosts` | jobs and image builds install packages from there |
| `images-HOST` | `image` of an environment from a registry on the internet | nodes, or the compute that builds images, pull it |
| `data-ACCOUNT-TARGET` | `datastores` in other accounts than the workspace's | private endpoints by which jobs reach \
their data: `blob`, `file`, and for `adls_gen2` both `dfs` and `blob` |

An image without a registry comes from Docker Hub, which takes {hub}. A registry in Azure other than the workspace's
own needs a rule with `private_endpoint` and `target: registry`; `check` warns where there is none. A rule of a host
cannot lead to a storage account: Azure takes a private endpoint for that.

A private endpoint to the registry needs its premium tier, so the stack's own registry has that tier under
`only_approved` and with a private endpoint of `vnet`.

Of endpoints to accounts of datastores one that `rules` names already is not made twice. Where a data asset or a job has
an address (`https://…`) instead of a datastore, write the rule. Under `allow_internet_outbound` nodes reach accounts by
the internet, and an account without public access by a rule of yours.

A workspace with a user-assigned identity needs the role Azure AI Enterprise Network Connection Approver on what its
endpoints lead to. The stack assigns it on the accounts of datastores ([identities.md](identities.md)), unless
`assign_roles: false`; for `private_endpoint` in `rules` it is yours to assign.

## The team's own network

```yaml
amlstack:workspace:
  name: ml
  public_network: false
  network:
    vnet:
      address_space: [10.20.0.0/16]
      compute: 10.20.0.0/22        # or the ARM id of a subnet that exists
      endpoints: 10.20.4.0/26      # likewise
      nat_gateway: /subscriptions/…/natGateways/NAME
      internet: false
```

A subnet that is a range is made, in a network of the stack's region, with a security group; one that is given by its
id is left as it is. The network of nodes must be in the workspace's subscription. Clusters without a `subnet` join
`compute`; each node takes one address, and Azure keeps five of each subnet. A cluster in another region names a
subnet there.

Nodes without public addresses need a way out: a NAT gateway, a firewall (`route_table`), or Azure's default outbound
access. Whether a network that is made today still has the last one is unknown.

Security rules of the subnet of nodes, in this order; `internet: false` ends them with a rule that denies the rest:

| rule | direction | service tag | protocol, ports | why |
| --- | --- | --- | --- | --- |
{security}

The first one is there as long as some node has a public address (`node_public_ip`, Azure's default). The subnet of
private endpoints has a security group without rules, as landing zones refuse subnets that have none.

### Private endpoints and their names

With `endpoints` the stack makes a private endpoint for each of `private_endpoints`, one after the other, before the
first cluster. Without public access nothing outside of the network reaches the workspace then, the deployment's own
data plane included: run `up` from a machine in the network, or one that is peered with it.

| endpoint | sub-resource | zones (public cloud) | why |
| --- | --- | --- | --- |
{links}

`dns: create` makes these zones in the stack's resource group and links them with the network; those in `zones` exist,
and are used as they are. `dns: platform` makes none: an Azure Policy of the landing zone registers the names. The
zones of `azure-native:environment` `usgovernment` and `china` are those of these clouds.
"""  # noqa: E501 - rows of tables


def page() -> str:
    """The whole page."""
    hub = ", ".join(f"`{host}`" for host in outbound.DOCKER_HUB)
    return HEAD.format(hub=hub, security=_security(), links=_links())


def _security() -> str:
    rules = (security.NODE_MANAGEMENT, *security.OUTBOUND, security.NO_INTERNET)
    return "\n".join(
        f"| {rule.name} | {'in' if rule.inbound else 'out'} | `{rule.peer}` | "
        f"{'any' if rule.protocol == security.ANY else rule.protocol.upper()} "
        f"{', '.join(rule.ports).replace('*', 'any')} | {rule.why} |"
        for rule in rules
    )


def _links() -> str:
    zones = links.ZONES["public"]
    return "\n".join(
        f"| `{name}` | `{link.group}` | {', '.join(f'`{zone}`' for zone in zones[name])} | {link.why} |"
        for name, link in links.LINKS.items()
    )
