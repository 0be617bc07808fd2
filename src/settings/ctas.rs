//! Programs that ask for several CTAs.
//!
//! A cluster divides a program's blocks among the threads of its CTAs; what it computes does not depend on it. So does one CTA
//! with the threads of all.

/// Lanes of a warp.
pub(crate) const LANES: u32 = 32;

/// Most warps of a CTA.
pub(crate) const MOST_WARPS: u32 = 32;

/// Warps of a program that asks for `num_warps` warps of each of `num_ctas` CTAs, or what is wrong with that. Whether
/// `num_warps` is possible by itself is looked at elsewhere.
pub(crate) fn program_warps(num_warps: u32, num_ctas: u32) -> Result<u32, String> {
    if !num_ctas.is_power_of_two() || num_ctas > MOST_WARPS {
        return Err(format!(
            "{num_ctas} CTAs for one program; 1, 2, 4, 8, 16 or 32 are possible"
        ));
    }
    let warps = num_warps.saturating_mul(num_ctas);
    if warps > MOST_WARPS {
        let fewer = MOST_WARPS / num_ctas;
        return Err(format!(
            "{num_ctas} CTAs of {num_warps} warps run as one of {warps}, more than the {MOST_WARPS} that a CTA has \
             (1,024 threads); use {fewer} warps, or fewer CTAs"
        ));
    }
    Ok(warps)
}

/// What whoever asks for several CTAs is told.
pub(crate) fn one_cta(num_ctas: u32) -> String {
    format!(
        "a program for {num_ctas} CTAs runs in one of {num_ctas} times the warps; the results are the same"
    )
}

#[cfg(test)]
mod tests {
    use super::program_warps;

    #[test]
    fn all_warps_have_to_fit_into_one_cta() {
        for (warps, ctas, all) in [(4, 1, 4), (4, 2, 8), (8, 4, 32), (1, 32, 32)] {
            assert_eq!(program_warps(warps, ctas), Ok(all));
        }
        for (warps, ctas, words) in [
            (4, 0, "0 CTAs for one program; 1, 2,"),
            (4, 3, "3 CTAs for one program"),
            (4, 64, "64 CTAs for one program"),
            (
                8,
                8,
                "8 CTAs of 8 warps run as one of 64, more than the 32 that a CTA has (1,024 threads); use 4 warps, or",
            ),
            (u32::MAX, 2, "use 16 warps"),
        ] {
            let message = program_warps(warps, ctas).expect_err("they do not fit");
            assert!(message.contains(words), "{message}");
        }
    }
}
