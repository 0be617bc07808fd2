//! Kernels of typed handles: every operator leaves what the same one of Rust does.

use tilelift::ir::typed::{KernelBuilder, Num, Ptr};
use tilelift::runtime::Program;
use tilelift::testing::{Case, emulator};

const LEN: usize = 16;

/// Runs a kernel over two blocks that writes rows of as many elements.
macro_rules! check {
    ($ty:ty, $x:expr, $y:expr, |$a:ident, $b:ident| $rows:expr, $expected:expr) => {
        let k = KernelBuilder::new("rows", 1);
        let [x, y, out] = ["x", "y", "out"].map(|name| k.pointer::<$ty>(name, 16));
        let shift = k.number::<i32>("shift");
        let i = k.range(LEN as u64) + k.program_id(0) + shift;
        let ($a, $b) = ((x + i).load(), (y + i).load());
        let rows: Vec<Num<'_, $ty>> = $rows;
        let expected: Vec<[$ty; LEN]> = $expected;
        assert_eq!(rows.len(), expected.len());
        for (at, &row) in rows.iter().enumerate() {
            let to: Ptr<'_, $ty> = out + (i + (at * LEN) as i32);
            to.store_if(i.ge(0), row);
        }
        let program = Program::function(k.finish().expect("it fits")).expect("it is right");
        let kernel = emulator().kernel(&program, None).expect("there is one");
        let case = Case::new(&kernel, 1).input(&$x).input(&$y);
        let case = case.output(LEN * expected.len(), |at| expected[at / LEN][at % LEN]);
        case.value(0).check().expect("each row is as in Rust");
    };
}

/// A row of what Rust makes of the two blocks.
fn row<T: Copy>(x: &[T; LEN], y: &[T; LEN], of: impl Fn(T, T) -> T) -> [T; LEN] {
    std::array::from_fn(|at| of(x[at], y[at]))
}

#[test]
fn whole_numbers_are_those_of_rust() {
    let x: [i32; LEN] = std::array::from_fn(|at| 7 * at as i32 - 50);
    let y: [i32; LEN] = std::array::from_fn(|at| if at % 3 == 0 { -3 } else { at as i32 + 1 });
    check!(
        i32,
        x,
        y,
        |a, b| {
            let (less, even) = (a.lt(b), (a % 2).eq(0));
            vec![
                a / b,
                a % b,
                -a,
                100 - a * b,
                a.max(b),
                a.min(b),
                less.select(a, b + 1),
                (!less).select(1, a),
                (less & even).select(1, 0),
                (less | even).select(1, 0),
                a.le(-1).select(a.ne(b).select(2, 3), a.gt(b).select(4, 5)),
                a - a.sum(0),
                b - b.largest(0),
            ]
        },
        vec![
            row(&x, &y, |a, b| a / b),
            row(&x, &y, |a, b| a % b),
            row(&x, &y, |a, _| -a),
            row(&x, &y, |a, b| 100 - a * b),
            row(&x, &y, Ord::max),
            row(&x, &y, Ord::min),
            row(&x, &y, |a, b| if a < b { a } else { b + 1 }),
            row(&x, &y, |a, b| if a < b { a } else { 1 }),
            row(&x, &y, |a, b| i32::from(a < b && a % 2 == 0)),
            row(&x, &y, |a, b| i32::from(a < b || a % 2 == 0)),
            row(&x, &y, |a, b| match (a <= -1, a == b, a > b) {
                (true, false, _) => 2,
                (true, true, _) => 3,
                (false, _, true) => 4,
                (false, _, false) => 5,
            }),
            row(&x, &y, |a, _| a - x.iter().sum::<i32>()),
            row(&x, &y, |_, b| b - 15),
        ]
    );
}

#[test]
fn floats_are_those_of_rust() {
    // Powers of two, so that quotients and roots are exact.
    let x: [f64; LEN] = std::array::from_fn(|at| 4.0_f64.powi(at as i32 - 5));
    let mut y: [f64; LEN] = std::array::from_fn(|at| if at % 2 == 0 { -0.5 } else { 8.0 });
    y[3] = f64::NAN;
    check!(
        f64,
        x,
        y,
        |a, b| vec![
            a / 2.0,
            1.0 / a,
            -a,
            a.sqrt(),
            a.max(b),
            a.min(b),
            a.lt(b).select(1.0, 0.0),
            b.ne(b).select(1.0, 0.0),
            a / a.sum(0),
            a - b.largest(0),
        ],
        vec![
            row(&x, &y, |a, _| a / 2.0),
            row(&x, &y, |a, _| 1.0 / a),
            row(&x, &y, |a, _| -a),
            row(&x, &y, |a, _| a.sqrt()),
            // The number, where one is NaN.
            row(&x, &y, f64::max),
            row(&x, &y, f64::min),
            row(&x, &y, |a, b| f64::from(u8::from(a < b))),
            row(&x, &y, |_, b| f64::from(u8::from(b.is_nan()))),
            row(&x, &y, |a, _| a / x.iter().sum::<f64>()),
            row(&x, &y, |a, _| a - 8.0),
        ]
    );
}
