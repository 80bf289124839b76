//! Splits a line of a script into words, numbers and signs.

use crate::error::ScriptError;

/// A part of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    /// Letters, digits, `_`, `.`, `:`, and `-` between letters.
    Word(String),
    /// Between double quotes.
    Text(String),
    /// One of `< > = ( ) , $ + - * ~`.
    Sign(char),
    /// `...`
    Others,
}

/// The tokens of one line, read from the left.
#[derive(Clone, Debug)]
pub(crate) struct Tokens {
    pub(crate) line: usize,
    all: Vec<Token>,
    at: usize,
}

fn in_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | ':')
}

impl Tokens {
    /// Splits a line. Text after `#`, outside quotes, is a comment.
    pub(crate) fn of(line: usize, text: &str) -> Result<Self, ScriptError> {
        let chars: Vec<char> = text.chars().collect();
        let (mut all, mut i) = (Vec::new(), 0);
        while let Some(&c) = chars.get(i) {
            let rest = &chars[i..];
            i += 1;
            match c {
                '#' => break,
                ' ' | '\t' => {}
                '"' => {
                    let end = rest[1..].iter().position(|c| *c == '"');
                    let end =
                        end.ok_or_else(|| ScriptError::new(line, "a quote that nothing ends"))?;
                    all.push(Token::Text(rest[1..=end].iter().collect()));
                    i += end + 1;
                }
                '.' if rest.starts_with(&['.', '.', '.']) => {
                    all.push(Token::Others);
                    i += 2;
                }
                c if in_word(c) => {
                    let len = word_len(rest);
                    all.push(Token::Word(rest[..len].iter().collect()));
                    i += len - 1;
                }
                '<' | '>' | '=' | '(' | ')' | ',' | '$' | '+' | '-' | '*' | '~' => {
                    all.push(Token::Sign(c));
                }
                other => {
                    return Err(ScriptError::new(line, format!("{other:?} means nothing here")));
                }
            }
        }
        Ok(Self { line, all, at: 0 })
    }

    pub(crate) fn peek(&self) -> Option<&Token> {
        self.all.get(self.at)
    }

    pub(crate) fn peek_second(&self) -> Option<&Token> {
        self.all.get(self.at + 1)
    }

    pub(crate) fn next(&mut self) -> Option<Token> {
        let token = self.all.get(self.at).cloned();
        self.at += 1;
        token
    }

    pub(crate) fn is_done(&self) -> bool {
        self.at >= self.all.len()
    }

    /// Takes this sign if it is next.
    pub(crate) fn take(&mut self, sign: char) -> bool {
        let is_there = self.peek() == Some(&Token::Sign(sign));
        self.at += usize::from(is_there);
        is_there
    }

    pub(crate) fn take_others(&mut self) -> bool {
        let is_there = self.peek() == Some(&Token::Others);
        self.at += usize::from(is_there);
        is_there
    }

    /// Takes this word if it is next.
    pub(crate) fn take_word(&mut self, word: &str) -> bool {
        let is_there = matches!(self.peek(), Some(Token::Word(w)) if w == word);
        self.at += usize::from(is_there);
        is_there
    }

    pub(crate) fn expect(&mut self, sign: char) -> Result<(), ScriptError> {
        if self.take(sign) { Ok(()) } else { Err(self.wanted(&format!("{sign:?}"))) }
    }

    pub(crate) fn word(&mut self, what: &str) -> Result<String, ScriptError> {
        match self.peek() {
            Some(Token::Word(word)) => {
                let word = word.clone();
                self.at += 1;
                Ok(word)
            }
            _ => Err(self.wanted(what)),
        }
    }

    /// An error: something other than `what` was found.
    pub(crate) fn wanted(&self, what: &str) -> ScriptError {
        let found = match self.peek() {
            None => "the line ends".to_owned(),
            Some(Token::Word(w)) => format!("{w:?} is there"),
            Some(Token::Text(t)) => format!("the text {t:?} is there"),
            Some(Token::Sign(c)) => format!("{c:?} is there"),
            Some(Token::Others) => "\"...\" is there".to_owned(),
        };
        ScriptError::new(self.line, format!("{what} was expected, but {found}"))
    }

    pub(crate) fn error(&self, says: impl Into<String>) -> ScriptError {
        ScriptError::new(self.line, says)
    }
}

/// A word's length. It includes a `-` between two letters, as in `not-listening`, but not `...`.
fn word_len(rest: &[char]) -> usize {
    let mut len = 0;
    while let Some(&c) = rest.get(len) {
        let dash = c == '-'
            && len > 0
            && rest[len - 1].is_alphabetic()
            && rest.get(len + 1).is_some_and(|c| c.is_alphabetic());
        if rest[len..].starts_with(&['.', '.', '.']) || !(in_word(c) || dash) {
            break;
        }
        len += 1;
    }
    len
}

/// A number, `*`, or a variable, plus or minus a constant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Number {
    Any,
    Sum { variable: Option<String>, plus: i128 },
}

/// A whole number: decimal or with `0x`, `_` between digits.
pub(crate) fn whole(text: &str) -> Option<i128> {
    let digits = text.replace('_', "");
    match digits.strip_prefix("0x") {
        Some(hex) => i128::from_str_radix(hex, 16).ok(),
        None => digits.parse().ok().filter(|n| *n >= 0),
    }
}

/// Reads a number expression.
pub(crate) fn number(t: &mut Tokens) -> Result<Number, ScriptError> {
    if t.take('*') {
        return Ok(Number::Any);
    }
    let (mut variable, mut plus) = (None, 0);
    if t.take('$') {
        variable = Some(t.word("the name of a variable")?);
    } else {
        plus = plain(t)?;
    }
    loop {
        if t.take('+') {
            plus += plain(t)?;
        } else if t.take('-') {
            plus -= plain(t)?;
        } else {
            return Ok(Number::Sum { variable, plus });
        }
    }
}

fn plain(t: &mut Tokens) -> Result<i128, ScriptError> {
    let wanted = t.wanted("a number");
    let word = t.word("a number")?;
    whole(&word).ok_or(wanted)
}

/// A number of seconds, or `200ms`, `5s`, `10us`; in nanoseconds.
pub(crate) fn span(text: &str) -> Option<u64> {
    let (digits, unit) = match text {
        t if t.ends_with("ms") => (&t[..t.len() - 2], 1e6),
        t if t.ends_with("us") => (&t[..t.len() - 2], 1e3),
        t if t.ends_with('s') => (&t[..t.len() - 1], 1e9),
        t => (t, 1e9),
    };
    let value: f64 = digits.parse().ok()?;
    (value >= 0.0).then_some((value * unit + 0.5) as u64)
}

/// The bytes of a word like `0x0102ff`.
pub(crate) fn hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("0x").filter(|d| d.is_ascii() && d.len() % 2 == 0)?;
    let byte = |i: usize| u8::from_str_radix(digits.get(i..i + 2)?, 16).ok();
    (0..digits.len()).step_by(2).map(byte).collect()
}
