//! What many ends share: settings, with what is derived from them, and memory for headers.

use core::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::BytesMut;
use udccp_base::HeaderBytes;

use crate::config::TcpConfig;
use crate::send::Limits;
use crate::wire::{FIXED_HEADER, MAX_OPTIONS};

/// Size of the blocks that long headers are cut from: about 20 of them.
const BLOCK_BYTES: usize = 1024;
/// The longest header.
const LONGEST: usize = FIXED_HEADER + MAX_OPTIONS;

/// Settings of TCP ends. A clone costs nothing, and the ends of many flows can share them.
#[derive(Clone, Debug)]
pub struct SharedTcpConfig(pub(crate) Arc<Shared>);

/// The settings, and what a sending side derives from them.
#[derive(Debug)]
pub(crate) struct Shared {
    config: TcpConfig,
    pub(crate) limits: Limits,
    /// The rest of a block. Of each end, few headers are long: SYNs, and those with SACK blocks.
    block: Mutex<BytesMut>,
}

impl Shared {
    /// The header that `write` writes.
    pub(crate) fn header(&self, write: impl FnOnce(&mut BytesMut)) -> HeaderBytes {
        let mut block = self.block.lock().unwrap_or_else(PoisonError::into_inner);
        // A block is used again if none of its headers is in use.
        if block.capacity() < LONGEST && !block.try_reclaim(LONGEST) {
            block.reserve(BLOCK_BYTES);
        }
        write(&mut block);
        HeaderBytes::take_from(&mut block)
    }
}

impl From<TcpConfig> for SharedTcpConfig {
    fn from(config: TcpConfig) -> Self {
        let (limits, block) = (Limits::of(&config), Mutex::default());
        Self(Arc::new(Shared { config, limits, block }))
    }
}

impl Deref for SharedTcpConfig {
    type Target = TcpConfig;

    fn deref(&self) -> &TcpConfig {
        &self.0.config
    }
}

impl Deref for Shared {
    type Target = TcpConfig;

    #[inline]
    fn deref(&self) -> &TcpConfig {
        &self.config
    }
}
