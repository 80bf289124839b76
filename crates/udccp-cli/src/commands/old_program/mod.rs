//! `udccp run`: runs a program that opens SOCK_DCCP with our preloaded library.

mod elf;

use std::convert::Infallible;
use std::ffi::{CString, OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use clap::ArgGroup;
use socket2::{Domain, Protocol, Socket, Type};
use udccp_broker::{Settings, Transport, place};
use udccp_preload::protocol::{ENV_BROKER, ENV_DIR, ENV_SETTINGS, FAULTS};

use super::numbers::whole;
use crate::exit::{CliResult, Exit, Failure};
use crate::output;

/// Flags of `udccp run`.
#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("transport"))]
#[command(after_help = "\
Example, in two terminals:
  udccp run -- socat -u TCP4-LISTEN:5004,type=6,prototype=33 CREATE:copy
  udccp run -- socat -b 1400 -u OPEN:file,rdonly TCP4:127.0.0.1:5004,type=6,prototype=33")]
pub(crate) struct Args {
    /// UDP port of our servers and of the peers' servers (RFC 6773)
    #[arg(long, value_name = "PORT", default_value_t = udccp::DCCP_UDP_PORT, group = "transport")]
    #[arg(value_parser = whole(1..=u16::MAX))]
    udp_port: u16,
    /// Each server uses the UDP port with the same number as its DCCP port, like `udccp cat` and
    /// `udccp perf`
    #[arg(long, group = "transport")]
    same_port: bool,
    /// Use raw IP, as Linux's DCCP did (needs CAP_NET_RAW)
    #[arg(long, group = "transport")]
    raw_ip: bool,
    /// Length of the send queue in messages, unless the program sets DCCP_SOCKOPT_QPOLICY_TXQLEN
    #[arg(long, value_name = "MESSAGES", default_value_t = 5)]
    #[arg(value_parser = whole::<u32>(1..=1024))]
    tx_queue: u32,
    /// Reproduce a fault of Linux, by name; may be repeated. send-eagain: a blocking send returns
    /// EAGAIN if the queue is full. reset-is-end: a reset connection reads as closed. no-source:
    /// recvfrom returns no address. close-drops: close drops queued messages
    #[arg(long, value_name = "NAME", value_parser = FAULTS.map(|f| f.0))]
    linux_fault: Vec<String>,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    #[arg(value_name = "PROGRAM")]
    program: Vec<OsString>,
}

/// Flags of `udccp broker`.
#[derive(Debug, clap::Args)]
pub(crate) struct BrokerArgs {
    /// The folder of its sockets
    folder: PathBuf,
}

/// Runs the command: executes the program in place of this process.
pub(crate) fn run(args: Args) -> CliResult<Exit> {
    let program = find(args.program.first().expect("clap asks for one"))?;
    elf::check(&program)?;
    let folder = place::folder().map_err(|e| {
        Failure::new(Exit::Failure, format!("no folder for the broker: {e}")).hint(
            "set XDG_RUNTIME_DIR to a folder of your own with mode 0700 and a short, plain path, \
             not mounted noexec",
        )
    })?;
    let library = install(&folder)?;
    if args.raw_ip {
        warn_without_raw_ip();
    }
    let own = std::env::current_exe()?;
    let mut preload = library.into_os_string();
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|o| !o.is_empty()) {
        preload.push(" ");
        preload.push(others);
    }
    let ours = [
        ("LD_PRELOAD", preload),
        (ENV_DIR, folder.into_os_string()),
        (ENV_BROKER, own.into_os_string()),
        (ENV_SETTINGS, settings(&args).to_string().into()),
    ];
    let Err(error) = execute(&program, &args.program, &ours);
    Err(Failure::new(Exit::Failure, format!("cannot run {}: {error}", program.display())))
}

