//! Errors in scripts are reported with their line and the most similar valid word.

use libtest_mimic::Trial;

/// A name, a script's text, and a part of the expected error.
const FAULTS: [(&str, &str, &str); 10] = [
    ("no_title", "listen\n", "t.dccp:1: listen\n  the first line is"),
    (
        "command",
        "# RFC 4340\nlisen\n",
        "t.dccp:2: lisen\n  command \"lisen\" is not known\n  hint: did you mean \"listen\"?",
    ),
    ("type", "# RFC 4340\n< Requst\n", "did you mean \"Request\"?"),
    ("field", "# RFC 4340\n< Ack akc=5\n", "did you mean \"ack\"?"),
    ("option", "# RFC 4340\n< Ack <Ack Vektor(R1)>\n", "did you mean \"Ack Vector\"?"),
    ("feature", "# RFC 4340\n< Ack <Change L(Ack Ration, 3)>\n", "did you mean \"Ack Ratio\"?"),
    ("setting", "# RFC 4340\nset path_mtv=5\n", "did you mean \"path_mtu\"?"),
    ("variable", "# RFC 4340\n< Ack seq=$nobody\n", "$nobody has no value yet"),
    (
        "unmet",
        "# RFC 4340\nlisten\n> Ack\n",
        "t.dccp:3: > Ack\n  nothing like this is sent until 0.0010 s",
    ),
    (
        "unexpected",
        "# RFC 4340\nconnect\n+1 close\n",
        "the endpoint sends what no line expects:\n  Request",
    ),
];

fn fails_with(text: &str, wanted: &str) -> Result<(), String> {
    match crate::run_text("t.dccp", text) {
        Ok(()) => Err("no error was found".into()),
        Err(text_found) if text_found.contains(wanted) => Ok(()),
        Err(text_found) => Err(format!("said:\n{text_found}\nnot:\n{wanted}")),
    }
}

/// One test for each kind of error.
pub(crate) fn trials() -> Vec<Trial> {
    let trial = |(name, text, wanted): (&str, &'static str, &'static str)| {
        Trial::test(format!("language/{name}"), move || {
            fails_with(text, wanted).map_err(Into::into)
        })
    };
    FAULTS.into_iter().map(trial).collect()
}
