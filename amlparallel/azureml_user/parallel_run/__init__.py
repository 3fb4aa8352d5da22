"""``from azureml_user.parallel_run import EntryScript``: what an entry script may ask of the service."""

from __future__ import annotations

import logging
import os


class EntryScript:
    """The running entry script.

    Attributes:
        logger: Writes to ``logs/user/entry_script_log`` of the process.
        working_dir: The folder with the step's code.
        output_dir: Where files of the process may be kept with the job.
    """

    def __init__(self) -> None:
        self.logger = logging.getLogger("EntryScript")
        self.working_dir = os.getcwd()
        self.output_dir = os.path.join(self.working_dir, "outputs")
