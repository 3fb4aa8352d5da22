"""Runs the steps of CI files in clean checkouts, with a stand-in for what the service gives them."""
