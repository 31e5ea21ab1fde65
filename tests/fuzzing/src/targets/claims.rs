//! The completion promise on the last line of a message, and the markers, which are always one line.

use super::Target;
use crate::draw::{Draw, split_at_separator};
use crate::seeds::text_seeds;
use plimsoll_domain::promise::{
    PromiseClaim, PromiseCode, PromiseWord, parse_claim_on_last_line, render_blocked_line,
    render_completion_line,
};
use plimsoll_domain::verdict::ContinueKind;
use plimsoll_domain::{Level, Marker, RunStatus};
use plimsoll_policy::near_miss::find_near_miss;

pub(super) const TARGET: Target = Target { name: "claims", check_input, seeds, mutated_input_count: 20_000 };

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = text_seeds(&[
        "Done.\n\n<promise>COMPLETE 7f3a</promise>\n",
        "<promise>BLOCKED 7f3a no key</promise>",
        "```\n<promise>COMPLETE 7f3a</promise>\n```",
        "<promise>COMPLETE 7f3a</promise> .\r\n \n",
    ]);
    seeds.push(b"All done\xff\x00\x00\x05a|b\nc".to_vec());
    seeds
}

fn check_input(bytes: &[u8]) {
    let (message, rest) = split_at_separator(bytes);
    let message = String::from_utf8_lossy(message);
    let mut draw = Draw::from_bytes(rest);
    let word = PromiseWord::try_from(draw.one_of_or_text(&["COMPLETE", "BLOCKED"])).unwrap_or_default();
    let code = PromiseCode::try_from(draw.one_of_or_text(&["7f3a", "0"])).unwrap_or_default();
    let last_line = message.lines().map(str::trim_end).rfind(|line| !line.is_empty()).unwrap_or_default();
    match parse_claim_on_last_line(&message, &word, &code) {
        PromiseClaim::Complete => assert_eq!(last_line, render_completion_line(&word, &code)),
        PromiseClaim::Blocked(reason) => {
            assert!(
                last_line.starts_with(&format!("<promise>BLOCKED {code}"))
                    && last_line.ends_with("</promise>")
            );
            assert!(reason.is_empty() || last_line.contains(&reason));
        }
        PromiseClaim::None => assert!(code.is_empty() || last_line != render_completion_line(&word, &code)),
    }
    if let Some(near_miss) = find_near_miss(&message, &word, &code) {
        assert_eq!(
            parse_claim_on_last_line(&message, &word, &code),
            PromiseClaim::None,
            "a promise that counts is no near miss"
        );
        assert!(!near_miss.quoted_line.is_empty());
    }
    if !code.is_empty() {
        let message_with_promise = format!("{message}\n{}\n", render_completion_line(&word, &code));
        assert_eq!(parse_claim_on_last_line(&message_with_promise, &word, &code), PromiseClaim::Complete);
        assert_eq!(
            parse_claim_on_last_line(&format!("{message_with_promise}."), &word, &code),
            PromiseClaim::None,
            "a word behind it"
        );
        assert_eq!(
            parse_claim_on_last_line(&message_with_promise, &word, &PromiseCode::default()),
            PromiseClaim::None
        );
        let reason = draw.text();
        let blocked_text = render_blocked_line(&code, &reason);
        if !reason.contains(['\n', '\r']) && blocked_text != render_completion_line(&word, &code) {
            let claimed = parse_claim_on_last_line(&format!("{message}\n{blocked_text}"), &word, &code);
            assert_eq!(claimed, PromiseClaim::Blocked(reason.trim().to_owned()));
        }
    }
    check_markers(&message, &mut draw);
}

fn check_markers(message: &str, draw: &mut Draw<'_>) {
    let until = draw.optional(Draw::text);
    let (level, percent) = (Level::L2, draw.optional(Draw::number));
    let reason = message.to_owned();
    let markers = [
        (Marker::Warning { level, percent: percent.unwrap_or(0) }, 4),
        (Marker::Checkpoint { level, percent, handoff: reason.clone() }, 4),
        (Marker::Stop { status: RunStatus::Blocked, reason: reason.clone() }, 3),
        (Marker::Continue { kind: ContinueKind::NextItem, reason: reason.clone() }, 3),
        (Marker::Pause { until: until.map(plimsoll_domain::Timestamp::from), reason }, 3),
    ];
    for (marker, fields) in markers {
        let text = marker.to_string();
        assert_eq!(text.split('|').count(), fields, "{text:?}");
        assert!(!text.contains(char::is_control), "{text:?}");
    }
}
