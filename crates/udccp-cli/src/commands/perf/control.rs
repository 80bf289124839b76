//! Questions and answers over a connection that may lose either: a question is asked again until
//! it is answered, and a repeated question gets the answer that it got before.

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use udccp::Connection;

use super::flow::Sent;
use super::meter::Received;
use super::spec::Spec;
use crate::exit::{CliResult, Exit, Failure};

/// What the client asks.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Ask {
    /// Will you run this?
    Start(Spec),
    /// All streams are attached: begin.
    Go,
    /// How did this stream go, on your side?
    Stream(u16),
    /// How much processor time did it take?
    Cpu,
    /// The test ends before its time, for this reason: send no more.
    Stopped(String),
}

/// What the server answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    /// Yes; the test has this number.
    Ready(u64),
    /// No.
    Refused(String),
    Going,
    /// It is over here too.
    Stopped,
    Stream(StreamResult),
    /// Percent of one core since the beginning.
    Cpu(f64),
}

/// One side's view of a stream.
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

const ASK_AGAIN: Duration = Duration::from_millis(250);
/// A stream's result may have to wait for its last messages.
const GIVE_UP: Duration = Duration::from_secs(20);

/// The client's end.
pub(super) struct Asker<'a> {
    connection: &'a Connection,
    n: u64,
}

impl<'a> Asker<'a> {
    pub(super) fn new(connection: &'a Connection) -> Self {
        Self { connection, n: 0 }
    }

    /// Goes on after `n` questions.
    pub(super) fn after(connection: &'a Connection, n: u64) -> Self {
        Self { connection, n }
    }

    /// Asks until there is an answer.
    pub(super) async fn ask(&mut self, body: Ask) -> CliResult<Answer> {
        self.n += 1;
        let question = encode(&Numbered { n: self.n, body })?;
        let rounds = GIVE_UP.as_millis() / ASK_AGAIN.as_millis();
        for _ in 0..rounds {
            self.connection.send(question.clone()).await?;
            match tokio::time::timeout(ASK_AGAIN, self.answer()).await {
                Ok(answer) => return answer,
                Err(_elapsed) => {}
            }
        }
        Err(Failure::new(Exit::ConnectionLost, "the server no longer answers")
            .hint("check whether it still runs, and whether the path still works"))
    }

    async fn answer(&self) -> CliResult<Answer> {
        while let Some(message) = self.connection.recv().await? {
            let answer: Numbered<Answer> = decode(&message)?;
            if answer.n == self.n {
                return Ok(answer.body);
            }
        }
        Err(Failure::new(Exit::ConnectionLost, "the server ended the test"))
    }
}

/// The server's end.
pub(super) struct Answerer<'a> {
    connection: &'a Connection,
    last: Option<(u64, Bytes)>,
    asked: u64,
}

impl<'a> Answerer<'a> {
    pub(super) fn new(connection: &'a Connection) -> Self {
        Self { connection, last: None, asked: 0 }
    }

    /// The next question that has not been answered; `None` when the client is done.
    pub(super) async fn next(&mut self) -> CliResult<Option<Ask>> {
        while let Some(message) = self.connection.recv().await? {
            let Ok(question) = decode::<Numbered<Ask>>(&message) else { continue };
            match &self.last {
                Some((n, answer)) if *n == question.n => {
                    self.connection.send(answer.clone()).await?;
                }
                Some((n, _)) if *n > question.n => {}
                _ => {
                    self.asked = question.n;
                    return Ok(Some(question.body));
                }
            }
        }
        Ok(None)
    }

    /// Answers the last question.
    pub(super) async fn answer(&mut self, body: Answer) -> CliResult<()> {
        let answer = encode(&Numbered { n: self.asked, body })?;
        self.last = Some((self.asked, answer.clone()));
        self.connection.send(answer).await?;
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
