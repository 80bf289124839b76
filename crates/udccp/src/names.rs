//! Connects to hosts by name, trying the addresses of both families (RFC 8305).

use std::collections::VecDeque;
use std::io;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::{Address, Error};

/// Time before the next address is tried in parallel (RFC 8305 section 5).
pub(crate) const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// Best first, with alternating families (RFC 8305 section 4).
pub(crate) fn interleaved(addresses: &[Address]) -> VecDeque<Address> {
    let first_is_v4 = addresses.first().is_some_and(|a| a.udp.is_ipv4());
    let of = |v4: bool| addresses.iter().copied().filter(move |a| a.udp.is_ipv4() == v4);
    let (mut ours, mut others) = (of(first_is_v4), of(!first_is_v4));
    let mut order = VecDeque::with_capacity(addresses.len());
    while order.len() < addresses.len() {
        order.extend(ours.next());
        order.extend(others.next());
    }
    order
}

/// The error of a failed lookup.
pub(crate) fn unresolved(source: io::Error) -> Error {
    Error::Io { what: "cannot find the address of the host", source }
}

/// Handshakes to several addresses of one host. The first to complete is used, and the others are
/// cancelled.
#[derive(Debug)]
pub(crate) struct Race<C> {
    waiting: VecDeque<Address>,
    running: Vec<C>,
    failed: Option<Error>,
}

impl<C> Race<C> {
    pub(crate) fn new(addresses: &[Address]) -> Self {
        Self { waiting: interleaved(addresses), running: Vec::new(), failed: None }
    }

    /// Whether there are addresses left to try.
    pub(crate) fn has_more(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Starts the next attempt that can be started.
    pub(crate) fn start_next(&mut self, mut start: impl FnMut(Address) -> Result<C, Error>) {
        while let Some(address) = self.waiting.pop_front() {
            match start(address) {
                Ok(connecting) => return self.running.push(connecting),
                Err(e) => self.failed = Some(e),
            }
        }
    }

    /// A connection, or why there is none. Returns `Ready(None)` if an attempt failed and others
    /// are left, so that the next one starts at once.
    pub(crate) fn poll<T>(
        &mut self,
        cx: &mut Context<'_>,
        mut poll: impl FnMut(&mut C, &mut Context<'_>) -> Poll<Result<T, Error>>,
    ) -> Poll<Result<Option<T>, Error>> {
        let (mut won, mut lost) = (None, false);
        self.running.retain_mut(|connecting| match poll(connecting, cx) {
            _ if won.is_some() => false,
            Poll::Pending => true,
            Poll::Ready(Ok(connection)) => {
                won = Some(connection);
                false
            }
            Poll::Ready(Err(e)) => {
                self.failed = Some(e);
                lost = true;
                false
            }
        });
        if won.is_some() || (lost && self.has_more()) {
            return Poll::Ready(Ok(won));
        }
        if self.running.is_empty() && !self.has_more() {
            let nothing = || unresolved(io::Error::new(io::ErrorKind::NotFound, "no address"));
            return Poll::Ready(Err(self.failed.take().unwrap_or_else(nothing)));
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_take_turns_and_the_first_stays_first() {
        let parse = |list: &[&str]| -> Vec<Address> {
            list.iter().map(|text| text.parse().expect("an address")).collect()
        };
        let found = parse(&["[::1]:1", "[::2]:1", "[::3]:1", "1.0.0.1:1", "1.0.0.2:1"]);
        let order = parse(&["[::1]:1", "1.0.0.1:1", "[::2]:1", "1.0.0.2:1", "[::3]:1"]);
        assert_eq!(interleaved(&found), order);
    }

    #[test]
    fn a_host_without_addresses_is_an_error() {
        let mut cx = Context::from_waker(std::task::Waker::noop());
        let mut race = Race::<()>::new(&[]);
        let polled = race.poll(&mut cx, |(), _| Poll::<Result<(), Error>>::Pending);
        assert!(matches!(polled, Poll::Ready(Err(Error::Io { .. }))));
    }

    /// RFC 8305 section 5: after an attempt fails, the next starts at once. The host counts as
    /// refused only after the last attempt has failed.
    #[test]
    fn failed_attempt_does_not_cancel_the_others() {
        let mut cx = Context::from_waker(std::task::Waker::noop());
        let addresses = ["192.0.2.1:1", "192.0.2.2:1"].map(|text| text.parse().unwrap());
        let mut race = Race::new(&addresses);
        let fails = |at: Address| -> Poll<Result<(), Error>> {
            Poll::Ready(Err(Error::Refused { peer: at }))
        };
        race.start_next(Ok);
        let first_failed = race.poll(&mut cx, |at, _| fails(*at));
        assert!(matches!(first_failed, Poll::Ready(Ok(None))) && race.has_more());

        let mut race = Race::new(&addresses);
        [(); 2].into_iter().for_each(|()| race.start_next(Ok));
        let of_first = |at: &mut Address, _: &mut Context<'_>| {
            if *at == addresses[0] { fails(*at) } else { Poll::Pending }
        };
        assert!(race.poll(&mut cx, of_first).is_pending(), "the other may still succeed");
        let refused = race.poll(&mut cx, |at, _| fails(*at));
        let Poll::Ready(Err(Error::Refused { peer })) = refused else { panic!("{refused:?}") };
        assert_eq!(peer, addresses[1]);
    }
}
