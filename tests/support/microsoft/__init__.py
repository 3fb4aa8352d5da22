"""Microsoft's end-to-end tests of azure-ai-ml, run against the sandbox: nothing of them lies in this tree."""
