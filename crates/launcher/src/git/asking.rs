//! Git commands that only read, with the filters of the repository off.
//!
//! `diff` and `status` compare contents and `hash-object` reads them: these three alone use filters, whose names the repository
//! chooses. So the names are read first, and each filter is switched off.

use super::command::{reading_command, working_tree};
use super::programs::Drivers;
use crate::time_limit::TimeLimit;
use crate::{Outcome, child};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A git that is only asked: it writes nothing, and runs nothing that the repository names. An error is what came of
/// finding that out: then it must not be asked.
pub(crate) fn asking(folder: &Path, arguments: &[&str], limit: TimeLimit) -> Result<Command, Outcome> {
    let root = working_tree(folder)?;
    let may_filter = arguments.first().is_some_and(|name| ["status", "diff", "hash-object"].contains(name));
    if may_filter {
        return asking_without_filters(folder, arguments, limit).map(|(command, _)| command);
    }
    Ok(reading_command(folder, &root, &[], arguments))
}

/// Creates a git that only reads, as [`asking`] does, with further settings. It must be none that could run filters.
pub(crate) fn asking_with(folder: &Path, settings: &[&str], arguments: &[&str]) -> Result<Command, Outcome> {
    let root = working_tree(folder)?;
    let settings: Vec<OsString> = settings.iter().map(OsString::from).collect();
    Ok(reading_command(folder, &root, &settings, arguments))
}

/// The same for a command that could run filters, and whether there are any.
pub(super) fn asking_without_filters(
    folder: &Path,
    arguments: &[&str],
    limit: TimeLimit,
) -> Result<(Command, bool), Outcome> {
    let off = begin_asking_for_filters(folder, limit)?.switched_off()?;
    Ok((off.asking(folder, arguments), off.has_filters))
}

/// Asks for the names of all filters; whoever has something else to do meanwhile does it.
pub(super) fn begin_asking_for_filters(folder: &Path, limit: TimeLimit) -> Result<Filters, Outcome> {
    let root = working_tree(folder)?;
    let running = Drivers::begin_read(folder, &root, limit)?;
    Ok(Filters { running, root })
}

/// The question for all filters, on its way.
pub(super) struct Filters {
    running: child::Running<'static>,
    root: PathBuf,
}

impl Filters {
    /// The answer.
    pub(super) fn switched_off(self) -> Result<FiltersOff, Outcome> {
        let drivers = Drivers::parse(self.running.finish())?;
        let (settings, has_filters) = (drivers.all_off(), drivers.has_filters());
        Ok(FiltersOff { root: self.root, settings, has_filters })
    }
}

/// What switches all filters off that were named a moment ago: for the questions of one look.
#[derive(Default)]
pub(super) struct FiltersOff {
    root: PathBuf,
    settings: Vec<OsString>,
    pub(super) has_filters: bool,
}

impl FiltersOff {
    /// A git that is only asked, with all filters off.
    pub(super) fn asking(&self, folder: &Path, arguments: &[&str]) -> Command {
        reading_command(folder, &self.root, &self.settings, arguments)
    }
}

/// Whether any filter is named: if not, no file is under one.
pub(crate) fn has_filters(folder: &Path, limit: TimeLimit) -> Result<bool, Outcome> {
    Drivers::read(folder, limit).map(|drivers| drivers.has_filters())
}
