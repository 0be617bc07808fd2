//! Boxes of tensors by tensor maps: what a copy moves, and which maps and copies are refused.

use tilelift::emu::{
    Arg, EmuError, Fill, Memory, Module, Options, Stats, Swizzle, TensorElement, TensorMap,
    TensorMapError,
};

use crate::phases::kernel;
use crate::run_text;

/// Bytes of the tensor's buffer, and of the image of shared memory behind it.
const TENSOR: usize = 1 << 16;
const IMAGE: usize = 4096;

/// A small generator of random numbers.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    pub(crate) fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

fn matrix() -> TensorMap {
    TensorMap {
        element: TensorElement::F16,
        base: 0,
        extents: vec![64, 32],
        strides: vec![256],
        box_extents: vec![64, 8],
        element_strides: vec![1, 1],
        swizzle: Swizzle::Bytes128,
        fill: Fill::Zeros,
    }
}

/// A random map of a buffer at `base`, and a random place in or around its tensor.
fn random(random: &mut Random, base: u64) -> (TensorMap, Vec<i32>) {
    let rank = 1 + random.below(5) as usize;
    let element = random.pick(&[
        TensorElement::U8,
        TensorElement::U16,
        TensorElement::BF16,
        TensorElement::S32,
        TensorElement::F32,
        TensorElement::F64,
    ]);
    let size = u64::from(element.bytes());
    let swizzle = random.pick(&[
        Swizzle::None,
        Swizzle::Bytes32,
        Swizzle::Bytes64,
        Swizzle::Bytes128,
    ]);
    let inner = match swizzle.span() {
        Some(span) => u64::from(span.get()),
        None => 16 * (1 + random.below(6)),
    };
    let mut box_extents = vec![(inner / size) as u32];
    let mut extents = vec![1 + random.below(3 * u64::from(box_extents[0]))];
    let (mut element_strides, mut strides) = (vec![1], Vec::new());
    let mut pitch = (extents[0] * size).next_multiple_of(16);
    for _ in 1..rank {
        strides.push(pitch + 16 * random.below(2));
        box_extents.push(1 + random.below(if rank > 3 { 2 } else { 8 }) as u32);
        extents.push(1 + random.below(6));
        element_strides.push(random.pick(&[1, 1, 2, 3]));
        pitch = strides[strides.len() - 1] * extents[extents.len() - 1];
    }
    let fill = match element {
        TensorElement::BF16 | TensorElement::F32 | TensorElement::F64 if random.below(2) == 0 => {
            Fill::NaN
        }
        _ => Fill::Zeros,
    };
    let start = (0..rank).map(|d| match d {
        0 => (16 / size as i64 * (random.below(8) as i64 - 3)) as i32,
        _ => random.below(10) as i32 - 3,
    });
    let start = start.collect();
    let map = TensorMap {
        element,
        base,
        extents,
        strides,
        box_extents,
        element_strides,
        swizzle,
        fill,
    };
    (map, start)
}

/// For each element of the box in order: where it stands in the tensor, if inside, and in the box as it lies in shared memory.
fn places(map: &TensorMap, start: &[i32]) -> Vec<(Option<usize>, usize)> {
    let size = map.element.bytes() as usize;
    let rank = start.len();
    let counts: Vec<usize> = (0..rank)
        .map(|d| match d {
            0 => map.box_extents[0] as usize,
            _ => map.box_extents[d].div_ceil(map.element_strides[d]) as usize,
        })
        .collect();
    let total: usize = counts.iter().product();
    let place = |index: usize| {
        let (mut rest, mut at, mut is_inside) = (index, 0, true);
        for d in 0..rank {
            let step = (rest % counts[d]) as i64;
            rest /= counts[d];
            let each = if d == 0 { 1 } else { map.element_strides[d] };
            let coordinate = i64::from(start[d]) + step * i64::from(each);
            is_inside &= 0 <= coordinate && coordinate < map.extents[d] as i64;
            let pitch = if d == 0 {
                size as i64
            } else {
                map.strides[d - 1] as i64
            };
            at += coordinate * pitch;
        }
        // Rows of a swizzled box are as wide as the span; rows that share 128 bytes are swizzled alike.
        let linear = index * size;
        let (chunk, line) = (linear / 16 % 8, linear / 128);
        let pieces = match map.swizzle {
            Swizzle::None => 1,
            Swizzle::Bytes32 => 2,
            Swizzle::Bytes64 => 4,
            Swizzle::Bytes128 => 8,
        };
        let moved = chunk ^ (line % pieces);
        let shared = line * 128 + moved * 16 + linear % 16;
        (is_inside.then_some(at as usize), shared)
    };
    (0..total).map(place).collect()
}

