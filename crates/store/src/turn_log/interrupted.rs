//! The erasures that are under way in a project, in a file beside the logs: each is written there before anything is erased, and
//! taken out once it is complete. So an erasure that was killed, or that failed, is known, with what was asked of it.

use crate::{Durability, Project, StoreError, disk, sessions};
use plimsoll_domain::format::Format;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// What an erasure was asked to take away.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ErasureRequest {
    /// Everything that looks like a secret.
    pub secrets: bool,
    /// With `secrets`: only in sessions whose id begins like this.
    pub session: Option<String>,
    /// Without `secrets`: the numbers of the records of each session.
    pub records: BTreeMap<String, BTreeSet<u64>>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct UnderWay {
    format: Format,
    requests: Vec<ErasureRequest>,
}

/// A project's file may have been written by anybody: no more than this are kept, the latest ones.
const MAX_REQUESTS: usize = 16;

impl ErasureRequest {
    /// Records that the erasure begins. Durable: it is known before the first byte is gone.
    pub fn begin(&self, project: &Project) -> Result<(), StoreError> {
        let mut requests = load(project);
        requests.retain(|known| known != self);
        requests.push(self.clone());
        save(project, requests.split_off(requests.len().saturating_sub(MAX_REQUESTS)))
    }

    /// Records that the erasure is complete, and with it each one that it repeats.
    pub fn finish(&self, project: &Project) -> Result<(), StoreError> {
        for place in project.with_earlier() {
            let known = load(&place);
            let left: Vec<ErasureRequest> =
                known.iter().filter(|known| !self.covers(known)).cloned().collect();
            match () {
                () if left.is_empty() => disk::remove(&path(&place))?,
                () if left.len() < known.len() => save(&place, left)?,
                () => {}
            }
        }
        Ok(())
    }

    /// Returns the erasures that have begun and are not complete, also those from before the project had files of ours in it.
    pub fn interrupted(project: &Project) -> Vec<ErasureRequest> {
        project.with_earlier().iter().flat_map(load).collect()
    }

    fn covers(&self, other: &ErasureRequest) -> bool {
        self == other || self.secrets && self.session.is_none() && other.secrets
    }
}

fn load(project: &Project) -> Vec<ErasureRequest> {
    sessions::load_parsed::<UnderWay>(&path(project)).unwrap_or_default().requests
}

fn save(project: &Project, requests: Vec<ErasureRequest>) -> Result<(), StoreError> {
    let under_way = UnderWay { requests, ..UnderWay::default() };
    disk::replace(&path(project), &serde_json::to_vec(&under_way).unwrap_or_default(), Durability::Durable)
}

fn path(project: &Project) -> PathBuf {
    project.turns().join("erasure.json")
}
