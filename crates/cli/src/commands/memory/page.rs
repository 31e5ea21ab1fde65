//! Renders the working memory for the user: the registers of the current frame, and the heap with its contents.

use plimsoll_domain::memory::{Chunk, Memory, Register, SOFT_LIMIT_CHARS};
use plimsoll_domain::text::{count_with_noun, to_safe_single_line};

/// Renders the memory as Markdown.
pub(super) fn render_page(memory: &Memory) -> String {
    let blocks = std::iter::once(render_title_with_revision_and_frame(memory))
        .chain((!render_nonempty_registers(memory).is_empty()).then(|| render_nonempty_registers(memory)))
        .chain(std::iter::once(render_heap_size_and_pressure(memory)))
        .chain(memory.heap.iter().map(render_chunk));
    blocks.collect::<Vec<_>>().join("\n\n")
}

fn render_title_with_revision_and_frame(memory: &Memory) -> String {
    let frame = to_safe_single_line(&memory.current_frame().name);
    let frame_text = if memory.depth() == 0 {
        "the root frame".to_owned()
    } else {
        format!("the frame \"{frame}\" at depth {}", memory.depth())
    };
    let done_text = memory.root_result.iter().map(|_| " Its root is done.").collect::<String>();
    format!(
        "## Working memory\n\nRevision {}, step {}, {frame_text}.{done_text}",
        memory.revision, memory.step_number
    )
}

fn render_nonempty_registers(memory: &Memory) -> String {
    let render_register = |register: Register| {
        let register_value = &memory.current_frame().registers[register.index()];
        let age = memory.step_number.saturating_sub(register_value.written_at_step);
        let age_text = if age == 0 {
            "now".to_owned()
        } else {
            format!("{} ago", count_with_noun(age as usize, "step"))
        };
        // Lines after the first are indented, so that none of them looks like a register.
        let text = register_value.text.lines().collect::<Vec<_>>().join("\n  ");
        (!register_value.text.is_empty()).then(|| format!("- **{}** ({age_text}): {text}", register.label()))
    };
    Register::ALL.into_iter().filter_map(render_register).collect::<Vec<_>>().join("\n")
}

fn render_heap_size_and_pressure(memory: &Memory) -> String {
    if memory.heap.is_empty() {
        return "The heap is empty.".to_owned();
    }
    format!(
        "## Heap\n\n{}, {} of {SOFT_LIMIT_CHARS} characters (pressure {}).",
        count_with_noun(memory.heap.len(), "chunk"),
        memory.heap_size_in_chars(),
        memory.heap_pressure().as_str(),
    )
}

fn render_chunk(chunk: &Chunk) -> String {
    let description = if chunk.description.is_empty() {
        String::new()
    } else {
        format!(": {}", to_safe_single_line(&chunk.description))
    };
    let fence = code_fence(&chunk.content);
    format!(
        "### heap:{} ({}, written in step {}){description}\n\n{fence}\n{}\n{fence}",
        to_safe_single_line(&chunk.name),
        count_with_noun(chunk.char_count(), "character"),
        chunk.updated_at_step,
        chunk.content,
    )
}

/// Returns a code fence that is longer than any run of backticks at a line start of the content.
fn code_fence(content: &str) -> String {
    let longest = content.lines().map(|line| line.len() - line.trim_start_matches('`').len()).max();
    "`".repeat(longest.unwrap_or_default().max(2) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::memory::MemoryOp;
    use plimsoll_terminal::markdown::PageFormat;

    #[test]
    fn the_page_shows_registers_and_chunks_without_foreign_markup() {
        let alloc = |name: &str, content: &str, description: &str| MemoryOp::HeapAlloc {
            name: name.into(),
            content: content.into(),
            description: description.into(),
        };
        let goal = MemoryOp::UpdateRegisters {
            values: [(Register::Goal, "Ship it.\nR4 CONSTRAINTS: none".to_owned())].into(),
            strict: true,
            in_all_frames: true,
        };
        let chunk = alloc("spec", "```\n| a | b |\n## not ours\n```", "the format");
        let memory = Memory::replay(&[goal, MemoryOp::Step, MemoryOp::Step, chunk, alloc("empty", "", "")]);
        let lines =
            plimsoll_terminal::markdown::render_markdown(&render_page(&memory), PageFormat::default());
        let text: String = lines.iter().map(|line| line.to_plain() + "\n").collect();
        assert_eq!(
            text,
            "\
Working memory

Revision 3, step 2, the root frame.

- R0 GOAL (2 steps ago): Ship it.
  R4 CONSTRAINTS: none

Heap

2 chunks, 29 of 8000 characters (pressure low).

heap:spec (29 characters, written in step 2): the format

```
| a | b |
## not ours
```

heap:empty (0 characters, written in step 2)


"
        );
    }
}
