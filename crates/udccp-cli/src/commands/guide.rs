//! `udccp guide`: prints the guides of the documentation, for installed programs without a clone.
//! Errors and help refer to a guide by this command, never by a path in a clone.

use include_dir::{Dir, include_dir};

use crate::exit::{CliResult, Exit, Failure};
use crate::output;

/// The build script triggers a rebuild when a page changes.
static PAGES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../docs/guides");

/// Flags of `udccp guide`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// Name of a guide; without it the names are listed
    #[arg(value_name = "NAME")]
    name: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  udccp guide
  udccp guide add-your-paper | less";

/// Runs the command.
pub(crate) fn run(args: &Args) -> CliResult<Exit> {
    let pages = pages();
    let Some(name) = &args.name else {
        for (name, text) in &pages {
            let title = text.lines().next().unwrap_or_default().trim_start_matches("# ");
            output::line(&format!("{name:<18}{title}"))?;
        }
        return Ok(Exit::Success);
    };
    let Some((_, text)) = pages.iter().find(|(known, _)| known == name) else {
        let known: Vec<&str> = pages.iter().map(|(name, _)| *name).collect();
        let error = Failure::new(Exit::Usage, format!("there is no guide \"{name}\""));
        return Err(error.hint(udccp_lab::suggest(name, "choose from", &known)));
    };
    output::line(convert_links(text).trim_end())?;
    Ok(Exit::Success)
}

/// Converts links for readers without a clone: a link to a guide becomes the command that prints
/// it; other links are replaced by their text. Code is not changed.
fn convert_links(page: &str) -> String {
    // Fenced code is every other part.
    let parts = page.split("\n```").enumerate();
    let parts: Vec<_> = parts
        .map(|(i, part)| if i % 2 == 0 { replace_links(part) } else { part.to_owned() })
        .collect();
    parts.join("\n```")
}

/// Converts links in text without fenced code.
fn replace_links(text: &str) -> String {
    let mut out = String::new();
    // Where the text of an open link begins, including an image's exclamation mark.
    let mut begin = None;
    let mut is_code = false;
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let link = rest.strip_prefix("](").filter(|_| !is_code).and_then(|r| r.split_once(')'));
        if let (Some(at), Some((target, after))) = (begin, link)
            && !target.contains("://")
        {
            let words = out.split_off(at);
            out.push_str(words.trim_start_matches('!').trim_start_matches('['));
            if let Some(guide) = guide_of(target) {
                out.extend([" (`udccp ", "guide ", guide, "`)"]);
            }
            (begin, rest) = (None, after);
            continue;
        }
        match next {
            '`' => is_code = !is_code,
            '[' if !is_code => begin = Some(out.len() - usize::from(out.ends_with('!'))),
            _ => {}
        }
        out.push(next);
        rest = &rest[next.len_utf8()..];
    }
    out
}

/// The guide that a link points to.
fn guide_of(target: &str) -> Option<&str> {
    let (file, _) = target.split_once('#').unwrap_or((target, ""));
    file.strip_suffix(".md").filter(|name| PAGES.contains(format!("{name}.md")))
}

/// Names and texts of all guides, sorted.
fn pages() -> Vec<(&'static str, &'static str)> {
    let page = |file: &'static include_dir::File<'_>| {
        Some((file.path().file_stem()?.to_str()?, file.contents_utf8()?))
    };
    let mut pages: Vec<_> = PAGES.files().filter_map(page).collect();
    pages.sort_unstable();
    pages
}
