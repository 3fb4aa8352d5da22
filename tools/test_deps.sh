#!/usr/bin/env bash
# What the tests of MPI jobs and of the report's page need beyond Python. Installed where that is possible without asking (root, apt); elsewhere
# those tests skip themselves and say what is missing. Never a reason to fail.
set -uo pipefail
packages=()
command -v mpirun >/dev/null || packages+=(openmpi-bin)
command -v mpicxx >/dev/null || packages+=(libopenmpi-dev)
command -v cmake >/dev/null || packages+=(cmake)
command -v g++ >/dev/null || packages+=(g++)
command -v chromium chromium-browser google-chrome >/dev/null || packages+=(chromium)
[ ${#packages[@]} -eq 0 ] && exit 0
say() { printf '%s\n' "· $*" >&2; }
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
  say "some tests need: apt-get install ${packages[*]} (they are skipped until then)"
  exit 0
fi
say "installing ${packages[*]} for the tests"
{ apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${packages[@]}"; } \
  >/dev/null 2>&1 || say "could not install ${packages[*]}; tests that need them are skipped"
