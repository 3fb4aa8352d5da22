"""The managed network of a workspace: which isolation it may have, its outbound rules, and its provisioning."""
