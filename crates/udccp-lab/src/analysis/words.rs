//! Numbers and labels in words.

use udccp_scenario::protocol;

use crate::schema::{CASE_AXIS, FLOW_KEY, Names};

/// A number with this many digits after the point and a true minus.
pub(crate) fn fixed(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}").replace('-', "\u{2212}");
    let is_zero = text.chars().all(|c| "\u{2212}0.".contains(c));
    if is_zero { text.trim_start_matches('\u{2212}').to_owned() } else { text }
}

/// What a flow is called beside its protocol; `None` where that says the same.
pub(crate) fn own_name<'n>(names: &'n Names, flow: &'n str, protocol: &str) -> Option<&'n str> {
    let letters = |text: &str| {
        let letters = text.chars().filter(|c| c.is_alphanumeric());
        letters.map(|c| c.to_ascii_lowercase()).collect::<String>()
    };
    let name = names.of(flow).unwrap_or(flow);
    (!letters(protocol).contains(&letters(name))).then_some(name)
}

/// A label in words: what the file calls it, or a protocol's title.
pub(crate) fn in_words(names: &Names, key: &str, label: &str) -> String {
    match (key, names.of(label)) {
        (_, Some(name)) => name.to_owned(),
        (FLOW_KEY, None) => format!("{label} flow"),
        (CASE_AXIS, None) => label.replace('-', " "),
        _ => protocol::title_of(label).to_owned(),
    }
}
