#!/usr/bin/env bash
# Tests or checks the Python package udccp in a virtual environment in the build folder, or builds
# wheels: `wheel` for this machine, `wheels` for Linux on x86-64 and aarch64 from any machine.
# `sdist` packs the sources, and checks that they compile without the rest of the clone. Tests use
# the native module of the dev profile, built with the features with which `make test` builds all
# crates. `bench` compares the sockets with UDP, and `udccp.lab.run` with `udccp sim`, both in the
# release profile.
# Usage: scripts/python.sh test|lint|wheel|wheels|sdist|bench
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
venv=$target/python-venv

case ${1:-} in wheel | wheels | sdist) scripts/setup.sh wheel ;; esac
# Tests and checks skip on a machine without Python, which can do everything else.
if ! python3 -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
    echo "python: no Python 3.10 with venv (Debian: apt-get install python3-venv); ${1:-nothing} of python/ skipped" >&2
    case ${1:-} in test | lint) exit 0 ;; *) exit 1 ;; esac
fi

# Installs a list of pinned packages, once.
install() {
    local list=python/requirements-$1.txt
    cmp -s "$list" "$venv/$1.installed" && return 0
    echo "python: installing $list into $venv" >&2
    "$venv/bin/python" -m pip --version >/dev/null 2>&1 || python3 -m venv "$venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$list"
    cp "$list" "$venv/$1.installed"
}

# Builds the native module and puts it where Python looks for it: in the package of this clone.
native() {
    cargo build --quiet --locked --package udccp-cli --package udccp-python
    cmp -s "$target/debug/lib_native.so" python/udccp/_native.abi3.so ||
        cp "$target/debug/lib_native.so" python/udccp/_native.abi3.so
}

# Runs maturin. It searches zig, which links for other machines and older systems, in the first
# Python in the path.
maturin() {
    [ -x "$target/wheel-venv/bin/maturin" ] || {
        python3 -m venv "$target/wheel-venv"
        "$target/wheel-venv/bin/pip" install --quiet --disable-pip-version-check 'maturin[zig]>=1.9,<2'
    }
    PATH=$target/wheel-venv/bin:$PATH "$target/wheel-venv/bin/maturin" "$@"
}

# Writes the licences of the crates to where pyproject.toml names them, until this script ends: they
# belong into all that is passed on.
licences() {
    trap 'rm -f LICENSE-DEPENDENCIES' EXIT
    scripts/licences.sh udccp-python >LICENSE-DEPENDENCIES
}

# Builds a release wheel in a folder, with flags of `maturin build`.
wheel() { maturin build --release --locked --out "$@"; }

# Prints the flags for a profile-guided wheel for this machine: an instrumented wheel is built,
# installed and run. Profiles do not fit other machines, whose code has other symbol names, and zig
# cannot link instrumented code.
trained() { # flags of the wheel
    local folder=$target/pgo/wheel counts
    scripts/setup.sh pgo
    rm -rf "$folder"
    CARGO_ENCODED_RUSTFLAGS=-Cprofile-generate=$folder/raw wheel "$folder" "$@" --target-dir "$target/pgo/wheels" >&2
    python3 -m venv "$folder/venv"
    "$folder/venv/bin/pip" install --quiet --disable-pip-version-check "$folder"/*.whl
    # An empty path, so that not the package of this clone is used.
    PYTHONPATH='' "$folder/venv/bin/python" python/tools/train.py
    counts=$(scripts/pgo.sh merge "$folder/raw")
    echo "-Cprofile-use=$counts"
}

export PYTHONPATH=python PYTHONDONTWRITEBYTECODE=1 MPLBACKEND=Agg
case "${1:-}" in
test)
    install test
    native
    export UDCCP=${UDCCP:-$target/debug/udccp}
    "$venv/bin/python" -m pytest -q -p no:cacheprovider "${@:2}"
    ;;
lint)
    install test
    install lint
    "$venv/bin/ruff" check --no-cache python
    "$venv/bin/ruff" format --no-cache --check python
    "$venv/bin/python" python/tools/scenario_types.py --check
    "$venv/bin/python" -m mypy --cache-dir="$target/mypy" python/udccp python/tests python/tools python/bench
    "$venv/bin/python" -m pyright --pythonpath "$venv/bin/python"
    ;;
wheel)
    licences
    this=(--target "$(rustc -vV | sed -n 's/^host: //p')")
    flags=$(trained "${this[@]}")
    CARGO_ENCODED_RUSTFLAGS=$flags wheel "$target/wheels" "${this[@]}" "${@:2}"
    ;;
wheels)
    licences
    for machine in x86_64 aarch64; do
        other=(--zig --target "$machine-unknown-linux-gnu" --compatibility manylinux_2_17)
        rustup --quiet target add "$machine-unknown-linux-gnu"
        wheel "$target/wheels" "${other[@]}" "${@:2}"
    done
    ;;
sdist)
    licences
    rm -rf "$target/sdist" "$target"/wheels/udccp-*.tar.gz
    mkdir -p "$target/sdist"
    maturin sdist --out "$target/wheels"
    tar -xzf "$target"/wheels/udccp-*.tar.gz -C "$target/sdist" --strip-components 1
    cmp LICENSE-DEPENDENCIES "$target/sdist/LICENSE-DEPENDENCIES"
    cargo check --quiet --manifest-path "$target/sdist/Cargo.toml" --package udccp-python --target-dir "$target"
    ;;
bench)
    install test
    cargo build --quiet --release --locked --package udccp-cli --package udccp-python
    cp "$target/release/lib_native.so" python/udccp/_native.abi3.so
    UDCCP=$target/release/udccp "$venv/bin/python" python/bench/sockets.py "${@:2}"
    ;;
*)
    echo "usage: scripts/python.sh test|lint|wheel|wheels|sdist|bench" >&2
    exit 2
    ;;
esac
