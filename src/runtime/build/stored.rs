//! Kernels as the cache keeps them: bytes to and from what a launcher needs.
//!
//! Numbers are little-endian, texts and lists carry their length. The reader trusts nothing: what it cannot read is an
//! error, and the kernel is made anew.

use crate::compile::{KernelMeta, ParamKind, ParamMeta};
use crate::device_print::{Site, What};
use crate::ir::attrs::Show;
use crate::ir::function::Asked;
use crate::ir::types::{AddressSpace, Elem, Scalar};
use crate::settings::{PtxVersion, Target};

/// A compiled kernel without what only reports of the compiler need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) ptx: String,
    pub(crate) meta: KernelMeta,
    /// Registers that the assembler is expected to use.
    pub(crate) predicted_registers: u32,
    /// Registers with fewer than which it is expected to spill.
    pub(crate) needed_registers: u32,
    /// For each parameter what was asked for of its promises.
    pub(crate) asked: Vec<Asked>,
    /// Parameters that have become constants, with their values.
    pub(crate) constants: Vec<(String, String)>,
    /// The file that the PTX was taken from in place of what was made. The cache knows none of these.
    pub(crate) replaced: Option<String>,
}

#[derive(Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, n: u32) {
        self.0.extend_from_slice(&n.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u32);
        self.0.extend_from_slice(text.as_bytes());
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn number(&mut self) -> Option<u32> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*number))
    }

    fn text(&mut self) -> Option<&'a str> {
        let length = self.number()? as usize;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        std::str::from_utf8(text).ok()
    }

    fn owned(&mut self) -> Option<String> {
        self.text().map(str::to_owned)
    }

    /// A list whose elements take at least a byte each, so that a wrong length cannot ask for much memory.
    fn list<T>(&mut self, mut element: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let length = self.number()? as usize;
        if length > self.0.len() {
            return None;
        }
        (0..length).map(|_| element(self)).collect()
    }
}

impl Stored {
    /// The bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Writer::default();
        let meta = &self.meta;
        out.text(&meta.name);
        out.text(&meta.target.to_string());
        out.number(meta.ptx_version.major.into());
        out.number(meta.ptx_version.minor.into());
        out.number(meta.num_warps);
        out.number(meta.shared);
        out.number(meta.params.len() as u32);
        for param in &meta.params {
            out.text(&param.name);
            out.number(u32::from(param.kind == ParamKind::Pointer));
            out.text(param.ty);
            out.number(param.bytes);
        }
        out.number(u32::from(meta.persistent));
        out.number(meta.maps.len() as u32);
        for recipe in &meta.maps {
            out.text(&recipe.to_string());
        }
        write_sites(&mut out, &meta.sites);
        out.number(self.predicted_registers);
        out.number(self.needed_registers);
        write_asked(&mut out, &self.asked);
        out.number(self.constants.len() as u32);
        for (name, value) in &self.constants {
            out.text(name);
            out.text(value);
        }
        out.text(&self.ptx);
        out.0
    }

    /// What the bytes say; none if they are not such bytes.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Stored> {
        let mut input = Reader(bytes);
        let small = |n: u32| u8::try_from(n).ok();
        let meta = KernelMeta {
            name: input.owned()?,
            target: Target::parse(input.text()?).ok()?,
            ptx_version: PtxVersion {
                major: small(input.number()?)?,
                minor: small(input.number()?)?,
            },
            num_warps: input.number()?,
            shared: input.number()?,
            params: input.list(|input| {
                Some(ParamMeta {
                    name: input.owned()?,
                    kind: match input.number()? {
                        0 => ParamKind::Scalar,
                        1 => ParamKind::Pointer,
                        _ => return None,
                    },
                    ty: Scalar::from_name(input.text()?)?.name(),
                    bytes: input.number()?,
                })
            })?,
            persistent: match input.number()? {
                0 => false,
                1 => true,
                _ => return None,
            },
            maps: input.list(|input| input.text()?.parse().ok())?,
            sites: read_sites(&mut input)?,
        };
        let predicted_registers = input.number()?;
        let needed_registers = input.number()?;
        let asked = read_asked(&mut input)?;
        let constants = input.list(|input| Some((input.owned()?, input.owned()?)))?;
        let ptx = input.owned()?;
        input.0.is_empty().then_some(Stored {
            ptx,
            meta,
            predicted_registers,
            needed_registers,
            asked,
            constants,
            replaced: None,
        })
    }
}

/// The bytes of a kernel's name and what was asked for alone.
pub(crate) fn encode_asked(kernel: &str, asked: &[Asked]) -> Vec<u8> {
    let mut out = Writer::default();
    out.text(kernel);
    write_asked(&mut out, asked);
    out.0
}

/// What [`encode_asked`] wrote.
pub(crate) fn decode_asked(bytes: &[u8]) -> Option<(String, Vec<Asked>)> {
    let mut input = Reader(bytes);
    let all = (input.owned()?, read_asked(&mut input)?);
    input.0.is_empty().then_some(all)
}

fn write_asked(out: &mut Writer, asked: &[Asked]) {
    out.number(asked.len() as u32);
    for asked in asked {
        out.0.extend([asked.least, asked.most]);
    }
}

fn read_asked(input: &mut Reader<'_>) -> Option<Vec<Asked>> {
    input.list(|input| {
        let (&[least, most], rest) = input.0.split_first_chunk()?;
        input.0 = rest;
        Some(Asked { least, most })
    })
}

