#!/usr/bin/env bash
# Prints the licences of the crates that a package of this workspace is built from: most of them ask
# that whoever passes on a program passes on their text, too.
# Usage: scripts/licences.sh PACKAGE
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TERM_QUIET=true
manifests=$(cargo metadata --locked --format-version 1 | grep -o '"manifest_path":"[^"]*"' | cut -d '"' -f 4)

# Where a crate lets us choose between licences, any text but the long one of Apache is enough.
texts() { # folder
    find "$1" -maxdepth 1 -type f -iregex '.*/\(licen[cs]e\|copying\|copyright\|notice\|unlicense\).*' |
        LC_ALL=C sort | grep -vi 'apache' || find "$1" -maxdepth 1 -type f -iname 'licen[cs]e*'
}

cargo tree --locked --package "$1" --edges normal --prefix none --format '{p}|{l}' |
    sed 's, (\*)$,,' | grep -v "($PWD" | LC_ALL=C sort -u |
    while IFS='|' read -r crate licence; do
        read -r name version _ <<<"$crate"
        folder=$(dirname "$(grep -F "/$name-${version#v}/Cargo.toml" <<<"$manifests")")
        printf '\n==== %s %s: %s\n' "$name" "${version#v}" "$licence"
        texts "$folder" | while read -r file; do
            printf '\n'
            cat "$file"
        done
    done
