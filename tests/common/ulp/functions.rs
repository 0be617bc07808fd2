//! The functions, with their references and the errors that they may have.

use tilelift::ir::builder::TileBuilder;
use tilelift::ir::entities::Value;

use super::{Big, Build, Function, big};

/// Every accurate function.
pub(crate) fn functions() -> Vec<Function> {
    fn one(
        name: &'static str,
        op: fn(&mut TileBuilder, Value) -> Value,
        bounds: [f64; 2],
        range: [f64; 2],
        host: fn(f64, f64) -> f64,
        exact: fn(&Big, &Big) -> Option<Big>,
    ) -> Function {
        Function {
            name,
            build: Build::One(op),
            bounds: bounds.map(Some),
            range,
            host,
            exact,
        }
    }
    fn two(
        name: &'static str,
        op: fn(&mut TileBuilder, Value, Value) -> Value,
        bounds: [f64; 2],
        range: [f64; 2],
        host: fn(f64, f64) -> f64,
        exact: fn(&Big, &Big) -> Option<Big>,
    ) -> Function {
        Function {
            build: Build::Two(op),
            ..one(name, TileBuilder::exp, bounds, range, host, exact)
        }
    }
    type B = TileBuilder;
    let double_only = |f: Function| Function {
        bounds: [None, f.bounds[1]],
        ..f
    };
    vec![
        one(
            "exp_precise",
            B::exp_precise,
            [2.1, 1.0],
            [-5.0, 5.0],
            |x, _| x.exp(),
            |x, _| Some(x.exp()),
        ),
        one(
            "exp_precise (wide)",
            B::exp_precise,
            [2.1, 1.0],
            [-110.0, 90.0],
            |x, _| x.exp(),
            |x, _| Some(x.exp()),
        ),
        double_only(one(
            "exp",
            B::exp,
            [1.0, 1.0],
            [-750.0, 712.0],
            |x, _| x.exp(),
            |x, _| Some(x.exp()),
        )),
        double_only(one(
            "exp2",
            B::exp2,
            [1.0, 1.0],
            [-20.0, 20.0],
            |x, _| x.exp2(),
            |x, _| Some(big(2.0).powf(x)),
        )),
        one(
            "exp10",
            B::exp10,
            [2.1, 1.0],
            [-46.0, 39.0],
            |x, _| libm::exp10(x),
            |x, _| Some(big(10.0).powf(x)),
        ),
        one(
            "expm1",
            B::expm1,
            [1.5, 1.0],
            [-3.0, 3.0],
            |x, _| x.exp_m1(),
            |x, _| Some(x.exp_m1()),
        ),
        one(
            "log",
            B::log,
            [1.0, 1.0],
            [0.4, 2.5],
            |x, _| x.ln(),
            |x, _| Some(x.ln()),
        ),
        one(
            "log2",
            B::log2,
            [1.1, 1.0],
            [0.4, 2.5],
            |x, _| x.log2(),
            |x, _| Some(x.log2()),
        ),
        one(
            "log10",
            B::log10,
            [2.0, 1.3],
            [0.4, 2.5],
            |x, _| x.log10(),
            |x, _| Some(x.log10()),
        ),
        one(
            "log1p",
            B::log1p,
            [1.1, 1.0],
            [-0.9, 3.0],
            |x, _| x.ln_1p(),
            |x, _| Some(x.ln_1p()),
        ),
        two("pow", B::pow, [2.0, 2.0], [0.0, 30.0], f64::powf, |x, y| {
            (*x > Big::ZERO).then(|| x.powf(y))
        }),
        one(
            "sin",
            B::sin,
            [2.0, 2.0],
            [-10.0, 10.0],
            |x, _| x.sin(),
            |x, _| Some(x.sin()),
        ),
        one(
            "cos",
            B::cos,
            [2.0, 2.0],
            [-10.0, 10.0],
            |x, _| x.cos(),
            |x, _| Some(x.cos()),
        ),
        one(
            "tan",
            B::tan,
            [4.0, 2.0],
            [-10.0, 10.0],
            |x, _| x.tan(),
            |x, _| Some(x.tan()),
        ),
        one(
            "sin (far)",
            B::sin,
            [2.0, 2.0],
            [-1e5, 1e5],
            |x, _| x.sin(),
            |x, _| Some(x.sin()),
        ),
        one(
            "cos (very far)",
            B::cos,
            [2.0, 2.0],
            [-1e12, 1e12],
            |x, _| x.cos(),
            |x, _| Some(x.cos()),
        ),
        one(
            "asin",
            B::asin,
            [2.1, 2.1],
            [-1.0, 1.0],
            |x, _| x.asin(),
            |x, _| Some(x.asin()),
        ),
        one(
            "acos",
            B::acos,
            [2.0, 2.0],
            [-1.0, 1.0],
            |x, _| x.acos(),
            |x, _| Some(x.acos()),
        ),
        one(
            "atan",
            B::atan,
            [2.0, 2.0],
            [-4.0, 4.0],
            |x, _| x.atan(),
            |x, _| Some(x.atan()),
        ),
        two(
            "atan2",
            B::atan2,
            [3.0, 2.0],
            [-3.0, 3.0],
            f64::atan2,
            |y, x| (*x != Big::ZERO).then(|| y.atan2(x)),
        ),
        one(
            "sinh",
            B::sinh,
            [3.0, 2.0],
            [-4.0, 4.0],
            |x, _| x.sinh(),
            |x, _| Some(x.sinh()),
        ),
        one(
            "cosh",
            B::cosh,
            [2.0, 1.0],
            [-4.0, 4.0],
            |x, _| x.cosh(),
            |x, _| Some(x.cosh()),
        ),
        one(
            "tanh",
            B::tanh,
            [2.0, 1.0],
            [-4.0, 4.0],
            |x, _| x.tanh(),
            |x, _| Some(x.tanh()),
        ),
        one(
            "asinh",
            B::asinh,
            [3.0, 3.0],
            [-4.0, 4.0],
            |x, _| libm::asinh(x),
            |x, _| Some(x.asinh()),
        ),
        one(
            "acosh",
            B::acosh,
            [4.0, 3.0],
            [1.0, 4.0],
            |x, _| if x < 1.0 { f64::NAN } else { libm::acosh(x) },
            |x, _| Some(x.acosh()),
        ),
        one(
            "atanh",
            B::atanh,
            [3.0, 2.0],
            [-1.0, 1.0],
            |x, _| libm::atanh(x),
            |x, _| Some(x.atanh()),
        ),
        one(
            "erf",
            B::erf,
            [2.0, 2.0],
            [-4.0, 4.0],
            |x, _| libm::erf(x),
            |x, _| (x.to_f64().value().abs() < 6.0).then(|| erf(x)),
        ),
        one(
            "erfc",
            B::erfc,
            [4.0, 5.0],
            [-4.0, 9.0],
            |x, _| libm::erfc(x),
            |_, _| None,
        ),
        one(
            "erfinv",
            B::erfinv,
            [2.0, 3.0],
            [-1.0, 1.0],
            |x, _| erfinv(x),
            |_, _| None,
        ),
        one(
            "lgamma",
            B::lgamma,
            [4.0, 4.0],
            [0.0, 12.0],
            |x, _| libm::lgamma(x),
            |_, _| None,
        ),
        one(
            "lgamma (below 0)",
            B::lgamma,
            [16.0, 16.0],
            [-12.0, 0.0],
            |x, _| libm::lgamma(x),
            |_, _| None,
        ),
        one(
            "cbrt",
            B::cbrt,
            [1.0, 1.0],
            [-4.0, 4.0],
            |x, _| x.cbrt(),
            |x, _| Some(x.nth_root(3)),
        ),
        two(
            "hypot",
            B::hypot,
            [3.0, 2.0],
            [-4.0, 4.0],
            f64::hypot,
            |x, y| Some(x.hypot(y)),
        ),
        double_only(one(
            "rsqrt",
            B::rsqrt,
            [1.0, 1.0],
            [0.0, 4.0],
            |x, _| 1.0 / x.sqrt(),
            |x, _| (*x > Big::ZERO).then(|| big(1.0) / x.sqrt()),
        )),
        double_only(one(
            "sqrt",
            B::sqrt,
            [0.5, 0.5],
            [0.0, 4.0],
            |x, _| x.sqrt(),
            |x, _| (*x > Big::ZERO).then(|| x.sqrt()),
        )),
        double_only(one(
            "rcp",
            B::rcp,
            [0.5, 0.5],
            [-4.0, 4.0],
            |x, _| 1.0 / x,
            |x, _| Some(big(1.0) / x),
        )),
        one(
            "round",
            B::round,
            [0.0, 0.0],
            [-5.0, 5.0],
            |x, _| x.round(),
            |_, _| None,
        ),
        two(
            "frem",
            B::frem,
            [0.0, 0.0],
            [-50.0, 50.0],
            |x, y| x % y,
            |_, _| None,
        ),
    ]
}

