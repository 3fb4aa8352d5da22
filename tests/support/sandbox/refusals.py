"""Errors of azure-storage-blob's clients, read as the service sent them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from azure.core.exceptions import HttpResponseError


def status_and_code(error: HttpResponseError) -> tuple[int | None, str | None]:
    """HTTP status and Azure's own code of a refused request."""
    response: Any = error.response
    return error.status_code, response.headers.get("x-ms-error-code")
