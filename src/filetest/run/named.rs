//! Addresses in the words of who wrote a kernel.

use super::exec::{ArgValue, Argument};

/// Bytes beside a buffer that an address is still named by.
const NEAR_BYTES: u64 = 1 << 20;

/// What an address is in terms of arguments, whose buffers lie at these addresses.
pub(super) fn named_address(args: &[Argument], addresses: &[u64], address: u64) -> String {
    let buffers = args.iter().zip(addresses).filter_map(|(arg, &start)| {
        let ArgValue::Buffer { scalar, count, .. } = &arg.it else {
            return None;
        };
        let size = u64::from(scalar.bytes());
        let end = start + size * *count as u64;
        let distance = start.saturating_sub(address) + address.saturating_sub(end);
        let index = (address as i64)
            .wrapping_sub(start as i64)
            .div_euclid(size as i64);
        (distance < NEAR_BYTES).then_some((distance, &arg.name, index, *count))
    });
    match buffers.min_by_key(|&(distance, ..)| distance) {
        Some((_, name, index, count)) => {
            format!("; that is `{name}`[{index}], and `{name}` has {count} elements")
        }
        None => String::new(),
    }
}