fn launch(text: &str, map: &TensorMap, memory: &mut Memory, data: u64) -> Result<Stats, EmuError> {
    let bytes = map.encode().expect("a map that can be");
    let args = [Arg::bytes(&bytes), Arg::pointer(data)];
    let options = Options {
        seed: map.extents[0],
        ..Options::default()
    };
    run_text(text, 1, 64, 65536, memory, &args, options)
}

fn coordinates(start: &[i32]) -> (String, String) {
    let sets: String = (0..start.len())
        .map(|d| format!("mov.s32 %r{}, {}; ", 10 + d, start[d]))
        .collect();
    let names: Vec<String> = (0..start.len()).map(|d| format!("%r{}", 10 + d)).collect();
    (sets, names.join(", "))
}

fn load_text(start: &[i32], bytes: usize) -> String {
    let (sets, names) = coordinates(start);
    let rank = start.len();
    kernel(
        1,
        &format!(
            "{sets}
@%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], {bytes};
@%first cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%s], [%map, {{{names}}}], [%b];
W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%b], 0; @!%p2 bra W;
mov.u32 %r1, %t;
OUT: setp.ge.u32 %p3, %r1, {bytes}; @%p3 bra DONE;
add.u32 %r2, %s, %r1; ld.shared.u8 %h1, [%r2]; cvt.u64.u32 %d1, %r1; add.u64 %d1, %data, %d1; st.global.u8 [%d1], %h1;
add.u32 %r1, %r1, 64; bra OUT;
DONE: mov.u32 %r1, 0;"
        ),
    )
}

#[test]
fn loads_of_random_boxes() {
    let mut numbers = Random(7);
    for case in 0..300 {
        let mut memory = Memory::new();
        let tensor: Vec<u8> = (0..TENSOR).map(|_| numbers.below(251) as u8).collect();
        let base = memory.alloc_bytes(&tensor);
        let (map, start) = random(&mut numbers, base);
        let size = map.element.bytes() as usize;
        let places = places(&map, &start);
        let bytes = places.len() * size;
        let image = memory.alloc(bytes);
        if let Err(error) = launch(&load_text(&start, bytes), &map, &mut memory, image) {
            panic!("{case}: {error}\n{map:?} {start:?}");
        }
        let found = memory.read(image, bytes).expect("it was written");
        for (index, &(at, shared)) in places.iter().enumerate() {
            let nan = [0xf7, 0x7f, 0xf7, 0x7f, 0xf7, 0x7f, 0xf7, 0x7f];
            let expected = match (at, map.fill) {
                (Some(at), _) => &tensor[at..at + size],
                (None, Fill::Zeros) => &[0; 8][..size],
                (None, Fill::NaN) => &nan[8 - size..],
            };
            let element = &found[shared..shared + size];
            assert_eq!(
                element, expected,
                "{case}: element {index}\n{map:?} {start:?}"
            );
        }
    }
}

fn store_text(start: &[i32], bytes: usize, reduce: bool) -> String {
    let (sets, names) = coordinates(start);
    let rank = start.len();
    let (name, op) = if reduce {
        ("cp.reduce", ".add")
    } else {
        ("cp", "")
    };
    kernel(
        0,
        &format!(
            "{sets} mov.u32 %r1, %t;
IN: setp.ge.u32 %p3, %r1, {bytes}; @%p3 bra FULL;
add.u32 %r2, %s, %r1; cvt.u64.u32 %d1, %r1; add.u64 %d1, %data, %d1; ld.global.u8 %h1, [%d1]; st.shared.u8 [%r2], %h1;
add.u32 %r1, %r1, 64; bra IN;
FULL: fence.proxy.async.shared::cta; bar.sync 1;
@%first {name}.async.bulk.tensor.{rank}d.global.shared::cta{op}.tile.bulk_group [%map, {{{names}}}], [%s];
@%first cp.async.bulk.commit_group; @%first cp.async.bulk.wait_group 0;"
        ),
    )
}

