"""Carries GPU calls of ordinary training code to the CPU, in the ranks of a rehearsal on a machine without a GPU.

It is imported when a rank's Python starts (`amlstack.sandbox.gpu_code` sees to it), under this name and with
nothing but the standard library, and changes torch when the job imports it; without torch it does nothing.

The job's own code (any file outside of site-packages and the standard library) sees a machine with GPUs as far as it
must; libraries see the machine as it is, since they know how to run on a CPU.
"""

from amlcpu import hooks

hooks.install()
