//! Applies operations to a memory. No other code changes a memory.

use super::heap::{
    Chunk, HARD_LIMIT_UTF16_UNITS, MAX_CHUNK_NAME_UTF16_UNITS, MAX_CHUNK_UTF16_UNITS, MAX_CHUNKS,
    MAX_DESCRIPTION_CHARS, percent_of_soft_limit,
};
use super::register::REGISTERS_NOT_MERGED;
use super::{
    Frame, HeapPressure, Memory, MemoryOp, Register, RegisterValue, RegisterValues, Truncation,
    truncate_at_grapheme,
};
use serde::Serialize;

/// The maximum number of names of freed chunks that are kept. No conversation still refers to older ones.
const MAX_FREED_NAMES: usize = 100;

/// The result of applied changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ChangeReport {
    pub rev: u64,
    /// The register values that were truncated.
    #[serde(rename = "cut", skip_serializing_if = "Vec::is_empty")]
    pub truncations: Vec<Truncation>,
    /// Hints for the caller about the change.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The heap's pressure; `None` if the heap has not changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pressure: Option<HeapPressure>,
}

impl ChangeReport {
    /// Combines this report with the report of a later change.
    pub fn followed_by(mut self, later_report: ChangeReport) -> ChangeReport {
        self.truncations.extend(later_report.truncations);
        self.notes.extend(later_report.notes);
        ChangeReport { rev: later_report.rev, pressure: later_report.pressure.or(self.pressure), ..self }
    }
}

/// The reason why a change was refused, with advice on what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApplyError(pub String);

impl std::fmt::Display for ApplyError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for ApplyError {}

pub(super) fn refuse_change<T>(message: String) -> Result<T, ApplyError> {
    Err(ApplyError(message))
}

impl Memory {
    /// Applies an operation and returns a report. On an error the memory is unchanged.
    pub fn apply(&mut self, op: &MemoryOp) -> Result<ChangeReport, ApplyError> {
        match op {
            MemoryOp::Step => {
                self.step_number += 1;
                return Ok(ChangeReport { rev: self.revision, ..ChangeReport::default() });
            }
            MemoryOp::Reopen => {
                self.root_result = None;
                return Ok(ChangeReport { rev: self.revision, ..ChangeReport::default() });
            }
            MemoryOp::BeginRun { .. } => {}
            _ if self.root_result.is_some() => {
                return refuse_change(
                    "the root frame has popped: nothing is written until the user writes again".into(),
                );
            }
            _ => {}
        }
        let mut updated_memory = self.clone();
        updated_memory.revision += 1;
        let mut report = updated_memory.dispatch_op(op)?;
        report.rev = updated_memory.revision;
        *self = updated_memory;
        Ok(report)
    }

    fn dispatch_op(&mut self, op: &MemoryOp) -> Result<ChangeReport, ApplyError> {
        match op {
            MemoryOp::UpdateRegisters { values, strict, in_all_frames } => {
                self.update_registers(values, *strict, *in_all_frames)
            }
            MemoryOp::BeginRun { objective } => Ok(self.replace_stack_with_root_frame(objective)),
            MemoryOp::PushFrame { name, objective, context, return_spec, push_call_id: call_id } => {
                let frame = Frame {
                    name: name.clone(),
                    objective: objective.clone(),
                    context: context.clone(),
                    expected_result: return_spec.clone(),
                    push_call_id: call_id.clone(),
                    ..Frame::default()
                };
                self.push_frame_inheriting_registers(frame)
            }
            MemoryOp::StartFrame { start_call_id: call_id, owner } => {
                self.record_first_subagent_launch_of_frame(call_id, owner)
            }
            MemoryOp::EnterFrame { agent } => self.assign_subagent_to_current_frame(agent),
            MemoryOp::PopFrame { result } => self.pop_frame_or_finish_root(result),
            MemoryOp::CloseFrame { abnormal_end, last_message } => {
                self.merge_or_abandon_non_root_frame(*abnormal_end, last_message)
            }
            MemoryOp::HeapAlloc { name, content, description } => {
                self.alloc_chunk(name, content, description)
            }
            MemoryOp::HeapWrite { name, content } => self.overwrite_existing_chunk(name, content),
            MemoryOp::HeapFree { name } => self.free_chunk_and_record_name(name),
            MemoryOp::Step | MemoryOp::Reopen => Ok(ChangeReport::default()),
        }
    }

