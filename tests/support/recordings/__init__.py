"""Recordings of real Azure, distilled into stories and played against the sandbox (docs/maintain/recordings.md)."""
