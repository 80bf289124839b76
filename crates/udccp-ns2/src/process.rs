//! Starts `ns`.

use std::env;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::Ns2Error;

/// The program.
const NAME: &str = "ns";
/// Passes the pipe to `ns` as descriptor 3, and discards standard output. `ns` ignores that the
/// pipe is closed. So it ends with this process where the system has `setpriv`.
const SHELL: &str = "exec 3>&1 1>/dev/null
command -v setpriv >/dev/null && exec setpriv --pdeathsig KILL \"$0\" /dev/stdin
exec \"$0\" /dev/stdin";
/// Bytes to keep of the end of its output.
const OUTPUT_BYTES: usize = 400;

/// Finds the program in the path.
pub(crate) fn find() -> Result<PathBuf, Ns2Error> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut places = env::split_paths(&path).map(|folder| folder.join(NAME));
    places.find(|place| place.is_file()).ok_or(Ns2Error::Missing)
}

/// Asks the program for its version.
pub(crate) fn version(ns: &Path) -> Result<String, Ns2Error> {
    let mut version = String::new();
    run(ns, "puts [open /dev/fd/3 w] [ns-version]; exit 0\n", |line| {
        version = String::from_utf8_lossy(line).into_owned();
        Ok(())
    })?;
    Ok(version)
}

/// Runs a script, and passes each line of its trace to `each`, without the newline.
pub(crate) fn run(
    ns: &Path,
    script: &str,
    mut each: impl FnMut(&[u8]) -> Result<(), Ns2Error>,
) -> Result<(), Ns2Error> {
    // Files without names leave nothing behind, however this process ends.
    let file = |what| tempfile::tempfile().map_err(Ns2Error::io(what));
    let (mut input, output) = (file("a file for the script")?, file("a file for its output")?);
    input
        .write_all(script.as_bytes())
        .and_then(|()| input.rewind())
        .map_err(Ns2Error::io("writing the script"))?;
    let written = output.try_clone().map_err(Ns2Error::io("a file for its output"))?;
    let mut child = Command::new("sh")
        .args(["-c", SHELL])
        .arg(ns)
        .stdin(input)
        .stdout(Stdio::piped())
        .stderr(written)
        .spawn()
        .map_err(Ns2Error::io("starting ns"))?;
    let mut done = Ok(());
    if let Some(trace) = child.stdout.take() {
        done = read(BufReader::with_capacity(1 << 20, trace), &mut each);
    }
    if done.is_err() {
        let _ = child.kill();
    }
    let status = child.wait().map_err(Ns2Error::io("waiting for ns"))?;
    done?;
    if status.success() {
        return Ok(());
    }
    Err(Ns2Error::Ended { status: status.to_string(), output: last_output(output) })
}

fn read(
    mut trace: impl BufRead,
    each: &mut impl FnMut(&[u8]) -> Result<(), Ns2Error>,
) -> Result<(), Ns2Error> {
    let mut line = Vec::new();
    loop {
        line.clear();
        let bytes =
            trace.read_until(b'\n', &mut line).map_err(Ns2Error::io("reading the trace"))?;
        // A line without newline was cut off by a crash, which the exit status reports.
        match line.split_last() {
            Some((b'\n', whole)) => each(whole)?,
            _ if bytes == 0 => return Ok(()),
            _ => {}
        }
    }
}

fn last_output(mut file: File) -> String {
    let mut output = Vec::new();
    // What cannot be read is missing from an error's text only.
    let _ = file.rewind().and_then(|()| file.read_to_end(&mut output));
    let last = &output[output.len().saturating_sub(OUTPUT_BYTES)..];
    let last = String::from_utf8_lossy(last);
    match last.trim() {
        "" => "it printed nothing".to_owned(),
        text => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn truncated_lines_are_ignored() {
        let mut lines = Vec::new();
        let mut each = |line: &[u8]| {
            lines.push(line.to_vec());
            Ok(())
        };
        read(&b"first\nsecond\nthi"[..], &mut each).unwrap();
        assert_eq!(lines, [b"first".to_vec(), b"second".to_vec()]);
    }

    /// A shell in the place of `ns` reads the script from the same file, and has the same pipe.
    #[test]
    fn the_trace_is_what_the_script_writes_and_an_error_has_the_last_output() {
        let mut lines = Vec::new();
        let mut each = |line: &[u8]| {
            lines.push(String::from_utf8_lossy(line).into_owned());
            Ok(())
        };
        let script = "echo traced >&3; echo ignored; echo why >&2; exit 7\n";
        let error = run(Path::new("/bin/sh"), script, &mut each).unwrap_err().to_string();
        assert_eq!(lines, ["traced"]);
        assert!(error.contains("why") && error.contains('7'), "{error}");
    }

    /// Set in the process that the test below kills.
    const KILLED: &str = "UDCCP_NS2_TEST_KILLED";

    /// The process that is killed in the test below.
    #[test]
    fn a_run_that_waits() {
        if env::var_os(KILLED).is_some() {
            let each = |line: &[u8]| {
                let line = String::from_utf8_lossy(line);
                writeln!(std::io::stderr(), "ns {line}").map_err(Ns2Error::io("a line"))
            };
            let _ = run(Path::new("/bin/sh"), "echo $$ >&3; exec tail -f /dev/null\n", each);
        }
    }

    #[test]
    fn a_killed_process_leaves_neither_ns_nor_files() {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["process::tests::a_run_that_waits", "--exact", "--nocapture"])
            .env(KILLED, "1")
            .env("TMPDIR", folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let ns = lines.find_map(|line| line.strip_prefix("ns ").map(str::to_owned)).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let ns = Path::new("/proc").join(ns);
        while fs::read_to_string(ns.join("cmdline")).is_ok_and(|name| !name.is_empty()) {
            std::thread::yield_now();
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
