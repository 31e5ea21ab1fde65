//! The state of a conversation while it is written.

use super::super::events::{Event, ToolCall};
use super::super::phrases::Phrases;
use super::super::project_files::ProjectFiles;
use super::super::random_draws::Draws;
use super::super::themes::THEMES;
use super::super::truth::{
    Decision, EditMeans, FailedCommand, LastEdit, NextStep, NextStepSource, OutdatedStatements, PromptForm,
    Truth, UnprocessedResult,
};
use super::schedule::Schedule;
use super::work_list::WorkList;
use super::{ConversationTraits, ListKind, Segment};

/// The smallest size of a segment in bytes: more than the largest measured budget of the last exchanges, which is
/// 50,000 tokens, so that no segment fits into it.
const MIN_SEGMENT_BYTES: usize = 240_000;
/// The lines of a large data file; it has about 90 kB.
const DATA_FILE_LINES: usize = 2_200;

/// Writes a conversation segment by segment.
pub(super) struct Author {
    pub(super) traits: ConversationTraits,
    pub(super) phrases: Phrases,
    pub(super) draws: Draws,
    pub(super) files: ProjectFiles,
    pub(super) data_files: Vec<String>,
    pub(super) events: Vec<Event>,
    pub(super) segment: usize,
    pub(super) segment_bytes: usize,
    pub(super) min_segment_bytes: usize,
    /// Calls and messages since the start of the conversation.
    pub(super) call_count: usize,
    pub(super) message_count: usize,
    /// The share of routine calls in this segment that edit a file, in percent.
    pub(super) edit_percent: usize,
    pub(super) work: WorkState,
}

/// What the conversation has come to.
#[derive(Default)]
pub(super) struct WorkState {
    pub(super) request: Option<CurrentRequest>,
    pub(super) decisions: Vec<Decision>,
    pub(super) failure: Option<TrackedFailure>,
    pub(super) last_edit: Option<TrackedEdit>,
    pub(super) recent_files: Vec<String>,
    /// Files that were created or edited in the conversation, including reverted ones.
    pub(super) touched_files: Vec<String>,
    pub(super) list: WorkList,
    pub(super) announced_step: Option<AnnouncedStep>,
    pub(super) unprocessed_result: Option<UnprocessedResult>,
    /// The last row is a new request, for which there is neither a list nor a next step.
    pub(super) has_unstarted_request: bool,
    pub(super) outdated_statements: OutdatedStatements,
    pub(super) secrets: Vec<String>,
}

pub(super) struct CurrentRequest {
    pub(super) text: String,
    pub(super) secret: Option<String>,
    pub(super) segment: usize,
    pub(super) form: PromptForm,
    pub(super) additions: Vec<String>,
    pub(super) proposal: Option<String>,
}

impl CurrentRequest {
    pub(super) fn typed(text: String, segment: usize) -> CurrentRequest {
        CurrentRequest {
            text,
            secret: None,
            segment,
            form: PromptForm::Typed,
            additions: Vec::new(),
            proposal: None,
        }
    }
}

#[derive(Clone)]
pub(super) struct TrackedFailure {
    pub(super) command: String,
    pub(super) error_line: String,
    pub(super) segment: usize,
    pub(super) is_reported_as_success: bool,
    pub(super) call_number: usize,
}

pub(super) struct TrackedEdit {
    pub(super) path: String,
    pub(super) first_line: usize,
    pub(super) last_line: usize,
    pub(super) means: EditMeans,
    pub(super) segment: usize,
    pub(super) is_committed: bool,
    pub(super) call_number: usize,
}

pub(super) struct AnnouncedStep {
    pub(super) text: String,
    pub(super) message_number: usize,
}

impl Author {
    pub(super) fn new(traits: ConversationTraits, draws: &Draws) -> Author {
        let theme = &THEMES[traits.theme_index];
        let mut author = Author {
            phrases: Phrases::new(theme, traits.language, draws.substream("phrases")),
            draws: draws.substream("project"),
            files: ProjectFiles::default(),
            data_files: Vec::new(),
            events: Vec::new(),
            segment: 0,
            segment_bytes: 0,
            min_segment_bytes: MIN_SEGMENT_BYTES,
            call_count: 0,
            message_count: 0,
            edit_percent: 0,
            work: WorkState::default(),
            traits,
        };
        author.create_initial_files();
        author
    }

    fn create_initial_files(&mut self) {
        let theme = self.phrases.theme;
        for _ in 0..self.draws.number_between(6, 14) {
            let path = self.new_source_path();
            let line_count = self.draws.log_uniform_number(40, 420);
            let lines = self.code_lines(line_count);
            self.files.insert(&path, lines);
        }
        if self.traits.has_unusual_paths {
            for name in ["Über sicht", "l'état (copie)"] {
                let lines = self.code_lines(90);
                self.files.insert(&format!("{}/{name}.{}", theme.source_folder, theme.extension), lines);
            }
        }
        if self.traits.formats_all_files {
            for _ in 0..30 {
                let path = self.new_source_path();
                let lines = self.code_lines(12);
                self.files.insert(&path, lines);
            }
        }
        let title = format!("# {} {}", self.phrases.quality(), self.phrases.noun());
        self.files.insert("README.md", vec![title, String::new(), "What it does.".to_owned()]);
        for folder in ["data", "logs"] {
            let path = format!("{folder}/{}.txt", self.phrases.identifier());
            let lines = (0..DATA_FILE_LINES).map(|_| self.phrases.log_line()).collect();
            self.files.insert(&path, lines);
            self.data_files.push(path);
        }
        if self.traits.list_kind == ListKind::PlanFile {
            self.create_plan_file();
        }
    }

