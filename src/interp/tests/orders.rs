//! Bounds of what is combined in an order that is open, against many orders.

use super::tolerance::distances;

const PRODUCT: [&str; 2] = ["v12 = fmul v10, v11 : f32", "v12"];

/// A reduction or scan of v4 by an op on v10 and v11 that gives v12.
fn by(op: &str, [body, result]: [&str; 2]) -> String {
    let (name, ty, end) = match op {
        "reduce" => ("v8", "f32", "v9 = splat v8 : f32[8]"),
        _ => ("v9", "f32[8]", ""),
    };
    format!(
        "{name} = {op} v4 {{axis = 0}} : {ty} {{
    block1(v10: f32, v11: f32):
        {body}
        yield {result}
    }}
    {end}"
    )
}

/// The recurrence `h = a h + b` of v4 and v13 in v9.
fn recurrence(b: &str) -> String {
    format!(
        "{b}
    v8, v9 = scan v4, v13 {{axis = 0}} : f32[8], f32[8] {{
    block1(v20: f32, v21: f32, v22: f32, v23: f32):
        v24 = fmul v20, v22 : f32
        v25 = fmul v22, v21 : f32
        v26 = fadd v25, v23 : f32
        yield v24, v26
    }}"
    )
}

#[test]
fn products_that_overflow_by_their_order_have_no_bound() {
    let (big, small) = (1e30, 1e-30);
    // Of two numbers there is one order.
    let found = distances(
        &by("scan", PRODUCT),
        "f32",
        &[big, big, small, small, 1.0, 1.0, 1.0, 1.0],
    );
    let found = found.expect("it runs");
    assert_eq!(found[..2], [0.0, 0.0]);
    assert!(found[2..].iter().all(|d| d.is_infinite()), "{found:?}");
    // What lies between them keeps neighbours apart, but not the elements of a reduction.
    let apart = [big, small, big, small, big, small, big, small];
    let found = distances(&by("scan", PRODUCT), "f32", &apart).expect("it runs");
    assert!(found.iter().all(|&d| d < 1e25), "{found:?}");
    let found = distances(&by("reduce", PRODUCT), "f32", &apart).expect("it runs");
    assert!(found[0].is_infinite(), "{found:?}");
    // In every order 2^140 is infinite, or NaN once it meets 0.
    let all = [1048576.0; 8];
    assert_eq!(distances(&by("reduce", PRODUCT), "f32", &all), Ok([0.0; 8]));
    let found = distances(&by("scan", PRODUCT), "f32", &all).expect("it runs");
    assert!(found[5] > 0.0 && found[5].is_finite() && found[6] == 0.0);
    let found = distances(
        &by("reduce", PRODUCT),
        "f32",
        &[0.0, big, big, 1.0, 1.0, 1.0, 1.0, 1.0],
    );
    assert_eq!(found, Ok([f64::INFINITY; 8]));
}

/// What is lost below the normal numbers is small where nothing makes it larger.
#[test]
fn products_that_underflow_lose_little() {
    for op in ["scan", "reduce"] {
        let found = distances(&by(op, PRODUCT), "f32", &[1e-10; 8]).expect("it runs");
        assert!(found[7] > 0.0 && found[7] < 2e-44, "{op}: {found:?}");
        let found = distances(&by(op, PRODUCT), "f32", &[1e-2; 8]).expect("it runs");
        assert!(found[7] > 0.0 && found[7] < 1e-21, "{op}: {found:?}");
        let up = [1e-30, 1e-30, 1e30, 1e20, 1.0, 1.0, 1.0, 1.0];
        let found = distances(&by(op, PRODUCT), "f32", &up).expect("it runs");
        assert!(found[7] > 1e-10, "{op}: {found:?}");
    }
    // The factors of a recurrence that forgets.
    let body = recurrence("v13 = fadd v4, v4 : f32[8]");
    let found = distances(&body, "f32", &[1e-10; 8]).expect("it runs");
    assert!(found[7] > 0.0 && found[7] < 1e-16, "{found:?}");
}

#[test]
fn recurrences_that_overflow_by_their_order_have_no_bound() {
    let body = recurrence("v13 = const {value = 1.0} : f32[8]");
    let big = 1e30;
    let found = distances(&body, "f32", &[big; 8]).expect("it runs");
    assert_eq!(found[..1], [0.0], "{found:?}");
    assert!(found[2..].iter().all(|d| d.is_infinite()), "{found:?}");
    let found = distances(&body, "f32", &[0.5; 8]).expect("it runs");
    assert!(found.iter().all(|&d| d < 1e-5), "{found:?}");
}

