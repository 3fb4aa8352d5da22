"""The api-versions by which this project itself asks Azure: those of azure-native's classes where it has the type."""

from typing import Final

RESOURCES: Final = "2024-03-01"
"""Of resource groups, of the list of what lies in one, and of resource providers."""
MACHINE_LEARNING: Final = "2025-12-01"
"""Of Microsoft.MachineLearningServices; the default of azure-ai-ml 1.35 too."""
STORAGE: Final = "2024-01-01"
VAULTS: Final = "2024-11-01"
"""Of vaults, and of those that are soft-deleted."""
POLICIES: Final = "2023-04-01"
PERMISSIONS: Final = "2022-04-01"
"""Of Microsoft.Authorization/permissions: learn.microsoft.com/rest/api/authorization/permissions."""
SKUS: Final = "2021-07-01"
"""Of Microsoft.Compute/skus: Azure/azure-sdk-for-go, armcompute."""
OF_PARTS: Final = {
    "group": RESOURCES,
    "workspace": MACHINE_LEARNING,
    "storage": STORAGE,
    "key_vault": VAULTS,
    "registry": "2023-07-01",
    "insights": "2020-02-02",
    "logs": "2023-09-01",
}
"""Of a workspace and of each part that it stands on."""
