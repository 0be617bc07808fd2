//! Numbers that the host knows when it launches a kernel: made of integer parameters, constants and the extents of the grid.
//!
//! They are those of the integers, without wrap. Equal expressions are one entry of the table, and what is always true folds.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::ir::entities::Value;

/// A number of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Host(u32);

/// How a number is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    /// A constant.
    Const(i64),
    /// A parameter of the kernel, of 8 to 64 bits with sign.
    Param(Value),
    /// A parameter of 8 or 16 bits without sign.
    Unsigned(Value),
    /// How many programs there are along an axis.
    Programs(u8),
    /// The sum.
    Add(Host, Host),
    /// The difference.
    Sub(Host, Host),
    /// The product.
    Mul(Host, Host),
    /// The quotient, rounded to zero.
    Div(Host, Host),
    /// The smaller one.
    Min(Host, Host),
    /// The larger one.
    Max(Host, Host),
}

/// That one number is not larger than another.
pub type Le = (Host, Host);

/// The table.
#[derive(Debug, Default)]
pub struct Hosts {
    nodes: Vec<Node>,
    known: FxHashMap<Node, Host>,
    /// What each one is in any launch.
    limits: Vec<(i128, i128)>,
}

impl Hosts {
    fn make(&mut self, node: Node, limits: (i128, i128)) -> Host {
        if let Some(&known) = self.known.get(&node) {
            return known;
        }
        let host = Host(self.nodes.len() as u32);
        self.nodes.push(node);
        // Far beyond what is computed with; products of these do not wrap.
        let far = i128::from(i64::MAX);
        self.limits.push((limits.0.max(-far), limits.1.min(far)));
        self.known.insert(node, host);
        host
    }

    /// How a number is made.
    pub fn node(&self, host: Host) -> Node {
        self.nodes[host.0 as usize]
    }

    /// How many numbers these are and are made of; each counts once.
    pub fn count(&self, of: impl IntoIterator<Item = Host>) -> usize {
        let mut todo: Vec<Host> = of.into_iter().collect();
        let mut seen: FxHashSet<Host> = FxHashSet::default();
        while let Some(host) = todo.pop() {
            if !seen.insert(host) {
                continue;
            }
            match self.node(host) {
                Node::Const(_) | Node::Param(_) | Node::Unsigned(_) | Node::Programs(_) => {}
                Node::Add(a, b)
                | Node::Sub(a, b)
                | Node::Mul(a, b)
                | Node::Div(a, b)
                | Node::Min(a, b)
                | Node::Max(a, b) => todo.extend([a, b]),
            }
        }
        seen.len()
    }

    fn limits(&self, host: Host) -> (i128, i128) {
        self.limits[host.0 as usize]
    }

    /// The smallest number that this can be.
    pub fn least(&self, host: Host) -> i128 {
        self.limits(host).0
    }

    /// The largest number that this can be.
    pub fn most(&self, host: Host) -> i128 {
        self.limits(host).1
    }

    /// The constant that this is.
    pub fn constant(&self, host: Host) -> Option<i64> {
        match self.node(host) {
            Node::Const(number) => Some(number),
            _ => None,
        }
    }

    /// A constant.
    pub fn number(&mut self, number: i64) -> Host {
        let limit = i128::from(number);
        self.make(Node::Const(number), (limit, limit))
    }

    /// A parameter of so many bits.
    pub fn param(&mut self, value: Value, bits: u32) -> Host {
        let most = (1_i128 << (bits - 1)) - 1;
        self.make(Node::Param(value), (-most - 1, most))
    }

    /// A parameter of so many bits without sign.
    pub fn unsigned(&mut self, value: Value, bits: u32) -> Host {
        self.make(Node::Unsigned(value), (0, (1_i128 << bits) - 1))
    }

    /// How many programs there are along an axis.
    pub fn programs(&mut self, axis: u8) -> Host {
        self.make(Node::Programs(axis), (1, i128::from(i32::MAX)))
    }

    /// The sum.
    pub fn add(&mut self, a: Host, b: Host) -> Host {
        if let (Some(x), Some(y)) = (self.constant(a), self.constant(b))
            && let Some(sum) = x.checked_add(y)
        {
            return self.number(sum);
        }
        match (self.node(a), self.node(b)) {
            (Node::Const(0), _) => return b,
            (_, Node::Const(0)) => return a,
            (Node::Const(_), _) => return self.add(b, a),
            (Node::Add(x, c), Node::Const(d)) => {
                if let Some(sum) = self.constant(c).and_then(|c| c.checked_add(d)) {
                    let sum = self.number(sum);
                    return self.add(x, sum);
                }
            }
            _ => {}
        }
        let ((la, ha), (lb, hb)) = (self.limits(a), self.limits(b));
        self.make(Node::Add(a, b), (la + lb, ha + hb))
    }

