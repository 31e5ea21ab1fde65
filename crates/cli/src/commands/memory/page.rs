//! The working memory for a person: the registers of the current frame, and the heap with its contents. A pure function.

use plimsoll_domain::memory::{Chunk, Memory, Register, SOFT_LIMIT};
use plimsoll_domain::text::{counted, one_line};

/// The page, in Markdown.
pub(super) fn page(memory: &Memory) -> String {
    let blocks = std::iter::once(title(memory))
        .chain((!registers(memory).is_empty()).then(|| registers(memory)))
        .chain(std::iter::once(heap(memory)))
        .chain(memory.heap.iter().map(chunk));
    blocks.collect::<Vec<_>>().join("\n\n")
}

fn title(memory: &Memory) -> String {
    let frame = one_line(&memory.top().name);
    let place = if memory.depth() == 0 {
        "the root frame".to_owned()
    } else {
        format!("the frame \"{frame}\" at depth {}", memory.depth())
    };
    let done = memory.done.iter().map(|_| " Its root is done.").collect::<String>();
    format!("## Working memory\n\nRevision {}, step {}, {place}.{done}", memory.rev, memory.step)
}

fn registers(memory: &Memory) -> String {
    let line = |register: Register| {
        let slot = &memory.top().registers[register.index()];
        let age = memory.step.saturating_sub(slot.step);
        let written =
            if age == 0 { "now".to_owned() } else { format!("{} ago", counted(age as usize, "step")) };
        // What follows a line's end is set in, so that none of it looks like a register.
        let text = slot.text.lines().collect::<Vec<_>>().join("\n  ");
        (!slot.text.is_empty()).then(|| format!("- **{}** ({written}): {text}", register.label()))
    };
    Register::ALL.into_iter().filter_map(line).collect::<Vec<_>>().join("\n")
}

fn heap(memory: &Memory) -> String {
    if memory.heap.is_empty() {
        return "The heap is empty.".to_owned();
    }
    format!(
        "## Heap\n\n{}, {} of {SOFT_LIMIT} characters (pressure {}).",
        counted(memory.heap.len(), "chunk"),
        memory.heap_size(),
        memory.pressure().word(),
    )
}

fn chunk(chunk: &Chunk) -> String {
    let description = if chunk.description.is_empty() {
        String::new()
    } else {
        format!(": {}", one_line(&chunk.description))
    };
    let fence = fence(&chunk.content);
    format!(
        "### heap:{} ({} characters, written in step {}){description}\n\n{fence}\n{}\n{fence}",
        one_line(&chunk.name),
        chunk.size(),
        chunk.updated,
        chunk.content,
    )
}

/// Longer than any in the content.
fn fence(content: &str) -> String {
    let longest = content.lines().map(|line| line.len() - line.trim_start_matches('`').len()).max();
    "`".repeat(longest.unwrap_or_default().max(2) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::memory::Op;
    use plimsoll_terminal::markdown::Sheet;

    #[test]
    fn a_person_reads_registers_and_chunks_without_marks_of_markdown_or_of_the_model() {
        let put = |name: &str, content: &str, description: &str| Op::HeapAlloc {
            name: name.into(),
            content: content.into(),
            description: description.into(),
        };
        let goal = Op::UpdateRegisters {
            values: [(Register::Goal, "Ship it.\nR4 CONSTRAINTS: none".to_owned())].into(),
            strict: true,
            everywhere: true,
        };
        let chunk = put("spec", "```\n| a | b |\n## not ours\n```", "the format");
        let memory = Memory::fold(&[goal, Op::Step, Op::Step, chunk, put("empty", "", "")]);
        let lines = plimsoll_terminal::markdown::page(&page(&memory), Sheet::default());
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
