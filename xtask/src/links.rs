//! Checks the links of the documentation.

use std::path::Path;

use crate::Finding;
use crate::sources::Source;

/// Reports relative links of a Markdown page whose file or heading does not exist.
pub(crate) fn check(root: &Path, page: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in prose_lines(&page.text) {
        for target in targets(line) {
            if let Some(says) = violation(root, page, target) {
                findings.push(Finding::new(format!("{}:{number}", page.path), says));
            }
        }
    }
    findings
}

/// Lines outside fenced code, with their line numbers.
pub(crate) fn prose_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(i, line)| {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            return None;
        }
        (!fenced).then_some((i + 1, line))
    })
}

/// The targets of `[text](target)` and `![text](target)` in a line.
fn targets(line: &str) -> Vec<&str> {
    let parts = line.split("](").skip(1);
    parts.filter_map(|rest| rest.split(')').next()).map(str::trim).collect()
}

fn violation(root: &Path, page: &Source, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, heading) = target.split_once('#').unwrap_or((target, ""));
    let folder = Path::new(&page.path).parent().unwrap_or(Path::new(""));
    let path = if file.is_empty() { page.path.clone().into() } else { folder.join(file) };
    let full = root.join(&path);
    if !full.exists() {
        return Some(format!("dead link: {target}"));
    }
    if heading.is_empty() || path.extension().is_none_or(|e| e != "md") {
        return None;
    }
    let text = std::fs::read_to_string(full).unwrap_or_default();
    let found = prose_lines(&text).any(|(_, l)| l.starts_with('#') && anchor(l) == heading);
    (!found).then(|| format!("no such heading: {target}"))
}

/// The anchor of a heading: lower case, punctuation removed, spaces as hyphens.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_and_anchors_are_found() {
        assert_eq!(targets("see [a](b.md#c) and ![p](d.svg)"), ["b.md#c", "d.svg"]);
        assert_eq!(anchor("## Where to add what?"), "where-to-add-what");
    }

    #[test]
    fn a_dead_link_is_reported_and_code_is_ignored() {
        let text = "[x](missing.md)\n```\n[y](also.md)\n```\n[z](https://example.org)";
        let page = Source { path: "docs/page.md".into(), text: text.into() };
        let findings = check(Path::new("/nonexistent"), &page);
        assert_eq!(findings.len(), 1);
        assert!(findings[0].place.ends_with(":1") && findings[0].says.contains("missing.md"));
    }
}
