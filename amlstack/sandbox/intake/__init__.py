"""What a request must be before anybody looks at what it asks for: a readable body, a known api-version."""
