#!/usr/bin/env bash
# Builds libudccp, the C library, installs it, and checks what was installed.
# Usage: scripts/capi.sh build|install|uninstall|check|sanitize|windows|wine
#   build      target/capi: shared library with soname and symbol versions, static library, .pc file
#   install    build, and install to $DESTDIR$PREFIX (/usr/local) with $LIBDIR ($PREFIX/lib)
#   uninstall  removes what install wrote there
#   check      install to a folder, and compile and run the examples with the flags of pkg-config
#   sanitize   the tests under AddressSanitizer and under valgrind
#   windows    target/capi-windows: udccp.dll, its import library and the header, with MinGW
#   wine       the tests that need no descriptors, with that library (from scripts/windows.sh)
# PROFILE=release (the default) or dev. The system's linker must support version scripts.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
profile=${PROFILE:-release}
target=${CARGO_TARGET_DIR:-target}
crate=crates/udccp-capi
out=$target/capi
prefix=${PREFIX:-/usr/local}
libdir=${LIBDIR:-$prefix/lib}
includedir=${INCLUDEDIR:-$prefix/include}
docdir=$prefix/share/doc/libudccp
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
# Incremented together with the node of the version script when programs must be recompiled.
soname=libudccp.so.$(sed -n "s/^UDCCP_\([0-9]*\) {/\1/p" "$crate/udccp.map")

built() { # path of a file in the profile's folder
    case $profile in dev) echo "$target/debug/$1" ;; *) echo "$target/$profile/$1" ;; esac
}

# Builds the static library and prints the libraries to link with it; arguments go to cargo.
static_library() { # folder for notes, arguments
    local notes=$1 private said
    shift
    said=$("$cargo" rustc --quiet --locked --package udccp-capi --profile "$profile" "$@" \
        --crate-type staticlib -- --print native-static-libs 2>&1) || {
        echo "$said" >&2
        return 1
    }
    private=$(sed -n 's/^note: native-static-libs: //p' <<<"$said")
    # Cargo prints them only when it compiles, so keep them.
    mkdir -p "$notes"
    [ -z "$private" ] || echo "$private" >"$notes/private"
    cat "$notes/private"
}

# Writes what whoever passes on the library has to pass on with it.
licences() { # folder
    cp LICENSE-APACHE LICENSE-MIT "$1/"
    scripts/licences.sh udccp-capi >"$1/LICENSE-DEPENDENCIES"
}

# A shared library built by Rust has neither a soname nor symbol versions, and rustc does not accept
# a version script. So this links the static library into a shared one.
build() {
    local private
    private=$(static_library "$out")
    cp "$(built libudccp_capi.a)" "$out/libudccp.a"
    [ "$profile" = dev ] || strip --strip-debug "$out/libudccp.a"
    # Never unload it: its threads and its exit handler live as long as the process.
    # shellcheck disable=SC2086 # a list of flags
    cc -shared -o "$out/libudccp.so.$version" -Wl,-soname,"$soname" \
        -Wl,--version-script="$crate/udccp.map" -Wl,--whole-archive "$out/libudccp.a" \
        -Wl,--no-whole-archive -Wl,--gc-sections -Wl,-z,nodelete,-z,relro,-z,now,-z,defs $private
    [ "$profile" = dev ] || strip "$out/libudccp.so.$version"
    ln -sf "libudccp.so.$version" "$out/$soname"
    ln -sf "$soname" "$out/libudccp.so"
    # Relative to the prefix, so that pkg-config can follow a folder that was moved.
    sed -e "s|@PREFIX@|$prefix|" -e "s|@LIBDIR@|${libdir/#"$prefix"\//'${prefix}'/}|" \
        -e "s|@INCLUDEDIR@|${includedir/#"$prefix"\//'${prefix}'/}|" \
        -e "s|@VERSION@|$version|" -e "s|@PRIVATE@|$private|" "$crate/udccp.pc.in" >"$out/udccp.pc"
    licences "$out"
}

# Asked before minutes of building.
may_install() {
    local to=${DESTDIR:-}
    install -d "$to$libdir/pkgconfig" "$to$includedir" "$to$docdir" 2>/dev/null &&
        [ -w "$to$libdir/pkgconfig" ] && [ -w "$to$libdir" ] && [ -w "$to$includedir" ] &&
        [ -w "$to$docdir" ] && return 0
    echo "capi: no right to write to $to$prefix; name a folder of yours (PREFIX=\$HOME/.local), or" \
        "install to a folder (DESTDIR=target/stage) and copy it as root (cp -r target/stage/. /)" >&2
    exit 1
}

install_all() {
    local to=${DESTDIR:-}
    install -d "$to$libdir/pkgconfig" "$to$includedir" "$to$docdir"
    install -m 644 "$out"/LICENSE-* "$to$docdir/"
    install -m 644 "$crate/include/udccp.h" "$to$includedir/"
    install -m 644 "$out/libudccp.a" "$to$libdir/"
    install -m 755 "$out/libudccp.so.$version" "$to$libdir/"
    cp -P "$out/$soname" "$out/libudccp.so" "$to$libdir/"
    install -m 644 "$out/udccp.pc" "$to$libdir/pkgconfig/"
}

