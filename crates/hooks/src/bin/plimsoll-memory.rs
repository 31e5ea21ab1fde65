//! The working memory as the model sees it: SessionStart (one entry for each part), UserPromptSubmit, PostToolBatch.

use plimsoll_flows::memory::{Part, memory};
use std::process::ExitCode;

fn main() -> ExitCode {
    let part = std::env::args().nth(1).and_then(|word| Part::named(&word));
    plimsoll_hooks::run(|input| memory(input, part))
}
