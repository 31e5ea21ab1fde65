//! The generated truth must hold in the generated conversation.

use super::super::events::{Change, Event, PROJECT_PLACEHOLDER, ToolCall};
use super::super::truth::{EditMeans, NextStepSource};
use super::*;
use std::collections::BTreeMap;

const CONVERSATIONS: usize = 40;

fn conversations() -> impl Iterator<Item = Conversation> {
    (0..CONVERSATIONS).map(|index| generate_conversation(1, index, 3))
}

/// Returns what the user and the assistant wrote, and what the tools returned.
fn full_text(events: &[Event]) -> String {
    let mut text = String::new();
    for event in events {
        match event {
            Event::Prompt { text: prompt, .. } => text += &format!("{prompt}\n"),
            Event::Message { text: words, calls, .. } => {
                text += &format!("{}\n", words.as_deref().unwrap_or_default());
                calls
                    .iter()
                    .for_each(|call| text += &format!("{}\n{}\n", readable_input(call), call.result_text));
            }
            _ => {}
        }
    }
    text
}

fn readable_input(call: &ToolCall) -> String {
    let strings = call.input.as_object().into_iter().flatten();
    strings.filter_map(|(_, value)| value.as_str()).collect::<Vec<_>>().join("\n")
}

fn calls(events: &[Event]) -> impl Iterator<Item = &ToolCall> {
    events.iter().flat_map(|event| match event {
        Event::Message { calls, .. } => calls.as_slice(),
        _ => &[],
    })
}

/// Applies the file changes of a segment; renames are applied, commits ignored.
fn apply_changes(files: &mut BTreeMap<String, String>, events: &[Event]) {
    for change in calls(events).flat_map(|call| &call.changes) {
        match change {
            Change::Write { path, content } => _ = files.insert(path.clone(), content.clone()),
            Change::Git(arguments) if arguments[0] == "mv" => {
                let content = files.remove(&arguments[1]).expect("the renamed file exists");
                files.insert(arguments[2].clone(), content);
            }
            Change::Git(_) => {}
        }
    }
}

#[test]
fn a_seed_always_gives_the_same_conversation() {
    let first = generate_conversation(1, 3, 2);
    let again = generate_conversation(1, 3, 2);
    assert_eq!(format!("{first:?}"), format!("{again:?}"));
    assert_ne!(format!("{first:?}"), format!("{:?}", generate_conversation(2, 3, 2)));
    // The first segment does not depend on how many follow.
    let longer = generate_conversation(1, 3, 5);
    assert_eq!(format!("{:?}", first.segments[0]), format!("{:?}", longer.segments[0]));
}

#[test]
fn every_fact_of_the_truth_occurs_in_the_conversation_before() {
    for conversation in conversations() {
        let mut text = String::new();
        for (index, segment) in conversation.segments.iter().enumerate() {
            text += &full_text(&segment.events);
            let truth = &segment.truth;
            let context = format!("{:?} segment {}: {truth:#?}", conversation.traits, index + 1);
            assert!(text.contains(&truth.request), "{context}");
            assert!(truth.additions.iter().all(|addition| text.contains(addition)), "{context}");
            assert!(truth.proposal.iter().all(|proposal| text.contains(proposal)), "{context}");
            assert!(
                text.contains(&truth.decision.choice) && text.contains(&truth.decision.reason),
                "{context}"
            );
            if let Some(failure) = &truth.failure {
                assert!(text.contains(&failure.command) && text.contains(&failure.error_line), "{context}");
                assert!(failure.segment <= index + 1, "{context}");
            }
            if let Some(step) = &truth.next_step
                && step.source != NextStepSource::OpenItem
            {
                assert!(text.contains(&step.text), "{context}");
            }
            assert!(truth.secrets.iter().all(|secret| text.contains(secret)), "{context}");
        }
    }
}

#[test]
fn an_open_result_is_in_the_last_message() {
    let mut open_count = 0;
    for segment in conversations().flat_map(|conversation| conversation.segments) {
        let Some(result) = &segment.truth.unprocessed_result else {
            assert!(matches!(segment.events.last(), Some(Event::Prompt { .. })), "{:?}", segment.truth);
            continue;
        };
        open_count += 1;
        let Some(Event::Message { calls, .. }) = segment.events.last() else { panic!("{result:?}") };
        let has_line = |call: &ToolCall| call.result_text.contains(&result.line);
        assert!(calls.iter().any(has_line), "{result:?}");
    }
    assert!(open_count > CONVERSATIONS * 3 / 2, "{open_count}");
}

#[test]
fn the_lines_of_the_last_edit_are_those_of_the_file() {
    for conversation in conversations() {
        let mut files: BTreeMap<String, String> = conversation.initial_files.into_iter().collect();
        for segment in &conversation.segments {
            apply_changes(&mut files, &segment.events);
            let edit = &segment.truth.last_edit;
            let line_count = files[&edit.path].lines().count();
            assert!((1..=edit.last_line).contains(&edit.first_line), "{edit:?}");
            // A deletion at the end of the file points to the line after it.
            assert!(edit.last_line <= line_count + 1, "{edit:?} of {line_count} lines");
            assert!(segment.truth.recent_files.contains(&edit.path), "{edit:?}");
            if edit.means == EditMeans::NewFile && edit.calls_since == 0 {
                assert_eq!(edit.last_line, line_count);
            }
            for path in &segment.truth.outdated_statements.reverted_files {
                assert!(!segment.truth.recent_files.contains(path) && files.contains_key(path), "{path}");
            }
        }
    }
}

#[test]
fn edits_of_the_client_can_be_applied_to_the_file_before() {
    for conversation in conversations().take(10) {
        for call in conversation.segments.iter().flat_map(|segment| calls(&segment.events)) {
            if call.name != "Edit" {
                continue;
            }
            let (detail, path) = (&call.result_detail, call.input["file_path"].as_str().unwrap_or_default());
            let original = detail["originalFile"].as_str().unwrap_or_default();
            let old_string = detail["oldString"].as_str().unwrap_or_default();
            assert!(path.starts_with(PROJECT_PLACEHOLDER));
            assert_eq!(original.matches(old_string).count(), 1, "{path}: {old_string}");
        }
    }
}

#[test]
fn later_segments_exceed_the_largest_budget_of_the_last_exchanges() {
    let mut shortest_segment = usize::MAX;
    for conversation in conversations() {
        for (index, segment) in conversation.segments.iter().enumerate() {
            if index > 0 || !conversation.traits.is_short_at_first {
                assert!(segment.byte_count > 200_000, "{} bytes", segment.byte_count);
            }
            shortest_segment = shortest_segment.min(segment.call_count);
        }
    }
    assert!(shortest_segment < 20, "{shortest_segment}");
}

#[test]
fn repaired_commands_and_done_items_are_no_longer_current() {
    for segment in conversations().flat_map(|conversation| conversation.segments) {
        let truth = &segment.truth;
        let herrings = &truth.outdated_statements;
        assert!(!herrings.finished_requests.contains(&truth.request), "{truth:#?}");
        assert!(truth.item.iter().all(|item| !herrings.done_items.contains(item)), "{truth:#?}");
        assert!(
            truth.failure.iter().all(|failure| !herrings.repaired_commands.contains(&failure.command)),
            "{truth:#?}"
        );
    }
}
