//! A check of this machine, with its result.

use serde::Serialize;

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    /// Available.
    Ok,
    /// Works, but not as well as possible.
    Limited,
    /// Not available.
    Missing,
}

/// A check with its result.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Check {
    pub(super) name: &'static str,
    pub(super) state: State,
    /// What was found.
    pub(super) found: String,
    /// What needs it.
    pub(super) needed_for: &'static str,
    /// How to get it, if it is missing or limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) advice: Option<String>,
    /// Whether nothing works without it.
    #[serde(skip)]
    pub(super) essential: bool,
}

impl Check {
    pub(super) fn new(name: &'static str, needed_for: &'static str) -> Self {
        let state = State::Missing;
        Self { name, state, found: "no".into(), needed_for, advice: None, essential: false }
    }

    pub(super) fn ok(mut self, found: impl Into<String>) -> Self {
        (self.state, self.found) = (State::Ok, found.into());
        self
    }

    pub(super) fn limited(mut self, found: impl Into<String>, advice: impl Into<String>) -> Self {
        (self.state, self.found) = (State::Limited, found.into());
        self.advice = Some(advice.into());
        self
    }

    pub(super) fn missing(mut self, found: impl Into<String>, advice: impl Into<String>) -> Self {
        (self.state, self.found) = (State::Missing, found.into());
        self.advice = Some(advice.into());
        self
    }

    pub(super) fn essential(mut self) -> Self {
        self.essential = true;
        self
    }
}
