//! The handoff of a session of no run: first what the user asked for, then what was done, what is open, and what the model
//! said last. Nothing of it is an item of a plan, and no heading stands without words.

use super::{Handoff, quoted_name};
use crate::resume;
use crate::text::{clip, counted, one_line};

/// What only a session of no run has: a user who asks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OrdinarySession {
    /// The first request; none if it is among the last ones.
    pub first_request: Option<String>,
    /// The last requests, the newest last.
    pub last_requests: Vec<String>,
}

/// The heading by which the requests are found again.
const REQUESTS: &str = "## What the user asked for";
/// How much is shown of a request: of an older one, and of the newest.
const OLDER_REQUEST: usize = 600;
const NEWEST_REQUEST: usize = 2_000;

impl Handoff {
    pub(super) fn ordinary_sections(&self, session: &OrdinarySession, lines: usize) -> Vec<String> {
        vec![
            "# Handoff\n".to_owned(),
            session.requests_section(lines),
            self.files_section("Changed files", lines),
            self.commands_section(lines),
            self.list_unless_planned("Done", &self.done, lines),
            self.list_unless_planned("Open", &self.open, lines),
            self.words_section(lines),
            self.own_git_section(),
            self.memory_section(lines),
            self.origin_section(),
            "## How to continue\n\nWhat the user asked for last comes first; do not redo what is done. What the session says of itself is unverified: check it before you build on it.\n"
                .to_owned(),
        ]
    }

    fn own_git_section(&self) -> String {
        let Some(git) = &self.git else { return String::new() };
        let work = self
            .work
            .is_begun
            .then(|| format!("- {}\n", resume::sentence(&resume::range(&self.work, git.head.as_deref()))));
        format!("{}{}", self.git_section(), work.unwrap_or_default())
    }

    fn origin_section(&self) -> String {
        let percent = self.percent.map(|percent| format!("- Context: {percent}% ({})\n", self.level));
        let plan = self.plan.as_deref().filter(|_| !self.open.is_empty());
        let plan = plan
            .map(|plan| format!("- Open in {}: {}\n", quoted_name(plan), counted(self.open.len(), "item")));
        let transcript = self.transcript.as_ref().map(|path| format!("- Transcript: {}\n", one_line(path)));
        format!(
            "## About this session\n\n- Session: {} (of no run)\n- Written: {}\n{}{}{}",
            one_line(&self.session_id),
            self.written_at,
            percent.unwrap_or_default(),
            plan.unwrap_or_default(),
            transcript.unwrap_or_default(),
        )
    }
}

impl OrdinarySession {
    fn requests_section(&self, lines: usize) -> String {
        let Some((newest, older)) = self.last_requests.split_last() else { return String::new() };
        // Of a long one the handoff's limit takes its end before it takes a fact.
        let share = |most: usize| (most * (lines + 1) / 21).max(160);
        let gap =
            self.first_request.iter().map(|first| format!("{}\n\n…\n", quoted(first, share(OLDER_REQUEST))));
        let older = older.iter().map(|request| quoted(request, share(OLDER_REQUEST)));
        let newest = std::iter::once(quoted(newest, share(NEWEST_REQUEST)));
        let all: Vec<String> = gap.chain(older).chain(newest).collect();
        format!("{REQUESTS} (in the user's own words, the last request last)\n\n{}\n", all.join("\n"))
    }
}

fn quoted(request: &str, most: usize) -> String {
    clip(request.trim(), most).lines().map(|line| format!("> {line}\n")).collect::<String>()
}

