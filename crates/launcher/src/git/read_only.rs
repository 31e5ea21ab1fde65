//! Git commands that only read, with the filters of the repository disabled.
//!
//! `diff` and `status` compare contents and `hash-object` reads them. Only these three use filters, and the
//! repository chooses the names of the filters. The names are therefore read first, and each filter is
//! disabled.

use super::command::{build_read_only_git_command, find_working_tree_root};
use super::programs::ConfiguredDrivers;
use crate::time_limit::TimeLimit;
use crate::{CommandOutcome, child};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns a git command that writes nothing and runs nothing that the repository names. The error is the
/// outcome of reading the filters; the command must not be run then.
pub(crate) fn read_only_command(
    folder: &Path,
    arguments: &[&str],
    limit: TimeLimit,
) -> Result<Command, CommandOutcome> {
    let root = find_working_tree_root(folder)?;
    let may_run_filters =
        arguments.first().is_some_and(|name| ["status", "diff", "hash-object"].contains(name));
    if may_run_filters {
        return read_only_command_without_filters(folder, arguments, limit).map(|(command, _)| command);
    }
    Ok(build_read_only_git_command(folder, &root, &[], arguments))
}

/// Returns a read-only git command with further settings. The subcommand must be one that cannot run filters.
pub(crate) fn read_only_command_with_settings(
    folder: &Path,
    settings: &[&str],
    arguments: &[&str],
) -> Result<Command, CommandOutcome> {
    let root = find_working_tree_root(folder)?;
    let settings: Vec<OsString> = settings.iter().map(OsString::from).collect();
    Ok(build_read_only_git_command(folder, &root, &settings, arguments))
}

/// Returns a read-only git command with all filters disabled, and whether any filter is configured.
pub(super) fn read_only_command_without_filters(
    folder: &Path,
    arguments: &[&str],
    limit: TimeLimit,
) -> Result<(Command, bool), CommandOutcome> {
    let disabled_filters = start_filter_query(folder, limit)?.wait_and_disable_filters()?;
    Ok((disabled_filters.read_only_command(folder, arguments), disabled_filters.has_filters))
}

/// Starts to read the names of all filters; the caller can do other work meanwhile.
pub(super) fn start_filter_query(folder: &Path, limit: TimeLimit) -> Result<FilterQuery, CommandOutcome> {
    let root = find_working_tree_root(folder)?;
    let running_query = ConfiguredDrivers::start_driver_settings_query(folder, &root, limit)?;
    Ok(FilterQuery { running_query, root })
}

/// A running query for the names of all filters.
pub(super) struct FilterQuery {
    running_query: child::RunningChild<'static>,
    root: PathBuf,
}

impl FilterQuery {
    /// Waits for the query and returns settings that disable all filters.
    pub(super) fn wait_and_disable_filters(self) -> Result<DisabledFilters, CommandOutcome> {
        let drivers = ConfiguredDrivers::parse_if_all_can_be_disabled(self.running_query.wait_with_output())?;
        let (settings, has_filters) = (drivers.settings_disabling_all(), drivers.has_filters());
        Ok(DisabledFilters { root: self.root, settings, has_filters })
    }
}

/// Settings that disable all filters that were configured when the query ran.
#[derive(Default)]
pub(super) struct DisabledFilters {
    root: PathBuf,
    settings: Vec<OsString>,
    pub(super) has_filters: bool,
}

impl DisabledFilters {
    /// Returns a read-only git command with all filters disabled.
    pub(super) fn read_only_command(&self, folder: &Path, arguments: &[&str]) -> Command {
        build_read_only_git_command(folder, &self.root, &self.settings, arguments)
    }
}

/// Returns whether any filter is configured. If not, no file is under one.
pub(crate) fn has_configured_filters(folder: &Path, limit: TimeLimit) -> Result<bool, CommandOutcome> {
    ConfiguredDrivers::read(folder, limit).map(|drivers| drivers.has_filters())
}
