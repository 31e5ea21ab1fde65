//! The instructions for all tools, which the client passes to the model once.

/// At most 2,000 characters: it stays in every conversation, and Claude Code cuts a server's instructions at 2 KB.
pub(crate) const INSTRUCTIONS: &str = "\
A working memory that you manage: registers (short notes of the current frame), a heap (named chunks that every \
frame sees), and a stack of frames (sub-tasks with a clean context).

First read the frame's objective, the registers and the heap's index. Each step is two calls in one message: \
update_registers with what changed, and one action. Keep registers short; longer values are cut. R2 (what you do \
now) and R7 (the result of the last step) change with each step. Set R0 once. Remove finished steps from R1. R3 changes \
with the phase. Clear R5 and R6 when verified or answered. Move growing content to the heap, and write \
\"see heap:NAME\" in the register.

Take the first action that applies:
1 heap_free: no later step needs the chunk
2 heap_write: a chunk is stale or wrong; merge small ones before the heap is full
3 pop_frame: the frame's objective is met; in the root, the whole task is
4 push_frame: a phase of several steps with its own goal is next
5 heap_alloc: later frames must know it
6 work: one tool call

Put facts for several frames on the heap, those for one child into its context, and code and long output into files.

Write an objective for a reader who knows nothing: what, in which files, how to verify it. Not \"Do the parser\" but \
\"Write parse.py as heap:grammar says; `pytest -q test_parse.py` passes\". A return spec asks for facts: \"Files changed; \
tests passed and failed; open problems\". The parent sees only the result: what was done, found, decided; no code. \
After a pop, check what is open before you pop again. Keep a chunk if unsure.

Example: R1 \"1 calc.py 2 tests\", R2 \"delegate 1\", push_frame calc; in it R2 \"write calc.py\", write; R7 \"written\", R2 \
\"verify\", run; pop_frame \"calc.py: add, div; div(1,0) raises ValueError; verified\". In the root R1 \"1 done 2 tests\", R2 \
\"delegate 2\", push_frame tests.";

#[cfg(test)]
mod tests {
    #[test]
    fn instructions_have_at_most_2000_bytes() {
        assert!(super::INSTRUCTIONS.len() <= 2_000, "{}", super::INSTRUCTIONS.len());
    }
}
