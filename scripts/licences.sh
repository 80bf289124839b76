#!/usr/bin/env bash
# Prints the licences of the crates that a package of this workspace is built from: most of them ask
# that whoever passes on a program passes on their text, too.
# Usage: scripts/licences.sh PACKAGE
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TERM_QUIET=true
manifests=$(cargo metadata --locked --format-version 1 | grep -o '"manifest_path":"[^"]*"' | cut -d '"' -f 4)

# Where a crate lets us choose between licences, any text but the long one of Apache is enough. Folders
# below hold code of others, as that of a C library.
texts() { # folder
    find "$1" -maxdepth 1 -type f -iregex '.*/\(licen[cs]e\|copying\|copyright\|notice\|unlicense\).*' |
        LC_ALL=C sort | grep -vi 'apache' || find "$1" -maxdepth 1 -type f -iname 'licen[cs]e*'
    find "$1" -mindepth 2 -type f -iname 'licen[cs]e*' ! -path '*/.github/*' ! -name '*.rs' |
        LC_ALL=C sort | { grep -vi 'apache' || true; }
}

# Some crates come without a text. That of MIT is the same for all, but for the names.
without_text() { # folder crate licence
    case $3 in
    *MIT*)
        tr '\n' ' ' <"$1/Cargo.toml" | sed 's/.* authors = \[\([^]]*\)\].*/By \1.\n\n/'
        sed -n '/^Permission/,$p' LICENSE-MIT
        ;;
    *)
        echo "licences: $2 ($3) comes without the text of its licence: look for it, and add it here" >&2
        exit 1
        ;;
    esac
}

cargo tree --locked --package "$1" --edges normal --prefix none --format '{p}|{l}' |
    sed 's, (\*)$,,' | grep -vF "($PWD" | LC_ALL=C sort -u |
    while IFS='|' read -r crate licence; do
        read -r name version _ <<<"$crate"
        folder=$(dirname "$(grep -F "/$name-${version#v}/Cargo.toml" <<<"$manifests")")
        printf '\n==== %s %s: %s\n' "$name" "${version#v}" "$licence"
        files=$(texts "$folder")
        [ -n "$files" ] || { printf '\n' && without_text "$folder" "$name" "$licence"; }
        while read -r file; do
            [ -n "$file" ] || continue
            printf '\n'
            cat "$file"
        done <<<"$files"
    done