    pub(super) fn new_source_path(&mut self) -> String {
        let theme = self.phrases.theme;
        let (noun, number) = (self.phrases.noun(), self.phrases.unique_number());
        format!("{}/{noun}_{}_{number}.{}", theme.source_folder, self.phrases.noun(), theme.extension)
    }

    pub(super) fn code_lines(&mut self, count: usize) -> Vec<String> {
        (0..count).map(|_| self.phrases.code_line()).collect()
    }

    /// Returns the source files of the project, without plan, readme and data.
    pub(super) fn source_paths(&self) -> Vec<String> {
        let extension = format!(".{}", self.phrases.theme.extension);
        self.files.paths().filter(|path| path.ends_with(&extension)).cloned().collect()
    }

    pub(super) fn random_source_path(&mut self) -> String {
        let paths = self.source_paths();
        self.draws.pick(&paths).clone()
    }

    /// Writes the segment with this number, from 1, and returns it with the truth at its end.
    pub(super) fn write_segment(&mut self, number: usize, draws: &Draws) -> Segment {
        self.segment = number;
        self.draws = draws.substream(&format!("segment {number}"));
        self.segment_bytes = 0;
        self.work.unprocessed_result = None;
        let is_short = number == 1 && self.traits.is_short_at_first;
        self.min_segment_bytes = if is_short { 0 } else { MIN_SEGMENT_BYTES };
        if number > 1 {
            self.finish_announced_step();
            if std::mem::take(&mut self.work.has_unstarted_request) {
                self.start_list_for_request();
            }
        }
        let calls_before = self.call_count;
        let schedule = Schedule::draw(self);
        for position in 0..schedule.call_count {
            for incident in schedule.incidents_at(position) {
                self.write_incident(incident);
            }
            self.write_routine_message();
        }
        while self.segment_bytes < self.min_segment_bytes {
            self.write_large_read();
            for _ in 0..self.draws.number_between(1, 4) {
                self.write_routine_message();
            }
        }
        self.write_ending();
        Segment {
            events: std::mem::take(&mut self.events),
            truth: self.truth(),
            call_count: self.call_count - calls_before,
            byte_count: self.segment_bytes,
        }
    }

    /// The step that was announced before a compaction is done after it, so it becomes a red herring.
    pub(super) fn finish_announced_step(&mut self) {
        if let Some(step) = self.work.announced_step.take() {
            self.work.outdated_statements.done_steps.push(step.text);
        }
    }

    pub(super) fn write_message(&mut self, text: Option<String>, calls: Vec<ToolCall>) {
        self.call_count += calls.len();
        self.message_count += 1;
        let call_bytes: usize = calls.iter().map(ToolCall::byte_count).sum();
        self.segment_bytes += call_bytes + text.as_ref().map_or(0, String::len);
        let thinking = self.draws.bool_with_percent(15);
        self.events.push(Event::Message { thinking, text, calls });
    }

    pub(super) fn write_call(&mut self, call: ToolCall) {
        let text = self.draws.bool_with_percent(55).then(|| self.phrases.filler_text());
        self.write_message(text, vec![call]);
    }

    fn truth(&mut self) -> Truth {
        let (call_count, message_count) = (self.call_count, self.message_count);
        let work = &self.work;
        let request = work.request.as_ref().expect("every first segment has a request");
        let edit = work.last_edit.as_ref().expect("every first segment has an edit");
        let decision = self.draws.pick(&work.decisions).clone();
        let item = work.list.current_item().filter(|_| !work.has_unstarted_request);
        let announced_step = work.announced_step.as_ref().map(|step| NextStep {
            text: step.text.clone(),
            source: NextStepSource::Announced { messages_since: message_count - step.message_number },
        });
        let open_item = item.clone().map(|text| NextStep { text, source: NextStepSource::OpenItem });
        Truth {
            request: request.text.clone(),
            secret_in_request: request.secret.clone(),
            request_segment: request.segment,
            request_form: request.form,
            additions: request.additions.clone(),
            proposal: request.proposal.clone(),
            decision,
            failure: work.failure.as_ref().map(|failure| FailedCommand {
                command: failure.command.clone(),
                error_line: failure.error_line.clone(),
                segment: failure.segment,
                is_reported_as_success: failure.is_reported_as_success,
                calls_since: call_count - failure.call_number,
            }),
            last_edit: LastEdit {
                path: edit.path.clone(),
                first_line: edit.first_line,
                last_line: edit.last_line,
                means: edit.means,
                segment: edit.segment,
                is_committed: edit.is_committed,
                calls_since: call_count - edit.call_number,
            },
            recent_files: work.recent_files.iter().take(3).cloned().collect(),
            unprocessed_result: work.unprocessed_result.clone(),
            next_step: announced_step.or(open_item),
            item,
            outdated_statements: work.outdated_statements.clone(),
            secrets: work.secrets.clone(),
        }
    }
}