    /// Writes a register of a frame. Returns how much of the value was cut off, if it was too long.
    pub(super) fn set_register(
        &mut self,
        depth: usize,
        register: Register,
        text: &str,
    ) -> Option<Truncation> {
        let kept_text = truncate_at_grapheme(text, register.max_chars());
        self.frames[depth].registers[register.index()] = RegisterValue {
            text: kept_text.to_owned(),
            revision: self.revision,
            written_at_step: self.step_number,
        };
        let char_count = |text: &str| text.chars().count();
        (kept_text.len() < text.len()).then(|| Truncation {
            register: register.key().to_owned(),
            max_chars: register.max_chars(),
            input_chars: char_count(text),
            kept_chars: char_count(kept_text),
            dropped_chars: char_count(text) - char_count(kept_text),
        })
    }

    fn update_registers(
        &mut self,
        values: &RegisterValues,
        refuse_if_too_long: bool,
        copy_shared_to_parents: bool,
    ) -> Result<ChangeReport, ApplyError> {
        if values.is_empty() {
            return refuse_change("no register is given: give at least one of R0_GOAL … R7_STATUS".into());
        }
        let is_too_long =
            |(register, text): &(&Register, &String)| text.chars().count() > register.max_chars();
        if refuse_if_too_long && let Some((register, text)) = values.iter().find(is_too_long) {
            return refuse_change(format!(
                "{} takes at most {} characters, but {} were given: shorten it, or put the rest on the heap",
                register.key(),
                register.max_chars(),
                text.chars().count()
            ));
        }
        let depth = self.depth();
        let truncations =
            values.iter().filter_map(|(register, text)| self.set_register(depth, *register, text)).collect();
        if copy_shared_to_parents {
            self.set_shared_registers_in_parent_frames(values);
        }
        Ok(ChangeReport { truncations, ..ChangeReport::default() })
    }

    /// Writes those values that concern the whole task (constraints, assumptions, questions) into all frames below
    /// the current one, because a pop would discard them otherwise.
    fn set_shared_registers_in_parent_frames(&mut self, values: &RegisterValues) {
        let shared_registers = [Register::Constraints, Register::Assumptions, Register::OpenQuestions];
        for (register, text) in values.iter().filter(|(register, _)| shared_registers.contains(register)) {
            (0..self.depth()).for_each(|depth| drop(self.set_register(depth, *register, text)));
            let inherited_index =
                REGISTERS_NOT_MERGED.iter().position(|unmerged_register| unmerged_register == register);
            for frame in &mut self.frames[1..] {
                if let Some(inherited_index) = inherited_index {
                    frame.inherited_registers[inherited_index] =
                        truncate_at_grapheme(text, register.max_chars()).to_owned();
                }
            }
        }
    }

    fn alloc_chunk(
        &mut self,
        name: &str,
        content: &str,
        description: &str,
    ) -> Result<ChangeReport, ApplyError> {
        check_chunk_name(name)?;
        if self.find_chunk(name).is_some() {
            return refuse_change(format!("the chunk {name} already exists: rewrite it with heap_write"));
        }
        if self.heap.len() >= MAX_CHUNKS {
            return refuse_change(format!("the heap is full with {MAX_CHUNKS} chunks: merge or free some"));
        }
        self.check_chunk_and_heap_size(name, content)?;
        // The name exists again, so it must not be listed as freed.
        self.freed_chunks.retain(|(freed_name, _)| freed_name != name);
        self.heap.push(Chunk {
            name: name.to_owned(),
            content: content.to_owned(),
            description: truncate_at_grapheme(description.trim(), MAX_DESCRIPTION_CHARS)
                .replace(['\n', '\r'], " "),
            allocated_at_step: self.step_number,
            updated_at_step: self.step_number,
            rev: self.revision,
        });
        Ok(self.heap_pressure_report())
    }

