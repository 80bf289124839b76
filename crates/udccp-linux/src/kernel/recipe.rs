//! Builds the kernel from its source, a configuration, and a few changed lines.

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::error::LinuxError;

/// The Debian package with the source: the last long-term kernel that has DCCP.
pub(super) const PACKAGE: &str = "linux-source-6.1";
/// Where the package puts it.
pub(super) const TARBALL: &str = "/usr/src/linux-source-6.1.tar.xz";
/// The options to enable in the configuration.
pub(super) const FRAGMENT: &str = include_str!("fragment.config");

/// One change of the source.
struct Edit {
    file: &'static str,
    old: &'static str,
    new: &'static str,
}

/// The changes, each with its reason.
const EDITS: [Edit; 12] = [
    // CCID 2 of Linux measures time in ticks; 250 a second is what distributions have.
    Edit {
        file: "arch/um/Kconfig",
        old: "config HZ\n\tint\n\tdefault 100\n",
        new: "config HZ\n\tint\n\tdefault 250\n",
    },
    // Randomness is an argument: the generator is seeded from the command line (which contains the
    // seed), not from the host's random numbers.
    Edit {
        file: "arch/um/os-Linux/util.c",
        old: "\treturn getrandom(buf, len, flags);\n",
        new: "\tmemset(buf, 0x5a, len);\n\treturn len;\n",
    },
    // A killed guest must leave no process behind.
    Edit {
        file: "arch/um/os-Linux/skas/process.c",
        old: "(void *) PTRACE_O_TRACESYSGOOD) < 0) {",
        new: "(void *) (PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL)) < 0) {",
    },
    Edit {
        file: "arch/um/os-Linux/skas/process.c",
        old: "(void *)PTRACE_O_TRACESYSGOOD) < 0) {",
        new: "(void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL)) < 0) {",
    },
    // A processor whose register state is larger than the 2,696 bytes of User-Mode Linux (AMX: 11
    // KiB) gets it back complete. The guest never uses the part beyond, so it is left in its
    // initial state: bits 17 and 18 of XSTATE_BV, in the eight bytes at 512, say so. One buffer is
    // enough: this kernel has one processor and is not preempted.
    Edit {
        file: "arch/x86/um/os-Linux/registers.c",
        old: "int have_xstate_support;\n\nint save_i387",
        new: "int have_xstate_support;\n\n#include <string.h>\n\
              static unsigned long host_xstate[32768 / sizeof(unsigned long)];\n\
              static unsigned long host_xstate_bytes;\n\nint save_i387",
    },
    Edit {
        file: "arch/x86/um/os-Linux/registers.c",
        old: "\tstruct iovec iov;\n\tif (have_xstate_support) {\n\
              \t\tiov.iov_base = fp_regs;\n\
              \t\tiov.iov_len = FP_SIZE * sizeof(unsigned long);\n",
        new: "\tstruct iovec iov;\n\tif (have_xstate_support) {\n\
              \t\tiov.iov_base = fp_regs;\n\
              \t\tiov.iov_len = FP_SIZE * sizeof(unsigned long);\n\
              \t\tif (host_xstate_bytes > iov.iov_len) {\n\
              \t\t\tmemcpy(host_xstate, fp_regs, iov.iov_len);\n\
              \t\t\thost_xstate[64] &= ~(3UL << 17);\n\
              \t\t\tiov.iov_base = host_xstate;\n\
              \t\t\tiov.iov_len = host_xstate_bytes;\n\t\t}\n",
    },
    Edit {
        file: "arch/x86/um/os-Linux/registers.c",
        old: "\tvoid * fp_regs;\n\tstruct iovec iov;\n\n\
              \tfp_regs = malloc(FP_SIZE * sizeof(unsigned long));\n\
              \tif(fp_regs == NULL)\n\t\treturn;\n\n\tiov.iov_base = fp_regs;\n\
              \tiov.iov_len = FP_SIZE * sizeof(unsigned long);\n\
              \tif (ptrace(PTRACE_GETREGSET, pid, NT_X86_XSTATE, &iov) == 0)\n\
              \t\thave_xstate_support = 1;\n\n\tfree(fp_regs);\n",
        new: "\tstruct iovec iov;\n\n\tiov.iov_base = host_xstate;\n\
              \tiov.iov_len = sizeof(host_xstate);\n\
              \tif (ptrace(PTRACE_GETREGSET, pid, NT_X86_XSTATE, &iov) == 0) {\n\
              \t\thave_xstate_support = 1;\n\t\thost_xstate_bytes = iov.iov_len;\n\
              \t\tmemset(host_xstate, 0, sizeof(host_xstate));\n\t}\n",
    },
    // Programs often read the clock while virtual time stands still, and a system call costs the
    // guest some 50 microseconds. So the first reading is stored at the end of the vDSO page and
    // reused until time advances.
    Edit {
        file: "kernel/time/posix-timers.c",
        old: "\terror = kc->clock_get_timespec(which_clock, &kernel_tp);\n\n\
              \tif (!error && put_timespec64",
        new: "\terror = kc->clock_get_timespec(which_clock, &kernel_tp);\n\t{\n\
              \t\textern u64 *um_vdso_now;\n\n\
              \t\tif (!error && which_clock == CLOCK_MONOTONIC && um_vdso_now)\n\
              \t\t\t*um_vdso_now = timespec64_to_ns(&kernel_tp);\n\t}\n\n\
              \tif (!error && put_timespec64",
    },
    Edit {
        file: "arch/um/kernel/time.c",
        old: "\n\ttime_travel_time = ns;\n}",
        new: "\n\ttime_travel_time = ns;\n\t{\n\
              \t\textern u64 *um_vdso_now;\n\n\
              \t\tif (um_vdso_now)\n\t\t\t*um_vdso_now = 0;\n\t}\n}",
    },
    Edit {
        file: "arch/x86/um/vdso/vma.c",
        old: "unsigned long um_vdso_addr;\n\nextern",
        new: "unsigned long um_vdso_addr;\n#include <linux/time-internal.h>\n\
              u64 *um_vdso_now;\n\nextern",
    },
    Edit {
        file: "arch/x86/um/vdso/vma.c",
        old: "\tcopy_page(page_address(um_vdso), vdso_start);\n\t*vdsop",
        new: "\tcopy_page(page_address(um_vdso), vdso_start);\n\
              \tBUG_ON(vdso_end - vdso_start > PAGE_SIZE - sizeof(u64));\n\
              \t*(u64 *)(page_address(um_vdso) + PAGE_SIZE - sizeof(u64)) = 0;\n\
              \tif (time_travel_mode != TT_MODE_OFF)\n\
              \t\tum_vdso_now = page_address(um_vdso) + PAGE_SIZE - sizeof(u64);\n\t*vdsop",
    },
    Edit {
        file: "arch/x86/um/vdso/um_vdso.c",
        old: "struct __kernel_old_timespec *ts)\n{\n\tlong ret;\n\n\tasm(",
        new: "struct __kernel_old_timespec *ts)\n{\n\tlong ret;\n\
              \tunsigned long here, now;\n\n\
              \tasm(\"lea (%%rip), %0\" : \"=r\" (here));\n\
              \tnow = *(volatile unsigned long *)((here | 4095UL) - 7);\n\
              \tif (clock == CLOCK_MONOTONIC && now) {\n\
              \t\tts->tv_sec = now / 1000000000;\n\t\tts->tv_nsec = now % 1000000000;\n\
              \t\treturn 0;\n\t}\n\n\tasm(",
    },
];

