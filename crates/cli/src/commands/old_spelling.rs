//! Commands as earlier versions spelled them. They are understood for one more version, and listed nowhere: not in the
//! help, the completions or the manual. Here they become what they are called now, and nothing else knows them.
//!
//! `answer` and `context` stay longer, because transcripts and the slash commands of earlier versions name them.

use super::answer::OldAnswerArguments;
use super::context::ContextArguments;
use super::generate::{CompletionsArguments, GenerateArguments, ManArguments, Product};
use super::log::LogArguments;
use super::memory::{FrameArguments, MemoryArguments};
use super::{Command, Verb};
use clap::{ArgMatches, Args, FromArgMatches, Subcommand};

#[derive(Debug, Subcommand)]
enum OldSpelling {
    /// Now `plimsoll log --why`
    Explain(ExplainArguments),
    /// Now `plimsoll memory frame`
    Frame(FrameArguments),
    /// Now `plimsoll generate schema`
    Schema,
    /// Now `plimsoll generate completions`
    Completions(CompletionsArguments),
    /// Now `plimsoll generate man`
    Manual(ManArguments),
    /// Now `plimsoll status --answer N TEXT`; `plimsoll status` lists the questions
    Answer(OldAnswerArguments),
    /// Now part of `plimsoll status`; the table is `plimsoll status --markdown`
    Context(ContextArguments),
}

#[derive(Debug, Args)]
struct ExplainArguments {
    /// What is explained, as after `log --why`
    #[arg(value_name = "LEVEL|VERDICT|LAST", default_value = "last")]
    what: String,
    /// Print the journal entries behind it as one JSON array
    #[arg(long)]
    json: bool,
}

/// The command line that also understands the old spellings.
pub(super) fn understood(line: clap::Command) -> clap::Command {
    OldSpelling::augment_subcommands(line)
}

/// What was asked in an old spelling; none where it was asked as today.
pub(super) fn read(matches: &ArgMatches) -> Option<Result<Command, clap::Error>> {
    let is_old = matches.subcommand_name().is_some_and(OldSpelling::has_subcommand);
    is_old.then(|| OldSpelling::from_arg_matches(matches).map(|old| Command { verb: old.verb() }))
}

impl OldSpelling {
    fn verb(self) -> Verb {
        match self {
            OldSpelling::Explain(ExplainArguments { what, json }) => Verb::Log(LogArguments::why(what, json)),
            OldSpelling::Frame(arguments) => Verb::Memory(MemoryArguments::frame(arguments)),
            OldSpelling::Schema => generated(Product::Schema),
            OldSpelling::Completions(arguments) => generated(Product::Completions(arguments)),
            OldSpelling::Manual(arguments) => generated(Product::Man(arguments)),
            OldSpelling::Answer(arguments) => Verb::Answer(arguments),
            OldSpelling::Context(arguments) => Verb::Context(arguments),
        }
    }
}

fn generated(product: Product) -> Verb {
    Verb::Generate(GenerateArguments { product })
}