/// Functions of a region are followed where they grow or fall; of others nothing is known.
#[test]
fn functions_of_regions_are_followed() {
    let sum = "v13 = fmax v10, v11 {nan = ignore} : f32
        v14 = fmin v10, v11 {nan = ignore} : f32
        v15 = fsub v14, v13 : f32
        v16 = exp v15 : f32
        v17 = log1p v16 : f32
        v12 = fadd v13, v17 : f32";
    let xs = [90.0, -90.0, 1.0, 2.0, 80.0, -80.0, 0.5, 3.0];
    let found = distances(&by("scan", [sum, "v12"]), "f32", &xs).expect("it runs");
    assert!(found.iter().all(|&d| d < 1e-3), "{found:?}");
    let sine = "v13 = sin v10 : f32
        v12 = fadd v13, v11 : f32";
    let found = distances(&by("scan", [sine, "v12"]), "f32", &xs).expect("it runs");
    assert!(found[2..].iter().all(|d| d.is_infinite()), "{found:?}");
}

/// Random numbers from 0 to 1.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f64 / f64::from(1 << 24)
    }

    /// Of all sizes; sometimes 0 or infinite.
    fn number(&mut self, decades: f64) -> f32 {
        let sign = if self.next() < 0.3 { -1.0 } else { 1.0 };
        match (self.next() * 40.0) as u32 {
            0 => 0.0,
            1 if decades > 20.0 => f32::INFINITY,
            _ => (sign * 10.0f64.powf((self.next() * 2.0 - 1.0) * decades)) as f32,
        }
    }
}

/// Combines neighbours in a random order.
fn tree<T: Copy>(xs: &[T], random: &mut Random, combine: &impl Fn(T, T) -> T) -> T {
    if let [x] = xs {
        return *x;
    }
    let middle = 1 + (random.next() * (xs.len() - 1) as f64) as usize;
    let (left, right) = xs.split_at(middle.min(xs.len() - 1));
    let left = tree(left, random, combine);
    combine(left, tree(right, random, combine))
}

fn check(found: f32, other: f32, bound: f64, what: &str) {
    let is_same = found == other || found.is_nan() && other.is_nan();
    let apart = (f64::from(found) - f64::from(other)).abs();
    assert!(
        is_same || bound.is_infinite() || apart <= bound,
        "{what}: {found:e} or {other:e}, not within {bound:e}"
    );
}

#[test]
fn any_order_is_within_the_bound() {
    let mut random = Random(7);
    let mut bounded = [0, 0];
    for round in 0..400 {
        let decades = [3.0, 12.0, 25.0, 35.0][round % 4];
        let xs = [0; 8].map(|_| random.number(decades));
        let product = |a: f32, b: f32| a * b;
        let linear = |(a, b): (f32, f32), (c, d): (f32, f32)| (a * c, c * b + d);
        let found = distances(&by("scan", PRODUCT), "f32", &xs).expect("it runs");
        let body = recurrence("v14 = fadd v4, v4 : f32[8]\n v13 = fsub v14, v4 : f32[8]");
        let found_linear = distances(&body, "f32", &xs).expect("it runs");
        let pairs = xs.map(|x| (x, x + x - x));
        for i in 0..8 {
            bounded[0] += u32::from(found[i].is_finite());
            bounded[1] += u32::from(found_linear[i].is_finite());
            let one = xs[..=i].iter().copied().reduce(product).expect("one");
            let other = pairs[..=i].iter().copied().reduce(linear).expect("one");
            for _ in 0..20 {
                let found_tree = tree(&xs[..=i], &mut random, &product);
                check(
                    one,
                    found_tree,
                    found[i],
                    &format!("product of {xs:?} to {i}"),
                );
                let found_tree = tree(&pairs[..=i], &mut random, &linear).1;
                check(
                    other.1,
                    found_tree,
                    found_linear[i],
                    &format!("recurrence of {xs:?} to {i}"),
                );
            }
        }
    }
    // Not by knowing nothing.
    assert!(bounded.iter().all(|&n| n > 1000), "{bounded:?}");
}
