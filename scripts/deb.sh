#!/usr/bin/env bash
# Builds a Debian package of the program (the build of scripts/pgo.sh), with its manual pages and
# completions.
# Usage: scripts/deb.sh [FILE OR FOLDER]
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}

# Debian's policy wants both in its own formats. The date is that of the sources, so that the same
# sources give the same package.
write_changelog() {
    local version seconds
    version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
    seconds=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md)}
    cat <<END
udccp ($version-1) unstable; urgency=medium

  * Release $version: /usr/share/doc/udccp/changelog.gz lists what changed.

 -- $(sed -n 's/^maintainer = "\(.*\)"/\1/p' crates/udccp-cli/Cargo.toml)  $(LC_ALL=C date -Rud "@$seconds")
END
}

write_copyright() {
    cat <<END
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: udccp
Comment: The program contains crates of others. Their licences are in
 /usr/share/doc/udccp/dependencies.gz.

Files: *
$(sed -n 's/^copyright = "\(.*\)"/Copyright: \1/p' crates/udccp-cli/Cargo.toml)
License: Apache-2.0 or Expat

License: Apache-2.0
 On Debian systems, the text is in /usr/share/common-licenses/Apache-2.0.

License: Expat
$(sed '1,/^Permission/{/^Permission/!d}; s/^$/./; s/^/ /' LICENSE-MIT)
END
}

scripts/setup.sh deb
built=$(scripts/pgo.sh program)
# The paths in the crate's manifest are fixed, wherever the build is.
assets=target/deb
program=$assets/udccp
rm -rf "$assets"
mkdir -p "$assets/man" "$assets/completions"
cp "$built" "$program"
"$program" man --out "$assets/man"
"$program" completions bash >"$assets/completions/udccp"
"$program" completions zsh >"$assets/completions/_udccp"
"$program" completions fish >"$assets/completions/udccp.fish"
write_changelog >"$assets/changelog"
write_copyright >"$assets/copyright"
scripts/licences.sh udccp-cli | gzip -9n >"$assets/dependencies.gz"
cargo deb --package udccp-cli --no-build --no-strip --locked --output "${1:-$target/debian}"
