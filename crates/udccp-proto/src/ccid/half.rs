//! The halves of a connection's CCIDs. Those of this crate are called without indirection, because
//! most packets of most connections call them a dozen times.

use super::ccid2::{Ccid2Receiver, Ccid2Sender};
use super::ccid3::{Ccid3Receiver, Ccid3Sender};
use super::{CcidReceiver, CcidSender};

/// The sender half of a connection.
#[derive(Clone, Debug)]
pub enum SenderHalf {
    /// CCID 2, or an experimental CCID that differs only in its window.
    Ccid2(Box<Ccid2Sender>),
    /// CCID 3 or 4.
    Tfrc(Box<Ccid3Sender>),
    /// Another registered CCID; in two boxes, because these are rare and connections are many.
    Other(Box<Box<dyn CcidSender>>),
}

/// The receiver half of a connection.
#[derive(Clone, Debug)]
pub enum ReceiverHalf {
    /// CCID 2, or an experimental CCID with its acknowledgements.
    Ccid2(Ccid2Receiver),
    /// CCID 3 or 4.
    Tfrc(Box<Ccid3Receiver>),
    /// Another registered CCID.
    Other(Box<Box<dyn CcidReceiver>>),
}

/// Calls a method of the sender half, whichever it is.
macro_rules! of_sender {
    ($half:expr, $tx:ident => $call:expr) => {
        match $half {
            $crate::ccid::SenderHalf::Ccid2($tx) => $call,
            $crate::ccid::SenderHalf::Tfrc($tx) => $call,
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
            $crate::ccid::ReceiverHalf::Other($rx) => $call,
        }
    };
}

pub(crate) use {of_receiver, of_sender};
