#!/usr/bin/env bash
# Installs what a target of the Makefile needs and the machine lacks, and prints what it installs.
# Usage: scripts/setup.sh rust|test|lint|demo|instructions|bench|linux|interop|capi|capi-check|capi-windows|deb|pgo|wheel|windows
set -euo pipefail
cd "$(dirname "$0")/.."

have() { command -v "$1" >/dev/null 2>&1; }

apt_install() { # command package why
    have "$1" && return 0
    local as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        if have sudo && sudo -n true 2>/dev/null; then as_root=(sudo); else return 1; fi
    fi
    have apt-get || return 1
    echo "setup: installing $2 ($3)" >&2
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive sh -c \
        "apt-get update -qq && apt-get install -y -qq --no-install-recommends $2" >/dev/null
}

need_compiler() {
    apt_install cc "gcc libc6-dev" "the linker of Rust and the C part of the result store" || {
        echo "setup: no C compiler; install gcc (Debian: apt-get install gcc libc6-dev)" >&2
        exit 1
    }
}

# Distributions have older compilers than rustup, which installs the version of rust-toolchain.toml.
need_cargo() { # crate, udccp-cli by default
    local least found
    have cargo || {
        echo "setup: no cargo; install Rust first (https://rustup.rs)" >&2
        exit 1
    }
    least=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "crates/${1:-udccp-cli}/Cargo.toml")
    found=$(cargo --version | cut -d ' ' -f 2)
    [ "$(printf '%s\n' "$least" "$found" | sort -V | head -n 1)" = "$least" ] && return 0
    echo "setup: $(command -v cargo) is of Rust $found, and $least is needed; install Rust with rustup" \
        "(https://rustup.rs)" >&2
    exit 1
}

# scripts/python.sh installs the Python packages from PyPI, with pinned versions.
have_venv() {
    python3 -c 'import venv, ensurepip' 2>/dev/null ||
        apt_install no-such-command python3-venv "the Python package and its tests"
}

need_venv() {
    have_venv || echo "setup: no Python venv and no right to install it; the Python checks will skip" >&2
}

# Tools that scripts use and a minimal system may lack.
need_tool() { # command package why
    apt_install "$1" "$2" "$3" && return 0
    echo "setup: no $1; install $2 (Debian: apt-get install $2)" >&2
    exit 1
}

need_mingw() {
    local target=x86_64-pc-windows-gnu
    need_cargo
    need_tool x86_64-w64-mingw32-gcc gcc-mingw-w64-x86-64 "it links programs for Windows"
    rustup target list --installed 2>/dev/null | grep -qx "$target" || rustup target add "$target"
}

case "${1:-}" in
demo)
    need_cargo
    need_compiler
    need_tool cmp diffutils "the demo compares the file that arrived"
    need_tool find findutils "the demo looks for a file to send"
    ;;
rust | linux)
    need_cargo
    need_compiler
    ;;
test)
    need_cargo
    need_compiler
    # Without tshark, the capture checks skip with a message.
    apt_install tshark tshark "an independent reader for the packets we write" ||
        echo "setup: no tshark and no right to install it; the checks that use it will skip" >&2
    need_venv
    ;;
instructions)
    need_cargo
    need_compiler
    need_tool valgrind valgrind "it counts instructions"
    ;;
bench)
    need_cargo
    need_compiler
    need_tool ethtool ethtool "it switches segmentation offload off"
    need_tool valgrind valgrind "it counts instructions"
    ;;
interop)
    for tool in "tshark tshark" "nft nftables" "traceroute traceroute"; do
        read -r command package <<<"$tool"
        apt_install "$command" "$package" "the interoperability matrix uses it" || {
            echo "setup: no $command; install $package (Debian: apt-get install $package)" >&2
            exit 1
        }
    done
    ;;
capi)
    need_cargo udccp-capi
    need_compiler
    ;;
capi-check)
    need_cargo
    need_compiler
    need_tool c++ "g++" "one example is in C++"
    need_tool pkg-config pkg-config "programs find the library with it"
    need_tool valgrind valgrind "it looks for errors of memory"
    ;;
deb)
    need_cargo
    need_compiler
    # Without it, cargo-deb only warns, and the package depends on nothing.
    need_tool dpkg-shlibdeps dpkg-dev "it finds the libraries that the program needs"
    if ! cargo deb --version >/dev/null 2>&1; then
        echo "setup: installing cargo-deb, some minutes once" >&2
        cargo install cargo-deb --locked --quiet
    fi
    ;;
lint)
    need_cargo
    need_compiler
    if ! cargo deny --version >/dev/null 2>&1; then
        echo "setup: installing cargo-deny (licence check), some minutes once" >&2
        cargo install cargo-deny --locked --quiet
    fi
    need_venv
    ;;
pgo)
    need_cargo
    need_compiler
    rustup --quiet component add llvm-tools 2>/dev/null || {
        echo "setup: no llvm-tools; install them (rustup component add llvm-tools)" >&2
        exit 1
    }
    ;;
wheel)
    need_cargo udccp-python
    need_compiler
    have_venv || {
        echo "setup: no Python 3.10 with venv; install it (Debian: apt-get install python3-venv)" >&2
        exit 1
    }
    ;;
capi-windows)
    need_mingw
    ;;
windows)
    need_mingw
    [ -x /usr/lib/wine/wine64 ] || need_tool wine64 wine64 "it runs them"
    ;;
*)
    echo "usage: scripts/setup.sh rust|test|lint|demo|instructions|bench|linux|interop|capi|capi-check|capi-windows|deb|pgo|wheel|windows" >&2
    exit 2
    ;;
esac
