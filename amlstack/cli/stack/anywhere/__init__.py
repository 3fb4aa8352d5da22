"""Any stack: on the sandbox, or on Azure with the backend of the user's own."""
