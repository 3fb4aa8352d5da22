"""What a request asks for beside its path and body: a page of a list, a state of the resource, whom it acts for."""
