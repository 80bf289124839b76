#!/usr/bin/env bash
# Tests or checks the Python package in python/, in a virtual environment beside the build.
# Usage: scripts/python.sh test|lint
set -euo pipefail
cd "$(dirname "$0")/.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
venv=$target/python-venv

# A machine without Python can do all the rest.
if ! python3 -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
    echo "python: no Python 3.10 with venv (Debian: apt-get install python3-venv); $1 of python/ skipped" >&2
    exit 0
fi

# Installs a list of pinned packages, once.
install() {
    local list=python/requirements-$1.txt
    cmp -s "$list" "$venv/$1.installed" && return 0
    echo "python: installing $list into $venv" >&2
    [ -x "$venv/bin/pip" ] || python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$list"
    cp "$list" "$venv/$1.installed"
}

case "${1:-}" in
test)
    install test
    [ -n "${UDCCP:-}" ] || cargo build --quiet --locked --package udccp-cli
    export UDCCP=${UDCCP:-$target/debug/udccp}
    cd python
    PYTHONPATH=. PYTHONDONTWRITEBYTECODE=1 "$venv/bin/python" -m pytest -q -p no:cacheprovider
    ;;
lint)
    install test
    install lint
    cd python
    "$venv/bin/ruff" check --no-cache .
    "$venv/bin/ruff" format --no-cache --check .
    "$venv/bin/mypy" --cache-dir=/dev/null udccp_lab tests
    ;;
*)
    echo "usage: scripts/python.sh test|lint" >&2
    exit 2
    ;;
esac
