//! Registers CCIDs by number.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::ccid::ccid2::{self, Ccid2Config, Ccid2Receiver, Ccid2Sender, UnusedCcid2};
use crate::ccid::ccid3::{
    self, Ccid3Config, Ccid3Receiver, Ccid3Sender, UnusedCcid3, UnusedCcid3Receiver,
};
use crate::ccid::ccid4::{self, Ccid4Config};
use crate::ccid::{CcidReceiver, CcidSender, FeatureNeed, OtherSender, ReceiverHalf, SenderHalf};

/// The settings that a half-connection starts with.
#[derive(Clone, Debug)]
pub struct CcidSetup<'a> {
    /// Largest amount of application data in one packet, in bytes.
    pub packet_size_bytes: u32,
    /// Settings of CCID 2.
    pub ccid2: &'a Ccid2Config,
    /// Settings of CCID 3.
    pub ccid3: &'a Ccid3Config,
    /// Settings of CCID 4.
    pub ccid4: &'a Ccid4Config,
}

/// Creates the two halves of a CCID.
pub trait CcidFactory: Send + Sync + fmt::Debug {
    /// Creates a sender half.
    fn sender(&self, setup: &CcidSetup<'_>) -> Box<dyn CcidSender>;

    /// Creates a receiver half.
    fn receiver(&self, setup: &CcidSetup<'_>) -> Box<dyn CcidReceiver>;

    /// Features that the sender half needs, as seen from its side. They are negotiated with the
    /// CCID.
    fn needed_features(&self) -> &'static [FeatureNeed];

    /// The sender half in the form that a connection stores. Only CCIDs of this crate override it.
    #[doc(hidden)]
    fn sender_half(&self, setup: &CcidSetup<'_>) -> SenderHalf {
        SenderHalf::Other(Box::new(OtherSender::new(self.sender(setup), self.needed_features())))
    }

    /// The receiver half in that form.
    #[doc(hidden)]
    fn receiver_half(&self, setup: &CcidSetup<'_>) -> ReceiverHalf {
        ReceiverHalf::Other(Box::new(self.receiver(setup)))
    }
}

/// Why a CCID cannot be registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// The number is registered already.
    #[error("CCID {0} is already registered")]
    Taken(u8),
}

/// The CCIDs that connections can use. A clone shares them.
#[derive(Clone, Debug)]
pub struct CcidRegistry {
    factories: Arc<BTreeMap<u8, Arc<dyn CcidFactory>>>,
}

impl CcidRegistry {
    /// A registry without CCIDs.
    pub fn empty() -> Self {
        Self { factories: Arc::default() }
    }

    /// Registers a CCID. Numbers 248 to 254 are reserved for experiments (RFC 4340 section 10.1).
    ///
    /// # Errors
    /// [`RegistryError::Taken`].
    pub fn register(
        &mut self,
        ccid: u8,
        factory: Arc<dyn CcidFactory>,
    ) -> Result<(), RegistryError> {
        if self.factories.contains_key(&ccid) {
            return Err(RegistryError::Taken(ccid));
        }
        Arc::make_mut(&mut self.factories).insert(ccid, factory);
        Ok(())
    }

    /// The factory of a CCID.
    pub fn get(&self, ccid: u8) -> Option<&dyn CcidFactory> {
        self.factories.get(&ccid).map(AsRef::as_ref)
    }

    /// The registered numbers, in ascending order.
    pub fn numbers(&self) -> impl Iterator<Item = u8> + '_ {
        self.factories.keys().copied()
    }
}

impl Default for CcidRegistry {
    //= 4340-10-2
    /// CCIDs 2, 3 and 4.
    fn default() -> Self {
        let ccid2: Arc<dyn CcidFactory> = Arc::new(Ccid2Factory);
        let ccid3: Arc<dyn CcidFactory> = Arc::new(TfrcFactory::Ccid3);
        let ccid4: Arc<dyn CcidFactory> = Arc::new(TfrcFactory::Ccid4);
        let all = [(ccid2::NUMBER, ccid2), (ccid3::NUMBER, ccid3), (ccid4::NUMBER, ccid4)];
        Self { factories: BTreeMap::from(all).into() }
    }
}

#[derive(Debug)]
struct Ccid2Factory;

impl Ccid2Factory {
    fn sender_of(setup: &CcidSetup<'_>) -> Ccid2Sender {
        Ccid2Sender::new(setup.ccid2, setup.packet_size_bytes)
    }

