//! Numbers and labels in words.

use udccp_scenario::protocol;

use crate::schema::{CASE_AXIS, FLOW_KEY, Names};

/// Formats a number with this many decimals and a typographic minus sign.
pub(crate) fn fixed(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}").replace('-', "\u{2212}");
    let is_zero = text.chars().all(|c| "\u{2212}0.".contains(c));
    if is_zero { text.trim_start_matches('\u{2212}').to_owned() } else { text }
}

/// A flow's name next to its protocol; `None` if it repeats the protocol.
pub(crate) fn own_name<'n>(names: &'n Names, flow: &'n str, protocol: &str) -> Option<&'n str> {
    let letters = |text: &str| {
        let letters = text.chars().filter(|c| c.is_alphanumeric());
        letters.map(|c| c.to_ascii_lowercase()).collect::<String>()
    };
    let name = names.of(flow).unwrap_or(flow);
    (!letters(protocol).contains(&letters(name))).then_some(name)
}

/// A label in words: the file's name for it, or a protocol's title.
pub(crate) fn label_text(names: &Names, key: &str, label: &str) -> String {
    match (key, names.of(label)) {
        (_, Some(name)) => name.to_owned(),
        (FLOW_KEY, None) => format!("{label} flow"),
        (CASE_AXIS, None) => label.replace('-', " "),
        _ => protocol::title_of(label).to_owned(),
    }
}
