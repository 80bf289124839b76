#!/bin/sh
# rustdoc of the pinned Rust with unstable options, for `cargo xtask api`. They are enabled here and
# not for Cargo, which would then rebuild the dependencies.
RUSTC_BOOTSTRAP=1 exec rustdoc "$@"
