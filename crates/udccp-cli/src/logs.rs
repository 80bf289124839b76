//! Logs events of sockets and connections to standard error, as `-v` and `RUST_LOG` ask.

use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;

use crate::exit::{CliResult, Exit, Failure};

/// The variable that selects the events to log.
const VARIABLE: &str = "RUST_LOG";

/// Starts logging if `RUST_LOG` or `-v` requests it; `RUST_LOG` takes precedence.
///
/// # Errors
/// `RUST_LOG` is not a filter.
pub(crate) fn start(verbose: u8) -> CliResult<()> {
    let filter = match std::env::var(VARIABLE) {
        Ok(text) if !text.is_empty() => EnvFilter::try_new(&text).map_err(|e| {
            Failure::new(Exit::Usage, format!("{VARIABLE}=\"{text}\" is not a filter: {e}"))
                .hint(format!("write {VARIABLE}=debug, or {VARIABLE}=udccp=trace"))
        })?,
        _ => match verbose {
            // Without a subscriber, an event costs one comparison.
            0 => return Ok(()),
            1 => EnvFilter::new("warn,udccp=info"),
            2 => EnvFilter::new("warn,udccp=debug,udccp_dtls=debug"),
            _ => EnvFilter::new("trace"),
        },
    };
    let colours = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(colours)
        .with_writer(io::stderr)
        .init();
    Ok(())
}
