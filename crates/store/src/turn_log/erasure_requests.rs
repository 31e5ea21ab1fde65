//! The erasures in progress of a project, in a file beside the logs. Each is recorded before anything is
//! erased and removed once it is complete, so that one that was killed or failed can be reported and
//! repeated.

use crate::{Durability, Project, StoreError, disk, sessions};
use plimsoll_domain::format::FormatVersion;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Which contents an erasure was asked to remove.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ErasureRequest {
    /// True if it removes everything that looks like a secret.
    #[serde(rename = "secrets")]
    pub removes_secrets: bool,
    /// With `removes_secrets`: only in sessions whose id starts like this.
    #[serde(rename = "session")]
    pub session_prefix: Option<String>,
    /// Without `removes_secrets`: the record numbers of each session.
    #[serde(rename = "records")]
    pub records_by_session: BTreeMap<String, BTreeSet<u64>>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct ErasureRequestFile {
    format: FormatVersion,
    requests: Vec<ErasureRequest>,
}

/// Any user may have written a project's file, so only this many requests are kept, the latest ones.
const MAX_REQUESTS: usize = 16;

impl ErasureRequest {
    /// Records that the erasure begins. Synced to the disk before the first byte is erased.
    pub fn record_start(&self, project: &Project) -> Result<(), StoreError> {
        let mut requests = load_requests(project);
        requests.retain(|request| request != self);
        requests.push(self.clone());
        replace_requests_file(project, requests.split_off(requests.len().saturating_sub(MAX_REQUESTS)))
    }

    /// Removes this completed request and each earlier request that it covers, in both locations.
    pub fn remove_this_and_covered_requests(&self, project: &Project) -> Result<(), StoreError> {
        for location in project.current_and_earlier_location() {
            let saved_requests = load_requests(&location);
            let remaining_requests: Vec<ErasureRequest> =
                saved_requests.iter().filter(|request| !self.covers_request(request)).cloned().collect();
            match () {
                () if remaining_requests.is_empty() => disk::remove_if_exists(&requests_path(&location))?,
                () if remaining_requests.len() < saved_requests.len() => {
                    replace_requests_file(&location, remaining_requests)?;
                }
                () => {}
            }
        }
        Ok(())
    }

    /// Returns the erasures that have begun and are not complete, including those in the project's earlier
    /// location.
    pub fn load_interrupted(project: &Project) -> Vec<ErasureRequest> {
        project.current_and_earlier_location().iter().flat_map(load_requests).collect()
    }

    fn covers_request(&self, request: &ErasureRequest) -> bool {
        self == request || self.removes_secrets && self.session_prefix.is_none() && request.removes_secrets
    }
}

fn load_requests(project: &Project) -> Vec<ErasureRequest> {
    sessions::read_json_if_valid::<ErasureRequestFile>(&requests_path(project)).unwrap_or_default().requests
}

fn replace_requests_file(project: &Project, requests: Vec<ErasureRequest>) -> Result<(), StoreError> {
    let file = ErasureRequestFile { requests, ..ErasureRequestFile::default() };
    disk::replace(
        &requests_path(project),
        &serde_json::to_vec(&file).unwrap_or_default(),
        Durability::Durable,
    )
}

fn requests_path(project: &Project) -> PathBuf {
    project.turn_logs_folder().join("erasure.json")
}
