//! One session as it is exported: its streams, who started whom, and what the load line needs.

use plimsoll_domain::journal::{CheckpointWritten, JournalEvent};
use plimsoll_domain::log_line::{MAIN, RecordKind};
use plimsoll_domain::reading::{Window, WindowSource};
use plimsoll_domain::{Level, SessionId};
use plimsoll_flows::turns::{self, Body, Recorded};
use plimsoll_policy::window::{WindowEvidence, window};
use plimsoll_store::{Project, StoreError, TurnLog, config, journal, sessions, windows};
use std::collections::{BTreeMap, BTreeSet};

/// A session's records, and what is known of it beside them.
pub(crate) struct Exported {
    pub(crate) id: String,
    pub(crate) records: Vec<Recorded>,
    /// Lines of the log that are no records.
    pub(crate) unread: usize,
    /// The window of the session's own stream, where a model was seen.
    pub(crate) window: Option<Window>,
    pub(crate) checkpoints: Vec<Checkpoint>,
}

/// A checkpoint of the session, from the journal.
pub(crate) struct Checkpoint {
    pub(crate) level: Level,
    pub(crate) percent: Option<u64>,
}

/// A stream and those that were started from it.
pub(crate) struct Stream<'a> {
    pub(crate) name: &'a str,
    pub(crate) records: Vec<&'a Recorded>,
    /// By the call that started them: record and place of the call.
    pub(crate) agents: BTreeMap<(u64, usize), Stream<'a>>,
    /// What kind of agent it is, where its starter says so.
    pub(crate) kind: Option<&'a str>,
}

impl Exported {
    /// Reads a whole log.
    pub(crate) fn load(project: &Project, log: &TurnLog) -> Result<Exported, StoreError> {
        let (mut records, mut unread) = (Vec::new(), 0);
        for line in log.forwards()? {
            match turns::recorded(log, &line?) {
                Some(record) => records.push(record),
                None => unread += 1,
            }
        }
        let id = log.session_id().to_owned();
        let window = known_window(project, &id, &records);
        let checkpoints = journal::read(project)?
            .into_iter()
            .filter(|entry| entry.session_id.as_ref() == Some(&id))
            .filter_map(|entry| match entry.event {
                JournalEvent::Checkpoint(CheckpointWritten { level, percent, .. }) => {
                    Some(Checkpoint { level, percent })
                }
                _ => None,
            })
            .collect();
        Ok(Exported { id: id.to_string(), records, unread, window, checkpoints })
    }

    /// The streams: the session's own first, each with its subagents; then those whose starter is not known.
    pub(crate) fn streams(&self) -> Vec<Stream<'_>> {
        let mut by_name: BTreeMap<&str, Vec<&Recorded>> = BTreeMap::new();
        let mut order = vec![MAIN];
        for record in &self.records {
            let name = record.header.stream.as_str();
            let records = by_name.entry(name).or_default();
            if records.is_empty() && name != MAIN {
                order.push(name);
            }
            records.push(record);
        }
        let started: BTreeSet<&str> = self
            .records
            .iter()
            .flat_map(|record| calls_to_agents(record).map(move |(_, agent, _)| (record, agent)))
            .filter(|(record, agent)| record.header.stream != *agent)
            .map(|(_, agent)| agent)
            .collect();
        // Those without a parent come first; the rest started each other.
        let (own, others): (Vec<&str>, Vec<&str>) =
            order.into_iter().partition(|name| *name == MAIN || !started.contains(name));
        let mut tree = Tree { by_name };
        own.into_iter().chain(others).filter_map(|name| tree.take(name, None)).collect()
    }

    /// The turns of the session's own stream.
    pub(crate) fn main_turns(&self) -> impl Iterator<Item = &Recorded> {
        self.records.iter().filter(|record| record.header.stream == MAIN && record.is_turn())
    }

    /// The client's last account of the cost, USD.
    pub(crate) fn cost(&self) -> Option<f64> {
        let of = |record: &Recorded| match &record.body {
            Body::Event(fields) => fields.get("usd")?.as_f64(),
            _ => None,
        };
        self.records.iter().rev().filter(|record| record.header.kind == RecordKind::Cost).find_map(of)
    }

    /// The model that answered last.
    pub(crate) fn model(&self) -> Option<&str> {
        let own = self.records.iter().rev().filter(|record| record.header.stream == MAIN);
        own.filter_map(model_of).find(|model| *model != SYNTHETIC)
    }
}

/// Who answers when the client speaks for itself.
pub(crate) const SYNTHETIC: &str = "<synthetic>";

/// The model of a turn.
pub(crate) fn model_of(record: &Recorded) -> Option<&str> {
    record.turn()?.ext().get("model")?.as_str()
}

/// The calls of a turn that started a subagent: place, stream, kind.
pub(crate) fn calls_to_agents(record: &Recorded) -> impl Iterator<Item = (usize, &str, Option<&str>)> {
    let calls = record.turn().map(plimsoll_domain::Turn::tool_calls).unwrap_or_default();
    let text = |call: &'_ plimsoll_domain::turn::ToolCall, name: &str| {
        call.ext.get(name).is_some_and(serde_json::Value::is_string)
    };
    calls.iter().enumerate().filter(move |(_, call)| text(call, "agent_id")).map(|(place, call)| {
        let word = |name: &str| call.ext.get(name).and_then(serde_json::Value::as_str);
        (place, word("agent_id").unwrap_or_default(), word("agent_type"))
    })
}

/// The streams that have no place yet.
struct Tree<'a> {
    by_name: BTreeMap<&'a str, Vec<&'a Recorded>>,
}

impl<'a> Tree<'a> {
    fn take(&mut self, name: &'a str, kind: Option<&'a str>) -> Option<Stream<'a>> {
        let (name, records) = self.by_name.remove_entry(name)?;
        let mut agents = BTreeMap::new();
        for record in &records {
            let record: &'a Recorded = record;
            for (place, agent, kind) in calls_to_agents(record) {
                if let Some(stream) = self.take(agent, kind) {
                    agents.insert((record.header.seq, place), stream);
                }
            }
        }
        Some(Stream { name, records, agents, kind })
    }
}

fn known_window(project: &Project, id: &str, records: &[Recorded]) -> Option<Window> {
    let own = || records.iter().filter(|record| record.header.stream == MAIN);
    let used = own()
        .filter_map(|record| record.header.usage)
        .map(plimsoll_domain::log_line::Tokens::sent)
        .max()
        .unwrap_or(0);
    // What the monitor measured by is the best there is, unless that itself was only assumed.
    let measured =
        sessions::load(project, &SessionId::from(id)).usage.reading.and_then(|reading| reading.window);
    if let Some(window) = measured.filter(|window| window.tokens >= used) {
        return Some(window);
    }
    let asked = own().rev().find_map(|record| {
        let ext = record.turn()?.ext();
        let model = ext.get("requested_model").or_else(|| ext.get("model"))?.as_str()?;
        (model != SYNTHETIC).then(|| model.to_owned())
    });
    let (settings, _) = config::load(project);
    let evidence = WindowEvidence {
        model: asked.as_deref(),
        settings: Some(&settings.windows),
        learned: asked.as_ref().and_then(|model| windows::load(project).get(model).copied()),
        used,
        ..WindowEvidence::default()
    };
    window(&evidence).filter(|window| window.source != WindowSource::Assumed)
}
