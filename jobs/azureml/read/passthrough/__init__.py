"""Steps of a pipeline file that are passed through, and their components."""
