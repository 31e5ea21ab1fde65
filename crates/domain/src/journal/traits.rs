//! What the readers of the journal ask of every event: the log and the exported logs how much it matters, `log --why` whether it
//! decided something, the report whether it can be a trouble. The table is beside the events.

/// How much an event matters to the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// It belongs to every run.
    Usual,
    /// One looks for it when one reads how a run went.
    Milestone,
    /// Not as planned, and taken care of: worth a look.
    Notice,
    /// Something went wrong.
    Trouble,
    /// Somebody should be woken.
    Alarm,
}

/// Where the exported logs take an event from. What the journal and the stream both have is taken from one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogSource {
    /// The stream of `plimsoll run --json`.
    Stream,
    /// The journal's file.
    Journal,
}

/// What is true of every event of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventTraits {
    /// How much it matters.
    pub weight: Weight,
    /// True if it decides nothing: `log --why` passes over it unless it is named.
    pub is_mere_record: bool,
    /// True if it was decided together with a verdict, and follows it in the file.
    pub follows_verdict: bool,
    /// True if the report can list it among what went wrong.
    pub can_be_trouble: bool,
    /// Where the exported logs take it from; none if they do not have it.
    pub log_source: Option<LogSource>,
}

/// A decision or an action of ours, as the journal has it.
pub(super) const DECISION: EventTraits = EventTraits {
    weight: Weight::Usual,
    is_mere_record: false,
    follows_verdict: false,
    can_be_trouble: false,
    log_source: Some(LogSource::Journal),
};

/// An event that only keeps a record.
pub(super) const RECORD: EventTraits = EventTraits { is_mere_record: true, ..DECISION };

/// A decision that is worth a look.
pub(super) const NOTICE: EventTraits = EventTraits { weight: Weight::Notice, ..DECISION };

/// Something that went wrong, and that the report lists.
pub(super) const TROUBLE: EventTraits =
    EventTraits { weight: Weight::Trouble, can_be_trouble: true, ..DECISION };

impl EventTraits {
    /// The exported logs have it from the stream.
    pub(super) const fn in_stream(self) -> EventTraits {
        EventTraits { log_source: Some(LogSource::Stream), ..self }
    }

    /// It follows a verdict.
    pub(super) const fn after_verdict(self) -> EventTraits {
        EventTraits { follows_verdict: true, ..self }
    }
}
