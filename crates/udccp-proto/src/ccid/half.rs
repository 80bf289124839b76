//! The halves of a connection's CCIDs. Those of this crate are called without indirection, because
//! most packets of most connections call them a dozen times.

use core::ops::{Deref, DerefMut};

use udccp_base::{Instant, MaybeInstant};
use udccp_wire::Seqno;

use super::ccid2::{Ccid2Receiver, Ccid2Sender, UnusedCcid2};
use super::ccid3::{Ccid3Receiver, Ccid3Sender, UnusedCcid3, UnusedCcid3Receiver};
use super::{CcidReceiver, CcidSender, FeatureNeed, Feedback, ReceivedInfo, ReceivedRun};
use crate::config::ConnectionConfig;

/// The sender half of a connection.
#[derive(Clone, Debug)]
pub enum SenderHalf {
    /// CCID 2, or an experimental CCID that differs only in its window.
    Ccid2(Box<Ccid2Sender>),
    /// CCID 3 or 4.
    Tfrc(Box<Ccid3Sender>),
    /// CCID 2, before the first data.
    UnusedCcid2(Box<UnusedCcid2>),
    /// CCID 3 or 4, before the first data.
    UnusedCcid3(Box<UnusedCcid3>),
    /// Another registered CCID; in two boxes, because these are rare and connections are many.
    Other(Box<OtherSender>),
}

/// The sender half of a CCID that is not of this crate.
#[derive(Clone, Debug)]
#[doc(hidden)]
pub struct OtherSender {
    half: Box<dyn CcidSender>,
    /// Features that it needs.
    pub(crate) needs: &'static [FeatureNeed],
}

impl OtherSender {
    /// Holds this half, which needs these features.
    pub(crate) fn new(half: Box<dyn CcidSender>, needs: &'static [FeatureNeed]) -> Self {
        Self { half, needs }
    }
}

impl Deref for OtherSender {
    type Target = dyn CcidSender;

    fn deref(&self) -> &Self::Target {
        &*self.half
    }
}

impl DerefMut for OtherSender {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut *self.half
    }
}

impl SenderHalf {
    /// The whole half, if this one only stands in for it until the first data. The settings are
    /// those that it was made with.
    #[cold]
    #[inline(never)]
    pub(crate) fn whole(&self, config: &ConnectionConfig) -> Option<Self> {
        match self {
            Self::UnusedCcid2(tx) => Some(Self::Ccid2(Box::new(tx.whole(&config.ccid2)))),
            Self::UnusedCcid3(tx) => Some(Self::Tfrc(Box::new(tx.whole(config)))),
            Self::Ccid2(_) | Self::Tfrc(_) | Self::Other(_) => None,
        }
    }
}

/// The receiver half of a connection.
#[derive(Clone, Debug)]
pub enum ReceiverHalf {
    /// CCID 2, or an experimental CCID with its acknowledgements.
    Ccid2(Ccid2Receiver),
    /// CCID 3 or 4.
    Tfrc(TfrcReceiver),
    /// CCID 3 or 4, before the first data.
    UnusedTfrc(UnusedCcid3Receiver),
    /// Another registered CCID.
    Other(Box<Box<dyn CcidReceiver>>),
}

impl ReceiverHalf {
    /// The whole half, if this one only stands in for it until the first data. The settings are
    /// those that it was made with.
    #[cold]
    #[inline(never)]
    pub(crate) fn whole(&self, config: &ConnectionConfig) -> Option<Self> {
        match self {
            Self::UnusedTfrc(rx) => Some(Self::Tfrc(TfrcReceiver::new(rx.whole(config).into()))),
            Self::Ccid2(_) | Self::Tfrc(_) | Self::Other(_) => None,
        }
    }
}

/// A receiver half of CCID 3 or 4, and whether it has anything to report. A connection that only
/// sends asks for that with every packet, and would not read the rest of the half otherwise.
#[derive(Clone, Debug)]
pub struct TfrcReceiver {
    half: Box<Ccid3Receiver>,
    has_news: bool,
}

impl TfrcReceiver {
    /// Holds this half.
    pub fn new(half: Box<Ccid3Receiver>) -> Self {
        Self { has_news: half.has_news(), half }
    }

    /// Processes a packet.
    #[inline]
    pub(crate) fn on_packet(&mut self, now: Instant, packet: &ReceivedInfo) {
        self.half.on_packet(now, packet);
        self.has_news = self.half.has_news();
    }

    /// Processes data packets that arrived together.
    pub(crate) fn on_run(&mut self, now: Instant, run: &ReceivedRun<'_>) {
        self.half.on_run(now, run);
        self.has_news = self.half.has_news();
    }

    /// Packet `seq` was sent, and acknowledges.
    pub(crate) fn on_feedback_sent(&mut self, now: Instant, seq: Seqno) {
        self.half.on_feedback_sent(now, seq);
        self.has_news = self.half.has_news();
    }

    /// Whether certainly no feedback is owed.
    #[inline]
    pub(crate) fn owes_nothing(&self) -> bool {
        !self.has_news
    }

    /// Whether feedback is owed.
    #[inline]
    pub(crate) fn feedback(&self, now: Instant) -> Feedback {
        if self.has_news { self.half.feedback(now) } else { Feedback::None }
    }

    /// Whether feedback is due.
    #[inline]
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.has_news && self.half.feedback(now) == Feedback::Due
    }

    /// The time of the next feedback.
    #[inline]
    pub(crate) fn next_wake(&self) -> MaybeInstant {
        if self.has_news { self.half.poll_timeout().into() } else { MaybeInstant::NONE }
    }
}

impl Deref for TfrcReceiver {
    type Target = Ccid3Receiver;

    fn deref(&self) -> &Ccid3Receiver {
        &self.half
    }
}

impl DerefMut for TfrcReceiver {
    fn deref_mut(&mut self) -> &mut Ccid3Receiver {
        &mut self.half
    }
}

/// Calls a method of the sender half, whichever it is.
macro_rules! of_sender {
    ($half:expr, $tx:ident => $call:expr) => {
        match $half {
            $crate::ccid::SenderHalf::Ccid2($tx) => $call,
            $crate::ccid::SenderHalf::Tfrc($tx) => $call,
            $crate::ccid::SenderHalf::UnusedCcid2($tx) => $call,
            $crate::ccid::SenderHalf::UnusedCcid3($tx) => $call,
            $crate::ccid::SenderHalf::Other($tx) => $call,
        }
    };
}

/// Calls a method of the receiver half, whichever it is.
macro_rules! of_receiver {
    ($half:expr, $rx:ident => $call:expr) => {
        match $half {
            $crate::ccid::ReceiverHalf::Ccid2($rx) => $call,
            $crate::ccid::ReceiverHalf::Tfrc($rx) => $call,
            $crate::ccid::ReceiverHalf::UnusedTfrc($rx) => $call,
            $crate::ccid::ReceiverHalf::Other($rx) => $call,
        }
    };
}

pub(crate) use {of_receiver, of_sender};
