#!/bin/sh
# rustdoc of the pinned Rust with its unstable options, for `cargo xtask api`. Set here and not for
# Cargo, which would then build the dependencies again.
RUSTC_BOOTSTRAP=1 exec rustdoc "$@"
