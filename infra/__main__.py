"""What `pulumi up` runs."""

import pulumi

from amlstack.catalog.clock import ClockError
from infra.program import main

try:
    main()
except ClockError as error:
    raise pulumi.RunError(str(error)) from None
