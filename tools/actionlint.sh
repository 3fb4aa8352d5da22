#!/usr/bin/env bash
# Lints .github/workflows and deploy/github with actionlint: the one on PATH, else the pinned one, built once by Go into the user's cache.
# Without Go, or without the module proxy, this says so and succeeds: `make check` must work offline.
set -euo pipefail
cd "$(dirname "$0")/.."
version=v1.7.12
cache="${AMLSTACK_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/amlstack}/actionlint/$version"

files=(.github/workflows/*.yml deploy/github/*.yml)

say() { printf '%s\n' "· $*" >&2; }

if command -v actionlint >/dev/null; then
  exec actionlint "${files[@]}"
fi
if [ ! -x "$cache/actionlint" ]; then
  if ! command -v go >/dev/null; then
    say "the workflows were not linted: neither actionlint nor go was found"
    exit 0
  fi
  say "building actionlint $version"
  mkdir -p "$cache"
  tmp="$(mktemp -d "$cache/build.XXXXXX")"
  trap 'rm -rf "$tmp"' EXIT
  if ! GOBIN="$tmp" go install "github.com/rhysd/actionlint/cmd/actionlint@$version" >/dev/null 2>&1; then
    say "the workflows were not linted: \`go install\` of actionlint $version failed"
    exit 0
  fi
  mv "$tmp/actionlint" "$cache/actionlint"
fi
"$cache/actionlint" "${files[@]}"