/// Identifies the recipe: another fragment or edit gives another kernel.
pub(super) fn hash() -> String {
    let mut hash = Sha256::new();
    hash.update(FRAGMENT);
    for edit in &EDITS {
        hash.update(edit.file);
        hash.update(edit.new);
    }
    hash.finalize().iter().take(4).map(|b| format!("{b:02x}")).collect()
}

/// The folder of this recipe's kernel.
pub(super) fn folder(cache: &Path) -> PathBuf {
    cache.join(hash())
}

/// Applies the changes to the source, except those applied before.
pub(super) fn apply_edits(source: &Path) -> Result<(), LinuxError> {
    for edit in &EDITS {
        let path = source.join(edit.file);
        let text = fs::read_to_string(&path).map_err(LinuxError::file(&path))?;
        if text.contains(edit.new) {
            continue;
        }
        if !text.contains(edit.old) {
            return Err(LinuxError::Build {
                step: format!("change {}", edit.file),
                why: format!("it is not as in Linux 6.1: no line {:?}", edit.old.trim()),
            });
        }
        fs::write(&path, text.replace(edit.old, edit.new)).map_err(LinuxError::file(&path))?;
    }
    Ok(())
}

/// Options of the fragment that are missing in the finished configuration.
pub(super) fn missing_options(config: &str) -> Vec<&'static str> {
    let is_option = |line: &&str| line.starts_with("CONFIG_");
    let there = |line: &&str| config.lines().any(|l| l == *line);
    FRAGMENT.lines().filter(is_option).filter(|line| !there(line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_kernel_options_are_detected() {
        let whole = FRAGMENT.replace("CONFIG_VETH=y\n", "# CONFIG_VETH is not set\n");
        assert_eq!(missing_options(FRAGMENT), [""; 0]);
        assert_eq!(missing_options(&whole), ["CONFIG_VETH=y"]);
    }

    #[test]
    fn edits_are_idempotent_and_reject_other_sources() {
        let folder = tempfile::tempdir().unwrap();
        for edit in &EDITS {
            let path = folder.path().join(edit.file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let before = fs::read_to_string(&path).unwrap_or_default();
            fs::write(&path, format!("{before}first\n{}last\n", edit.old)).unwrap();
        }
        apply_edits(folder.path()).unwrap();
        let kconfig = folder.path().join("arch/um/Kconfig");
        let once = fs::read_to_string(&kconfig).unwrap();
        assert!(once.contains("default 250"));
        apply_edits(folder.path()).unwrap();
        assert_eq!(fs::read_to_string(&kconfig).unwrap(), once);
        fs::write(&kconfig, "config HZ\n\tint\n\tdefault 1000\n").unwrap();
        assert!(
            apply_edits(folder.path()).unwrap_err().to_string().contains("not as in Linux 6.1")
        );
    }
}
