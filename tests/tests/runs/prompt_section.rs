//! Sections of a prompt, for tests that compare a whole section.

use plimsoll_testkit::world::World;

/// Returns the section below this heading, without the nonce and the other values that differ from world to world.
pub fn stable_section(world: &World, prompt: &str, heading: &str) -> String {
    let text_below_heading = prompt.split_once(&format!("\n{heading}\n"));
    let (_, below) = text_below_heading.unwrap_or_else(|| panic!("no {heading} in\n{prompt}"));
    let section = below.split("\n## ").next().unwrap_or_default();
    world.replace_varying_parts_with_placeholders(&without_nonce(world, &without_quotation_words(section)))
}

/// Returns the text with `WORD` in place of each random word that marks the lines around a quotation.
pub fn without_quotation_words(text: &str) -> String {
    let quotations = text.lines().filter_map(|line| line.strip_prefix('[')?.split_once(" begins: "));
    quotations.fold(text.to_owned(), |text, (word, _)| text.replace(word, "WORD"))
}

/// Returns the lines of the prompt above its first heading.
pub fn stable_opening(world: &World, prompt: &str) -> String {
    let (_, opening) = prompt.split_once("\nYou are session ").expect("the first line of a prompt");
    let (opening, _) = opening.split_once("\n## ").expect("a heading");
    world.replace_varying_parts_with_placeholders(&format!("You are session {opening}"))
}

/// Returns the text with `[NONCE]` in place of the nonce of the world's run.
pub fn without_nonce(world: &World, text: &str) -> String {
    let state = world.read_json(".claude/ralph-state.json");
    text.replace(state["nonce"].as_str().expect("a nonce"), "[NONCE]")
}
