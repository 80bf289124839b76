//! Requests and replies over an unreliable connection. A request is repeated until it is answered,
//! and a repeated request gets the same reply as before.

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use udccp::Connection;

use super::flow::Sent;
use super::meter::Received;
use super::spec::Spec;
use crate::exit::{CliResult, Exit, Failure};

/// Requests of the client.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Request {
    /// Prepare this test.
    Start(Spec),
    /// All streams are attached: start.
    Go,
    /// Return your result for this stream.
    Stream(u16),
    /// Return the processor time used.
    Cpu,
    /// The test ends early, for this reason: stop sending.
    Stopped(String),
}

/// Replies of the server.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Reply {
    /// The test was accepted and has this number.
    Ready(u64),
    /// The test was refused, for this reason.
    Refused(String),
    Going,
    /// The test has stopped here too.
    Stopped,
    Stream(StreamResult),
    /// Percent of one core since the start.
    Cpu(f64),
}

/// One side's result for a stream.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct StreamResult {
    pub(super) sent: Option<Sent>,
    pub(super) received: Option<Received>,
}

#[derive(Serialize, Deserialize)]
struct Numbered<T> {
    n: u64,
    body: T,
}

const RETRY_AFTER: Duration = Duration::from_millis(250);
/// Time limit for a reply: a stream's result may have to wait for its last messages.
const REPLY_WITHIN: Duration = Duration::from_secs(20);

/// The client's side.
pub(super) struct Requester<'a> {
    connection: &'a Connection,
    n: u64,
}

impl<'a> Requester<'a> {
    pub(super) fn new(connection: &'a Connection) -> Self {
        Self { connection, n: 0 }
    }

    /// Continues after `n` requests.
    pub(super) fn after(connection: &'a Connection, n: u64) -> Self {
        Self { connection, n }
    }

    /// Repeats a request until it is answered.
    pub(super) async fn request(&mut self, body: Request) -> CliResult<Reply> {
        self.n += 1;
        let request = encode(&Numbered { n: self.n, body })?;
        let rounds = REPLY_WITHIN.as_millis() / RETRY_AFTER.as_millis();
        for _ in 0..rounds {
            self.connection.send(request.clone()).await?;
            match tokio::time::timeout(RETRY_AFTER, self.reply()).await {
                Ok(reply) => return reply,
                Err(_elapsed) => {}
            }
        }
        Err(Failure::new(Exit::ConnectionLost, "the server no longer answers")
            .hint("check whether it still runs, and whether the path still works"))
    }

    async fn reply(&self) -> CliResult<Reply> {
        while let Some(message) = self.connection.recv().await? {
            let reply: Numbered<Reply> = decode(&message)?;
            if reply.n == self.n {
                return Ok(reply.body);
            }
        }
        Err(Failure::new(Exit::ConnectionLost, "the server ended the test"))
    }
}

/// The server's side.
pub(super) struct Responder<'a> {
    connection: &'a Connection,
    last: Option<(u64, Bytes)>,
    current: u64,
}

impl<'a> Responder<'a> {
    pub(super) fn new(connection: &'a Connection) -> Self {
        Self { connection, last: None, current: 0 }
    }

    /// The next new request; `None` when the client is done.
    pub(super) async fn next(&mut self) -> CliResult<Option<Request>> {
        while let Some(message) = self.connection.recv().await? {
            let Ok(request) = decode::<Numbered<Request>>(&message) else { continue };
            match &self.last {
                Some((n, reply)) if *n == request.n => {
                    self.connection.send(reply.clone()).await?;
                }
                Some((n, _)) if *n > request.n => {}
                _ => {
                    self.current = request.n;
                    return Ok(Some(request.body));
                }
            }
        }
        Ok(None)
    }

    /// Answers the latest request.
    pub(super) async fn reply(&mut self, body: Reply) -> CliResult<()> {
        let reply = encode(&Numbered { n: self.current, body })?;
        self.last = Some((self.current, reply.clone()));
        self.connection.send(reply).await?;
        Ok(())
    }
}

fn encode(body: &impl Serialize) -> CliResult<Bytes> {
    Ok(serde_json::to_vec(body).map_err(std::io::Error::from)?.into())
}

fn decode<T: for<'de> Deserialize<'de>>(message: &[u8]) -> CliResult<T> {
    serde_json::from_slice(message).map_err(|e| {
        Failure::new(Exit::ConnectionLost, format!("cannot understand the peer: {e}"))
            .hint("run the same version of udccp on both sides")
    })
}
