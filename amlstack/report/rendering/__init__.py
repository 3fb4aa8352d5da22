"""The content of a report → one HTML page."""
