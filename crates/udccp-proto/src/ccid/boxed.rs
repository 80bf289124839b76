//! Copies congestion control in a box.

use super::{CcidReceiver, CcidSender};

/// A sender half that can be copied, as all that derive `Clone` can. So an endpoint can be copied
/// with all its connections, and tests can continue from one state in several ways.
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

/// A receiver half that can be copied, as all that derive `Clone` can.
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
