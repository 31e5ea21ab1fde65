//! The promise, read off the last line of a message; and markers, written as one line.

use super::Target;
use crate::draw::{Draw, parts};
use crate::seeds::texts;
use plimsoll_domain::promise::{
    PromiseClaim, PromiseCode, PromiseWord, parse_claim, render_blocked_line, render_completion_line,
};
use plimsoll_domain::verdict::ContinueKind;
use plimsoll_domain::{Level, Marker, RunStatus};
use plimsoll_policy::near_miss::find_near_miss;

pub(super) const TARGET: Target = Target { name: "claims", body, seeds, inputs: 20_000 };

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = texts(&[
        "Done.\n\n<promise>COMPLETE 7f3a</promise>\n",
        "<promise>BLOCKED 7f3a no key</promise>",
        "```\n<promise>COMPLETE 7f3a</promise>\n```",
        "<promise>COMPLETE 7f3a</promise> .\r\n \n",
    ]);
    seeds.push(b"All done\xff\x00\x00\x05a|b\nc".to_vec());
    seeds
}

fn body(bytes: &[u8]) {
    let (message, rest) = parts(bytes);
    let message = String::from_utf8_lossy(message);
    let mut draw = Draw::from(rest);
    let word = PromiseWord::try_from(draw.one_of(&["COMPLETE", "BLOCKED"])).unwrap_or_default();
    let code = PromiseCode::try_from(draw.one_of(&["7f3a", "0"])).unwrap_or_default();
    let last = message.lines().map(str::trim_end).rfind(|line| !line.is_empty()).unwrap_or_default();
    match parse_claim(&message, &word, &code) {
        PromiseClaim::Complete => assert_eq!(last, render_completion_line(&word, &code)),
        PromiseClaim::Blocked(reason) => {
            assert!(last.starts_with(&format!("<promise>BLOCKED {code}")) && last.ends_with("</promise>"));
            assert!(reason.is_empty() || last.contains(&reason));
        }
        PromiseClaim::None => assert!(code.is_empty() || last != render_completion_line(&word, &code)),
    }
    if let Some(miss) = find_near_miss(&message, &word, &code) {
        assert_eq!(
            parse_claim(&message, &word, &code),
            PromiseClaim::None,
            "a promise that counts is no near miss"
        );
        assert!(!miss.quoted_line.is_empty());
    }
    if !code.is_empty() {
        let promised = format!("{message}\n{}\n", render_completion_line(&word, &code));
        assert_eq!(parse_claim(&promised, &word, &code), PromiseClaim::Complete);
        assert_eq!(
            parse_claim(&format!("{promised}."), &word, &code),
            PromiseClaim::None,
            "a word behind it"
        );
        assert_eq!(parse_claim(&promised, &word, &PromiseCode::default()), PromiseClaim::None);
        let reason = draw.text();
        let given_up = render_blocked_line(&code, &reason);
        if !reason.contains(['\n', '\r']) && given_up != render_completion_line(&word, &code) {
            let claimed = parse_claim(&format!("{message}\n{given_up}"), &word, &code);
            assert_eq!(claimed, PromiseClaim::Blocked(reason.trim().to_owned()));
        }
    }
    markers(&message, &mut draw);
}

fn markers(words: &str, draw: &mut Draw<'_>) {
    let until = draw.some(Draw::text);
    let (level, percent) = (Level::L2, draw.some(Draw::number));
    let reason = words.to_owned();
    let all = [
        (Marker::Warning { level, percent: percent.unwrap_or(0) }, 4),
        (Marker::Checkpoint { level, percent, handoff: reason.clone() }, 4),
        (Marker::Stop { status: RunStatus::Blocked, reason: reason.clone() }, 3),
        (Marker::Continue { kind: ContinueKind::NextItem, reason: reason.clone() }, 3),
        (Marker::Pause { until: until.map(plimsoll_domain::Timestamp::from), reason }, 3),
    ];
    for (marker, fields) in all {
        let text = marker.to_string();
        assert_eq!(text.split('|').count(), fields, "{text:?}");
        assert!(!text.contains(char::is_control), "{text:?}");
    }
}
