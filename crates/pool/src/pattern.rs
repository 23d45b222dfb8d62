//! The order in which a zone's arrays take their turns.

use crate::PATTERN_MAX;

/// For each place of the pattern: which array (index in `weights`) and how many of that array's places
/// came before.
///
/// The rule is part of the format (docs/formats/config.md). It is that of a fair schedule of periodic
/// tasks on one processor: the k-th place of an array (from 0) may not come before place
/// floor(k·W/w) and should come before place ceil((k+1)·W/w), with w its weight and W the sum; each
/// place goes to the array whose next one is due first, the lower index at a tie. So after any number
/// of places, each array has its share to within less than one place, and no stretch leaves an array out;
/// simple round robin by weight (all of the first, then all of the second) would send bursts.
pub(crate) fn pattern(weights: &[u32]) -> Vec<(u16, u16)> {
    let sum: u64 = weights.iter().map(|w| u64::from(*w)).sum();
    let mut taken = vec![0u64; weights.len()];
    (0..sum)
        .map(|place| {
            let due = |i: usize| ((taken[i] + 1) * sum).div_ceil(u64::from(weights[i]));
            let next = (0..weights.len())
                .filter(|i| taken[*i] * sum / u64::from(weights[*i]) <= place)
                .min_by_key(|i| (due(*i), *i))
                .expect("shares add up to one, so somebody is behind");
            taken[next] += 1;
            (next as u16, (taken[next] - 1) as u16)
        })
        .collect()
}

/// The same shares in the smallest numbers, at most `PATTERN_MAX` together.
pub(crate) fn reduce(weights: &[u32]) -> Vec<u32> {
    let mut weights = weights.to_vec();
    let sum: u32 = weights.iter().sum();
    if sum > PATTERN_MAX {
        for w in &mut weights {
            *w = (*w * PATTERN_MAX / sum).max(1);
        }
    }
    let divisor = weights.iter().copied().fold(0, gcd);
    weights.iter().map(|w| w / divisor.max(1)).collect()
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Prng;

    #[test]
    fn equal_weights_take_turns() {
        assert_eq!(pattern(&[1, 1, 1]), [(0, 0), (1, 0), (2, 0)]);
        assert_eq!(reduce(&[6, 6, 3]), [2, 2, 1]);
    }

    #[test]
    fn every_window_is_shared_by_weight_to_within_two_places() {
        for seed in 0..200 {
            let mut rng = Prng::new(seed);
            let weights: Vec<u32> = (0..rng.between(1, 9)).map(|_| rng.between(1, 20) as u32).collect();
            let sum: u32 = weights.iter().sum();
            let twice: Vec<usize> =
                pattern(&weights).iter().chain(&pattern(&weights)).map(|(a, _)| usize::from(*a)).collect();
            for (i, w) in weights.iter().enumerate() {
                let mut prefix = vec![0i64];
                for a in &twice {
                    prefix.push(prefix.last().expect("starts with 0") + i64::from(*a == i));
                }
                assert_eq!(prefix[sum as usize], i64::from(*w), "each array has exactly its share of a turn");
                for from in 0..twice.len() {
                    for to in from..=twice.len() {
                        let share = (to - from) as f64 * f64::from(*w) / f64::from(sum);
                        let got = (prefix[to] - prefix[from]) as f64;
                        assert!((share - got).abs() < 2.0, "{weights:?}: {got} of {share} in {from}..{to}");
                    }
                }
            }
        }
    }

    #[test]
    fn many_heavy_arrays_still_fit_the_table() {
        let reduced = reduce(&[64; 128]);
        assert_eq!(reduced, [1; 128]);
        let mut mixed = vec![64; 64];
        mixed.extend([1; 64]);
        assert!(reduce(&mixed).iter().sum::<u32>() <= PATTERN_MAX + 64);
    }
}
