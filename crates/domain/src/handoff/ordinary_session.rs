//! The handoff of a session outside a run: first the user's requests, then what was done, what is open, and
//! the model's last message. It refers to no plan item of a run, and empty sections are left out.

use super::{Handoff, format_as_code_span};
use crate::resume;
use crate::text::{count_with_noun, to_safe_single_line, truncate_end};
use plimsoll_protocol::handoff_message::REQUESTS_HEADING;

/// The user's requests in a session outside a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserRequests {
    /// The first request; `None` if it is already among the last ones.
    pub first_request: Option<String>,
    /// The last requests, oldest first.
    pub last_requests: Vec<String>,
}

/// The maximum lengths of an older request and of the newest one.
const MAX_OLDER_REQUEST_CHARS: usize = 600;
const MAX_NEWEST_REQUEST_CHARS: usize = 2_000;

impl Handoff {
    pub(super) fn render_ordinary_session_sections(
        &self,
        requests: &UserRequests,
        max_rows: usize,
    ) -> Vec<String> {
        vec![
            "# Handoff\n".to_owned(),
            requests.render_with_char_limits_scaled_to_rows(max_rows),
            self.render_files_section("Changed files", max_rows),
            self.render_relevant_command_and_unread_outputs(max_rows),
            self.render_list_if_no_plan("Done", &self.done_items, max_rows),
            self.render_list_if_no_plan("Open", &self.open_items, max_rows),
            self.render_last_message_unless_it_has_summary(max_rows),
            self.render_git_section_with_work(),
            self.render_memory_section(max_rows),
            self.render_session_details_section(),
            "## How to continue\n\nStart with the user's last request. Do not redo finished work. The session's own claims are unverified; check them before you rely on them.\n"
                .to_owned(),
        ]
    }

    fn render_git_section_with_work(&self) -> String {
        let Some(git) = &self.git else { return String::new() };
        let work_line = self.item_work.is_begun.then(|| {
            format!(
                "- {}\n",
                resume::ensure_final_period(&resume::describe_item_work_since_base(
                    &self.item_work,
                    git.head_commit.as_deref()
                ))
            )
        });
        format!("{}{}", self.render_git_section(), work_line.unwrap_or_default())
    }

    fn render_session_details_section(&self) -> String {
        let context_line =
            self.usage_percent.map(|percent| format!("- Context: {percent}% ({})\n", self.level));
        let plan_path = self.plan_path.as_deref().filter(|_| !self.open_items.is_empty());
        let plan_line = plan_path.map(|plan| {
            format!(
                "- Open in {}: {}\n",
                format_as_code_span(plan),
                count_with_noun(self.open_items.len(), "item")
            )
        });
        let transcript_line = self
            .transcript_path
            .as_ref()
            .map(|path| format!("- Transcript: {}\n", to_safe_single_line(path)));
        format!(
            "## About this session\n\n- Session: {} (of no run)\n- Written: {}\n{}{}{}",
            to_safe_single_line(&self.session_id),
            self.written_at,
            context_line.unwrap_or_default(),
            plan_line.unwrap_or_default(),
            transcript_line.unwrap_or_default(),
        )
    }
}

impl UserRequests {
    /// Returns the last requests, at most `max_last` of them, and the first one if it is not among them.
    pub fn first_and_last(mut requests: Vec<String>, max_last: usize) -> UserRequests {
        let last_requests = requests.split_off(requests.len().saturating_sub(max_last));
        UserRequests { first_request: requests.into_iter().next(), last_requests }
    }

    fn render_with_char_limits_scaled_to_rows(&self, max_rows: usize) -> String {
        let Some((newest, older)) = self.last_requests.split_last() else { return String::new() };
        // Shorter limits for lower row counts, so that long requests are shortened before facts are left out.
        let scaled_limit = |max_chars: usize| (max_chars * (max_rows + 1) / 21).max(160);
        let first_block = self.first_request.iter().map(|first| {
            format!("{}\n…\n", quote_truncated_request(first, scaled_limit(MAX_OLDER_REQUEST_CHARS)))
        });
        let older_blocks = older
            .iter()
            .map(|request| quote_truncated_request(request, scaled_limit(MAX_OLDER_REQUEST_CHARS)));
        let newest_block =
            std::iter::once(quote_truncated_request(newest, scaled_limit(MAX_NEWEST_REQUEST_CHARS)));
        let blocks: Vec<String> = first_block.chain(older_blocks).chain(newest_block).collect();
        format!("{REQUESTS_HEADING} (the user's own words, newest last)\n\n{}", blocks.join("\n"))
    }
}

fn quote_truncated_request(request: &str, max_chars: usize) -> String {
    truncate_end(request.trim(), max_chars).lines().map(|line| format!("> {line}\n")).collect::<String>()
}

