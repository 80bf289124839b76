//! The program `udccp`: socket tools, simulator and laboratory on the command line.
//!
//! Data goes to standard output, everything else to standard error; exit codes are in [`exit`].

mod about;
mod ccid;
mod cli;
mod commands;
mod exit;
mod interrupt;
mod logs;
mod output;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Command};
use crate::exit::{CliResult, Exit};

fn main() -> ExitCode {
    let outcome = match Cli::try_parse() {
        Ok(Cli { verbose, command }) => logs::start(verbose).and_then(|()| dispatch(command)),
        Err(answer) => output::parser_answer(&answer),
    };
    ExitCode::from(output::exit(outcome).code())
}

/// One line for each command; the work is in its module.
fn dispatch(command: Command) -> CliResult<Exit> {
    match command {
        Command::Lab(args) => commands::lab::run(args),
        Command::Sim(args) => commands::sim::run(args),
        #[cfg(target_os = "linux")]
        Command::Emu(args) => commands::emu::run(args),
        #[cfg(target_os = "linux")]
        Command::Linux(args) => commands::linux::run(args),
        #[cfg(target_os = "linux")]
        Command::Ns2(args) => commands::ns2::run(&args),
        Command::Perf(args) => commands::perf::run(args),
        Command::Cat(args) => commands::cat::run(args),
        #[cfg(target_os = "linux")]
        Command::Run(args) => commands::old_program::run(args),
        #[cfg(target_os = "linux")]
        Command::Broker(args) => commands::old_program::broker(&args),
        Command::Decode(args) => commands::decode::run(args),
        Command::Doctor(args) => commands::doctor::run(args),
        Command::Completions(args) => commands::completions::run(args, cli::shown()),
        Command::Guide(args) => commands::guide::run(&args),
        Command::Man(args) => commands::man::run(args, cli::shown()),
        #[cfg(target_os = "linux")]
        Command::Agent(args) => commands::agent::run(args),
        #[cfg(target_os = "linux")]
        Command::LinuxInit(args) => commands::linux::init(&args),
        #[cfg(target_os = "linux")]
        Command::Interop(args) => commands::interop::run(args),
        #[cfg(target_os = "linux")]
        Command::InteropInit(args) => commands::interop::init(&args),
        #[cfg(target_os = "linux")]
        Command::LinuxBoot(args) => commands::linux::boot(args),
    }
}
