//! Builds the kernel, including the installation of tools, and boots it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{Kernel, recipe, tools};
use crate::error::LinuxError;

/// Options for getting a kernel.
#[derive(Debug)]
pub struct Setup {
    /// The folder of built kernels.
    pub cache: PathBuf,
    /// The program `udccp`, which starts tools so that they die with this process.
    pub program: PathBuf,
    /// A tar file with the source of Linux 6.1; if absent, that of the Debian package.
    pub source: Option<PathBuf>,
    /// Number of parallel compiler processes.
    pub jobs: usize,
    /// Whether missing packages may be installed (needs root).
    pub install: bool,
}

impl Setup {
    /// Builds the kernel unless it exists, and boots it. `say` gets progress messages; `check`
    /// boots a kernel and checks that it works. An interrupted build continues where it stopped.
    ///
    /// # Errors
    /// Packages are missing and cannot be installed, the build fails, the kernel does not work.
    pub fn run(
        &self,
        say: &dyn Fn(&str),
        check: &dyn Fn(&Kernel) -> Result<(), LinuxError>,
    ) -> Result<Kernel, LinuxError> {
        fs::create_dir_all(&self.cache).map_err(LinuxError::file(&self.cache))?;
        let lock = self.cache.join("lock");
        let lock = File::create(&lock).map_err(LinuxError::file(&lock))?;
        if lock.try_lock().is_err() {
            say("waiting for another set-up in this cache folder");
            lock.lock().map_err(LinuxError::file(&self.cache))?;
        }
        self.packages(false, say)?;
        if let Ok(kernel) = Kernel::find(&self.cache) {
            say(&format!("already built: Linux {}", kernel.version));
            check(&kernel)?;
            return Ok(kernel);
        }
        self.packages(true, say)?;
        let kernel = self.build(say)?;
        say("booting it");
        if let Err(error) = check(&kernel) {
            let _ = fs::remove_file(&kernel.binary);
            return Err(error);
        }
        let _ = fs::remove_dir_all(self.cache.join("build"));
        Ok(kernel)
    }

    fn tarball(&self) -> PathBuf {
        self.source.clone().unwrap_or_else(|| PathBuf::from(recipe::TARBALL))
    }

    /// Makes sure that all tools are installed, and the source for the build.
    fn packages(&self, build: bool, say: &dyn Fn(&str)) -> Result<(), LinuxError> {
        let mut packages: Vec<&str> =
            tools::missing_tools(build).iter().map(|(_, package)| *package).collect();
        let tarball = self.tarball();
        if build && !tarball.is_file() {
            if self.source.is_some() {
                let what = format!("there is no source at {}", tarball.display());
                let hint = "a linux-6.1.*.tar.xz from kernel.org will do".into();
                return Err(LinuxError::Missing { what, hint });
            }
            packages.push(recipe::PACKAGE);
        }
        packages.sort_unstable();
        packages.dedup();
        if packages.is_empty() {
            return Ok(());
        }
        let all = packages.join(" ");
        let install = format!("apt-get install --no-install-recommends {all}");
        let apt =
            tools::tool("apt-get").filter(|_| self.install && nix::unistd::geteuid().is_root());
        let Some(apt) = apt else {
            let what = format!("packages are missing: {all}");
            let hint = format!(
                "sudo {install} (Debian 12); where there is no package {}, give the source of \
                 Linux 6.1 with --source FILE",
                recipe::PACKAGE
            );
            return Err(LinuxError::Missing { what, hint });
        };
        say(&format!("installing {all}"));
        let mut command = Command::new(&apt);
        command.args(["install", "-y", "--no-install-recommends"]).args(&packages);
        command.env("DEBIAN_FRONTEND", "noninteractive");
        if run(&mut command, "install packages", None).is_ok() {
            return Ok(());
        }
        // Outdated or empty package lists may lack the package.
        run(Command::new(&apt).arg("update"), "update the package lists", None)?;
        run(&mut command, "install packages", None).map_err(|error| LinuxError::Missing {
            what: error.to_string(),
            hint: format!("{install}, or give the source of Linux 6.1 with --source FILE"),
        })
    }