    fn receiver_of(setup: &CcidSetup<'_>) -> Ccid2Receiver {
        Ccid2Receiver::new(setup.ccid2)
    }
}

impl CcidFactory for Ccid2Factory {
    fn sender(&self, setup: &CcidSetup<'_>) -> Box<dyn CcidSender> {
        Box::new(Self::sender_of(setup))
    }

    fn receiver(&self, setup: &CcidSetup<'_>) -> Box<dyn CcidReceiver> {
        Box::new(Self::receiver_of(setup))
    }

    fn needed_features(&self) -> &'static [FeatureNeed] {
        ccid2::NEEDED_FEATURES
    }

    fn sender_half(&self, setup: &CcidSetup<'_>) -> SenderHalf {
        let whole = Self::sender_of(setup);
        match UnusedCcid2::of(&whole) {
            Some(unused) => SenderHalf::UnusedCcid2(Box::new(unused)),
            None => SenderHalf::Ccid2(Box::new(whole)),
        }
    }

    fn receiver_half(&self, setup: &CcidSetup<'_>) -> ReceiverHalf {
        ReceiverHalf::Ccid2(Self::receiver_of(setup))
    }
}

/// CCID 3, or CCID 4, its variant for small packets.
#[derive(Debug)]
enum TfrcFactory {
    Ccid3,
    Ccid4,
}

impl TfrcFactory {
    fn number(&self) -> u8 {
        match self {
            Self::Ccid3 => ccid3::NUMBER,
            Self::Ccid4 => ccid4::NUMBER,
        }
    }

    fn sender_of(&self, setup: &CcidSetup<'_>) -> Box<Ccid3Sender> {
        let size = setup.packet_size_bytes;
        Box::new(match self {
            Self::Ccid3 => Ccid3Sender::new(setup.ccid3, size),
            Self::Ccid4 => ccid4::sender(setup.ccid4, size),
        })
    }

    fn receiver_of(&self, setup: &CcidSetup<'_>) -> Box<Ccid3Receiver> {
        Box::new(match self {
            Self::Ccid3 => Ccid3Receiver::new(setup.ccid3),
            Self::Ccid4 => ccid4::receiver(setup.ccid4, setup.packet_size_bytes),
        })
    }
}

impl CcidFactory for TfrcFactory {
    fn sender(&self, setup: &CcidSetup<'_>) -> Box<dyn CcidSender> {
        self.sender_of(setup)
    }

    fn receiver(&self, setup: &CcidSetup<'_>) -> Box<dyn CcidReceiver> {
        self.receiver_of(setup)
    }

    fn needed_features(&self) -> &'static [FeatureNeed] {
        ccid3::NEEDED_FEATURES
    }

    fn sender_half(&self, setup: &CcidSetup<'_>) -> SenderHalf {
        let unused = UnusedCcid3::new(self.number(), setup.packet_size_bytes);
        SenderHalf::UnusedCcid3(Box::new(unused))
    }

    fn receiver_half(&self, setup: &CcidSetup<'_>) -> ReceiverHalf {
        let unused = UnusedCcid3Receiver::new(self.number(), setup.packet_size_bytes);
        ReceiverHalf::UnusedTfrc(unused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    //= 4340-10-2 test
    fn ccids_2_3_and_4_are_registered_by_default() {
        let registry = CcidRegistry::default();
        assert_eq!(registry.numbers().collect::<Vec<_>>(), [2, 3, 4]);
        let (ccid2, ccid3) = (Ccid2Config::default(), Ccid3Config::default());
        let ccid4 = Ccid4Config::default();
        let setup =
            CcidSetup { packet_size_bytes: 1400, ccid2: &ccid2, ccid3: &ccid3, ccid4: &ccid4 };
        for n in [2, 3, 4] {
            let factory = registry.get(n).unwrap();
            assert_eq!((factory.sender(&setup).ccid(), factory.receiver(&setup).ccid()), (n, n));
        }
    }

    #[test]
    fn an_experiment_takes_a_free_number_and_no_other() {
        let mut registry = CcidRegistry::default();
        assert_eq!(registry.register(250, Arc::new(Ccid2Factory)), Ok(()));
        assert_eq!(registry.register(2, Arc::new(Ccid2Factory)), Err(RegistryError::Taken(2)));
        assert!(registry.get(250).is_some() && registry.get(5).is_none());
        assert!(CcidRegistry::empty().get(2).is_none());
    }
}
