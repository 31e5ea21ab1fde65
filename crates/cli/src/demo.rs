//! `plimsoll demo`: placeholder until the story is there.
use clap::Args;
use std::process::ExitCode;
/// placeholder
#[derive(Debug, Args)]
pub(crate) struct DemoArguments {}
pub(crate) fn demo(_arguments: &DemoArguments) -> ExitCode {
    ExitCode::SUCCESS
}
