"""Secrets of the stack, and variables of jobs that hold one."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from infra.settings.model.base import SettingsModel, name_of

SecretName = Annotated[str, name_of(r"^[A-Za-z][A-Za-z0-9_-]{0,126}\Z")]
VariableName = Annotated[str, name_of(r"^[A-Za-z_][A-Za-z0-9_]*\Z")]
Secrets = dict[SecretName, Annotated[str, Field(min_length=1)]]


class SecretVariable(SettingsModel):
    """The value of a variable: a secret of the stack."""

    secret: SecretName = Field(description="Name of the secret under `amlstack:secrets`.")
