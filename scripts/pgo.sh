#!/usr/bin/env bash
# Profile-guided optimisation: an instrumented program runs typical work, and the compiler uses the
# profile for the next build. Packages are built this way, with two builds.
# Usage: scripts/pgo.sh program      builds the program, and prints its path
#        scripts/pgo.sh merge RAW    prints the path of the profile that is made of those that other
#                                    programs wrote to the folder RAW (after scripts/setup.sh pgo);
#                                    CARGO_ENCODED_RUSTFLAGS=-Cprofile-use=PATH uses it
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/.."

# Runs a server and a client over loopback.
measure() { # udccp flags of `udccp perf client`
    local port=${UDCCP_PGO_PORT:-5011} server
    "$1" perf server --one-off --port "$port" --bind 127.0.0.1 >/dev/null 2>&1 &
    server=$!
    # The client fails until the server has bound its port.
    for _ in $(seq 50); do
        if "$1" perf client 127.0.0.1 --port "$port" --time 2 "${@:2}" >/dev/null 2>&1; then
            wait "$server"
            return
        fi
        kill -0 "$server" 2>/dev/null || break
        sleep 0.1
    done
    kill "$server" 2>/dev/null || true
    echo "pgo: nothing answers over loopback; is UDP port $port in use? UDCCP_PGO_PORT names another" >&2
    exit 1
}

# Runs typical work (python/tools/train.py does the same for the wheel).
train() { # udccp
    local scenario
    rm -f "$folder/store"*
    "$1" lab run scripts/training.toml --jobs 1 --store "$folder/store" >/dev/null
    for scenario in media parking-lot wireless; do
        "$1" sim "scenarios/$scenario.toml" >/dev/null
    done
    measure "$1"
    measure "$1" --ccid 3
    measure "$1" --bidir --parallel 4 --bitrate 5M --length 200
}

merge() { # raw
    "$(rustc --print target-libdir)/../bin/llvm-profdata" merge -o "$1.profdata" "$1"
    echo "$1.profdata"
}

# Builds the program, and prints its path. CARGO_ENCODED_RUSTFLAGS takes a flag whole, with the spaces
# of its path, at which RUSTFLAGS is split. With --target, compiler flags do not apply to programs that
# run during the build, and builds with different flags do not overwrite one another.
build() { # folder flags
    CARGO_ENCODED_RUSTFLAGS=$2 "${CARGO:-cargo}" build --quiet --release --locked --package udccp-cli \
        --target "$host" --target-dir "$1" >&2
    echo "$1/$host/release/udccp"
}

case "${1:-}" in
merge)
    merge "$2"
    ;;
program)
    scripts/setup.sh pgo
    host=$(rustc -vV | sed -n 's/^host: //p')
    folder=$(realpath -m "${CARGO_TARGET_DIR:-target}")/pgo
    counting=$(build "$folder/counting" "-Cprofile-generate=$folder/raw")
    rm -rf "$folder/raw"
    train "$counting"
    counts=$(merge "$folder/raw")
    build "$folder/laid-out" "-Cprofile-use=$counts"
    ;;
*)
    echo "usage: scripts/pgo.sh program | merge RAW" >&2
    exit 2
    ;;
esac
