//! Starts `ns`.

use std::env;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::Ns2Error;

/// The program.
const NAME: &str = "ns";
/// Passes the pipe to `ns` as descriptor 3, and discards standard output.
const SHELL: &str = "exec 3>&1 1>/dev/null; exec \"$0\" \"$1\"";
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
    let folder = tempfile::tempdir().map_err(Ns2Error::io("a folder for the script"))?;
    let (file, output_path) = (folder.path().join("scenario.tcl"), folder.path().join("output"));
    fs::write(&file, script).map_err(Ns2Error::io("writing the script"))?;
    let output =
        File::create(&output_path).map_err(Ns2Error::io("a file for the output of ns-2"))?;
    let mut child = Command::new("sh")
        .args(["-c", SHELL])
        .args([ns, file.as_path()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(output)
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
    Err(Ns2Error::Ended { status: status.to_string(), output: last_output(&output_path) })
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

fn last_output(output_path: &Path) -> String {
    let output = fs::read(output_path).unwrap_or_default();
    let last = &output[output.len().saturating_sub(OUTPUT_BYTES)..];
    let last = String::from_utf8_lossy(last);
    match last.trim() {
        "" => "it printed nothing".to_owned(),
        text => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
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
}
