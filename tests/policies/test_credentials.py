"""Texts that are credentials, and texts that only look like one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amlstack.base import credentials
from amlstack.base.pulumi_wire import decode, opened_but_known
from amlstack.rpc import Secret, encode
from policies.checks.job import check_secret
from tests.support.examples import examples
from tests.support.rows import for_each

FORMS = [
    ("DefaultEndpointsProtocol=https;AccountKey=" + "a" * 86 + "==", "storage account"),
    ("https://a.blob.core.windows.net/c?sv=2024&sig=" + "A" * 43 + "%3D", "SAS"),
    ("pip install git+https://me:abcdef123@dev.azure.com/x", "URL with a password"),
    ("postgres://u:pa55word@db/x", "URL with a password"),
    ("-----BEGIN OPENSSH PRIVATE KEY-----", "private key"),
    ("Bearer eyJ" + "a" * 30 + ".eyJ" + "b" * 30 + "." + "c" * 30, "JSON web token"),
]
NO_FORMS = [
    "https://a.blob.core.windows.net/c?sig=${{inputs.sig}}",
    "git clone https://oauth2:${TOKEN}@github.com/x/y",
    "git clone https://oauth2:<token>@github.com/x/y",
    "https://a/b",
    "tcp://10.0.0.1:29500",
    "azureml://registries/azureml/environments/acpt/versions/1",
    "mail me@team.org: a:b@c",
]


@for_each("text, what", FORMS)
def test_a_credential_is_known_by_its_form(text: str, what: str) -> None:
    assert what in (credentials.form(text) or "")


@pytest.mark.parametrize("pattern", [pattern for pattern, _ in credentials.FORMS])
@settings(max_examples=examples(0.1))
@given(data=st.data())
def test_every_text_of_a_form_is_known(pattern: str, data: Any) -> None:
    assert credentials.form(data.draw(st.from_regex(pattern))) is not None


@for_each("text", NO_FORMS)
def test_what_has_no_credentials_form_is_none(text: str) -> None:
    assert credentials.form(text) is None


NAMED = [
    ("WANDB_API_KEY", "0a1b2c3d4e5f"),
    ("wandb-api-key", "0a1b2c3d4e5f"),
    ("apiKey", "0a1b2c3d4e5f"),
    ("AZURE_CLIENT_SECRET", "abcDEF~12.x"),
    ("HF_TOKEN", "0123456789abcdef0"),
    ("DB_PASSWORD", "hunter2"),
    ("PASSWORD", "two words"),
    ("STORAGE_SAS", "sv=2024-01-01&se=9"),
]
NOT_NAMED = [
    ("TOKENIZERS_PARALLELISM", "false"),
    ("MAX_TOKENS", "10000000000000000"),
    ("MAX_NEW_TOKEN", "1024"),
    ("EOS_TOKEN", "<|endoftext|>"),
    ("PAD_TOKEN", "endoftextendoftextend"),
    ("PWD", "/workspace/code"),
    ("OLDPWD", "workspace"),
    ("PASSWORD", ""),
    ("DB_PASSWORD", "   "),
    ("DB_PASSWORD", "xxxxxxxx"),
    ("DB_PASSWORD", "change-me"),
    ("API_KEY", "your-api-key-here"),
    ("API_KEY", "<your key here>"),
    ("API_KEY", "abcd1234…"),
    ("API_KEY", "${{inputs.key}}"),
    ("API_KEY", "$WANDB_API_KEY"),
    ("API_KEY", "$(cat key.txt)"),
    ("API_KEY", "{api_key_of_run}"),
    ("API_KEY", "short"),
    ("SSH_PRIVATE_KEY", "/mnt/secrets/id_rsa"),
    ("CLIENT_SECRET", "https://kv.vault.azure.net/secrets/a"),
    ("CLIENT_SECRET", "@Microsoft.KeyVault(SecretUri)"),
    ("API_KEY", "see the wiki page"),
    ("PASSWORD_FILE", "secrets.txt"),
    ("SECRET_NAME", "wandb-key-1"),
    ("PRIMARY_KEY", "customer_id_1"),
    ("KEYBOARD", "qwertyuiop12"),
    ("USE_AUTH_TOKEN", "True"),
]


@for_each("name, value", NAMED)
def test_a_secret_is_known_by_its_name(name: str, value: str) -> None:
    assert credentials.named(name, value)


@for_each("name, value", NOT_NAMED)
def test_what_only_sounds_like_a_secret_is_none(name: str, value: str) -> None:
    assert not credentials.named(name, value)


@for_each(
    "text, names",
    [
        ("WANDB_API_KEY=0a1b2c3d4e python t.py", ["WANDB_API_KEY"]),
        ("export DB_PASSWORD='hunter2'; python t.py", ["DB_PASSWORD"]),
        ('python t.py --api-key "0a1b2c3d4e"', ["--api-key"]),
        ("python t.py --hf_token=0123456789abcdef0 --api-key 0a1b2c3d4e", ["--hf_token", "--api-key"]),
        ("Server=db;User Id=u;Password=hunter2;", ["Password"]),
        ("python t.py --api-key $KEY --token ${{inputs.t}} --password", []),
        ("python t.py --tokenizer gpt2 --max-tokens 4096 --eos-token '</s>'", []),
        ("python t.py --password-file a.txt", []),
    ],
)
def test_secrets_are_found_in_a_command_line(text: str, names: list[str]) -> None:
    assert list(credentials.assigned(text)) == names


def test_a_text_that_the_engine_keeps_encrypted_is_known_to_the_pack_alone() -> None:
    wire = encode({"environmentVariables": {"WANDB_API_KEY": Secret("0a1b2c3d4e5f60718293")}})
    assert check_secret(decode(wire, opened_but_known), where="job") == ()
    assert len(check_secret(decode(wire), where="job")) == 1
