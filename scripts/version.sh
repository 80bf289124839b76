#!/usr/bin/env bash
# Prints the version, if all files that state it agree; or changes it.
# Usage: scripts/version.sh [NEW]
set -euo pipefail
cd "$(dirname "$0")/.."
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
if [ $# -gt 0 ]; then
    sed -i "s/^\(version = \|udccp.* version = \)\"$version\"/\1\"$1\"/" Cargo.toml
    sed -i "s/^version: .*/version: $1/; s/^date-released: .*/date-released: $(date -u +%F)/" CITATION.cff
    "${CARGO:-cargo}" update --quiet --workspace
    version=$1
fi

# A package may use what its neighbours have only since this version.
if grep '^udccp.* version = ' Cargo.toml | grep -vF "version = \"$version\"" >&2; then
    echo "version: these lines of Cargo.toml ask for another version than $version" >&2
    exit 1
fi
grep -qxF "version: $version" CITATION.cff || {
    echo "version: CITATION.cff has another version than $version" >&2
    exit 1
}
echo "$version"