uninstall() {
    local to=${DESTDIR:-}
    rm -f "$to$includedir/udccp.h" "$to$libdir/pkgconfig/udccp.pc" \
        "$to$libdir"/{libudccp.a,libudccp.so,"$soname",libudccp.so."$version"}
    rm -f "$to$docdir"/LICENSE-{APACHE,MIT,DEPENDENCIES}
    rmdir "$to$docdir" 2>/dev/null || true
}

# Checks the installed library: soname, symbol versions, no other exports; programs compiled with
# pkg-config run with the shared library and with the static one.
check() {
    local work library flags
    work=$(mktemp -d)
    # shellcheck disable=SC2064 # expand the name now
    trap "rm -rf '$work'" EXIT
    prefix=$work libdir=$work/lib includedir=$work/include docdir=$work/doc
    build
    DESTDIR="" install_all
    library=$work/lib/libudccp.so
    # Capture whole outputs: `grep -q` would exit early, and the other tool would fail with SIGPIPE.
    [[ $(readelf --dynamic "$library") == *"soname: [$soname]"*NODELETE* ]]
    diff <(sed -n 's/^ *\(udccp_[a-z_]*\);/\1@@UDCCP_0/p' "$crate/udccp.map") \
        <(nm --dynamic --defined-only "$library" | awk '$2 == "T" {print $3}' | LC_ALL=C sort)
    export PKG_CONFIG_PATH=$work/lib/pkgconfig
    [ "$(pkg-config --modversion udccp)" = "$version" ]
    [[ $(pkg-config --define-variable=prefix=/moved --cflags --libs udccp) == *-I/moved/include*-L/moved/lib* ]]
    for source in "$crate"/examples/*.c "$crate"/tests/c/*.c; do
        read -ra flags <<<"$(pkg-config --cflags --libs udccp)"
        cc -pthread -o "$work/shared" "$source" "${flags[@]}"
        read -ra flags <<<"$(pkg-config --cflags --libs --static udccp)"
        cc -pthread -o "$work/static" "$source" "${flags[@]/-ludccp/-l:libudccp.a}"
        case $source in
        # The client of a server test; `cargo test` runs both.
        */tests/c/crowd.c) ;;
        */tests/c/exit.c) run return ;;
        */tests/c/*) run ;;
        esac || {
            echo "capi: $source fails with the library as installed" >&2
            return 1
        }
    done
    echo "capi: $soname ($(stat -Lc %s "$library") bytes) and libudccp.a work as installed"
}

run() { # arguments; in $work
    # One chain: bash ignores `set -e` if the caller tests the result.
    [[ $(ldd "$work/shared") == *"$soname"* ]] && [[ $(ldd "$work/static") != *"$soname"* ]] &&
        LD_LIBRARY_PATH=$work/lib "$work/shared" "$@" && "$work/static" "$@"
}

tests() { "$cargo" test --quiet --locked --package udccp-capi --test programs "$@"; }

sanitize() {
    echo "== AddressSanitizer, with its leak check"
    UDCCP_CAPI_FLAGS="-fsanitize=address,undefined -fno-sanitize-recover=all" tests
    echo "== valgrind"
    UDCCP_CAPI_UNDER="valgrind --quiet --error-exitcode=9 --leak-check=full \
        --errors-for-leak-kinds=definite --show-leak-kinds=definite --fair-sched=yes" tests
}

windows() {
    local triple=x86_64-pc-windows-gnu to=$target/capi-windows private
    private=$(target=$target/$triple static_library "$to" --target "$triple")
    {
        echo "LIBRARY udccp.dll"
        echo EXPORTS
        # Windows has no such descriptors.
        sed -n 's/^ *\(udccp_[a-z_]*\);/\1/p' "$crate/udccp.map" | grep -v '_fd$'
    } >"$to/udccp.def"
    # shellcheck disable=SC2086 # a list of flags
    x86_64-w64-mingw32-gcc -shared -static-libgcc -o "$to/udccp.dll" "$to/udccp.def" \
        "$(target=$target/$triple built libudccp_capi.a)" -Wl,--out-implib,"$to/libudccp.dll.a" $private
    [ "$profile" = dev ] || x86_64-w64-mingw32-strip "$to/udccp.dll"
    cp "$crate/include/udccp.h" "$to/"
    licences "$to"
    echo "capi: $to has udccp.dll ($(stat -c %s "$to/udccp.dll") bytes), libudccp.dll.a, udccp.def, udccp.h"
}

wine() {
    local to
    to=$(realpath "$target/capi-windows")
    UDCCP_CAPI_COMPILER=x86_64-w64-mingw32- UDCCP_CAPI_LIB=$to UDCCP_CAPI_NAME=-ludccp \
        UDCCP_CAPI_UNDER=$(command -v wine64 || echo /usr/lib/wine/wine64) \
        WINEPATH="Z:$to;Z:/usr/x86_64-w64-mingw32/lib" tests -- bad_input calls_in a_file voice
}

case "${1:-}" in
build) build ;;
install)
    may_install
    # Not joined by `&&`: bash would then ignore failures inside of `build`.
    build
    install_all
    ;;
uninstall) uninstall ;;
check) check ;;
sanitize) sanitize ;;
windows) windows ;;
wine) wine ;;
*)
    sed -n '2,12s/^# //p' "$0" >&2
    exit 2
    ;;
esac
