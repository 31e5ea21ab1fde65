//! The properties of journal events that all readers need: how much an event matters (the log and the
//! exported logs), whether it is a decision (`log --why`), and whether it can be a problem (the report). The
//! table of values is next to the events.

/// How much an event matters to the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventSeverity {
    /// Part of every run.
    Routine,
    /// A main step, for a reader who skims how a run went.
    Milestone,
    /// Unplanned, but handled: worth a look.
    Notice,
    /// Something went wrong.
    Problem,
    /// A person should be alerted.
    Alarm,
}

/// The source from which the log export takes an event. An event that the journal and the stream both have is
/// taken from only one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogSource {
    /// The stream of `plimsoll run --json`.
    Stream,
    /// The journal's file.
    Journal,
}

/// The properties that all events of a kind share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventTraits {
    pub severity: EventSeverity,
    /// True if it is not a decision; `log --why` shows it only if it is named.
    pub is_record_only: bool,
    /// True if it was decided together with a verdict and follows the verdict in the file.
    pub follows_verdict: bool,
    /// True if the report may list it as a problem.
    pub can_be_problem: bool,
    /// The source from which the log export takes it; `None` if it is not exported.
    pub log_source: Option<LogSource>,
}

/// A decision or an action of Plimsoll.
pub(super) const DECISION: EventTraits = EventTraits {
    severity: EventSeverity::Routine,
    is_record_only: false,
    follows_verdict: false,
    can_be_problem: false,
    log_source: Some(LogSource::Journal),
};

/// An event that is recorded only.
pub(super) const RECORD_ONLY: EventTraits = EventTraits { is_record_only: true, ..DECISION };

/// A decision that is worth a look.
pub(super) const NOTICE: EventTraits = EventTraits { severity: EventSeverity::Notice, ..DECISION };

/// A problem that the report lists.
pub(super) const PROBLEM: EventTraits =
    EventTraits { severity: EventSeverity::Problem, can_be_problem: true, ..DECISION };

impl EventTraits {
    /// The log export takes it from the stream.
    pub(super) const fn with_stream_as_log_source(self) -> EventTraits {
        EventTraits { log_source: Some(LogSource::Stream), ..self }
    }

    /// It follows a verdict in the file.
    pub(super) const fn following_verdict(self) -> EventTraits {
        EventTraits { follows_verdict: true, ..self }
    }
}
