"""The provider loads azure-core late, in whichever thread asks first: the others wait for all of it."""

from __future__ import annotations

import subprocess
import sys

from amlstack.base.paths import PROJECT

PROGRAM = """
import sys, threading
from types import SimpleNamespace
from amlstack.provider.arm import ArmClient
from amlstack.provider.arm.exchange import load_azure_core

if "azure.core" in sys.modules:
    sys.exit("it is loaded with the package")
sys.setswitchinterval(1e-6)
credential = SimpleNamespace(get_token=lambda *scopes, **options: SimpleNamespace(token="t", expires_on=2**40))
client = ArmClient("https://127.0.0.1:1", credential)
start = threading.Barrier(8)
wrong = []

def ask(number):
    start.wait()
    try:
        if number % 2:
            client.token("https://ml.azure.com")
        else:
            load_azure_core()
            from azure.core.rest import HttpRequest
            from azure.core.exceptions import AzureError
            from azure.core import PipelineClient
    except Exception as error:
        wrong.append(repr(error))

threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
sys.exit("\\n".join(wrong) or None)
"""


def test_threads_that_ask_azure_at_once_all_find_its_client_whole() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=PROJECT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
