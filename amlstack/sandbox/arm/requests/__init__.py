"""Parts of a request beside its path and body: a page of a list, a state of the resource, its identity."""
