//! Values as packs, and register by register.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::ir::attrs::make;
use crate::ir::dfg::InstData;
use crate::ir::entities::Value;
use crate::ir::ops::ThreadOp;
use crate::ir::types::{Elem, ThreadType};

use super::regs::{Expanded, Parts, PartsBuilder};
use super::{Expander, Result, bug};

impl Expander<'_> {
    /// Elements of values laid end to end, as a pack (or a single value for one element).
    pub(super) fn rearrange(&mut self, sources: &[Value], map: &[u32]) -> Result<Value> {
        let elem = self.ty(sources[0]).elem;
        if let [source] = sources {
            let count = usize::from(self.ty(*source).count);
            if map.len() == count && map.iter().enumerate().all(|(i, &m)| i == m as usize) {
                return Ok(*source);
            }
        }
        let mut data = InstData::new(ThreadOp::Rearrange, sources);
        data.attrs.push(make::map(map.into()));
        self.op(data, &[ThreadType::pack(elem, map.len() as u16)])
    }

    /// The value as a pack of `count` elements.
    pub(super) fn pack_of(&mut self, expanded: &Expanded, count: usize) -> Result<Value> {
        match expanded {
            Expanded::Pack(value) => Ok(*value),
            Expanded::Shared(_) => bug("a block in shared memory where registers are wanted"),
            Expanded::Uniform(value) if count == 1 => Ok(*value),
            Expanded::Uniform(value) => {
                let ty = ThreadType::pack(self.ty(*value).elem, count as u16);
                match self.known(*value) {
                    Some(number) => Ok(self.constant(ty, number as u64)),
                    None => self.op(InstData::new(ThreadOp::Splat, &[*value]), &[ty]),
                }
            }
            Expanded::Parts(parts) => {
                let mut singles = Vec::new();
                let mut numbers = FxHashMap::default();
                let mut map = Vec::with_capacity(parts.regs.len());
                for &part in &parts.regs {
                    let number = match numbers.get(&part) {
                        Some(&number) => number,
                        None => {
                            let base = parts.bases[usize::from(part.base)];
                            singles.push(self.add_offset(base, part.offset)?);
                            numbers.insert(part, singles.len() as u32 - 1);
                            singles.len() as u32 - 1
                        }
                    };
                    map.push(number);
                }
                if count == 1 {
                    Ok(singles[0])
                } else {
                    self.rearrange(&singles, &map)
                }
            }
        }
    }

    /// The value register by register.
    pub(super) fn parts_of(&mut self, expanded: &Expanded, count: usize) -> Result<Parts> {
        let mut builder = PartsBuilder::default();
        match expanded {
            Expanded::Parts(parts) => return Ok(parts.clone()),
            Expanded::Shared(_) => {
                return bug("a block in shared memory where registers are wanted");
            }
            Expanded::Uniform(value) => (0..count).for_each(|_| builder.push(*value, 0)),
            Expanded::Pack(value) if count == 1 => builder.push(*value, 0),
            Expanded::Pack(value) => {
                for i in 0..count {
                    let single = self.rearrange(&[*value], &[i as u32])?;
                    builder.push(single, 0);
                }
            }
        }
        Ok(builder.finish())
    }

    /// Number of registers that a value which is not uniform holds.
    pub(super) fn held(&self, expanded: &Expanded) -> usize {
        match expanded {
            Expanded::Uniform(_) => 1,
            Expanded::Shared(_) => 0,
            Expanded::Parts(parts) => parts.regs.len(),
            Expanded::Pack(value) => usize::from(self.ty(*value).count),
        }
    }

    /// Registers `map[i]` of a value.
    pub(super) fn pick(&mut self, expanded: &Expanded, map: &[u16]) -> Result<Expanded> {
        let in_place = map.iter().enumerate().all(|(i, &m)| i == usize::from(m));
        if in_place && map.len() == self.held(expanded) {
            return Ok(expanded.clone());
        }
        Ok(match expanded {
            Expanded::Uniform(value) => Expanded::Uniform(*value),
            Expanded::Shared(_) => {
                return bug("a block in shared memory where registers are wanted");
            }
            Expanded::Parts(parts) => Expanded::Parts(parts.select(map)),
            Expanded::Pack(value) if self.is_repeated_index(*value, map) => {
                let mut singles = FxHashMap::default();
                let mut builder = PartsBuilder::default();
                for &m in map {
                    let single = match singles.get(&m) {
                        Some(&single) => single,
                        None => {
                            let single = self.rearrange(&[*value], &[u32::from(m)])?;
                            singles.insert(m, single);
                            single
                        }
                    };
                    builder.push(single, 0);
                }
                Expanded::Parts(builder.finish())
            }
            Expanded::Pack(value) => {
                let map: Vec<u32> = map.iter().map(|&m| u32::from(m)).collect();
                Expanded::Pack(self.rearrange(&[*value], &map)?)
            }
        })
    }

    /// Whether elements that may lead to addresses, or be masks, repeat in the registers `map`, as rows that are read from memory
    /// do when they are spread over columns: which of them are equal is kept, so that neighbours differ by constants.
    pub(super) fn is_repeated_index(&self, pack: Value, map: &[u16]) -> bool {
        let elem = self.ty(pack).elem;
        let is_mask = elem == Elem::I1;
        let leads_to_addresses = elem.is_ptr() || elem.is_int() && elem.bits() >= 32 || is_mask;
        let mut distinct: SmallVec<[u16; 16]> = map.iter().copied().collect();
        distinct.sort_unstable();
        distinct.dedup();
        leads_to_addresses && distinct.len() < map.len()
    }

    /// A constant operand, sign-extended, of a tile-level scalar that is the same everywhere.
    pub(super) fn uniform_constant(&self, expanded: &Expanded) -> Option<i64> {
        match expanded {
            Expanded::Uniform(value) => self.known(*value),
            Expanded::Parts(_) | Expanded::Pack(_) | Expanded::Shared(_) => None,
        }
    }
}
