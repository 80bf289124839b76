//! Holds a window algorithm where it lies, if it is the one that most connections have.

use core::fmt;
use core::ops::{Deref, DerefMut};

use crate::algorithm::Algorithm;
use crate::control::CongestionControl;
use crate::newreno::NewReno;

/// A window algorithm of one sender. NewReno, the default, needs no allocation.
#[derive(Clone)]
pub struct Instance(Held);

#[derive(Clone)]
enum Held {
    NewReno(NewReno),
    Other(Box<dyn CongestionControl>),
}

impl Instance {
    /// A fresh instance with a first window of `initial_cwnd` packets (at least 1).
    pub fn new(algorithm: &Algorithm, initial_cwnd: u32) -> Self {
        Self(match algorithm {
            Algorithm::NewReno { cut, after_cut } => {
                Held::NewReno(NewReno::new(initial_cwnd, *cut, *after_cut))
            }
            other => Held::Other(other.build(initial_cwnd)),
        })
    }
}

impl Deref for Instance {
    type Target = dyn CongestionControl;

    #[inline]
    fn deref(&self) -> &Self::Target {
        match &self.0 {
            Held::NewReno(newreno) => newreno,
            Held::Other(other) => other.as_ref(),
        }
    }
}

impl DerefMut for Instance {
    #[inline]
    fn deref_mut(&mut self) -> &mut Self::Target {
        match &mut self.0 {
            Held::NewReno(newreno) => newreno,
            Held::Other(other) => other.as_mut(),
        }
    }
}

impl fmt::Debug for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
