//! Copies congestion control in a box.

use super::{CcidReceiver, CcidSender};

/// A sender half that can be copied, as every one that derives `Clone` can. An endpoint with all
/// its connections is then a value: tests and searches go on from one point in several ways.
pub trait CloneSender {
    /// A copy in a box.
    fn boxed(&self) -> Box<dyn CcidSender>;
}

impl<T: CcidSender + Clone + 'static> CloneSender for T {
    fn boxed(&self) -> Box<dyn CcidSender> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn CcidSender> {
    fn clone(&self) -> Self {
        (**self).boxed()
    }
}

/// A receiver half that can be copied, as every one that derives `Clone` can.
pub trait CloneReceiver {
    /// A copy in a box.
    fn boxed(&self) -> Box<dyn CcidReceiver>;
}

impl<T: CcidReceiver + Clone + 'static> CloneReceiver for T {
    fn boxed(&self) -> Box<dyn CcidReceiver> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn CcidReceiver> {
    fn clone(&self) -> Self {
        (**self).boxed()
    }
}
