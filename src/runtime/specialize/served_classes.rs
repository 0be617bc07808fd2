//! The classes of arguments that a variant serves: all with which the compiler would have made the same code.

use crate::ir::function::Asked;

use crate::runtime::specialize::arg_tree;
use crate::runtime::specialize::class::{PLAIN, PROMISE};
use crate::runtime::specialize::class_key::Classes;

/// Classes between two that differ in promises alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Served {
    /// With the promises that the code needs, and no others. A variant is kept by these.
    pub(crate) least: Classes,
    most: Classes,
}

impl Served {
    /// Those of a kernel that was compiled for `classes`, by what was asked for of each parameter of the function.
    pub(crate) fn new(classes: &Classes, asked: &[Asked]) -> Served {
        let [least, most] = arg_tree::bounds(classes, asked);
        Served { least, most }
    }

    /// Whether these are among them.
    pub(crate) fn holds(&self, classes: &Classes) -> bool {
        let bounds = self.least.iter().zip(self.most.iter());
        let is_between = |(class, (least, most)): (u8, (u8, u8))| {
            let promises = least & PROMISE..=most & PROMISE;
            class & PLAIN == least & PLAIN && promises.contains(&(class & PROMISE))
        };
        self.least.len() == classes.len() && classes.iter().zip(bounds).all(is_between)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::api::argument::ArgList;
    use crate::runtime::specialize::class::Specialize;
    use crate::runtime::{DType, Descriptor, NONE, Pointer};

    fn classes(size: i32, width: u64, count: i32) -> Classes {
        let pointer = Pointer::null(DType::F16);
        let empty = Descriptor::new(pointer, &[0, width], &[0, 1], &[4, 16]);
        let mut args = ArgList::new();
        args.push(pointer);
        args.push((size, NONE, 1.5_f32));
        args.push(empty.expect("a tensor without rows needs no memory"));
        args.push(count);
        let args = args.into_vec();
        arg_tree::classify(&args, &[Specialize::ALL; 4]).expect("the parts are there")
    }

    #[test]
    fn what_was_asked_for_decides_and_nothing_else() {
        let between = |least, most| Asked { least, most };
        let asked = [
            between(4, 4),  // the pointer
            between(2, 9),  // the tuple's integer
            Asked::NOTHING, // its float
            between(4, 4),  // the descriptor's address
            Asked::NOTHING, // its sizes
            between(0, 1),
            Asked::NOTHING, // the row's stride
            between(1, 2),  // the last integer
        ];
        let served = Served::new(&classes(8, 6, 4), &asked);
        for (size, width, count, expected) in [
            (8, 6, 4, true),
            (16, 6, 4, true),
            (4, 6, 4, true),
            (2, 6, 4, false),
            (1, 6, 4, false),
            (8, 3, 4, true),
            (8, 4, 4, false),
            (8, 6, 2, true),
            (8, 6, 8, false),
            (8, 6, 3, false),
            (8, 6, 1, false),
        ] {
            let found = served.holds(&classes(size, width, count));
            assert_eq!(found, expected, "{size} {width} {count}");
        }
        // What has fewer promises is kept under the same.
        assert_eq!(served.least, Served::new(&classes(4, 1, 2), &asked).least);
        assert!(served.holds(&served.least));
        // A constant is one for good.
        let constant = Served::new(&classes(1, 6, 4), &asked[1..]);
        assert!(constant.holds(&classes(1, 6, 4)) && !constant.holds(&classes(8, 6, 4)));
    }
}