/// The bytes of a kernel's sites alone; none of none.
pub(in crate::runtime) fn encode_sites(sites: &[Site]) -> Vec<u8> {
    let mut out = Writer::default();
    if !sites.is_empty() {
        write_sites(&mut out, sites);
    }
    out.0
}

/// The sites that [`encode_sites`] wrote.
pub(in crate::runtime) fn decode_sites(bytes: &[u8]) -> Option<Vec<Site>> {
    if bytes.is_empty() {
        return Some(Vec::new());
    }
    let mut input = Reader(bytes);
    let sites = read_sites(&mut input)?;
    input.0.is_empty().then_some(sites)
}

fn write_sites(out: &mut Writer, sites: &[Site]) {
    out.number(sites.len() as u32);
    for site in sites {
        write_what(out, site.what);
        out.text(&site.text);
        // Lines begin with 1.
        out.number(site.line.unwrap_or(0));
        out.number(site.shape.len() as u32);
        for &extent in &site.shape {
            out.0.extend_from_slice(&extent.to_le_bytes());
        }
    }
}

fn read_sites(input: &mut Reader<'_>) -> Option<Vec<Site>> {
    input.list(|input| {
        Some(Site {
            what: read_what(input)?,
            text: input.owned()?,
            line: Some(input.number()?).filter(|&line| line > 0),
            shape: input.list(|input| {
                let (extent, rest) = input.0.split_first_chunk()?;
                input.0 = rest;
                Some(u64::from_le_bytes(*extent))
            })?,
        })
    })
}

fn write_what(out: &mut Writer, what: What) {
    match what {
        What::Text => out.number(0),
        What::Assert => out.number(1),
        What::Print(elem, show) => {
            out.number(2);
            out.text(show.name());
            let (kind, scalar) = match elem {
                Elem::Num(scalar) => (0, scalar.name()),
                Elem::Ptr(scalar, AddressSpace::Global) => (1, scalar.name()),
                Elem::Ptr(scalar, AddressSpace::Shared) => (2, scalar.name()),
                Elem::Token => (3, ""),
                Elem::Map(scalar) => (4, scalar.name()),
            };
            out.number(kind);
            out.text(scalar);
        }
    }
}

fn read_what(input: &mut Reader<'_>) -> Option<What> {
    Some(match input.number()? {
        0 => What::Text,
        1 => What::Assert,
        2 => {
            let show = Show::from_name(input.text()?)?;
            let kind = input.number()?;
            let scalar = Scalar::from_name(input.text()?);
            let elem = match kind {
                0 => Elem::Num(scalar?),
                1 => Elem::Ptr(scalar?, AddressSpace::Global),
                2 => Elem::Ptr(scalar?, AddressSpace::Shared),
                3 => Elem::Token,
                4 => Elem::Map(scalar?),
                _ => return None,
            };
            What::Print(elem, show)
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_as_written_and_nothing_else_is() {
        let stored = Stored {
            ptx: ".version 7.0\n".to_owned(),
            meta: KernelMeta {
                name: "k".to_owned(),
                target: Target::SM_90A,
                ptx_version: PtxVersion { major: 8, minor: 1 },
                num_warps: 8,
                shared: 1024,
                params: vec![ParamMeta {
                    name: "x".to_owned(),
                    kind: ParamKind::Pointer,
                    ty: "bf16",
                    bytes: 8,
                }],
                persistent: true,
                maps: vec![
                    "{base=p0, offset=3, elem=bf16, extents=[gridx], strides=[], box=[8], if=1}"
                        .parse()
                        .expect("a recipe"),
                ],
                sites: vec![Site {
                    what: What::Print(
                        Elem::global(Scalar::F32),
                        Show::from_name("hex").expect("a name"),
                    ),
                    text: "x = ".to_owned(),
                    line: Some(7),
                    shape: vec![128],
                }],
            },
            predicted_registers: 40,
            needed_registers: 38,
            asked: vec![Asked { least: 4, most: 7 }, Asked::NOTHING],
            constants: vec![("BLOCK".to_owned(), "128".to_owned())],
            replaced: None,
        };
        let bytes = stored.encode();
        assert_eq!(Stored::decode(&bytes), Some(stored.clone()));
        for sites in [&stored.meta.sites[..], &[]] {
            assert_eq!(decode_sites(&encode_sites(sites)).as_deref(), Some(sites));
        }
        for line in [None, Some(1)] {
            let site = Site {
                line,
                ..stored.meta.sites[0].clone()
            };
            let sites = [site];
            assert_eq!(
                decode_sites(&encode_sites(&sites)).as_deref(),
                Some(&sites[..])
            );
        }
        let asked = encode_asked("k", &stored.asked);
        assert_eq!(decode_asked(&asked[1..]), None);
        assert_eq!(
            decode_asked(&asked),
            Some(("k".to_owned(), stored.asked.clone()))
        );
        for length in 0..bytes.len() {
            assert_eq!(Stored::decode(&bytes[..length]), None, "{length} bytes");
        }
        assert_eq!(Stored::decode(&[&bytes[..], b"\0"].concat()), None);
        // Damage that the checksum should have caught is at worst another kernel's description, never a panic.
        for bit in 0..8 * bytes.len() {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(Stored::decode(&damaged), Some(stored.clone()));
        }
    }
}
