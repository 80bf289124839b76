//! The guides that the program prints, and how errors and help refer to them.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{fails, stdout};

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").map(|e| e.expect("an entry").path()) {
        if entry.is_dir() {
            sources(&entry, found);
        } else if entry.extension().is_some_and(|e| e == "rs") {
            found.push(entry);
        }
    }
}

/// The links in a page: `](target)` outside of code. Lines without a link are printed unchanged.
fn links(text: &str) -> Vec<&str> {
    let prose = text.split("\n```").step_by(2);
    let targets = prose.flat_map(|part| part.split("](").skip(1));
    targets.filter_map(|rest| rest.split(')').next()).collect()
}

/// Readers may have no clone, so paths would be useless.
#[test]
fn links_between_guides_name_the_command_and_others_are_plain_text() {
    let sockets = stdout(&["guide", "sockets"]);
    assert!(sockets.contains("directly over IP (`udccp guide raw-ip`)"), "{sockets}");
    assert!(sockets.contains("[`tracing`](https://docs.rs/tracing)"), "{sockets}");
    let python = stdout(&["guide", "python"]);
    assert!(python.contains("what they mean (`udccp guide sockets`)"), "{python}");
    assert!(python.contains("Each is a program under a hundred lines (examples)."), "{python}");
    assert!(python.contains("A flood of\nUDP repeats the study"), "{python}");
    assert!(
        stdout(&["guide", "experiments"]).contains("\nA page of a report: what the study says")
    );
    let list = stdout(&["guide"]);
    for name in list.lines().filter_map(|line| line.split_whitespace().next()) {
        let printed = stdout(&["guide", name]);
        for target in links(&printed) {
            assert!(target.starts_with("https://"), "{name}: {target}");
        }
    }
}

#[test]
fn each_guide_is_printed_whole() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides");
    let list = stdout(&["guide"]);
    let mut count = 0;
    for entry in fs::read_dir(folder).expect("the guides") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().and_then(|s| s.to_str()).expect("a name");
        let text = fs::read_to_string(&path).expect("a text");
        let printed = stdout(&["guide", name]);
        assert_eq!(printed.lines().count(), text.lines().count(), "{name}");
        let pairs = text.lines().zip(printed.lines());
        for (line, shown) in pairs.filter(|(line, _)| !line.contains('[') && !line.contains("](")) {
            assert_eq!(shown, line, "{name}");
        }
        assert!(list.lines().any(|l| l.starts_with(name)), "{name}: {list}");
        count += 1;
    }
    assert_eq!(list.lines().count(), count);
    fails(&["guide", "ns3"], 2, &["there is no guide \"ns3\"", "hint: did you mean `ns2`?"]);
}

/// An installed program has no clone, so a path there is useless.
#[test]
fn errors_and_help_name_guides_by_the_command_that_prints_them() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for each in fs::read_dir(crates).expect("the crates") {
        let source = each.expect("an entry").path().join("src");
        if source.is_dir() {
            sources(&source, &mut files);
        }
    }
    let mut named = 0;
    for file in files {
        let text = fs::read_to_string(&file).expect("a text");
        for line in text.lines().filter(|l| !l.trim_start().starts_with("//")) {
            let is_path = line.contains("docs/guides/") && !line.contains("include_");
            assert!(!is_path, "{}: {line}", file.display());
            for rest in line.split("`udccp guide ").skip(1) {
                let name = rest.split('`').next().expect("a name");
                assert!(!stdout(&["guide", name]).is_empty(), "{}: {line}", file.display());
                named += 1;
            }
        }
    }
    assert!(named >= 5, "only {named} guides are named");
}