#[test]
fn stores_and_reductions_of_random_boxes() {
    let mut numbers = Random(11);
    for case in 0..300 {
        let mut memory = Memory::new();
        let tensor: Vec<u8> = (0..TENSOR).map(|_| numbers.below(251) as u8).collect();
        let base = memory.alloc_bytes(&tensor);
        let (mut map, mut start) = random(&mut numbers, base);
        map.fill = Fill::Zeros;
        // An H100 takes no box that is stored in front of its tensor, and writes whole pieces of 16 bytes.
        let piece = 16 / u64::from(map.element.bytes());
        map.extents[0] = (map.extents[0] / piece).max(1) * piece;
        start.iter_mut().for_each(|at| *at = (*at).max(0));
        let reduces = case % 3 == 0;
        if reduces {
            map.element = match map.element.bytes() {
                4 => TensorElement::U32,
                8 => TensorElement::U64,
                _ => continue,
            };
        }
        let size = map.element.bytes() as usize;
        let places = places(&map, &start);
        let bytes = places.len() * size;
        let box_bytes: Vec<u8> = (0..bytes).map(|_| numbers.below(251) as u8).collect();
        let image = memory.alloc_bytes(&box_bytes);
        let text = store_text(&start, bytes, reduces);
        if let Err(error) = launch(&text, &map, &mut memory, image) {
            panic!("{case}: {error}\n{map:?} {start:?}");
        }
        let word = |bytes: &[u8]| {
            let mut word = [0; 8];
            word[..size].copy_from_slice(bytes);
            u64::from_le_bytes(word)
        };
        let mut expected = tensor.clone();
        for &(at, shared) in &places {
            let Some(at) = at else {
                continue;
            };
            let value = word(&box_bytes[shared..shared + size]);
            let old = if reduces {
                word(&tensor[at..at + size])
            } else {
                0
            };
            let new = old.wrapping_add(value).to_le_bytes();
            expected[at..at + size].copy_from_slice(&new[..size]);
        }
        let found = memory.read(base, TENSOR).expect("it was written");
        assert!(found == expected, "{case}: {map:?} {start:?}");
    }
}

/// Of s64 there are the smaller and the larger alone; f32 keep subnormals.
#[test]
fn reductions_of_elements_that_hardware_has() {
    let reduced = |element: TensorElement, op: &str| {
        let mut memory = Memory::new();
        let tensor = memory.alloc_bytes(&[1, 0, 0, 0].repeat(64));
        let image = memory.alloc_bytes(&[3, 0, 0, 0].repeat(64));
        let map = TensorMap {
            element,
            base: tensor,
            extents: vec![8],
            strides: vec![],
            box_extents: vec![8],
            element_strides: vec![1],
            swizzle: Swizzle::None,
            fill: Fill::Zeros,
        };
        let bytes = 8 * element.bytes() as usize;
        let text = store_text(&[0], bytes, true).replace(".add.", &format!(".{op}."));
        launch(&text, &map, &mut memory, image)?;
        Ok::<u8, EmuError>(memory.read(tensor, 1).expect("it was there")[0])
    };
    for op in ["add", "and", "or", "xor"] {
        let error = reduced(TensorElement::S64, op).expect_err("an illegal instruction");
        assert!(error.to_string().contains("a reduction by"), "{error}");
        assert!(reduced(TensorElement::U64, op).is_ok(), "{op}");
    }
    assert_eq!(reduced(TensorElement::S64, "max"), Ok(3));
    assert_eq!(reduced(TensorElement::F32, "add"), Ok(4));
}

#[test]
fn innermost_coordinates_are_multiples_of_sixteen_bytes() {
    for (start, fits) in [
        (0, true),
        (8, true),
        (-8, true),
        (-32, true),
        (960, true),
        (1, false),
        (4, false),
        (-4, false),
        (1020, false),
    ] {
        let mut memory = Memory::new();
        let base = memory.alloc_bytes(&vec![1; TENSOR]);
        let image = memory.alloc(IMAGE);
        let map = TensorMap { base, ..matrix() };
        match launch(&load_text(&[start, 3], 1024), &map, &mut memory, image) {
            Ok(_) => assert!(fits, "{start}"),
            Err(error) => {
                let text = error.to_string();
                assert!(
                    !fits && text.contains("which must be a multiple of 16"),
                    "{start}: {text}"
                );
            }
        }
    }
}

