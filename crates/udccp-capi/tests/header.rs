//! Checks that the committed header and version script match the sources. `UDCCP_ACCEPT=1` rewrites
//! the header.

use std::path::{Path, PathBuf};

/// The modules with items for C, in the order of the header.
const MODULES: [&str; 14] = [
    "error",
    "text",
    "options",
    "socket_options",
    "socket",
    "connect",
    "listener",
    "endpoint",
    "descriptors",
    "send",
    "receive",
    "settings",
    "stats",
    "event",
];

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn source(module: &str) -> String {
    std::fs::read_to_string(here("src").join(format!("{module}.rs"))).expect("a source")
}

fn version() -> String {
    let parts = [env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR")];
    format!(
        "\n#if defined(_MSC_VER) && !defined(_SSIZE_T_DEFINED)\n\
         #define _SSIZE_T_DEFINED\n\
         typedef intptr_t ssize_t;\n\
         #endif\n\
         \n/* Version of this header; udccp_version() is that of the library. */\n\
         #define UDCCP_VERSION \"{}\"\n#define UDCCP_VERSION_MAJOR {}\n#define UDCCP_VERSION_MINOR \
         {}\n#define UDCCP_VERSION_PATCH {}\n",
        env!("CARGO_PKG_VERSION"),
        parts[0],
        parts[1],
        env!("CARGO_PKG_VERSION_PATCH"),
    )
}

fn generated() -> String {
    let mut config = cbindgen::Config::from_file(here("cbindgen.toml")).expect("cbindgen.toml");
    config.after_includes = Some(version());
    let builder = MODULES.iter().fold(cbindgen::Builder::new(), |builder, module| {
        builder.with_src(here("src").join(format!("{module}.rs")))
    });
    let mut text = Vec::new();
    builder.with_config(config).generate().expect("a header").write(&mut text);
    String::from_utf8(text).expect("UTF-8")
}

#[test]
fn the_header_is_that_of_the_sources() {
    let (file, text) = (here("include/udccp.h"), generated());
    if std::env::var_os("UDCCP_ACCEPT").is_some() {
        std::fs::write(&file, &text).expect("cannot write the header");
    }
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        found == text,
        "include/udccp.h is out of date: UDCCP_ACCEPT=1 cargo test -p udccp-capi --test header"
    );
}

#[test]
fn every_module_with_functions_for_c_is_in_the_header() {
    for entry in std::fs::read_dir(here("src")).expect("the sources") {
        let path = entry.expect("a source").path();
        let module = path.file_stem().expect("a name").to_string_lossy().into_owned();
        if source(&module).contains("#[unsafe(no_mangle)]") {
            assert!(MODULES.contains(&module.as_str()), "{module}");
        }
    }
}

/// A panic that unwinds into C ends the process, so each function calls one of the functions that
/// catch panics. Two functions return constant texts, and one uses `last`.
#[test]
fn every_function_catches_panics() {
    let borders = ["status(", "number(", "count(", "or_return(", "change(", "set(", "until("];
    let plain = ["last(", "meaning(", "concat!("];
    let mut functions = 0;
    for module in MODULES {
        let text = source(module);
        for (_, rest) in text.match_indices("extern \"C\" fn ").map(|(at, m)| (m, &text[at..])) {
            let body = rest.split_once('{').expect("a body").1.trim_start();
            let is_caught = borders.iter().chain(&plain).any(|border| body.starts_with(border));
            assert!(is_caught, "{module}: {}", &rest[..60]);
            functions += 1;
        }
    }
    assert!(functions > 70, "{functions}");
}

/// The version script lists all functions of the header. A function added later must get a later
/// version.
#[test]
fn every_function_has_a_version() {
    let script = std::fs::read_to_string(here("udccp.map")).expect("a version script");
    let listed: Vec<&str> = script
        .lines()
        .filter_map(|line| line.trim().strip_suffix(';'))
        .filter(|name| name.starts_with("udccp_"))
        .collect();
    let mut declared: Vec<String> = Vec::new();
    for module in MODULES {
        let text = source(module);
        for (at, found) in text.match_indices("extern \"C\" fn ") {
            let name = text[at + found.len()..].split('(').next().expect("a name");
            declared.push(name.to_owned());
        }
    }
    declared.sort();
    assert_eq!(listed, declared, "udccp.map");
}
