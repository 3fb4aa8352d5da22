"""Facts with a source and a date: VM sizes, curated environments, what the InfiniBand fabric wants.

No behaviour: data files and small frozen models that answer questions. Importing it reads nothing; each file is read
once, when it is first asked for.
"""

from __future__ import annotations