    fn overwrite_existing_chunk(&mut self, name: &str, content: &str) -> Result<ChangeReport, ApplyError> {
        self.chunk_index(name)?;
        self.check_chunk_and_heap_size(name, content)?;
        let index = self.chunk_index(name)?;
        let (step, rev) = (self.step_number, self.revision);
        let chunk = &mut self.heap[index];
        (chunk.content, chunk.updated_at_step, chunk.rev) = (content.to_owned(), step, rev);
        Ok(self.heap_pressure_report())
    }

    fn free_chunk_and_record_name(&mut self, name: &str) -> Result<ChangeReport, ApplyError> {
        let index = self.chunk_index(name)?;
        let chunk = self.heap.remove(index);
        self.freed_chunks.push((chunk.name, self.revision));
        if self.freed_chunks.len() > MAX_FREED_NAMES {
            self.freed_chunks.remove(0);
        }
        Ok(self.heap_pressure_report())
    }

    fn chunk_index(&self, name: &str) -> Result<usize, ApplyError> {
        let chunk_names = || self.heap.iter().map(|chunk| chunk.name.as_str()).collect::<Vec<_>>().join(", ");
        let describe_existing_chunks = || {
            if self.heap.is_empty() {
                "the heap is empty".to_owned()
            } else {
                format!("there are {}", chunk_names())
            }
        };
        let index = self.heap.iter().position(|chunk| chunk.name == name);
        index.ok_or_else(|| ApplyError(format!("there is no chunk {name}: {}", describe_existing_chunks())))
    }

    fn check_chunk_and_heap_size(&self, name: &str, content: &str) -> Result<(), ApplyError> {
        let chunk_units = content.encode_utf16().count();
        if chunk_units > MAX_CHUNK_UTF16_UNITS {
            return refuse_change(format!(
                "{name} would have {chunk_units} UTF-16 units, but a chunk has at most {MAX_CHUNK_UTF16_UNITS}: shorten it, or put it into a file"
            ));
        }
        let other_chunks = self.heap.iter().filter(|chunk| chunk.name != name);
        let heap_units =
            other_chunks.map(|chunk| chunk.content.encode_utf16().count()).sum::<usize>() + chunk_units;
        if heap_units > HARD_LIMIT_UTF16_UNITS {
            return refuse_change(format!(
                "the heap would hold {heap_units} UTF-16 units, but takes at most {HARD_LIMIT_UTF16_UNITS}: free chunks first"
            ));
        }
        Ok(())
    }

    fn heap_pressure_report(&self) -> ChangeReport {
        let pressure = self.heap_pressure();
        let pressure_note = (pressure > HeapPressure::Low).then(|| {
            format!(
                "the heap is at {}% of its limit: free chunks that no later step needs",
                percent_of_soft_limit(self.heap_size_in_chars())
            )
        });
        ChangeReport {
            pressure: Some(pressure),
            notes: pressure_note.into_iter().collect(),
            ..ChangeReport::default()
        }
    }
}

/// Checks that a name is short enough and consists of letters, digits and `-_./:`, because it is written into
/// tags and lists.
fn check_chunk_name(name: &str) -> Result<(), ApplyError> {
    let is_allowed_char = |character: char| character.is_alphanumeric() || "-_./:".contains(character);
    if (1..=MAX_CHUNK_NAME_UTF16_UNITS).contains(&name.encode_utf16().count())
        && name.chars().all(is_allowed_char)
    {
        return Ok(());
    }
    refuse_change(format!(
        "a chunk's name has 1 to {MAX_CHUNK_NAME_UTF16_UNITS} letters, digits or -_./: and {name:?} has others or is too long"
    ))
}