    /// The difference.
    pub fn sub(&mut self, a: Host, b: Host) -> Host {
        if a == b {
            return self.number(0);
        }
        if let Some(c) = self.constant(b).and_then(i64::checked_neg) {
            let c = self.number(c);
            return self.add(a, c);
        }
        if let Node::Add(x, c) = self.node(a)
            && x == b
        {
            return c;
        }
        let ((la, ha), (lb, hb)) = (self.limits(a), self.limits(b));
        self.make(Node::Sub(a, b), (la - hb, ha - lb))
    }

    /// The product.
    pub fn mul(&mut self, a: Host, b: Host) -> Host {
        if let (Some(x), Some(y)) = (self.constant(a), self.constant(b))
            && let Some(product) = x.checked_mul(y)
        {
            return self.number(product);
        }
        match (self.node(a), self.node(b)) {
            (Node::Const(0), _) | (_, Node::Const(1)) => return a,
            (Node::Const(1), _) | (_, Node::Const(0)) => return b,
            (Node::Const(_), _) => return self.mul(b, a),
            _ => {}
        }
        let ((la, ha), (lb, hb)) = (self.limits(a), self.limits(b));
        let corners = [la * lb, la * hb, ha * lb, ha * hb];
        let least = corners.into_iter().min().unwrap_or(0);
        let most = corners.into_iter().max().unwrap_or(0);
        self.make(Node::Mul(a, b), (least, most))
    }

    /// The quotient, rounded to zero.
    pub fn div(&mut self, a: Host, b: Host) -> Host {
        match (self.constant(a), self.constant(b)) {
            (_, Some(1)) => return a,
            (Some(x), Some(y)) => {
                if let Some(quotient) = x.checked_div(y) {
                    return self.number(quotient);
                }
            }
            _ => {}
        }
        let ((la, ha), (lb, hb)) = (self.limits(a), self.limits(b));
        let limits = match lb >= 1 {
            true if lb == hb => (la / lb, ha / lb),
            true => (la.min(0), ha.max(0) / lb),
            false => (la.min(-ha), ha.max(-la)),
        };
        self.make(Node::Div(a, b), limits)
    }

    /// The smaller one.
    pub fn min(&mut self, a: Host, b: Host) -> Host {
        if a == b || self.most(a) <= self.least(b) {
            return a;
        }
        if self.most(b) <= self.least(a) {
            return b;
        }
        let ((la, ha), (lb, hb)) = (self.limits(a), self.limits(b));
        self.make(Node::Min(a, b), (la.min(lb), ha.min(hb)))
    }

    /// The larger one.
    pub fn max(&mut self, a: Host, b: Host) -> Host {
        if a == b || self.least(a) >= self.most(b) {
            return a;
        }
        if self.least(b) >= self.most(a) {
            return b;
        }
        let ((la, ha), (lb, hb)) = (self.limits(a), self.limits(b));
        self.make(Node::Max(a, b), (la.max(lb), ha.max(hb)))
    }

    /// That `a <= b`, as what is left to check: nothing if that is always so. None if it never is.
    pub fn le(&self, a: Host, b: Host) -> Option<Option<Le>> {
        let is_smaller_of = matches!(self.node(a), Node::Min(x, y) if x == b || y == b);
        if a == b || is_smaller_of || self.most(a) <= self.least(b) {
            return Some(None);
        }
        (self.least(a) <= self.most(b)).then_some(Some((a, b)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_always_so_folds() {
        let mut hosts = Hosts::default();
        let programs = hosts.programs(0);
        let minus_one = hosts.number(-1);
        let last = hosts.add(programs, minus_one);
        let zero = hosts.number(0);
        assert_eq!(hosts.sub(last, last), zero);
        assert_eq!(hosts.le(zero, last), Some(None));
        let one = hosts.number(1);
        assert_eq!(hosts.add(last, one), programs);
        let n = hosts.param(Value::from_u32(1), 32);
        assert_eq!(hosts.le(one, n), Some(Some((one, n))));
        let smaller = hosts.min(one, n);
        assert_eq!(hosts.le(smaller, n), Some(None));
        let many = hosts.number(1 << 40);
        assert_eq!(hosts.le(many, n), None);
        let sum = hosts.add(n, one);
        assert_eq!(hosts.sub(sum, n), one);
        assert_eq!(hosts.min(n, many), n);
    }

    #[test]
    fn quotients_have_limits() {
        let mut hosts = Hosts::default();
        let n = hosts.param(Value::from_u32(1), 8);
        let (one, three, ten) = (hosts.number(1), hosts.number(3), hosts.number(10));
        // By 3 to 10: of -128 to 127 that is -128 to 42, as far as it is known.
        let some = hosts.max(n, three);
        let divisor = hosts.min(some, ten);
        let quotient = hosts.div(n, divisor);
        assert_eq!(hosts.limits(quotient), (-128, 42));
        // By a number of either sign.
        let by_any = hosts.div(ten, n);
        assert_eq!(hosts.limits(by_any), (-10, 10));
        let by_three = hosts.div(n, three);
        assert_eq!(hosts.limits(by_three), (-42, 42));
        assert_eq!(hosts.div(n, one), n);
    }
}