/// The ops that are the machine's or exact, beside [`functions`]: what a GPU computes of them is measured, too.
pub(crate) fn machine_functions() -> Vec<Function> {
    let exact = |_: &Big, _: &Big| None;
    let one = |name, op, bounds, range, host| Function {
        name,
        build: Build::One(op),
        bounds,
        range,
        host,
        exact,
    };
    let two = |name, op, bounds, range, host| Function {
        name,
        build: Build::Two(op),
        bounds,
        range,
        host,
        exact,
    };
    type B = TileBuilder;
    let single = |bound| [Some(bound), None];
    let both = |bound| [Some(bound), Some(bound)];
    let near = [-10.0, 10.0];
    vec![
        one("exp", B::exp, single(2.1), near, |x, _| x.exp()),
        one("exp2", B::exp2, single(2.1), near, |x, _| x.exp2()),
        // 2^-22.9 and 2^-23 of a number just below a power of two are 2.14 and 2 units.
        one("rsqrt", B::rsqrt, single(2.14), near, |x, _| 1.0 / x.sqrt()),
        one("sqrt", B::sqrt, single(2.0), near, |x, _| x.sqrt()),
        one("rcp", B::rcp, single(1.0), near, |x, _| 1.0 / x),
        one("rcp_ftz", B::rcp_ftz, single(1.0), near, |x, _| 1.0 / x),
        // In units of the bound's 2^-22.
        one("log2_approx", B::log2_approx, single(1.0), near, |x, _| {
            x.log2()
        }),
        // In units of 2^-23, of which 2^-20.4 are 6.06.
        one("sin_approx", B::sin_approx, single(6.06), near, |x, _| {
            x.sin()
        }),
        one("cos_approx", B::cos_approx, single(6.06), near, |x, _| {
            x.cos()
        }),
        one("sqrt_rn", B::sqrt_rn, both(0.5), near, |x, _| x.sqrt()),
        one("floor", B::floor, both(0.0), near, |x, _| x.floor()),
        one("ceil", B::ceil, both(0.0), near, |x, _| x.ceil()),
        one("rint", B::rint, both(0.0), near, |x, _| x.round_ties_even()),
        one("trunc", B::trunc, both(0.0), near, |x, _| x.trunc()),
        two("fdiv", B::fdiv, single(2.1), near, |x, y| x / y),
        two("fdiv_rn", B::fdiv_rn, both(0.5), near, |x, y| x / y),
    ]
}

