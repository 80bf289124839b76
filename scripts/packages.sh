#!/usr/bin/env bash
# Checks that versions agree and that the licence of every crate is found, packs the published crates
# as a registry gets them, and compiles the packages with the oldest Rust that each of them declares.
set -euo pipefail
cd "$(dirname "$0")/.."
crates="udccp-base udccp-packet udccp-wire udccp-cc udccp-proto udccp udccp-rtp udccp-dtls"
scripts/version.sh >/dev/null
# `make deb`, `make wheel` and `make capi` pass them on.
for package in udccp-cli udccp-python udccp-capi; do scripts/licences.sh "$package" >/dev/null; done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

flags=()
for crate in $crates; do flags+=(--package "$crate"); done
# Without cargo's own check, which would compile with the newest Rust what is compiled below.
cargo package --quiet --locked --allow-dirty --no-verify --target-dir "$work/target" "${flags[@]}"
mkdir "$work/packed"
for archive in "$work"/target/package/*.crate; do tar -xzf "$archive" -C "$work/packed"; done
command -v rustup >/dev/null || {
    echo "packages: packed; without rustup the oldest Rust is not checked" >&2
    exit 0
}

folder_of() { basename "$work/packed/$1"-[0-9]*; }
oldest_rust() { sed -n 's/^rust-version = "\(.*\)"/\1/p' "$work/packed/$(folder_of "$1")/Cargo.toml"; }

declare -A by_rust
for crate in $crates; do by_rust[$(oldest_rust "$crate")]+=" $crate"; done

# One workspace per version of Rust, with a lock file of dependencies of that age.
for rust in "${!by_rust[@]}"; do
    rm -f "$work/packed/Cargo.lock"
    {
        printf '[workspace]\nresolver = "3"\nmembers = ['
        for crate in ${by_rust[$rust]}; do printf '"%s", ' "$(folder_of "$crate")"; done
        printf ']\n[patch.crates-io]\n'
        for crate in $crates; do printf '%s = { path = "%s" }\n' "$crate" "$(folder_of "$crate")"; done
    } >"$work/packed/Cargo.toml"
    rustup toolchain list | grep -q "^$rust-" ||
        rustup toolchain install "$rust" --profile minimal --no-self-update
    (
        cd "$work/packed"
        export CARGO_RESOLVER_INCOMPATIBLE_RUST_VERSIONS=fallback
        cargo "+$rust" check --quiet --workspace --lib --examples --target-dir "$work/check"
    )
    echo "packages: Rust $rust compiles${by_rust[$rust]}"
done
