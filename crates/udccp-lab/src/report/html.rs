//! Helpers to write HTML.

use core::fmt::Write as _;

/// Escapes the characters that are special in HTML.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

/// The heading of a table or figure, with a link to itself.
pub(super) fn heading(id: &str, title: &str) -> String {
    format!(
        "<h3 id=\"{id}\">{} <a class=\"anchor\" href=\"#{id}\" title=\"Link to this\" \
         aria-label=\"Link to this\">#</a></h3>\n",
        escape(title),
        id = escape(id)
    )
}

/// A complete, self-contained page.
pub(super) fn document(title: &str, body: &str) -> String {
    let mut page = String::with_capacity(body.len() + 16_384);
    let _ = write!(
        page,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n\
         <title>{}</title>\n<style>\n{}</style>\n</head>\n<body>\n{body}<script>\n{}{}{}</script>\n\
         </body>\n</html>\n",
        escape(title),
        include_str!("style.css"),
        include_str!("hover.js"),
        include_str!("scroll.js"),
        include_str!("tools.js"),
    );
    page
}

/// A number with a sign, using a typographic minus.
pub(super) fn signed(value: f64, digits: usize) -> String {
    let text = format!("{:.digits$}", value.abs());
    let zero = text.chars().all(|c| c == '0' || c == '.');
    match value {
        _ if zero => format!("±{text}"),
        v if v < 0.0 => format!("−{text}"),
        _ => format!("+{text}"),
    }
}

/// `1 run`, `2 runs`.
pub(super) fn counted(n: usize, one: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{n} {one}{plural}")
}

/// A whole number in groups of three digits.
pub(super) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_formatted_for_readers() {
        assert_eq!(signed(-0.114, 2), "−0.11");
        assert_eq!(signed(0.001, 2), "±0.00");
        assert_eq!(grouped(2_500_000), "2\u{202f}500\u{202f}000");
        assert_eq!(counted(1, "run"), "1 run");
        assert_eq!(escape("a<b & \"c\""), "a&lt;b &amp; &quot;c&quot;");
    }
}
