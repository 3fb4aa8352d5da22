"""A folder of code as Azure ML sees it: which files are uploaded, and the hash that names their content.

The hash is azure-ai-ml's, version 202208, so that both tools find each other's uploads: SHA-256 over the file count,
then ``#path#size`` of each file in the order of lower-cased paths, then all contents in the same order.
"""

from __future__ import annotations

from amlstack.snapshot.content import differences
from amlstack.snapshot.folder import HASH_VERSION, Inspected, Snapshot, inspect, scan, scan_data, staged, zipped
from amlstack.snapshot.run_files import OwnCode, has_job_files, own_code, together
from amlstack.snapshot.walk import File
