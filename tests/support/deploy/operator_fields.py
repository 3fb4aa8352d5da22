"""Fields of the operator's and Argo CD's objects in the manifests, as JSON Schema: every field and its type.

Sources, read 2026-11-22: pulumi/pulumi-kubernetes-operator v2.9.0 (2026-07-29), deploy/crds/pulumi.com_stacks.yaml;
argo-cd.readthedocs.io/en/stable, "Declarative Setup" and "Sync Options". With the folder of the operator's own CRDs in
``AMLSTACK_OPERATOR_CRDS`` a test holds the first against them, and the manifest too.
"""

from __future__ import annotations

from typing import Any

TEXT, NUMBER, FLAG = {"type": "string", "minLength": 1}, {"type": "integer"}, {"type": "boolean"}
ANY: dict[str, Any] = {"type": "object"}


def fields(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    """An object of these fields and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def each(item: dict[str, Any]) -> dict[str, Any]:
    """A list with something in it."""
    return {"type": "array", "items": item, "minItems": 1}


_INIT = fields(
    ("name", "image", "command", "securityContext"),
    name=TEXT,
    image=TEXT,
    command=each(TEXT),
    securityContext=fields(
        ("allowPrivilegeEscalation", "capabilities"),
        allowPrivilegeEscalation={"const": False},
        capabilities=fields(("drop",), drop={"const": ["ALL"]}),
    ),
    volumeMounts=each(fields(("name", "mountPath"), name=TEXT, mountPath=TEXT)),
)
_POD = fields(
    ("spec",),
    metadata=fields(labels={"type": "object", "additionalProperties": TEXT}),
    spec=fields(("containers",), containers=each(fields(("name",), name=TEXT)), initContainers=each(_INIT)),
)
_WORKSPACE = fields(
    image=TEXT,
    securityProfile={"enum": ["restricted", "baseline"]},
    resources=fields(requests=ANY, limits=ANY),
    env=each(fields(("name", "value"), name=TEXT, value=TEXT)),
    podTemplate=_POD,
)
STACK_SPEC = fields(
    ("stack",),
    serviceAccountName=TEXT,
    projectRepo=TEXT,
    branch=TEXT,
    shallow=FLAG,
    stack=TEXT,
    backend=TEXT,
    secretsProvider=TEXT,
    refresh=FLAG,
    continueResyncOnCommitMatch=FLAG,
    resyncFrequencySeconds={**NUMBER, "minimum": 60},
    retryMaxBackoffDurationSeconds=NUMBER,
    destroyOnFinalize=FLAG,
    workspaceReclaimPolicy={"enum": ["Retain", "Delete"]},
    workspaceTemplate=fields(spec=_WORKSPACE),
)
METADATA = fields(("name",), name=TEXT, namespace=TEXT, annotations=ANY)
STACK_METADATA = fields(("name",), name={"type": "string", "maxLength": 42}, namespace=TEXT, annotations=ANY)
APPLICATION_SPEC = fields(
    ("project", "source", "destination"),
    project=TEXT,
    source=fields(("repoURL", "path"), repoURL=TEXT, targetRevision=TEXT, path=TEXT, directory=fields(include=TEXT)),
    destination=fields(("server",), server=TEXT, namespace=TEXT),
    syncPolicy=fields(automated=fields(prune=FLAG, selfHeal=FLAG), syncOptions=each(TEXT)),
)
KINDS: dict[tuple[str, str], dict[str, Any]] = {
    ("v1", "ServiceAccount"): fields(("apiVersion", "kind", "metadata"), apiVersion=TEXT, kind=TEXT, metadata=METADATA),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"): fields(
        ("apiVersion", "kind", "metadata", "roleRef", "subjects"),
        apiVersion=TEXT,
        kind=TEXT,
        metadata=METADATA,
        roleRef=fields(("apiGroup", "kind", "name"), apiGroup=TEXT, kind=TEXT, name=TEXT),
        subjects=each(fields(("kind", "name", "namespace"), kind=TEXT, name=TEXT, namespace=TEXT)),
    ),
    ("pulumi.com/v1", "Stack"): fields(
        ("apiVersion", "kind", "metadata", "spec"), apiVersion=TEXT, kind=TEXT, metadata=STACK_METADATA, spec=STACK_SPEC
    ),
    ("argoproj.io/v1alpha1", "Application"): fields(
        ("apiVersion", "kind", "metadata", "spec"),
        apiVersion=TEXT,
        kind=TEXT,
        metadata=METADATA,
        spec=APPLICATION_SPEC,
    ),
}
"""apiVersion and kind → schema of the object."""
