//! The one way to change a memory.

use super::heap::{CHUNK_NAME, CHUNK_UNITS, Chunk, DESCRIPTION, HARD_LIMIT, MOST_CHUNKS, share};
use super::register::UNMERGED;
use super::{Cut, Frame, Memory, Op, Pressure, Register, Slot, Values, fit};
use serde::Serialize;

/// How many freed chunks are remembered: no conversation still refers to older ones.
const MOST_FREED: usize = 100;

/// What a change came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The revision from now on.
    pub rev: u64,
    /// Values that were too long.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cut: Vec<Cut>,
    /// What the caller should know about the change.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The heap's pressure, where the heap has changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pressure: Option<Pressure>,
}

impl Report {
    /// What two changes, one after the other, came to.
    pub fn and(mut self, later: Report) -> Report {
        self.cut.extend(later.cut);
        self.notes.extend(later.notes);
        Report { rev: later.rev, pressure: later.pressure.or(self.pressure), ..self }
    }
}

/// Why a change was not made, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal(pub String);

impl std::fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Refusal {}

pub(super) fn refuse<T>(why: String) -> Result<T, Refusal> {
    Err(Refusal(why))
}

impl Memory {
    /// Changes the memory, or refuses and leaves it as it is.
    pub fn apply(&mut self, op: &Op) -> Result<Report, Refusal> {
        match op {
            Op::Step => {
                self.step += 1;
                return Ok(Report { rev: self.rev, ..Report::default() });
            }
            Op::Reopen => {
                self.done = None;
                return Ok(Report { rev: self.rev, ..Report::default() });
            }
            Op::BeginRun { .. } => {}
            _ if self.done.is_some() => {
                return refuse(
                    "the root frame has popped: nothing is written until the user writes again".into(),
                );
            }
            _ => {}
        }
        let mut after = self.clone();
        after.rev += 1;
        let mut report = after.change(op)?;
        report.rev = after.rev;
        *self = after;
        Ok(report)
    }

    fn change(&mut self, op: &Op) -> Result<Report, Refusal> {
        match op {
            Op::UpdateRegisters { values, strict, everywhere } => self.update(values, *strict, *everywhere),
            Op::BeginRun { objective } => Ok(self.begin(objective)),
            Op::PushFrame { name, objective, context, return_spec, call } => {
                let frame = Frame {
                    name: name.clone(),
                    objective: objective.clone(),
                    context: context.clone(),
                    return_spec: return_spec.clone(),
                    pushed_by: call.clone(),
                    ..Frame::default()
                };
                self.push(frame)
            }
            Op::StartFrame { call, owner } => self.start(call, owner),
            Op::EnterFrame { agent } => self.enter(agent),
            Op::PopFrame { result } => self.pop(result),
            Op::CloseFrame { how, words } => self.close(*how, words),
            Op::HeapAlloc { name, content, description } => self.alloc(name, content, description),
            Op::HeapWrite { name, content } => self.write(name, content),
            Op::HeapFree { name } => self.free(name),
            Op::Step | Op::Reopen => Ok(Report::default()),
        }
    }

    /// Puts a value into a register of a frame; answers with what had to be cut.
    pub(super) fn set(&mut self, depth: usize, register: Register, text: &str) -> Option<Cut> {
        let kept = fit(text, register.limit());
        self.frames[depth].registers[register.index()] =
            Slot { text: kept.to_owned(), rev: self.rev, step: self.step };
        let count = |text: &str| text.chars().count();
        (kept.len() < text.len()).then(|| Cut {
            register: register.key().to_owned(),
            limit: register.limit(),
            given: count(text),
            kept: count(kept),
            dropped: count(text) - count(kept),
        })
    }

    fn update(&mut self, values: &Values, strict: bool, everywhere: bool) -> Result<Report, Refusal> {
        if values.is_empty() {
            return refuse("no register is named: give at least one of R0_GOAL … R7_STATUS".into());
        }
        let too_long = |(register, text): &(&Register, &String)| text.chars().count() > register.limit();
        if strict && let Some((register, text)) = values.iter().find(too_long) {
            return refuse(format!(
                "{} takes at most {} characters, and {} were given: shorten it, or put the rest on the heap",
                register.key(),
                register.limit(),
                text.chars().count()
            ));
        }
        let depth = self.depth();
        let cut = values.iter().filter_map(|(register, text)| self.set(depth, *register, text)).collect();
        if everywhere {
            self.set_below(values);
        }
        Ok(Report { cut, ..Report::default() })
    }

