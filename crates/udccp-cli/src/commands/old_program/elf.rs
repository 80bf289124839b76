//! Checks whether a library can be preloaded into a program.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::exit::{CliResult, Exit, Failure};
use crate::output;

/// Most nested interpreters of scripts.
const MAX_INTERPRETERS: usize = 4;

/// Why a library cannot be preloaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Obstacle {
    Static,
    /// It can be loaded, but only the program's C parts call it.
    Go,
    OtherMachine,
    Foreign,
}

/// Refuses a program that would ignore the library and so run without DCCP.
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
            Obstacle::Go => {
                output::note(&format!(
                    "warning: {shown} is a Go program: Go makes system calls itself, so only its \
                     C parts can use DCCP"
                ));
                return Ok(());
            }
            Obstacle::OtherMachine => Failure::new(
                Exit::Unsupported,
                format!(
                    "{shown} is built for another processor or for 32 bits; the preload library \
                     is not"
                ),
            )
            .hint("build the program, or udccp, for the same processor"),
            Obstacle::Foreign => {
                Failure::new(Exit::BadInput, format!("{shown} is not a Linux program"))
                    .hint("a script needs an interpreter in its first line, as in #!/bin/sh")
            }
        });
    }
    Err(Failure::new(Exit::BadInput, "too many nested script interpreters"))
}

/// The system does not preload libraries into programs that change privileges.
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
            format!("{} is {what}: the system does not preload a library into it", file.display());
        return Err(Failure::new(Exit::Unsupported, message)
            .hint("run a copy of it without that privilege, or run udccp as that user"));
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

/// The interpreter of a script, from its first line.
fn interpreter_of(start: &[u8]) -> Option<PathBuf> {
    let line = start.strip_prefix(b"#!")?.split(|b| *b == b'\n').next()?;
    let text = std::str::from_utf8(line).ok()?;
    let mut words = text.split_ascii_whitespace();
    let first = words.next()?;
    // `env` executes its first argument.
    let name = words.find(|w| !w.starts_with('-')).filter(|_| first.ends_with("/env"));
    match name {
        None => Some(first.into()),
        Some(name) => super::find(&name.into()).ok(),
    }
}

/// Checks for a dynamic linker in the program's headers, and for the note of Go's linker.
fn obstacle_of(file: &mut File, start: &[u8]) -> io::Result<Option<Obstacle>> {
    const PT_INTERP: u32 = 3;
    const PT_NOTE: u32 = 4;
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
    let mut has_linker = false;
    let mut notes = Vec::new();
    // A header of another size is not a 64-bit one.
    for header in headers[..len].chunks_exact(size.max(1)).filter(|h| h.len() >= 56) {
        let long = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| header[at + i]));
        match u32::from_le_bytes(std::array::from_fn(|i| header[i])) {
            PT_INTERP => has_linker = true,
            PT_NOTE => notes.push((long(8), long(32))),
            _ => {}
        }
    }
    if !has_linker {
        return Ok(Some(Obstacle::Static));
    }
    for (at, len) in notes {
        if has_note_of_go(file, at, len)? {
            return Ok(Some(Obstacle::Go));
        }
    }
    Ok(None)
}

/// Whether one of these notes is from Go's linker.
fn has_note_of_go(file: &mut File, at: u64, len: u64) -> io::Result<bool> {
    const HEADER: usize = 12;
    /// More than the notes of any program.
    const MOST: u64 = 4096;
    let mut notes = vec![0; len.min(MOST) as usize];
    file.seek(SeekFrom::Start(at))?;
    let read = read_up_to(file, &mut notes)?;
    let mut rest = &notes[..read];
    while rest.len() > HEADER {
        let size = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| rest[at + i])) as usize;
        let (name, text) = (size(0), size(4));
        if rest[HEADER..].starts_with(b"Go\0") && name <= 4 {
            return Ok(true);
        }
        let whole = HEADER + name.next_multiple_of(4) + text.next_multiple_of(4);
        rest = rest.get(whole..).unwrap_or_default();
    }
    Ok(false)
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

    /// A program with a dynamic linker and notes of these linkers, in one segment or in separate
    /// ones.
    fn program_with_notes(linkers: [&[u8; 4]; 2], apart: bool) -> tempfile::NamedTempFile {
        const NOTES_AT: u64 = 64 + 3 * 56;
        let mut bytes = vec![0; NOTES_AT as usize];
        bytes[..5].copy_from_slice(b"\x7fELF\x02");
        bytes[18] = if cfg!(target_arch = "x86_64") { 62 } else { 183 };
        (bytes[32], bytes[54], bytes[56]) = (64, 56, if apart { 3 } else { 2 });
        bytes[64] = 3;
        for (n, segment) in bytes[120..].chunks_exact_mut(56).enumerate() {
            segment[0] = 4;
            segment[8..16].copy_from_slice(&(NOTES_AT + n as u64 * 20).to_le_bytes());
            segment[32] = if apart { 20 } else { 40 };
        }
        for linker in linkers {
            bytes.extend([4u32, 3, 4].iter().flat_map(|n| n.to_le_bytes()));
            bytes.extend_from_slice(linker);
            bytes.extend_from_slice(b"id.\0");
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        file
    }

    #[test]
    fn a_go_program_is_known_by_a_note_of_its_linker() {
        let found_in = |linkers, apart| {
            let program = program_with_notes(linkers, apart);
            let mut start = [0; 256];
            let mut file = File::open(program.path()).unwrap();
            let len = read_up_to(&mut file, &mut start).unwrap();
            obstacle_of(&mut file, &start[..len]).unwrap()
        };
        for apart in [false, true] {
            let found = |linkers| found_in(linkers, apart);
            assert_eq!(found([b"GNU\0", b"GNU\0"]), None);
            assert_eq!(found([b"GNU\0", b"Go\0\0"]), Some(Obstacle::Go));
            assert_eq!(found([b"Go\0\0", b"GNU\0"]), Some(Obstacle::Go));
        }
    }

    #[test]
    fn a_text_file_is_not_a_dynamic_program() {
        assert!(check(&std::env::current_exe().unwrap()).is_ok());
        let text = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(text.path(), [b' '; 100]).unwrap();
        assert!(check(text.path()).unwrap_err().message.contains("not a Linux program"));
    }
}
