//! Finds out whether a library can be preloaded into a program.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::exit::{CliResult, Exit, Failure};

/// Scripts that name scripts as their interpreters, at most.
const MAX_INTERPRETERS: usize = 4;

/// Why a library cannot be preloaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Obstacle {
    Static,
    OtherMachine,
    Foreign,
}

/// Refuses a program that would run without the library, and so without DCCP.
pub(super) fn check(program: &Path) -> CliResult<()> {
    let mut file = program.to_owned();
    for _ in 0..=MAX_INTERPRETERS {
        let shown = file.display().to_string();
        let unreadable = |e: io::Error| {
            Failure::new(Exit::BadInput, format!("cannot read the program {shown}: {e}"))
        };
        let mut open = File::open(&file).map_err(unreadable)?;
        check_privileges(&open, &file)?;
        let mut start = [0; 256];
        let len = read_up_to(&mut open, &mut start).map_err(unreadable)?;
        if let Some(interpreter) = interpreter_of(&start[..len]) {
            file = interpreter;
            continue;
        }
        let obstacle = match obstacle_of(&mut open, &start[..len]).map_err(unreadable)? {
            None => return Ok(()),
            Some(obstacle) => obstacle,
        };
        return Err(match obstacle {
            Obstacle::Static => Failure::new(
                Exit::Unsupported,
                format!("{shown} is statically linked: no library can be preloaded into it"),
            )
            .hint("link it dynamically, or replace its socket calls (see the guide on sockets)"),
            Obstacle::OtherMachine => Failure::new(
                Exit::Unsupported,
                format!("{shown} is for another processor or 32 bits: the library is not"),
            )
            .hint("build the program, or udccp, for the same processor"),
            Obstacle::Foreign => {
                Failure::new(Exit::BadInput, format!("{shown} is not a program of Linux"))
            }
        });
    }
    Err(Failure::new(Exit::BadInput, "too many scripts that are interpreters of scripts"))
}

/// The system preloads nothing into programs that give privileges.
fn check_privileges(open: &File, file: &Path) -> CliResult<()> {
    const SET_UID: u32 = 0o4000;
    const SET_GID: u32 = 0o2000;
    let status = open.metadata()?;
    let mut value = [0; 64];
    let has_capabilities =
        rustix::fs::fgetxattr(open, c"security.capability", &mut value[..]).is_ok();
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    let is_set_id = status.mode() & SET_UID != 0 && status.uid() != user.as_raw()
        || status.mode() & SET_GID != 0 && status.gid() != group.as_raw();
    if is_set_id || (has_capabilities && !user.is_root()) {
        let what = if is_set_id { "setuid or setgid" } else { "privileged (file capabilities)" };
        let message =
            format!("{} is {what}: the system preloads no library into it", file.display());
        return Err(Failure::new(Exit::Unsupported, message)
            .hint("run a copy of it without that mark, or run udccp as that user"));
    }
    Ok(())
}

fn read_up_to(file: &mut File, into: &mut [u8]) -> io::Result<usize> {
    let mut len = 0;
    while len < into.len() {
        match file.read(&mut into[len..])? {
            0 => break,
            n => len += n,
        }
    }
    Ok(len)
}

/// The interpreter of a script.
fn interpreter_of(start: &[u8]) -> Option<PathBuf> {
    let line = start.strip_prefix(b"#!")?.split(|b| *b == b'\n').next()?;
    let text = std::str::from_utf8(line).ok()?;
    let mut words = text.split_ascii_whitespace();
    let first = words.next()?;
    // `env` becomes the program that it is given.
    let name = words.find(|w| !w.starts_with('-')).filter(|_| first.ends_with("/env"));
    match name {
        None => Some(first.into()),
        Some(name) => super::find(&name.into()).ok(),
    }
}

/// Looks for the dynamic linker among a program's headers.
fn obstacle_of(file: &mut File, start: &[u8]) -> io::Result<Option<Obstacle>> {
    const PT_INTERP: u32 = 3;
    let machine: u16 = if cfg!(target_arch = "x86_64") { 62 } else { 183 };
    if start.len() < 64 || !start.starts_with(b"\x7fELF") {
        return Ok(Some(Obstacle::Foreign));
    }
    let half = |at: usize| u16::from_le_bytes([start[at], start[at + 1]]);
    let is_64_bit = start[4] == 2;
    if !is_64_bit || half(18) != machine {
        return Ok(Some(Obstacle::OtherMachine));
    }
    let mut offset = [0; 8];
    offset.copy_from_slice(&start[32..40]);
    let (size, count) = (usize::from(half(54)), usize::from(half(56)));
    let mut headers = vec![0; size * count];
    file.seek(SeekFrom::Start(u64::from_le_bytes(offset)))?;
    let len = read_up_to(file, &mut headers)?;
    let has_linker = size >= 4
        && headers[..len]
            .chunks_exact(size)
            .any(|h| u32::from_le_bytes([h[0], h[1], h[2], h[3]]) == PT_INTERP);
    Ok((!has_linker).then_some(Obstacle::Static))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interpreter_of_a_script_is_looked_at() {
        assert_eq!(interpreter_of(b"#!/bin/sh -e\n"), Some("/bin/sh".into()));
        assert_eq!(interpreter_of(b"#! /usr/bin/perl\n"), Some("/usr/bin/perl".into()));
        assert!(interpreter_of(b"#!/usr/bin/env sh\n").unwrap().ends_with("sh"));
        assert_eq!(interpreter_of(b"\x7fELF"), None);
    }

    #[test]
    fn this_test_is_a_dynamic_program_and_a_text_is_none() {
        assert!(check(&std::env::current_exe().unwrap()).is_ok());
        let text = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(text.path(), [b' '; 100]).unwrap();
        assert!(check(text.path()).unwrap_err().message.contains("not a program"));
    }
}