#[test]
fn maps_are_refused_as_the_driver_refuses_them() {
    let ok = matrix();
    let accepted = [
        TensorMap {
            strides: vec![0],
            ..ok.clone()
        },
        TensorMap {
            strides: vec![128],
            ..ok.clone()
        },
        TensorMap {
            extents: vec![1 << 32, 1],
            ..ok.clone()
        },
        TensorMap {
            strides: vec![(1 << 40) - 16],
            ..ok.clone()
        },
        TensorMap {
            box_extents: vec![64, 256],
            ..ok.clone()
        },
        TensorMap {
            box_extents: vec![24, 8],
            swizzle: Swizzle::None,
            ..ok.clone()
        },
        TensorMap {
            extents: vec![64],
            strides: vec![],
            box_extents: vec![64],
            element_strides: vec![1],
            ..ok.clone()
        },
    ];
    for map in accepted {
        assert!(map.encode().is_ok(), "{map:?}");
    }
    let refused = [
        (
            TensorMap {
                base: 8,
                ..ok.clone()
            },
            "the base 0x8 is no multiple of 16",
        ),
        (
            TensorMap {
                strides: vec![136],
                ..ok.clone()
            },
            "a stride of 136 bytes",
        ),
        (
            TensorMap {
                strides: vec![1 << 40],
                ..ok.clone()
            },
            "a stride of",
        ),
        (
            TensorMap {
                extents: vec![0, 32],
                ..ok.clone()
            },
            "an extent of 0",
        ),
        (
            TensorMap {
                extents: vec![64, (1 << 32) + 1],
                ..ok.clone()
            },
            "an extent of 4294967297",
        ),
        (
            TensorMap {
                box_extents: vec![64, 257],
                ..ok.clone()
            },
            "a box of 257 elements",
        ),
        (
            TensorMap {
                box_extents: vec![72, 8],
                ..ok.clone()
            },
            "144 bytes wide, and the swizzle spans 128",
        ),
        (
            TensorMap {
                box_extents: vec![60, 8],
                ..ok.clone()
            },
            "no multiple of 16",
        ),
        (
            TensorMap {
                element_strides: vec![1, 9],
                ..ok.clone()
            },
            "an element stride of 9",
        ),
        (
            TensorMap {
                strides: vec![],
                ..ok.clone()
            },
            "0 strides where there must be 1",
        ),
        (
            TensorMap {
                extents: vec![1; 6],
                ..ok.clone()
            },
            "6 dimensions",
        ),
        (
            TensorMap {
                element: TensorElement::U16,
                fill: Fill::NaN,
                ..ok.clone()
            },
            "NaNs outside of a tensor of integers",
        ),
    ];
    for (map, words) in refused {
        let error: TensorMapError = map.encode().expect_err("it is refused");
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[test]
fn copies_by_maps_are_checked() {
    let text = load_text(&[0, 0], 1024);
    let run = |text: &str, map: &TensorMap| {
        let mut memory = Memory::new();
        let base = memory.alloc_bytes(&vec![1; TENSOR]);
        let image = memory.alloc(IMAGE);
        let map = TensorMap {
            base: base + map.base,
            ..map.clone()
        };
        let found = launch(text, &map, &mut memory, image);
        found.map(drop).map_err(|error| error.to_string())
    };
    let ok = matrix();
    assert_eq!(run(&text, &ok), Ok(()));
    let narrow = TensorMap {
        box_extents: vec![32, 8],
        ..ok.clone()
    };
    let beyond = TensorMap {
        base: TENSOR as u64 - 512,
        ..ok.clone()
    };
    for (text, map, words) in [
        (
            text.replace("[%s],", "[%s+64],"),
            &ok,
            "not a multiple of 128",
        ),
        (
            text.replace("[%map,", "[%map+16],")
                .replace("+16],", "+16,"),
            &ok,
            "not a multiple of 64",
        ),
        (
            text.replace("[%map, {%r10, %r11}]", "[%data, {%r10, %r11}]"),
            &ok,
            "not all of them written",
        ),
        (
            text.replace("tensor.2d", "tensor.1d")
                .replace("{%r10, %r11}", "{%r10}"),
            &ok,
            "1 coordinates for a tensor map of 2 dimensions",
        ),
        (
            text.clone(),
            &narrow,
            "unsupported: a box 64 bytes wide with a swizzle over 128, which is not modelled",
        ),
        (text.clone(), &beyond, "out of bounds"),
        (text.replace("[%s],", "[%s+64512],"), &ok, "out of bounds"),
        (
            text.replace("_, [%b], 1024", "_, [%b], 1040"),
            &ok,
            "lacks 0 arrivals and 16 bytes",
        ),
        (
            text.replace("_, [%b], 1024", "_, [%b], 1008"),
            &ok,
            "got 16 bytes more than it expects",
        ),
    ] {
        let found = run(&text, map).expect_err("it is refused");
        assert!(found.contains(words), "{words}: {found}");
    }
}

#[test]
fn maps_are_replaced_on_one_target() {
    let replace = "tensormap.replace.tile.rank.global.b1024.b32 [%data], 1;";
    let text = kernel(0, replace);
    assert!(Module::parse(&text).is_ok());
    let error = Module::parse(&text.replace("sm_90a", "sm_90")).expect_err("it is refused");
    assert!(error.to_string().contains("sm_90a"), "{error}");
}

/// A map that the kernel changes in device memory, for which it needs a fence.
#[test]
fn maps_can_be_made_in_the_kernel() {
    let body = |fence: &str| {
        let load = load_text(&[0, 0], 512);
        let start = load.find("@%first mbarrier.arrive").expect("it is there");
        let (head, tail) = load.split_at(start);
        let replace = "@!%first bra MADE; add.u64 %d9, %data, 4096;
tensormap.replace.tile.global_address.global.b1024.b64 [%d9], %data;
tensormap.replace.tile.global_dim.global.b1024.b32 [%d9], 0, 60;
tensormap.replace.tile.box_dim.global.b1024.b32 [%d9], 1, 4;
MADE: FENCE bar.sync 1;";
        let tail = tail
            .replace("[%map,", "[%d9,")
            .replace("%data, %d1", "%d9, %d1")
            .replace("[%d1], %h1", "[%d1+256], %h1");
        format!(
            "{head}{} add.u64 %d9, %data, 4096;\n{tail}",
            replace.replace("FENCE", fence)
        )
    };
    let run = |fence: &str| {
        let mut memory = Memory::new();
        let mut bytes: Vec<u8> = (0..4096).map(|i| (i % 251) as u8).collect();
        bytes.extend(matrix().encode().expect("a map that can be"));
        bytes.resize(8192, 0);
        let data = memory.alloc_bytes(&bytes);
        launch(&body(fence), &matrix(), &mut memory, data).map_err(|error| error.to_string())?;
        Ok::<_, String>(memory.read(data + 4096 + 256, 512).expect("it was written"))
    };
    let found = run(
        "fence.proxy.tensormap::generic.release.gpu; bar.sync 2; fence.proxy.tensormap::generic.acquire.gpu [%d9], 128;",
    );
    let found = found.expect("it runs");
    assert_eq!(found[0..4], [0, 1, 2, 3]);
    assert_eq!(
        found[112..120],
        [112, 113, 114, 115, 116, 117, 118, 119],
        "58 and 59 are the last columns"
    );
    assert_eq!(found[120..128], [0; 8]);
    for fence in ["", "fence.proxy.async;"] {
        let found = run(fence).expect_err("a fence is missing");
        assert!(found.contains("no fence makes the write"), "{found}");
    }
}

/// A kernel may make any map, and so may who calls: an address that wraps is out of bounds, and nothing else.
#[test]
fn maps_of_addresses_that_wrap_are_out_of_bounds() {
    for base in [i64::MAX as u64 - 15, 1 << 63, u64::MAX - 15] {
        let map = TensorMap { base, ..matrix() };
        for start in [[8, 0], [-8, 0], [16, 3]] {
            let mut memory = Memory::new();
            let data = memory.alloc_bytes(&[0; 4096]);
            let error = launch(&load_text(&start, 512), &map, &mut memory, data)
                .expect_err("nothing is there");
            assert!(
                matches!(
                    error.fault(),
                    Some(tilelift::emu::Fault::OutOfBounds { .. })
                ),
                "{base:#x} {start:?}: {error}"
            );
        }
    }
}