/// Returns the first line of the first request that a handoff quotes; `None` for the handoff of a run.
pub fn parse_first_line_of_first_request(document: &str) -> Option<&str> {
    let mut lines = document.lines().skip_while(|line| !line.starts_with(REQUESTS_HEADING));
    lines.next()?;
    let first_line = lines.take_while(|line| !line.starts_with('#')).find_map(|line| line.strip_prefix("> "));
    first_line.map(str::trim).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handoff::{CommandFact, GitFacts, HandoffNotes};
    use crate::level::Level;

    fn handoff_with_requests(first_request: Option<&str>, last_requests: &[&str]) -> Handoff {
        let requests = last_requests.iter().map(|words| (*words).to_owned()).collect();
        let user_requests =
            UserRequests { first_request: first_request.map(str::to_owned), last_requests: requests };
        Handoff {
            user_requests: Some(user_requests),
            session_id: "s1".into(),
            level: Level::L2,
            usage_percent: Some(87),
            written_at: "2026-01-07T11:45:00Z".into(),
            ..Handoff::default()
        }
    }

    #[test]
    fn it_begins_with_the_users_requests_and_has_no_empty_section() {
        let handoff = Handoff {
            done_items: vec!["Parse dates".into()],
            open_items: vec!["Write the docs (in progress)".into()],
            commands: vec![CommandFact {
                command: "make".into(),
                passed: Some(true),
                ..CommandFact::default()
            }],
            last_message: Some("The parser is done.".into()),
            git: Some(GitFacts { branch: "main".into(), ..GitFacts::default() }),
            ..handoff_with_requests(
                Some("Read the spec.\nThen ask."),
                &["Fix the parser.", "Now the docs,\nplease."],
            )
        };
        let text = handoff.render_with_notes(&HandoffNotes::default(), 8_192);
        insta::assert_snapshot!(text, @"
        # Handoff

        ## What the user asked for (the user's own words, newest last)

        > Read the spec.
        > Then ask.

        …

        > Fix the parser.

        > Now the docs,
        > please.

        ## Last command

        - `make` → ok

        ## Done (1)

        - Parse dates

        ## Open (1)

        - Write the docs (in progress)

        ## Last message of the session (unverified)

        > The parser is done.

        ## Git

        - Branch: main
        - HEAD: no commit yet
        - No file has changed for it.

        ## About this session

        - Session: s1 (of no run)
        - Written: 2026-01-07T11:45:00Z
        - Context: 87% (L2)

        ## How to continue

        Start with the user's last request. Do not redo finished work. The session's own claims are unverified; check them before you rely on them.
        ");
        assert_eq!(parse_first_line_of_first_request(&text), Some("Read the spec."));
        let short_document =
            handoff_with_requests(None, &["Hello"]).render_with_notes(&HandoffNotes::default(), 8_192);
        insta::assert_snapshot!(short_document, @"
        # Handoff

        ## What the user asked for (the user's own words, newest last)

        > Hello

        ## About this session

        - Session: s1 (of no run)
        - Written: 2026-01-07T11:45:00Z
        - Context: 87% (L2)

        ## How to continue

        Start with the user's last request. Do not redo finished work. The session's own claims are unverified; check them before you rely on them.
        ");
        assert_eq!(parse_first_line_of_first_request(&short_document), Some("Hello"));
        assert_eq!(parse_first_line_of_first_request("# Handoff\n\n- Run: Demo\n"), None);
    }

    #[test]
    fn long_requests_are_cut_before_facts_are() {
        let long_request = "word ".repeat(2_000);
        let handoff = Handoff {
            open_items: vec!["Write the docs".into()],
            ..handoff_with_requests(Some(&long_request), &[&long_request, &long_request, &long_request])
        };
        let text = handoff.render_with_notes(&HandoffNotes::default(), 3_000);
        assert!(text.len() <= 3_000 && text.contains("Write the docs"), "{} {text}", text.len());
    }

    #[test]
    fn notes_are_shown_only_if_the_session_wrote_some_and_are_never_lost() {
        let handoff = handoff_with_requests(None, &["Hello"]);
        let sample_notes = |summary: &str, next: &str| HandoffNotes {
            summary: summary.into(),
            next_step: next.into(),
            ..HandoffNotes::default()
        };
        let document = handoff.render_with_notes(&sample_notes("half done", ""), 8_192);
        let place = document.find("## Notes").expect("a section of notes");
        insta::assert_snapshot!(document[place..], @"
        ## Notes from the session

        <!-- The session's own claims, not verified. -->
        - Summary: half done
        ");
        let renewed = handoff.refresh_document_with_notes(&sample_notes("", "line 81"), &document, 8_192);
        assert_eq!(HandoffNotes::parse(&renewed), sample_notes("half done", "line 81"), "{renewed}");
        let hand_edited_document = format!("{renewed}\nMy own words.\n");
        assert!(
            handoff
                .refresh_document_with_notes(&HandoffNotes::default(), &hand_edited_document, 8_192)
                .contains("My own words.")
        );
        let document_without_notes = handoff.render_with_notes(&HandoffNotes::default(), 8_192);
        assert_eq!(
            handoff.refresh_document_with_notes(&HandoffNotes::default(), &document_without_notes, 8_192),
            document_without_notes
        );
        assert_eq!(
            HandoffNotes::parse(&handoff.refresh_document_with_notes(
                &sample_notes("x", ""),
                &document_without_notes,
                8_192
            )),
            sample_notes("x", "")
        );
    }
}