    fn build(&self, say: &dyn Fn(&str)) -> Result<Kernel, LinuxError> {
        let build = self.cache.join("build");
        let source = build.join("source");
        fs::create_dir_all(&build).map_err(LinuxError::file(&build))?;
        if !source.is_dir() {
            say("unpacking the source");
            self.unpack(&source)?;
        }
        recipe::apply_edits(&source)?;
        say("configuring");
        let fragment = build.join("fragment");
        fs::write(&fragment, recipe::FRAGMENT).map_err(LinuxError::file(&fragment))?;
        let log = build.join("log");
        let make = |args: &[&str]| {
            let mut command = self.tool("make");
            command.current_dir(&source).arg("ARCH=um").args(args);
            command.env("KCONFIG_ALLCONFIG", &fragment);
            // Variables of a calling make must not affect this one.
            command.env_remove("MAKEFLAGS").env_remove("MFLAGS").env_remove("MAKELEVEL");
            command
        };
        run(&mut make(&["allnoconfig"]), "configure the kernel", Some(&log))?;
        let config = source.join(".config");
        let config = fs::read_to_string(&config).map_err(LinuxError::file(&config))?;
        let lost = recipe::missing_options(&config);
        if !lost.is_empty() {
            let why = format!("this source does not accept {}", lost.join(", "));
            return Err(LinuxError::Build { step: "configure the kernel".into(), why });
        }
        let time = super::build_time(self.jobs);
        say(&format!("compiling with {} processes, {time}; log: {}", self.jobs, log.display()));
        let jobs = format!("-j{}", self.jobs.max(1));
        run(&mut make(&[&jobs, "linux"]), "compile the kernel", Some(&log))?;
        let version = make(&["-s", "kernelversion"]).output();
        let version = version.map_err(LinuxError::io("make"))?.stdout;
        let version = String::from_utf8_lossy(&version).trim().to_owned();
        self.keep(&source.join("linux"), &version)
    }

    /// A command that dies with this process, so that it cannot interfere with the next build.
    fn tool(&self, name: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("linux-boot").arg(name);
        command
    }

    fn unpack(&self, source: &Path) -> Result<(), LinuxError> {
        let partial = source.with_extension("partial");
        if partial.exists() {
            fs::remove_dir_all(&partial).map_err(LinuxError::file(&partial))?;
        }
        fs::create_dir_all(&partial).map_err(LinuxError::file(&partial))?;
        let mut command = self.tool("tar");
        let tarball = self.tarball();
        command.arg("-xf").arg(tarball).arg("--strip-components=1").arg("-C").arg(&partial);
        run(&mut command, "unpack the source", None)?;
        fs::rename(&partial, source).map_err(LinuxError::file(source))
    }

    /// Installs a finished kernel. It is copied under another name and then renamed, so that an
    /// installed kernel is always complete.
    fn keep(&self, built: &Path, version: &str) -> Result<Kernel, LinuxError> {
        let folder = recipe::folder(&self.cache);
        fs::create_dir_all(&folder).map_err(LinuxError::file(&folder))?;
        let (partial, whole) = (folder.join("linux.partial"), folder.join("linux"));
        fs::copy(built, &partial).map_err(LinuxError::file(&partial))?;
        let file = folder.join("version");
        fs::write(&file, format!("{version}\n")).map_err(LinuxError::file(&file))?;
        fs::rename(&partial, &whole).map_err(LinuxError::file(&whole))?;
        Kernel::find(&self.cache)
    }
}

/// Runs a tool to its end. Its output goes to the log, or is kept for the error.
fn run(command: &mut Command, step: &str, log: Option<&Path>) -> Result<(), LinuxError> {
    let name = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null());
    let Some(log) = log else {
        let output = command.output().map_err(LinuxError::io(name))?;
        if output.status.success() {
            return Ok(());
        }
        let why = last_lines(&String::from_utf8_lossy(&output.stderr), 5);
        return Err(LinuxError::Build { step: step.into(), why });
    };
    let file = File::create(log).map_err(LinuxError::file(log))?;
    let errors = file.try_clone().map_err(LinuxError::file(log))?;
    let status = command.stdout(file).stderr(errors).status().map_err(LinuxError::io(name))?;
    if status.success() {
        return Ok(());
    }
    let text = fs::read_to_string(log).unwrap_or_default();
    Err(LinuxError::Build { step: step.into(), why: last_lines(&text, 8) })
}

/// The last lines of a tool's output.
pub(crate) fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}
