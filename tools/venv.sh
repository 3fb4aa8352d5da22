#!/usr/bin/env bash
# Creates .venv from the committed uv.lock. uv is taken from PATH, else installed from PyPI into the user's cache.
set -euo pipefail
cd "$(dirname "$0")/.."
cache="${AMLSTACK_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/amlstack}"
python="${PYTHON:-python3}"

say() { printf '%s\n' "$*" >&2; }

if ! command -v "$python" >/dev/null; then
  say "python3 was not found. amlstack needs Python 3.11 or newer: apt-get install python3 python3-venv"
  exit 2
fi
if ! "$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))'; then
  say "$("$python" --version) was found. amlstack needs Python 3.11 to 3.13. Name one with PYTHON=/path/to/python3.11 make up"
  exit 2
fi

if command -v uv >/dev/null; then
  uv=uv
else
  uv="$cache/uv/bin/uv"
  if [ ! -x "$uv" ]; then
    say "· installing uv from PyPI into $cache/uv"
    mkdir -p "$cache"
    tmp="$(mktemp -d "$cache/uv.XXXXXX")"
    trap 'rm -rf "$tmp"' EXIT
    # Not `python -m venv`: Debian keeps it in a package of its own. A plain --target install needs pip alone.
    if "$python" -m venv "$tmp/v" >/dev/null 2>&1; then
      "$tmp/v/bin/python" -m pip install --quiet --disable-pip-version-check --target "$tmp/uv" uv
    elif "$python" -m pip --version >/dev/null 2>&1; then
      "$python" -m pip install --quiet --disable-pip-version-check --target "$tmp/uv" uv
    else
      say "Neither uv, pip nor venv was found for $python. One of them is needed once: apt-get install python3-venv"
      exit 2
    fi
    # Renamed into place whole, so that an interrupted install leaves nothing half done.
    mv -T "$tmp/uv" "$cache/uv" 2>/dev/null || [ -x "$uv" ]
  fi
fi

say "· Python environment .venv from uv.lock"
"$uv" sync --frozen --quiet --python "$(command -v "$python")"
# What commands import is compiled by one that starts nothing, also where the environment forbids Python to keep bytecode:
# they then start in half of the time. Compiling all that is installed would take much longer than that saves.
example=examples/ddp_per_process/job.yml
env -u PYTHONDONTWRITEBYTECODE .venv/bin/amlstack rehearse "$example" --dry-run >/dev/null 2>&1 || true
touch .venv/.synced
