//! Addresses as text.

use std::io;

use udccp::Address;
use udccp::blocking::Endpoint;

use crate::error::Failure;
use crate::options::Options;

/// The address formats, for messages.
const FORMS: &str = "write host:port, host:port/udp-port, or host:port/raw for DCCP without UDP";

/// Looks up all addresses of a host. Blocks.
pub(crate) fn resolve(text: &str) -> Result<Vec<Address>, Failure> {
    Address::resolve(text).map_err(|e| match e.kind() {
        io::ErrorKind::InvalidInput => Failure::invalid(&e.to_string(), FORMS),
        _ => Failure::unknown_host(text, &e.to_string()),
    })
}

/// Parses a numeric address, for calls that do not wait.
pub(crate) fn numeric(text: &str) -> Result<Address, Failure> {
    let advice = "give host and port in numbers; a name has to be resolved first";
    text.parse::<Address>().map_err(|e| Failure::invalid(&e.to_string(), advice))
}

/// Binds a socket to a numeric address. Also returns the DCCP port in it.
pub(crate) fn bind(text: &str, options: &Options) -> Result<(Endpoint, u16), Failure> {
    let at = numeric(text)?;
    let is_raw = text.ends_with("/raw");
    let below = options.endpoint.clone().raw_ip(is_raw);
    let endpoint = Endpoint::bind_with(at.udp, &below)?;
    let port = match at.port {
        0 if !is_raw => endpoint.local_addr().port(),
        port => port,
    };
    Ok((endpoint, port))
}