/// The first line of the first request that a handoff quotes; none of a run's handoff.
pub fn first_request(document: &str) -> Option<&str> {
    let mut lines = document.lines().skip_while(|line| !line.starts_with(REQUESTS));
    lines.next()?;
    let words = lines.take_while(|line| !line.starts_with('#')).find_map(|line| line.strip_prefix("> "));
    words.map(str::trim).filter(|words| !words.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handoff::{CommandFact, GitFacts, Notes};
    use crate::level::Level;

    fn asked(first: Option<&str>, last: &[&str]) -> Handoff {
        let last_requests = last.iter().map(|words| (*words).to_owned()).collect();
        let session = OrdinarySession { first_request: first.map(str::to_owned), last_requests };
        Handoff {
            ordinary: Some(session),
            session_id: "s1".into(),
            level: Level::L2,
            percent: Some(87),
            written_at: "2026-01-07T11:45:00Z".into(),
            ..Handoff::default()
        }
    }

    #[test]
    fn it_begins_with_the_users_words_and_has_no_heading_without_any() {
        let full = Handoff {
            done: vec!["Parse dates".into()],
            open: vec!["Write the docs (in progress)".into()],
            commands: vec![CommandFact { command: "make".into(), ok: Some(true), ..CommandFact::default() }],
            last_words: Some("The parser is done.".into()),
            git: Some(GitFacts { branch: "main".into(), ..GitFacts::default() }),
            ..asked(Some("Read the spec.\nThen ask."), &["Fix the parser.", "Now the docs,\nplease."])
        };
        let text = full.document(&Notes::default(), 8_192);
        insta::assert_snapshot!(text, @"
        # Handoff

        ## What the user asked for (in the user's own words, the last request last)

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

        ## The session's last words (its own claim, unverified)

        > The parser is done.

        ## Git

        - Branch: main
        - HEAD: no commit yet
        - No file has been changed for it.

        ## About this session

        - Session: s1 (of no run)
        - Written: 2026-01-07T11:45:00Z
        - Context: 87% (L2)

        ## How to continue

        What the user asked for last comes first; do not redo what is done. What the session says of itself is unverified: check it before you build on it.
        ");
        assert_eq!(first_request(&text), Some("Read the spec."));
        let bare = asked(None, &["Hello"]).document(&Notes::default(), 8_192);
        insta::assert_snapshot!(bare, @"
        # Handoff

        ## What the user asked for (in the user's own words, the last request last)

        > Hello


        ## About this session

        - Session: s1 (of no run)
        - Written: 2026-01-07T11:45:00Z
        - Context: 87% (L2)

        ## How to continue

        What the user asked for last comes first; do not redo what is done. What the session says of itself is unverified: check it before you build on it.
        ");
        assert_eq!(first_request(&bare), Some("Hello"));
        assert_eq!(first_request("# Handoff\n\n- Run: Demo\n"), None);
    }

    #[test]
    fn long_requests_are_cut_before_the_limit_cuts_facts() {
        let long = "word ".repeat(2_000);
        let handoff =
            Handoff { open: vec!["Write the docs".into()], ..asked(Some(&long), &[&long, &long, &long]) };
        let text = handoff.document(&Notes::default(), 3_000);
        assert!(text.len() <= 3_000 && text.contains("Write the docs"), "{} {text}", text.len());
    }

    #[test]
    fn notes_are_there_only_where_the_session_wrote_some_and_are_never_lost() {
        let handoff = asked(None, &["Hello"]);
        let notes = |summary: &str, next: &str| Notes {
            summary: summary.into(),
            next: next.into(),
            ..Notes::default()
        };
        let first = handoff.document(&notes("half done", ""), 8_192);
        let place = first.find("## Notes").expect("a section of notes");
        insta::assert_snapshot!(first[place..], @"
        ## Notes from the session

        <!-- The session's own claims, not verified. -->
        - Summary: half done
        ");
        let renewed = handoff.renewed(&notes("", "line 81"), &first, 8_192);
        assert_eq!(Notes::parse(&renewed), notes("half done", "line 81"), "{renewed}");
        let by_hand = format!("{renewed}\nMy own words.\n");
        assert!(handoff.renewed(&Notes::default(), &by_hand, 8_192).contains("My own words."));
        let none = handoff.document(&Notes::default(), 8_192);
        assert_eq!(handoff.renewed(&Notes::default(), &none, 8_192), none);
        assert_eq!(Notes::parse(&handoff.renewed(&notes("x", ""), &none, 8_192)), notes("x", ""));
    }
}
