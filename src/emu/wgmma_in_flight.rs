//! Products of matrices that four warps have under way together: what each of them issued, and which registers nobody may touch
//! until a wait.

use std::collections::VecDeque;
use std::rc::Rc;

use super::race::Agent;

/// A product that a warp issued and has not waited for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Issued {
    /// Index of the instruction.
    pub(super) pc: u32,
    /// Groups that the warp had committed before.
    pub(super) group: u32,
    /// Number among the products of the warpgroup.
    pub(super) number: u64,
    pub(super) adds: bool,
}

/// The last use of a register.
#[derive(Clone, Copy, Debug, Default)]
struct Use {
    /// Instructions that the warp had executed by then, this one included.
    step: u64,
    line: u32,
    /// The shape of the product whose accumulator it was, or [`FACTOR`]; zero for other instructions.
    shape: u32,
}

/// Stands for a shape where a product only read the register.
const FACTOR: u32 = u32::MAX;

/// Why a product may not use a register, or another instruction may not.
#[derive(Clone, Copy, Debug)]
pub(super) enum Refusal {
    /// It belongs to the product of this line.
    InFlight(u32),
    /// It was used in this line, and no fence came since.
    Unfenced(u32),
}

/// Products of one warp.
#[derive(Debug)]
pub(super) struct Flight {
    /// Instructions executed.
    steps: u64,
    /// When `wgmma.fence` ran last; zero: never.
    fenced: u64,
    uses: Vec<Use>,
    /// For each register the line of the product that holds it, and how many do.
    held: Vec<(u32, u32)>,
    pub(super) queue: VecDeque<Issued>,
    pub(super) commits: u32,
    /// Products issued so far.
    pub(super) issued: u64,
}

impl Flight {
    pub(super) fn new(registers: u32) -> Flight {
        let registers = registers as usize;
        Flight {
            steps: 0,
            fenced: 0,
            uses: vec![Use::default(); registers],
            held: vec![(0, 0); registers],
            queue: VecDeque::new(),
            commits: 0,
            issued: 0,
        }
    }

    /// An instruction that is no product uses registers; the one that it may not.
    pub(super) fn touch(&mut self, registers: &[u32], line: u32) -> Result<(), (u32, Refusal)> {
        self.steps += 1;
        for &register in registers {
            let (holder, count) = self.held[register as usize];
            if count > 0 {
                return Err((register, Refusal::InFlight(holder)));
            }
            self.uses[register as usize] = Use {
                step: self.steps,
                line,
                shape: 0,
            };
        }
        Ok(())
    }

    pub(super) fn fence(&mut self) {
        self.steps += 1;
        self.fenced = self.steps;
    }

    /// A product of this shape takes accumulators and registers that it reads; the one that it may not.
    pub(super) fn take(
        &mut self,
        accumulators: &[u32],
        factors: &[u32],
        shape: u32,
        line: u32,
    ) -> Result<(), (u32, Refusal)> {
        self.steps += 1;
        let uses = [(accumulators, shape), (factors, FACTOR)];
        for (registers, role) in uses {
            for &register in registers {
                let used = self.uses[register as usize];
                let (holder, count) = self.held[register as usize];
                // Products of one shape follow each other on their accumulators, and may read what others read.
                if used.shape == role && self.fenced != 0 {
                    continue;
                }
                if count > 0 {
                    return Err((register, Refusal::InFlight(holder)));
                }
                if self.fenced == 0 || used.step > self.fenced {
                    return Err((register, Refusal::Unfenced(used.line)));
                }
            }
        }
        for (registers, role) in uses {
            for &register in registers {
                self.uses[register as usize] = Use {
                    step: self.steps,
                    line,
                    shape: role,
                };
                let held = &mut self.held[register as usize];
                *held = (line, held.1 + 1);
            }
        }
        Ok(())
    }

    /// A product gives its registers back.
    pub(super) fn give_back(&mut self, registers: impl Iterator<Item = u32>) {
        for register in registers {
            self.held[register as usize].1 -= 1;
        }
    }
}

/// What a product reads from shared memory.
#[derive(Debug)]
pub(super) struct Read {
    /// Offsets of the chunks of both operands.
    pub(super) chunks: [Vec<usize>; 2],
    /// All of them as ranges: offsets and bytes.
    pub(super) ranges: Vec<(usize, usize)>,
}

impl Read {
    pub(super) fn new(chunks: [Vec<usize>; 2], bytes: usize) -> Read {
        let mut all = chunks.concat();
        all.sort_unstable();
        all.dedup();
        let mut ranges: Vec<(usize, usize)> = Vec::new();
        for at in all {
            match ranges.last_mut() {
                Some((start, length)) if *start + *length == at => *length += bytes,
                _ => ranges.push((at, bytes)),
            }
        }
        Read { chunks, ranges }
    }
}

/// Operands that were read from shared memory, as numbers.
#[derive(Debug)]
pub(super) struct Factors {
    /// By row and summed index; empty if the operand is in registers.
    pub(super) a: Vec<f64>,
    /// By summed index and column.
    pub(super) b: Vec<f64>,
    /// Whether all bytes held something.
    pub(super) is_defined: bool,
}

/// A product of the warpgroup.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) pc: u32,
    pub(super) line: u32,
    /// The descriptors, and whether accumulators are added.
    pub(super) operands: ([u64; 2], bool),
    pub(super) read: Rc<Read>,
    /// What its reads are recorded as while they are under way.
    pub(super) agent: Agent,
    /// When they were over: as soon as one of the warps waited.
    pub(super) settled: Option<u32>,
    /// What was read, once it was.
    pub(super) factors: Option<Rc<Factors>>,
    /// Warps that have their part of the result.
    pub(super) taken: u32,
}

/// Products that the four warps of a group have under way.
#[derive(Debug, Default)]
pub(super) struct Warpgroup {
    /// Number of the first one in the queue.
    pub(super) first: u64,
    pub(super) queue: VecDeque<Shared>,
    /// How many each warp has issued.
    pub(super) issued: [u64; 4],
    /// What reads of products are recorded as that are over.
    pub(super) engine: Option<Agent>,
}

impl Warpgroup {
    pub(super) fn get(&mut self, number: u64) -> Option<&mut Shared> {
        let index = number.checked_sub(self.first)?;
        self.queue.get_mut(index as usize)
    }

    /// How many products all four warps have issued.
    pub(super) fn complete(&self) -> u64 {
        self.issued.into_iter().min().unwrap_or(0)
    }

    /// A product that not all warps issued, and the first warp that did not.
    pub(super) fn unfinished(&self) -> Option<(u32, &Shared)> {
        let complete = self.complete();
        let missing = self.issued.iter().position(|&issued| issued == complete)?;
        let index = complete.checked_sub(self.first)?;
        Some((missing as u32, self.queue.get(index as usize)?))
    }

    /// Forgets products that all four warps have.
    pub(super) fn trim(&mut self) {
        while self.queue.front().is_some_and(|front| front.taken == 4) {
            self.queue.pop_front();
            self.first += 1;
        }
    }
}