    /// What holds for the task (constraints, assumptions, questions) in all frames below: a pop would lose it.
    fn set_below(&mut self, values: &Values) {
        let shared = [Register::Constraints, Register::Assumptions, Register::OpenQuestions];
        for (register, text) in values.iter().filter(|(register, _)| shared.contains(register)) {
            (0..self.depth()).for_each(|depth| drop(self.set(depth, *register, text)));
            let place = UNMERGED.iter().position(|unmerged| unmerged == register);
            for frame in &mut self.frames[1..] {
                if let Some(place) = place {
                    frame.inherited[place] = fit(text, register.limit()).to_owned();
                }
            }
        }
    }

    fn alloc(&mut self, name: &str, content: &str, description: &str) -> Result<Report, Refusal> {
        check_name(name)?;
        if self.chunk(name).is_some() {
            return refuse(format!("the chunk {name} already exists: rewrite it with heap_write"));
        }
        if self.heap.len() >= MOST_CHUNKS {
            return refuse(format!(
                "the heap has {MOST_CHUNKS} chunks, the most it can hold: merge some, or free them"
            ));
        }
        self.check_size(name, content)?;
        // The name is in use again: a reader must not be told that it was freed.
        self.freed.retain(|(freed, _)| freed != name);
        self.heap.push(Chunk {
            name: name.to_owned(),
            content: content.to_owned(),
            description: fit(description.trim(), DESCRIPTION).replace(['\n', '\r'], " "),
            allocated: self.step,
            updated: self.step,
            rev: self.rev,
        });
        Ok(self.heap_report())
    }

    fn write(&mut self, name: &str, content: &str) -> Result<Report, Refusal> {
        self.place_of(name)?;
        self.check_size(name, content)?;
        let place = self.place_of(name)?;
        let (step, rev) = (self.step, self.rev);
        let chunk = &mut self.heap[place];
        (chunk.content, chunk.updated, chunk.rev) = (content.to_owned(), step, rev);
        Ok(self.heap_report())
    }

    fn free(&mut self, name: &str) -> Result<Report, Refusal> {
        let place = self.place_of(name)?;
        let chunk = self.heap.remove(place);
        self.freed.push((chunk.name, self.rev));
        if self.freed.len() > MOST_FREED {
            self.freed.remove(0);
        }
        Ok(self.heap_report())
    }

    fn place_of(&self, name: &str) -> Result<usize, Refusal> {
        let names = || self.heap.iter().map(|chunk| chunk.name.as_str()).collect::<Vec<_>>().join(", ");
        let known = || {
            if self.heap.is_empty() {
                "the heap is empty".to_owned()
            } else {
                format!("there are {}", names())
            }
        };
        let place = self.heap.iter().position(|chunk| chunk.name == name);
        place.ok_or_else(|| Refusal(format!("there is no chunk {name}: {}", known())))
    }

    fn check_size(&self, name: &str, content: &str) -> Result<(), Refusal> {
        let units = content.encode_utf16().count();
        if units > CHUNK_UNITS {
            return refuse(format!(
                "{name} would have {units} UTF-16 units, and a chunk has at most {CHUNK_UNITS}: strip it to what decides, or put it into a file"
            ));
        }
        let others = self.heap.iter().filter(|chunk| chunk.name != name);
        let size = others.map(|chunk| chunk.content.encode_utf16().count()).sum::<usize>() + units;
        if size > HARD_LIMIT {
            return refuse(format!(
                "the heap would hold {size} UTF-16 units, and takes at most {HARD_LIMIT}: free chunks first"
            ));
        }
        Ok(())
    }

    fn heap_report(&self) -> Report {
        let pressure = self.pressure();
        let note = (pressure > Pressure::Low).then(|| {
            format!(
                "the heap is at {}% of its limit: free what no future step needs",
                share(self.heap_size())
            )
        });
        Report { pressure: Some(pressure), notes: note.into_iter().collect(), ..Report::default() }
    }
}

/// A chunk's name is in tags and lists: letters, digits and `-_./:`.
fn check_name(name: &str) -> Result<(), Refusal> {
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_./:".contains(letter);
    if (1..=CHUNK_NAME).contains(&name.encode_utf16().count()) && name.chars().all(is_plain) {
        return Ok(());
    }
    refuse(format!(
        "a chunk's name has 1 to {CHUNK_NAME} letters, digits or -_./: and {name:?} has others or is too long"
    ))
}
