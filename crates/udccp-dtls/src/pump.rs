//! The receiving task: feeds the engine, sends its answers, and passes on messages.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::Error;
use crate::engine::Event;
use crate::handshake::transmit;
use crate::shared::Shared;

/// Runs until the connection ends or is dropped. Received messages are queued in `incoming`; while
/// that is full, nothing is read from DCCP, which slows the peer down.
pub(crate) async fn run(shared: Arc<Shared>, incoming: mpsc::Sender<Bytes>) {
    loop {
        let due = shared.engine().due();
        let mut events = Vec::new();
        let step = tokio::select! {
            () = incoming.closed() => return,
            received = shared.connection.recv() => match received {
                Ok(Some(packet)) if packet.is_empty() => Ok(()),
                Ok(Some(packet)) => feed(&shared, &packet, &mut events),
                Ok(None) => Err(Error::Truncated),
                Err(e) => Err(e.into()),
            },
            () = shared.due_changed.notified() => Ok(()),
            () = tokio::time::sleep_until(due) => shared.engine().tick(&mut events),
        };
        let step = step.and(take(&shared, &incoming, events).await);
        match step {
            Ok(true) => {}
            Ok(false) => return,
            Err(e) => return shared.end(Err(e)),
        }
    }
}

fn feed(shared: &Shared, packet: &[u8], events: &mut Vec<Event>) -> Result<(), Error> {
    let used = shared.engine().feed(packet, events)?;
    if !used {
        shared.counts.discarded();
    }
    Ok(())
}

/// Processes a packet. Returns whether more can follow.
async fn take(
    shared: &Shared,
    incoming: &mpsc::Sender<Bytes>,
    events: Vec<Event>,
) -> Result<bool, Error> {
    for event in events {
        match event {
            Event::Packet(packet) => transmit(&shared.connection, packet).await?,
            Event::Data(message) => {
                if incoming.send(message).await.is_err() {
                    return Ok(false);
                }
                shared.counts.received();
            }
            Event::CloseNotify => {
                shared.end(Ok(()));
                return Ok(false);
            }
            Event::Certificate(_) | Event::Connected => {}
        }
    }
    Ok(true)
}