/// Becomes the program. The standard library would reset the signal mask and SIGPIPE.
fn execute(
    program: &Path,
    arguments: &[OsString],
    ours: &[(&str, OsString)],
) -> io::Result<Infallible> {
    let others = std::env::vars_os().filter(|(name, _)| ours.iter().all(|(own, _)| name != *own));
    let ours = ours.iter().map(|(name, value)| (OsString::from(name), value.clone()));
    let variables: Vec<CString> = others
        .chain(ours)
        .map(|(name, value)| c_string(&[name, value].join(OsStr::new("="))))
        .collect::<io::Result<_>>()?;
    let arguments: Vec<CString> =
        arguments.iter().map(|word| c_string(word)).collect::<io::Result<_>>()?;
    udccp_preload::sigpipe::restore();
    Ok(nix::unistd::execve(&c_string(program.as_os_str())?, &arguments, &variables)?)
}

fn c_string(text: &OsStr) -> io::Result<CString> {
    Ok(CString::new(text.as_bytes())?)
}

/// Runs the hidden command, which the library starts.
pub(crate) fn broker(args: &BrokerArgs) -> CliResult<Exit> {
    udccp_broker::serve(&args.folder).map_err(|e| Failure::new(Exit::Failure, e.to_string()))?;
    Ok(Exit::Success)
}

/// A warning, not an error: a broker that runs already may have the right.
fn warn_without_raw_ip() {
    let raw = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(33)));
    if raw.is_err_and(|e| e.kind() == io::ErrorKind::PermissionDenied) {
        let denied = udccp::Error::RawDenied;
        output::note(&format!("warning: {denied}; calls of the program may fail with EPERM"));
        output::note(&format!("hint: {}", denied.advice()));
    }
}

fn settings(args: &Args) -> Settings {
    let transport = if args.raw_ip {
        Transport::Raw
    } else if args.same_port {
        Transport::SamePort
    } else {
        Transport::Udp(args.udp_port)
    };
    let mut settings = Settings { transport, tx_qlen: args.tx_queue, ..Settings::default() };
    for name in &args.linux_fault {
        settings.copy_fault(name);
    }
    settings
}

/// Finds a program's file as a shell does.
fn find(name: &OsString) -> CliResult<PathBuf> {
    let given = Path::new(name);
    if given.components().count() > 1 {
        return Ok(given.to_owned());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_program = |file: &PathBuf| file.is_file() && is_executable(file);
    std::env::split_paths(&path).map(|folder| folder.join(given)).find(is_program).ok_or_else(
        || Failure::new(Exit::BadInput, format!("no program {} in PATH", given.display())),
    )
}

fn is_executable(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|status| status.permissions().mode() & 0o111 != 0)
}

/// Writes the embedded library to the broker's folder, under a name derived from its contents:
/// running programs keep the version that they loaded.
fn install(folder: &Path) -> CliResult<PathBuf> {
    if udccp_preload::LIBRARY.is_empty() {
        let message = "there is no preload library for this processor";
        return Err(Failure::new(Exit::Unsupported, message).hint("x86-64 and AArch64 have one"));
    }
    let sum = fingerprint(udccp_preload::LIBRARY);
    let path = folder.join(format!("libudccp_preload-{sum:016x}.so"));
    if fs::read(&path).is_ok_and(|old| old == udccp_preload::LIBRARY) {
        return Ok(path);
    }
    let fail =
        |e: io::Error| Failure::new(Exit::Failure, format!("cannot write {}: {e}", path.display()));
    let new = folder.join(format!("new-{}.so", std::process::id()));
    fs::write(&new, udccp_preload::LIBRARY).map_err(fail)?;
    // The program has to read it, whatever the umask.
    fs::set_permissions(&new, fs::Permissions::from_mode(0o644)).map_err(fail)?;
    fs::rename(&new, &path).map_err(fail)?;
    Ok(path)
}

/// A hash of bytes (FNV-1a), so that a different library gets a different name.
fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}