/// The inverse of the error function by Newton's iteration.
fn erfinv(x: f64) -> f64 {
    let a = x.abs();
    if x.is_nan() || a >= 1.0 || a == 0.0 {
        return if a <= 1.0 { x / (1.0 - a) } else { f64::NAN };
    }
    let rate = 2.0 / std::f64::consts::PI.sqrt();
    let rest = 1.0 - a;
    let mut y = if a < 0.5 {
        a / rate
    } else {
        (-rest.ln()).sqrt() - 0.25
    };
    for _ in 0..10 {
        let slope = rate * (-y * y).exp();
        // Of the complement where it has more digits.
        y -= if a < 0.5 {
            (libm::erf(y) - a) / slope
        } else {
            libm::erfc(y) * (rest / libm::erfc(y)).ln() / slope
        };
    }
    y.copysign(x)
}

/// The error function by its series of positive terms.
fn erf(x: &Big) -> Big {
    let precision = 200;
    let x = x.clone().with_precision(precision).value();
    let square = &x * &x;
    let two = big(2.0).with_precision(precision).value();
    let (mut term, mut sum) = (x.clone(), x.clone());
    let small = sum.to_f64().value().abs() * 1e-45;
    for n in 1..2000 {
        let n = big(f64::from(2 * n + 1)).with_precision(precision).value();
        term = term * &two * &square / n;
        sum += &term;
        if term.to_f64().value().abs() < small {
            break;
        }
    }
    let pi = Big::pi(precision);
    let scale = two / pi.sqrt();
    scale * sum * (-square).exp()
}
