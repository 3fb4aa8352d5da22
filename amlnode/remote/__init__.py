"""Commands on the job's other nodes without ssh: what launchers that want a hostfile, ssh and pdsh are given."""

from __future__ import annotations
