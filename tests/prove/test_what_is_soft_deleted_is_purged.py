"""`amlstack prove --cleanup` where Azure keeps what is deleted: a client whose answers are a small Azure's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from amlstack.prove.cleanup import cleanup
from amlstack.prove.proof import Proof
from amlstack.provider.arm import ArmClient, Response

if TYPE_CHECKING:
    from pathlib import Path

S = "/subscriptions/11111111-2222-3333-4444-555555555555"
DELETED = f"{S}/providers/Microsoft.KeyVault/deletedVaults"
PLACE = f"{S}/providers/Microsoft.KeyVault/locations/westeurope/deletedVaults"


class AzureWithVaults(ArmClient):
    """No groups, and vaults that are soft-deleted, by name and the group that they were in."""

    def __init__(self, vaults: dict[str, str], *, purges: bool = True) -> None:
        super().__init__("https://127.0.0.1:1")
        self.vaults, self.purges, self.asked = vaults, purges, list[str]()

    def exchange(self, method: str, url: str, body: Any, *, acting: bool = False) -> tuple[Response, str]:
        path = urlsplit(url).path
        if method != "GET":
            self.asked.append(f"{method} {path}")
        if path == DELETED:
            rows = [self._row(name, group) for name, group in self.vaults.items()]
            return Response(200, {"value": rows}, {}, url), ""
        if path.endswith("/purge"):
            if not self.purges:
                return Response(403, {"error": {"code": "PurgeProtection", "message": "protected"}}, {}, url), ""
            self.vaults.pop(path.split("/")[-2])
            return Response(200, {}, {}, url), ""
        if "/resourceGroups/" in path:
            return Response(404, {"error": {"code": "ResourceGroupNotFound", "message": ""}}, {}, url), ""
        return Response(200, {"value": []}, {}, url), ""

    @staticmethod
    def _row(name: str, group: str) -> dict[str, Any]:
        vault = f"{S}/resourceGroups/{group}/providers/Microsoft.KeyVault/vaults/{name}"
        return {"id": f"{PLACE}/{name}", "name": name, "properties": {"vaultId": vault}}


def proof(folder: Path) -> Proof:
    return Proof("p1234567", folder, S.split("/")[2], "westeurope", "Standard_D4s_v3", "https://127.0.0.1:1")


def test_its_own_vaults_are_purged_and_no_others(tmp_path: Path) -> None:
    one = proof(tmp_path)
    arm = AzureWithVaults({"kv-own": one.group("open").upper(), "kv-team": "rg-team", "kv-like": f"{one.groups[0]}-2"})
    assert cleanup(arm, one, lambda _: None) == []
    assert arm.asked == [f"POST {PLACE}/kv-own/purge"]
    assert set(arm.vaults) == {"kv-team", "kv-like"}


def test_a_vault_that_stays_is_said_to_be_left(tmp_path: Path) -> None:
    one, said = proof(tmp_path), list[str]()
    left = cleanup(AzureWithVaults({"kv-own": one.group("closed")}, purges=False), one, said.append)
    assert left == [f"{PLACE}/kv-own"]
    assert "stays" in said[-1]
