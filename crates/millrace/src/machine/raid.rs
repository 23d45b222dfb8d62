//! Words of other arrays in a layout (`raid1`, `raidz`, `stripe`): the command of ours that makes what they mean.

use crate::failure::Failure;
use crate::words::topology::quoted;
use finding::CommandFault;
use std::path::Path;

/// What a word of another array means here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Meaning {
    /// Every drive holds all data.
    Mirror,
    /// Mirrors, striped.
    Mirrors,
    /// No redundancy.
    Stripe,
    /// Parity, which is not here.
    Parity,
}

/// What `word` means elsewhere; None for a word of ours, and for what may be a drive.
fn meaning(word: &str) -> Option<Meaning> {
    let word = word.to_ascii_lowercase();
    let numbered = |stem: &str| {
        word.strip_prefix(stem).is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    match word.as_str() {
        "raid1" | "raid-1" | "mirrored" => Some(Meaning::Mirror),
        "raid10" | "raid-10" | "raid1+0" | "raid01" | "raid0+1" | "raid1e" => Some(Meaning::Mirrors),
        "raid0" | "raid-0" | "stripe" | "striped" | "stripes" | "jbod" | "concat" | "linear" => {
            Some(Meaning::Stripe)
        }
        "parity" | "draid" | "draid1" | "draid2" | "draid3" => Some(Meaning::Parity),
        // ZFS names its mirrors so.
        _ if numbered("mirror-") => Some(Meaning::Mirror),
        _ if word.starts_with("raid") => Some(Meaning::Parity),
        _ => None,
    }
}

/// Drives in mirrors of two; of an odd number the last mirror has three.
fn pairs(drives: &[String]) -> Vec<String> {
    let mut groups: Vec<Vec<String>> = drives.chunks_exact(2).map(<[_]>::to_vec).collect();
    if let Some(last) = groups.last_mut() {
        last.extend(drives.chunks_exact(2).remainder().iter().cloned());
    }
    groups.into_iter().flat_map(|g| std::iter::once("mirror".to_string()).chain(g)).collect()
}

/// The words of ours for one word of another array and the drives behind it; None where there are too few drives.
fn ours(meaning: Meaning, drives: &[String]) -> Option<Vec<String>> {
    match (meaning, drives.len()) {
        (Meaning::Stripe, 1..) => {
            Some(std::iter::once("single".to_string()).chain(drives.iter().cloned()).collect())
        }
        (Meaning::Mirror, 2..=4) => {
            Some(std::iter::once("mirror".to_string()).chain(drives.iter().cloned()).collect())
        }
        (Meaning::Mirror | Meaning::Mirrors | Meaning::Parity, 2..) => Some(pairs(drives)),
        _ => None,
    }
}

/// Refuses a layout that has words of other arrays, with the command that makes what is meant. `command`: what stands
/// before the layout, such as `millrace pool create tank`.
pub fn refuse_raid_words(layout: &[String], command: &str) -> Result<(), Failure> {
    let is_word = |word: &String| ![".", "/dev"].iter().any(|at| Path::new(at).join(word).exists());
    let of = |word: &String| if is_word(word) { meaning(word) } else { None };
    let Some((first, what)) = layout.iter().find_map(|w| Some((w, of(w)?))) else { return Ok(()) };
    let why = match what {
        Meaning::Mirror => "is called mirror here",
        Meaning::Mirrors => "is several mirrors here, which are always striped together",
        Meaning::Stripe => "needs no word here: all drives and mirrors of a pool are striped together",
        Meaning::Parity => {
            "is not possible: there is no parity here, redundancy comes from mirrors of 2 to 4 drives"
        }
    };
    let refused = Failure::usage(format!("{first} {why}")).with_code(CommandFault::RaidLevelName);
    let mut words: Vec<String> = Vec::new();
    let mut rest = layout;
    while let Some((word, behind)) = rest.split_first() {
        let end = behind.iter().position(|w| of(w).is_some() || is_ours(w)).unwrap_or(behind.len());
        match of(word) {
            Some(what) => match ours(what, &behind[..end]) {
                Some(made) => words.extend(made),
                None => {
                    let most = if what == Meaning::Stripe { "one drive" } else { "two drives" };
                    let example = if what == Meaning::Stripe { "DRIVE" } else { "mirror DRIVE DRIVE" };
                    return Err(Failure {
                        message: format!("{}, and needs at least {most}", refused.message),
                        ..refused
                    }
                    .with_next(format!("{command} {example}")));
                }
            },
            None => words.extend(std::iter::once(word).chain(&behind[..end]).cloned()),
        }
        rest = &behind[end..];
    }
    // Drives before the first word are single without saying so.
    if words.iter().all(|w| w == "single" || !is_ours(w)) {
        words.retain(|w| w != "single");
    }
    let words: Vec<String> = words.iter().map(|w| quoted(w)).collect();
    Err(refused.with_next(format!("{command} {}", words.join(" "))))
}

fn is_ours(word: &str) -> bool {
    matches!(word, "mirror" | "mirrors" | "single" | "spare" | "leg")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(layout: &str) -> Failure {
        let words: Vec<String> = layout.split(' ').map(String::from).collect();
        refuse_raid_words(&words, "millrace pool create p").expect_err(layout)
    }

    #[test]
    fn words_of_other_arrays_are_answered_with_the_command_that_makes_what_they_mean() {
        for (layout, words) in [
            ("raid1 a b", "mirror a b"),
            ("RAID1 a b c", "mirror a b c"),
            ("raid1 a b c d e f", "mirror a b mirror c d mirror e f"),
            ("mirror-2 a b", "mirror a b"),
            ("mirror-0 a b mirror-1 c d", "mirror a b mirror c d"),
            ("raid10 a b c d", "mirror a b mirror c d"),
            ("raid0 a b", "a b"),
            ("stripe a b c", "a b c"),
            ("raid5 a b c", "mirror a b c"),
            ("raid6 a b c d e", "mirror a b mirror c d e"),
            ("raidz a b c d", "mirror a b mirror c d"),
            ("raidz2 a b", "mirror a b"),
            ("mirror a b stripe c", "mirror a b single c"),
        ] {
            let failure = refused(layout);
            assert_eq!(
                failure.next.as_deref(),
                Some(&*format!("millrace pool create p {words}")),
                "{layout}"
            );
            assert_eq!(failure.code.as_deref(), Some("raid_level_name"));
        }
        assert!(refused("raid5 a b c").message.contains("there is no parity here"));
        let few = refused("raid1 a");
        assert!(few.message.ends_with("needs at least two drives"), "{few}");
        assert_eq!(few.next.as_deref(), Some("millrace pool create p mirror DRIVE DRIVE"));
        let few = refused("stripe");
        assert_eq!(few.next.as_deref(), Some("millrace pool create p DRIVE"));
    }

    #[test]
    fn words_of_ours_and_drives_pass() {
        for layout in ["mirror a b", "a b", "mirrors a b c d", "single /dev/raid1 ram:1G", "spare a"] {
            let words: Vec<String> = layout.split(' ').map(String::from).collect();
            assert_eq!(refuse_raid_words(&words, "x"), Ok(()), "{layout}");
        }
    }
}
