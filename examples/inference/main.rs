//! Kernels that inference launches, beside plain loops: thin products, scales of eight-bit numbers, weights of four bits, a mixture of experts,
//! decoding from a paged cache, and attention with all that models vary. On the GPU if there is one; `measured` tries several blocks.

use std::error::Error;

use tilelift::runtime::{Buffer, Device, F8E4M3, Graph, Stream, f16};
use tilelift::settings::Target;

mod kernels;

use kernels::{Blocks, Cache, Few, Kernels, Routing, Scales, Sequences, Variant, Weights4};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let blocks = match std::env::args().nth(1).as_deref() {
        Some("measured") => Blocks::Measured,
        _ => Blocks::Chosen,
    };
    let device = Device::best();
    for (name, check) in CHECKS {
        let worst = check(&On::new(&device, blocks)?)?;
        println!(
            "{name}: right on {}, {worst:.1e} of the largest off",
            device.name()
        );
    }
    Ok(())
}

/// What each check compares, and the check, which gives its largest error.
type Check = (&'static str, fn(&On) -> Result<f64>);
const CHECKS: [Check; 8] = [
    ("one row times weights", |on| few_rows(on, [1, 70, 96])),
    ("few rows times weights, in parts", |on| {
        few_rows(on, [5, 70, 2056])
    }),
    ("numbers of eight bits with scales", eight_bits),
    ("weights of four bits", four_bits),
    ("weights that become floats where they are used", few_bits),
    ("a mixture of experts", experts),
    ("decoding from a paged cache", decoding),
    ("attention of sequences of different lengths", varied),
];

/// Where checks run.
struct On {
    device: Device,
    stream: Stream,
    kernels: Kernels,
}

impl On {
    fn new(device: &Device, blocks: Blocks) -> Result<On> {
        Ok(On {
            device: device.clone(),
            stream: device.stream(),
            kernels: Kernels::new(device, blocks)?,
        })
    }

    fn buffer<T: tilelift::runtime::Element>(&self, values: &[T]) -> Result<Buffer<T>> {
        Ok(Buffer::from_slice(&self.device, values)?)
    }
}

/// Numbers that look random, between -1 and 1.
fn numbers(seed: u32, count: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as f32 / u32::MAX as f32 * 2.0 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

fn halves(seed: u32, count: usize) -> Vec<f16> {
    let numbers = numbers(seed, count).into_iter();
    numbers.map(f16::from_f32).collect()
}

/// The largest error over the largest number, if it is below a bound.
fn compare(found: &[f16], expected: &[f64], bound: f64) -> Result<f64> {
    let largest = expected.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
    let errors = found
        .iter()
        .zip(expected)
        .map(|(found, expected)| (f64::from(*found) - expected).abs());
    // Written so that what is no number is an error.
    let worst = errors.fold(0.0, |worst: f64, e| if e <= worst { worst } else { e }) / largest;
    match found.len() == expected.len() && worst <= bound {
        true => Ok(worst),
        false => Err(format!("off by {worst:e} of the largest, {bound:e} are allowed").into()),
    }
}

/// Half a unit of f16, and as much again for sums in f32.
const HALF: f64 = 1.0 / 1024.0;

/// Sums of products of rows.
fn rows_times_rows(x: &[f64], weight: &[f64], k: usize) -> Vec<f64> {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum();
    let rows = x.chunks(k);
    rows.flat_map(|a| weight.chunks(k).map(move |b| dot(a, b)))
        .collect()
}

fn wide(values: &[f16]) -> Vec<f64> {
    values.iter().map(|&x| f64::from(x)).collect()
}

fn few_rows(on: &On, [m, n, k]: [usize; 3]) -> Result<f64> {
    let (x, weight) = (halves(1, m * k), halves(2, n * k));
    let out = Buffer::<f16>::new(&on.device, m * n)?;
    let (on_x, on_weight) = (on.buffer(&x)?, on.buffer(&weight)?);
    on.kernels
        .few_rows(&on.stream, &out, &on_x, &on_weight, [m, n, k])?;
    let expected = rows_times_rows(&wide(&x), &wide(&weight), k);
    compare(&out.read(&on.stream)?, &expected, HALF)
}

fn eight_bits(on: &On) -> Result<f64> {
    // Whole numbers of eight bits, a scale for each row.
    let [m, n, k] = [33, 40, 96];
    let whole = |seed, count| numbers(seed, count).into_iter().map(|x| (x * 127.0) as i8);
    let (x, weight): (Vec<i8>, Vec<i8>) = (whole(1, m * k).collect(), whole(2, n * k).collect());
    let scales = |seed, count| -> Vec<f32> {
        numbers(seed, count)
            .iter()
            .map(|x| 0.002 + x.abs() / 1e3)
            .collect()
    };
    let (of_x, of_weight) = (scales(3, m), scales(4, n));
    let out = Buffer::<f16>::new(&on.device, m * n)?;
    let (a, b) = (on.buffer(&of_x)?, on.buffer(&of_weight)?);
    on.kernels.scaled(
        &on.stream,
        &out,
        &on.buffer(&x)?,
        &on.buffer(&weight)?,
        Scales::Rows(&a, &b),
        [m, n, k],
    )?;
    let spread = |values: &[i8], scales: &[f32]| -> Vec<f64> {
        let scale = |i: usize| f64::from(scales[i / k]);
        values
            .iter()
            .enumerate()
            .map(|(i, &x)| f64::from(x) * scale(i))
            .collect()
    };
    let expected = rows_times_rows(&spread(&x, &of_x), &spread(&weight, &of_weight), k);
    let first = compare(&out.read(&on.stream)?, &expected, HALF)?;

    // Floats of eight bits, a scale for each block or one for all. Their units keep 13 bits of the largest product of a step.
    if on.device.target() < Target::SM_89 {
        return Ok(first);
    }
    let [m, n, k] = [20, 128, 256];
    let floats = |seed, count| numbers(seed, count).into_iter().map(F8E4M3::from_f32);
    let (x, weight): (Vec<F8E4M3>, Vec<F8E4M3>) =
        (floats(5, m * k).collect(), floats(6, n * k).collect());
    let (of_x, of_weight) = (scales(7, m * 2), scales(8, 2));
    let (a, b) = (on.buffer(&of_x)?, on.buffer(&of_weight)?);
    let (first_a, first_b) = (on.buffer(&of_x[..1])?, on.buffer(&of_weight[..1])?);
    let wide = |values: &[F8E4M3], scale: &dyn Fn(usize) -> f32| -> Vec<f64> {
        let each = values.iter().enumerate();
        each.map(|(i, x)| f64::from(x.to_f32()) * f64::from(scale(i)))
            .collect()
    };
    let mut worst = first;
    for scales in [Scales::Blocks(&a, &b), Scales::Whole(&first_a, &first_b)] {
        let out = Buffer::<f16>::new(&on.device, m * n)?;
        on.kernels.scaled(
            &on.stream,
            &out,
            &on.buffer(&x)?,
            &on.buffer(&weight)?,
            scales,
            [m, n, k],
        )?;
        let is_whole = matches!(scales, Scales::Whole(..));
        let place = |i: usize| if is_whole { 0 } else { i };
        let x = wide(&x, &|i| of_x[place(i / 128)]);
        let weight = wide(&weight, &|i| of_weight[place(i % k / 128)]);
        let expected = rows_times_rows(&x, &weight, k);
        worst = worst.max(compare(&out.read(&on.stream)?, &expected, 4.0 * HALF)?);
    }
    Ok(worst)
}

/// Weights of four bits on the device, and what they are.
struct FourBits {
    words: Buffer<i16>,
    groups: Buffer<i64>,
    numbers: Vec<f64>,
}

/// N x K of them in groups, which a seed draws.
fn weights_of_four_bits(on: &On, seed: u32, [n, k]: [usize; 2], group: usize) -> Result<FourBits> {
    let words: Vec<i16> = numbers(seed, n * k / 4)
        .iter()
        .map(|x| (x * 32767.9) as i16)
        .collect();
    // Powers of two: weights are exact.
    let scales: Vec<f16> = (0..n * k / group)
        .map(|i| f16::from_f32(0.5_f32.powi(1 + (i % 4) as i32)))
        .collect();
    let zeros: Vec<f16> = (0..n * k / group)
        .map(|i| f16::from_f32((i % 16) as f32))
        .collect();
    // Scale and zero of a group and of the next one of the same row, from the lowest bits on.
    let groups: Vec<i64> = (0..n * k / (2 * group))
        .map(|i| {
            let first = 2 * (i / n) * n + i % n;
            let of = |at: usize| [scales[at], zeros[at]];
            let four = of(first + n)
                .into_iter()
                .rev()
                .chain(of(first).into_iter().rev());
            four.fold(0, |bits, half| bits << 16 | i64::from(half.to_bits()))
        })
        .collect();
    let numbers = (0..n * k)
        .map(|i| {
            // Each quarter of two groups stands in four bits of their words.
            let (pair, quarter, word) = (i / (2 * group), i / (group / 2) % 4, i % (group / 2));
            let number = words[pair * (group / 2) + word] >> (4 * quarter) & 15;
            // Those of all rows stand side by side.
            let of_group = i % k / group * n + i / k;
            (f64::from(number) - f64::from(zeros[of_group])) * f64::from(scales[of_group])
        })
        .collect();
    Ok(FourBits {
        words: on.buffer(&words)?,
        groups: on.buffer(&groups)?,
        numbers,
    })
}

fn four_bits(on: &On) -> Result<f64> {
    // Sums in two parts, and in one.
    let worst = four_bits_of(on, [3, 2048], 64)?;
    Ok(worst.max(four_bits_of(on, [3, 1024], 128)?))
}

/// Products of one `x`, one behind the other and in a row. It is written by the launch ahead of them.
fn four_bits_of(on: &On, [m, k]: [usize; 2], group: usize) -> Result<f64> {
    let on_x = Buffer::<f16>::new(&on.device, m * k)?;
    let (a, b) = (
        on.buffer(&halves(5, m * 64))?,
        on.buffer(&halves(6, k * 64))?,
    );
    on.kernels.few_rows(&on.stream, &on_x, &a, &b, [m, k, 64])?;
    let mut made = Vec::new();
    for (seed, n) in [(1, 70), (3, 130), (4, 8)] {
        let weights = weights_of_four_bits(on, seed, [n, k], group)?;
        let [alone, in_row] = [(); 2].map(|()| Buffer::<f16>::new(&on.device, m * n));
        made.push((n, weights, alone?, in_row?));
    }
    let weights: Vec<Weights4<'_>> = made
        .iter()
        .map(|(_, of, ..)| Weights4 {
            words: &of.words,
            groups: &of.groups,
            group,
        })
        .collect();
    let row: Vec<_> = made
        .iter()
        .zip(&weights)
        .map(|((n, _, _, out), weight)| (out, weight, *n))
        .collect();
    on.kernels.int4_row(&on.stream, &on_x, &row, [m, k])?;
    // Again from a graph, which keeps what the row has for itself.
    let read_row = || -> Result<Vec<Vec<f16>>> {
        let rows = made.iter().map(|(.., out)| Ok(out.read(&on.stream)?));
        rows.collect()
    };
    let first = read_row()?;
    let recorded = Stream::new(&on.device)?;
    let graph = Graph::capture(&recorded, |stream| {
        on.kernels.int4_row(stream, &on_x, &row, [m, k])
    })?;
    for (.., out) in &made {
        out.fill(&on.stream, 0xff)?;
    }
    graph.launch(&on.stream)?;
    if read_row()? != first {
        return Err("a row of products from a graph has other results".into());
    }
    let x = wide(&on_x.read(&on.stream)?);
    let mut worst = 0.0_f64;
    for ((n, of, alone, in_row), weight) in made.iter().zip(&weights) {
        on.kernels
            .int4(&on.stream, alone, &on_x, weight, [m, *n, k])?;
        let expected = rows_times_rows(&x, &of.numbers, k);
        for out in [alone, in_row] {
            worst = worst.max(compare(&out.read(&on.stream)?, &expected, HALF)?);
        }
    }
    Ok(worst)
}

fn few_bits(on: &On) -> Result<f64> {
    let ([m, n, k], group) = ([70, 72, 2048], 64);
    let x = halves(1, m * k);
    // Powers of two: weights are exact.
    let powers = |count: usize| -> Vec<f16> {
        let power = |i: usize| f16::from_f32(0.5_f32.powi(3 + (i % 4) as i32));
        (0..count).map(power).collect()
    };
    let whole = |seed, count| numbers(seed, count).into_iter();
    let bytes: Vec<i8> = whole(2, n * k).map(|x| (x * 127.9) as i8).collect();
    let packed: Vec<u8> = bytes[..n * k / 2].iter().map(|&x| x as u8).collect();
    let word = |x: f32| (x * i32::MAX as f32) as i32;
    let words: Vec<i32> = whole(3, n * k / 8).map(word).collect();
    let zeros: Vec<i32> = whole(4, k / group * n / 8).map(word).collect();
    let exponents: Vec<u8> = (0..n * k / 32).map(|i| 124 + (i % 5) as u8).collect();
    let (of_columns, of_groups) = (powers(n), powers(k / group * n));
    let four = |word: i32, i: usize| f64::from(word >> (4 * (i % 8)) & 15);
    let halves_of_byte = |byte: u8, i: usize| {
        let number = byte >> (4 * (i % 2)) & 15;
        let size = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0][usize::from(number & 7)];
        if number < 8 { size } else { -size }
    };
    // The weight of an index along K and one along N.
    type Number<'a> = &'a dyn Fn(usize, usize) -> f64;
    let (on_bytes, on_columns) = (on.buffer(&bytes)?, on.buffer(&of_columns)?);
    let (on_words, on_zeros, on_groups) = (
        on.buffer(&words)?,
        on.buffer(&zeros)?,
        on.buffer(&of_groups)?,
    );
    let (on_packed, on_exponents) = (on.buffer(&packed)?, on.buffer(&exponents)?);
    let in_words = Few::Words {
        words: &on_words,
        scales: &on_groups,
        zeros: &on_zeros,
        group,
    };
    let column = |j: usize| f64::from(of_columns[j]);
    let kinds: [(Few<'_, f16>, Number<'_>); 4] = [
        (Few::Bytes(&on_bytes, &on_columns), &|i, j| {
            f64::from(bytes[i * n + j]) * column(j)
        }),
        (Few::Rows(&on_bytes, &on_columns), &|i, j| {
            f64::from(bytes[j * k + i]) * column(j)
        }),
        (in_words, &|i, j| {
            let zero = four(zeros[(i / group * n + j) / 8], j);
            (four(words[i / 8 * n + j], i) - zero) * f64::from(of_groups[i / group * n + j])
        }),
        (Few::Mx(&on_packed, &on_exponents), &|i, j| {
            let power = f64::from(exponents[j * (k / 32) + i / 32]) - 127.0;
            halves_of_byte(packed[(j * k + i) / 2], i) * power.exp2()
        }),
    ];
    let mut worst = 0.0_f64;
    for (weight, number) in &kinds {
        // One row of blocks for few rows, and two.
        for m in [3, m] {
            let out = Buffer::<f16>::new(&on.device, m * n)?;
            let x_of = on.buffer(&x[..m * k])?;
            on.kernels
                .few_bits(&on.stream, &out, &x_of, weight, [m, n, k])?;
            let columns: Vec<f64> = (0..n)
                .flat_map(|j| (0..k).map(move |i| number(i, j)))
                .collect();
            let expected = rows_times_rows(&wide(&x[..m * k]), &columns, k);
            worst = worst.max(compare(&out.read(&on.stream)?, &expected, HALF)?);
        }
    }
    Ok(worst)
}

fn experts(on: &On) -> Result<f64> {
    let ([count, n, k], tokens, top) = ([3, 72, 80], 11, 2);
    let chosen: Vec<u32> = (0..tokens * top).map(|i| [0, 2, 2, 1, 2][i % 5]).collect();
    let routing = Routing::new(&chosen, count)?;
    let (x, weight) = (halves(1, tokens * k), halves(2, count * n * k));
    let shares: Vec<f32> = numbers(3, tokens * top).iter().map(|x| x.abs()).collect();
    let out = Buffer::<f16>::new(&on.device, tokens * top * n)?;
    let buffers = (on.buffer(&x)?, on.buffer(&weight)?, on.buffer(&shares)?);
    on.kernels.experts(
        &on.stream,
        &out,
        &buffers.0,
        &buffers.1,
        &buffers.2,
        &routing,
        top,
        [count, n, k],
    )?;
    let (x, weight) = (wide(&x), wide(&weight));
    let expected: Vec<f64> = (0..tokens * top)
        .flat_map(|pair| {
            let row = &x[pair / top * k..][..k];
            let expert = &weight[chosen[pair] as usize * n * k..][..n * k];
            let share = f64::from(shares[pair]);
            rows_times_rows(row, expert, k)
                .into_iter()
                .map(move |sum| sum * share)
        })
        .collect();
    compare(&out.read(&on.stream)?, &expected, HALF)
}

/// Softmax of scores of base e, times values; `sink` takes part in the sum.
fn weighted(scores: &[f64], sink: Option<f64>, values: impl Fn(usize) -> f64) -> f64 {
    let total: f64 = scores.iter().map(|s| s.exp()).sum::<f64>() + sink.map_or(0.0, f64::exp);
    let parts = scores.iter().enumerate().map(|(i, s)| s.exp() * values(i));
    parts.sum::<f64>() / total
}

/// Products of attention have operands of 16 bits, also the second one, whose left side was computed.
const ATTENTION: f64 = 4.0 * HALF;

fn decoding(on: &On) -> Result<f64> {
    let [sequences, heads, group, columns] = [2, 2, 3, 32];
    let (page, most, lengths) = (16, 20, [300, 41]);
    let queries = halves(1, sequences * heads * group * columns);
    let pages = sequences * most;
    let (keys, values) = (
        halves(2, pages * page * heads * columns),
        halves(3, pages * page * heads * columns),
    );
    // All pages, in another order.
    let table: Vec<i32> = (0..pages).map(|i| (i * 7 % pages) as i32).collect();
    let out = Buffer::<f16>::new(&on.device, queries.len())?;
    let cache = Cache {
        keys: &on.buffer(&keys)?,
        values: &on.buffer(&values)?,
        table: &on.buffer(&table)?,
        lengths: &on.buffer(&lengths)?,
        page,
        longest: 300,
    };
    on.kernels.decode(
        &on.stream,
        &out,
        &on.buffer(&queries)?,
        &cache,
        [sequences, heads, group, columns],
    )?;
    let (queries, keys, values) = (wide(&queries), wide(&keys), wide(&values));
    let at = |sequence: usize, head: usize, key: usize| {
        let page_of = table[sequence * most + key / page] as usize;
        ((page_of * page + key % page) * heads + head) * columns
    };
    let expected = (0..queries.len()).map(|i| {
        let (row, column) = (i / columns, i % columns);
        let (sequence, head) = (row / (heads * group), row / group % heads);
        let query = &queries[row * columns..][..columns];
        let scores: Vec<f64> = (0..lengths[sequence] as usize)
            .map(|key| {
                rows_times_rows(query, &keys[at(sequence, head, key)..][..columns], columns)[0]
                    / (columns as f64).sqrt()
            })
            .collect();
        weighted(&scores, None, |key| {
            values[at(sequence, head, key) + column]
        })
    });
    compare(
        &out.read(&on.stream)?,
        &expected.collect::<Vec<f64>>(),
        ATTENTION,
    )
}

fn varied(on: &On) -> Result<f64> {
    let ([heads, kv_heads, columns], begins) = ([4, 2, 16], [0, 50, 63]);
    let tokens = 63;
    let queries = halves(1, tokens * heads * columns);
    let (keys, values) = (
        halves(2, tokens * kv_heads * columns),
        halves(3, tokens * kv_heads * columns),
    );
    let sinks = numbers(4, heads);
    let on_sinks = on.buffer(&sinks)?;
    let sequences = Sequences {
        queries: &on.buffer(&queries)?,
        keys: &on.buffer(&keys)?,
        values: &on.buffer(&values)?,
        begins: &on.buffer(&begins)?,
        longest: 50,
    };
    let (wide_q, wide_k, wide_v) = (wide(&queries), wide(&keys), wide(&values));
    let all = Variant {
        causal: true,
        window: Some(20),
        sinks: Some(&on_sinks),
        cap: Some(1.5),
    };
    let mut worst = 0.0_f64;
    for variant in [
        Variant::default(),
        Variant {
            causal: true,
            ..Variant::default()
        },
        all,
    ] {
        let out = Buffer::<f16>::new(&on.device, queries.len())?;
        on.kernels.varied(
            &on.stream,
            &out,
            &sequences,
            variant,
            [heads, kv_heads, columns],
        )?;
        let expected = (0..queries.len()).map(|i| {
            let (token, head, column) = (i / columns / heads, i / columns % heads, i % columns);
            let (begin, end) = if token < 50 { (0, 50) } else { (50, 63) };
            let first = variant.window.map_or(begin, |window| {
                begin.max((token + 1).saturating_sub(window))
            });
            let last = if variant.causal { token + 1 } else { end };
            let of = |key: usize| (key * kv_heads + head / (heads / kv_heads)) * columns;
            let query = &wide_q[(token * heads + head) * columns..][..columns];
            let scores: Vec<f64> = (first..last)
                .map(|key| {
                    let score = rows_times_rows(query, &wide_k[of(key)..][..columns], columns)[0]
                        / (columns as f64).sqrt();
                    variant.cap.map_or(score, |cap| {
                        f64::from(cap) * (score / f64::from(cap)).tanh()
                    })
                })
                .collect();
            // Sinks are of base two.
            let sink = variant
                .sinks
                .map(|_| f64::from(sinks[head]) * std::f64::consts::LN_2);
            weighted(&scores, sink, |key| wide_v[of(first + key) + column])
        });
        let expected: Vec<f64> = expected.collect();
        worst = worst.max(compare(&out.read(&on.stream)?, &expected, ATTENTION)?);
    }
    Ok(worst)
}

#[cfg(test)]
mod tests {
    use tilelift::runtime::{Buffer, Device, DeviceOptions, f16};
    use tilelift::settings::Target;

    use super::kernels::{Blocks, Error, Kernels};
    use super::{CHECKS, On};

    #[test]
    fn all_are_right_on_the_emulator() {
        for target in [Target::SM_80, Target::SM_90A] {
            let mut options = DeviceOptions::plain();
            options.target = Some(target);
            let device = Device::emulator_with(options);
            for (name, check) in CHECKS {
                let on = On::new(&device, Blocks::Chosen).expect("the texts are read");
                check(&on).unwrap_or_else(|error| panic!("{name} for {target}: {error}"));
            }
        }
    }

    #[test]
    fn wrong_shapes_are_refused_by_name() {
        let device = Device::emulator_with(DeviceOptions::plain());
        let kernels = Kernels::new(&device, Blocks::Chosen).expect("the texts are read");
        let buffer = |len| Buffer::<f16>::new(&device, len).expect("there is memory");
        let (out, x, weight) = (buffer(2 * 8), buffer(2 * 16), buffer(8 * 15));
        let stream = device.stream();
        let result = kernels.few_rows(&stream, &out, &x, &weight, [2, 8, 16]);
        assert!(
            matches!(
                result,
                Err(Error::Length {
                    name: "weight",
                    expected: 128,
                    found: 120
                })
            ),
            "{result:?}"
        );
        let result = kernels.few_rows(&stream, &out, &x, &weight, [65, 8, 16]);
        assert!(result.is_err());
    }
}
