"""What `pulumi up` runs."""

from infra.program import main

main()
