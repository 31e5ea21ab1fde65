use super::*;
use plimsoll_domain::cost::CostBasis;

const NOW: i64 = 1_800_000_000;
const OPUS: &str = "claude-opus-5-5";

/// A response with this many input tokens, which cost $4 a million, `minute` minutes after [`NOW`].
fn response(id: &str, model: &str, input_tokens: u64, minute: i64) -> String {
    response_with(&format!(r#""id":"{id}","#), model, input_tokens, minute, "")
}

fn response_with(ids: &str, model: &str, input_tokens: u64, minute: i64, fields: &str) -> String {
    let time = DateTime::from_timestamp(NOW + 60 * minute, 0).unwrap().to_rfc3339();
    format!(
        r#"{{{fields}"timestamp":"{time}","type":"assistant","message":{{{ids}"model":"{model}","usage":{{"input_tokens":{input_tokens}}}}}}}"#
    )
}

fn cost_state(start: u64, usd: f64, models: &[(&str, u64, f64)]) -> String {
    let models: Vec<String> = models
        .iter()
        .map(|(model, tokens, usd)| format!(r#""{model}":{{"inputTokens":{tokens},"costUSD":{usd}}}"#))
        .collect();
    format!(
        r#"{{"type":"cost-state","startTime":{start},"totalCostUSD":{usd},"modelUsage":{{{}}}}}"#,
        models.join(",")
    )
}

fn transcript(session_id: &str, lines: &[String]) -> TranscriptUsage {
    let mut usage = TranscriptUsage::new(session_id, false);
    lines.iter().for_each(|line| usage.add_line(line.as_bytes(), true));
    usage
}

fn totals_of(mut transcripts: Vec<TranscriptUsage>) -> UsageTotals {
    take_each_response_once(&mut transcripts, NOW).iter().collect()
}

#[track_caller]
fn assert_totals(
    transcripts: Vec<TranscriptUsage>,
    responses: usize,
    tokens: u64,
    usd: f64,
    basis: CostBasis,
) {
    let totals = totals_of(transcripts);
    assert_eq!(
        (totals.response_count, totals.tokens.total_tokens(), totals.cost.basis),
        (responses, tokens, basis)
    );
    assert!((totals.cost.usd - usd).abs() < 1e-9, "{} instead of {usd}", totals.cost.usd);
}

#[test]
fn each_response_counts_once_with_its_final_usage() {
    let growing =
        [response("m1", OPUS, 1, -9), response("m1", OPUS, 1_000_000, -9), response("m2", OPUS, 500_000, -8)];
    assert_totals(vec![transcript("a", &growing)], 2, 1_500_000, 6.0, CostBasis::Estimated);
    // Lines of two responses alternate, and a copy in another session has less.
    let alternating =
        [response("m2", OPUS, 500_000, -8), response("m1", OPUS, 1_000_000, -9), response("m2", OPUS, 1, -8)];
    let both = vec![transcript("a", &growing), transcript("b", &alternating)];
    assert_totals(both, 2, 1_500_000, 6.0, CostBasis::Estimated);
}

#[test]
fn lines_without_the_id_of_the_message_count_once_by_the_next_best_id() {
    let line = |ids: &str, fields: &str| response_with(ids, OPUS, 250_000, -5, fields);
    for (lines, responses) in [
        // Two lines of one request, and a copy of a line.
        ([line("", r#""requestId":"r","uuid":"u1","#), line("", r#""requestId":"r","uuid":"u2","#)], 1),
        ([line("", r#""uuid":"u1","#), line("", r#""uuid":"u1","#)], 1),
        ([line("", r#""uuid":"u1","#), line("", r#""uuid":"u2","#)], 2),
        ([line("", ""), line("", "")], 2),
    ] {
        let usd = responses as f64;
        assert_totals(
            vec![transcript("a", &lines)],
            responses,
            250_000 * responses as u64,
            usd,
            CostBasis::Estimated,
        );
    }
}

#[test]
fn a_copied_response_belongs_to_the_session_that_ended_first_and_not_to_a_subagent() {
    let shared = response("m1", OPUS, 100, -90);
    let original = transcript("original", std::slice::from_ref(&shared));
    let fork = transcript("fork", &[shared.clone(), response("m2", OPUS, 200, -10)]);
    let mut side_question = TranscriptUsage::new("fork", true);
    side_question.add_line(shared.as_bytes(), true);
    side_question.add_line(response("m3", OPUS, 1_000, -95).as_bytes(), true);
    let mut transcripts = vec![side_question, fork, original];
    let entries = take_each_response_once(&mut transcripts, NOW);
    let tokens_by_session = group_usage(&entries, |entry| {
        (transcripts[entry.transcript_index].session_id.clone(), entry.is_subagent)
    });
    let tokens: Vec<_> =
        tokens_by_session.into_iter().map(|(key, totals)| (key, totals.tokens.total_tokens())).collect();
    let key = |session: &str, is_subagent| (session.to_owned(), is_subagent);
    assert_eq!(
        tokens,
        [(key("fork", false), 200), (key("fork", true), 1_000), (key("original", false), 100)]
    );
    assert!(entries.is_sorted_by_key(|entry| entry.responded_at));
}

#[test]
fn lines_that_do_not_count_are_counted_separately() {
    let mut usage = transcript(
        "a",
        &[
            response("m1", OPUS, 10, -5),
            response("m2", OPUS, 1_000, 61),
            response("m3", OPUS, 20, 59),
            response("m4", "<synthetic>", 1_000, -5),
            response_with("", OPUS, 1_000, -5, r#""isApiErrorMessage":true,"#),
            r#"{"type":"system","subtype":"compact_boundary"}"#.to_owned(),
            r#"{"type":"assistant","message":{"usage":{"inp"#.to_owned(),
            response("m5", OPUS, 30, -5).replace("timestamp", "time"),
        ],
    );
    // The client is still writing this one.
    usage.add_line(br#"{"type":"assistant","message":{"usage":{"inp"#, false);
    usage.add_line(response("m6", OPUS, 40, -5).as_bytes(), false);
    assert_eq!((usage.malformed_line_count, usage.compaction_count, usage.peak_tokens), (1, 1, 1_000));
    let undated = transcript("b", &[response("m7", OPUS, 9, -5).replace("timestamp", "time")]);
    let mut transcripts = [usage, undated];
    let totals: UsageTotals = take_each_response_once(&mut transcripts, NOW).iter().collect();
    assert_eq!((totals.response_count, totals.tokens.total_tokens()), (4, 100));
    assert_eq!((transcripts[0].future_response_count, transcripts[1].undated_response_count), (1, 1));
}

#[test]
fn the_costs_of_unknown_models_are_upper_bounds_and_old_clients_report_each_response() {
    assert_totals(
        vec![transcript("a", &[response("m1", "zork", 1_000_000, -5)])],
        1,
        1_000_000,
        15.0,
        CostBasis::AtMost,
    );
    let old = response_with(r#""id":"m1","#, OPUS, 1_000_000, -5, r#""costUSD":0.75,"#);
    assert_totals(vec![transcript("a", &[old])], 1, 1_000_000, 0.75, CostBasis::Reported);
}

#[test]
fn the_clients_totals_replace_estimates_without_counting_a_process_twice() {
    let first = response("m1", OPUS, 1_000_000, -90);
    let second = response("m2", OPUS, 1_000_000, -80);
    let third = response("m3", OPUS, 1_000_000, -70);
    let state = |start: u64, responses: u64| {
        let usd = 5.0 * responses as f64;
        cost_state(start, usd, &[(OPUS, 1_000_000 * responses, usd)])
    };
    // A process resumes the session and continues the count, and writes its totals twice.
    let resumed = [first.clone(), state(7, 1), second.clone(), state(7, 2), state(7, 2)];
    assert_totals(vec![transcript("a", &resumed)], 2, 2_000_000, 10.0, CostBasis::Reported);
    // So does a process that forks it, whose transcript begins with a copy.
    let fork = [first.clone(), second.clone(), third.clone(), state(7, 3)];
    let both = vec![transcript("a", &resumed), transcript("b", &fork)];
    assert_totals(both, 3, 3_000_000, 15.0, CostBasis::Reported);
    // An older client counts each process alone.
    let separate = [first.clone(), state(7, 1), second.clone(), state(8, 1)];
    assert_totals(vec![transcript("a", &separate)], 2, 2_000_000, 10.0, CostBasis::Reported);
    // A second copy of the whole folder adds nothing.
    let copies = vec![transcript("a", &resumed), transcript("a", &resumed)];
    assert_totals(copies, 2, 2_000_000, 10.0, CostBasis::Reported);
    // Two sessions that have nothing in common can start at the same time.
    let unrelated =
        vec![transcript("a", &[first.clone(), state(7, 2)]), transcript("b", &[third.clone(), state(7, 1)])];
    assert_totals(unrelated, 2, 3_000_000, 15.0, CostBasis::Reported);
    // A killed process, or one that is running, has reported nothing: $4 at list price.
    assert_totals(
        vec![transcript("a", &[first, state(7, 1), third])],
        2,
        2_000_000,
        9.0,
        CostBasis::Estimated,
    );
}

/// Returns the line as a fork of a session has it.
fn copy_of(line: &str) -> String {
    line.replacen('{', r#"{"requestSessionId":"original","#, 1)
}

/// `mN` is a response of a million tokens ($5) that the client reported, and `Sn` are totals of n millions.
#[test]
fn forks_add_what_their_totals_have_beyond_those_of_the_original() {
    let lines = |names: &str| -> Vec<String> {
        let to_line = |name: &str| {
            let number: i64 = name.trim_matches(['m', 'S', '*']).parse().unwrap();
            let response = || response(&format!("m{number}"), OPUS, 1_000_000, 10 * number - 100);
            match name {
                name if name.starts_with('S') => {
                    let usd = 5.0 * number as f64;
                    let start = (NOW as u64 - 40 * 86_400) * 1000;
                    cost_state(start, usd, &[(OPUS, 1_000_000 * number as u64, usd)])
                }
                name if name.ends_with('*') => copy_of(&response()),
                _ => response(),
            }
        };
        names.split(' ').map(to_line).collect()
    };
    for (sessions, responses, millions, reason) in [
        (&["m1 S1", "m1* m2 S3", "m1* m3 S3"][..], 3, 5, "each fork has a request that only its totals have"),
        (&["m1 S1 m4 S3", "m1* m2 S3", "m1* m3 S3"], 4, 7, "so has the original, which goes on"),
        (&["m1* m2 S3", "m1* m2* m3 S4"], 3, 4, "a fork of a fork, and the original is gone"),
        (&["m1 S1", "m1* S2", "m1* m3 S3"], 2, 3, "the fork in the middle has no response"),
        (&["m1* m2 m4 S3", "m1* m3 S2"], 4, 4, "two forks, and the original is gone"),
        (&["m1* m2 S3", "m1* m3 S3"], 3, 5, "each of them has a request that only its totals have"),
        (&["m1", "m1* m2 S2"], 2, 2, "the original wrote no totals"),
        (&["m1", "m1* m2 S2", "m1* m3 S2"], 3, 3, "so it is with two forks"),
        (&["m1 S1 m2 S3", "m1* S2"], 2, 4, "the fork has no response, and the original goes on"),
        (&["m1 S2", "m2 S3"], 2, 3, "the original was compacted, and the fork has no copy"),
        (&["m1 S1", "m1* m0 S2"], 2, 2, "the clock was set back before the fork"),
        (&["m1 m2 S2", "m1 m2 m3 S3"], 3, 3, "an old client does not mark copies"),
        (&["m1 m2 S2", "m1 m2 S2"], 2, 2, "a copy of the whole folder"),
    ] {
        let usd = 5.0 * millions as f64;
        let name_and_lines = |index: usize, names: &&str| transcript(&format!("s{index}"), &lines(names));
        for is_reversed in [false, true] {
            let mut transcripts: Vec<TranscriptUsage> =
                sessions.iter().enumerate().map(|(index, names)| name_and_lines(index, names)).collect();
            if is_reversed {
                transcripts.reverse();
            }
            let totals = totals_of(transcripts);
            assert_eq!(
                (totals.response_count, totals.tokens.total_tokens(), totals.cost.basis),
                (responses, 1_000_000 * millions, CostBasis::Reported),
                "{reason}, reversed: {is_reversed}"
            );
            assert!((totals.cost.usd - usd).abs() < 1e-9, "{reason}: {}", totals.cost.usd);
        }
    }
}

#[test]
fn requests_of_a_fork_without_a_response_count_when_the_original_last_responded() {
    let original = [response("m1", OPUS, 1_000_000, -90), cost_state(7, 5.0, &[(OPUS, 1_000_000, 5.0)])];
    let fork = [copy_of(&original[0]), cost_state(7, 10.0, &[(OPUS, 2_000_000, 10.0)])];
    let mut transcripts = [transcript("a", &original), transcript("b", &fork)];
    let entries = take_each_response_once(&mut transcripts, NOW);
    let times_and_sessions: Vec<_> =
        entries.iter().map(|entry| (entry.responded_at, entry.transcript_index, entry.cost.usd)).collect();
    assert_eq!(times_and_sessions, [(NOW - 90 * 60, 0, 5.0), (NOW - 90 * 60, 1, 5.0)]);
}

#[test]
fn requests_that_only_the_client_counts_are_added() {
    let lines = [
        response("m1", OPUS, 1_000_000, -90),
        response("m2", OPUS, 1_000_000, -20),
        cost_state(7, 12.1, &[(OPUS, 3_000_000, 12.0), ("claude-haiku-4-5", 100_000, 0.1)]),
    ];
    let mut transcripts = vec![transcript("a", &lines)];
    let entries = take_each_response_once(&mut transcripts, NOW);
    let models = group_usage(&entries, |entry| entry.tariff.display_name());
    let figures = |model: &str| {
        let totals = models[model];
        (totals.response_count, totals.tokens.total_tokens(), (totals.cost.usd * 1e6).round() / 1e6)
    };
    assert_eq!(figures("opus-5-5"), (2, 3_000_000, 12.0));
    assert_eq!(figures("haiku-4-5"), (0, 100_000, 0.1));
    assert!(entries.iter().all(|entry| entry.cost.basis.is_reported()));
    // They count when the session last responded.
    assert_eq!(entries.iter().filter(|entry| entry.responded_at == NOW - 20 * 60).count(), 3);
}

#[test]
fn totals_without_a_plausible_time_or_cost_do_not_count_on_a_wrong_day() {
    let next_week_in_ms = (NOW as u64 + 7 * 86_400) * 1000;
    let model = [(OPUS, 1_000_000, 5.0)];
    for (lines, future, undated) in [
        (vec![cost_state(next_week_in_ms, 5.0, &model)], 1, 0),
        (vec![cost_state(0, 5.0, &model)], 0, 1),
        (vec![response("m1", OPUS, 1_000_000, 90), cost_state(7, 5.0, &model)], 1, 0),
        (vec![cost_state(7, 1e300, &[(OPUS, 1, 1e300)])], 0, 0),
    ] {
        let mut transcripts = [transcript("a", &lines)];
        assert!(take_each_response_once(&mut transcripts, NOW).is_empty(), "{lines:?}");
        let counts = (transcripts[0].future_response_count, transcripts[0].undated_response_count);
        assert_eq!(counts, (future, undated), "{lines:?}");
    }
    // An absurd total does not replace the one before it, and a missing one is the sum of the models.
    let lines =
        [response("m1", OPUS, 1_000_000, -5), cost_state(7, 5.0, &model), cost_state(7, 1e15, &model)];
    assert_totals(vec![transcript("a", &lines)], 1, 1_000_000, 5.0, CostBasis::Reported);
    let lines = [response("m1", OPUS, 1_000_000, -5), cost_state(7, 0.0, &model)];
    assert_totals(vec![transcript("a", &lines)], 1, 1_000_000, 5.0, CostBasis::Reported);
}

#[test]
fn a_model_whose_price_the_client_does_not_know_is_never_free() {
    let lines = |usd: f64| {
        let state = cost_state(7, usd, &[("zork", 1_000_000, usd)]);
        let state = state.replacen('{', r#"{"hasUnknownModelCost":true,"#, 1);
        [response("m1", "zork", 1_000_000, -5), state]
    };
    assert_totals(vec![transcript("a", &lines(5.0))], 1, 1_000_000, 5.0, CostBasis::Estimated);
    assert_totals(vec![transcript("a", &lines(0.0))], 1, 1_000_000, 15.0, CostBasis::AtMost);
}

#[test]
fn five_hour_windows_begin_with_the_hour_of_their_first_response() {
    // NOW is at 08:00.
    let minutes = [-700, -500, -399, -250, -110, -61];
    let lines: Vec<String> =
        minutes.iter().map(|minute| response(&format!("m{minute}"), OPUS, 1_000_000, *minute)).collect();
    let entries = take_each_response_once(&mut [transcript("a", &lines)], NOW);
    let blocks = split_into_blocks(&entries);
    let summary: Vec<_> = blocks
        .iter()
        .map(|block| ((block.started_at - NOW) / 60, block.totals.response_count, block.is_active(NOW)))
        .collect();
    assert_eq!(summary, [(-720, 2, false), (-420, 2, false), (-120, 2, true)]);
    let active = blocks[2];
    let (tokens, usd) = active.hourly_tokens_and_usd().unwrap();
    assert!((tokens - 2_000_000.0 * 60.0 / 49.0).abs() < 1.0 && (usd - 8.0 * 60.0 / 49.0).abs() < 1e-9);
    let (_, projected_usd) = active.tokens_and_usd_projected_to_end(NOW).unwrap();
    assert!((projected_usd - (8.0 + 3.0 * usd)).abs() < 1e-9, "three hours are left");
    assert_eq!(split_into_blocks(&entries[..1])[0].hourly_tokens_and_usd(), None, "one response has no rate");
}

#[test]
fn a_worktree_of_the_client_belongs_to_its_project() {
    for (folder, expected) in [
        ("/home/u/p/.claude/worktrees/calm-owl", "/home/u/p"),
        ("/home/u/p/.claude/worktrees/calm-owl/src", "/home/u/p"),
        (r"C:\p\.claude\worktrees\owl", r"C:\p"),
        ("/home/u/p", "/home/u/p"),
    ] {
        assert_eq!(project_of_folder(folder), expected);
    }
}
