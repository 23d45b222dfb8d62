//! What the words of a layout mean, and a layout in words.

use crate::arguments::drive_path;
use crate::failure::Failure;
use crate::screen::count;
use api::{ArrayLayout, ArraySpec};
use topology::plan::{self, Shaped, Site};

/// The arrays that the words of a layout mean at a place: behind `mirrors` it is ours to say which drives are legs of
/// which mirror. `here`: drives are paths on this machine.
pub fn layout(words: &[String], weights: &[u32], site: &Site, here: bool) -> Result<Vec<ArraySpec>, Failure> {
    let path = |drive: &str| if here { drive_path(drive) } else { drive.to_string() };
    let (Some(at), false) = (words.iter().position(|w| w == "mirrors"), words.is_empty()) else {
        return parse_layout(words, weights, path);
    };
    let more = words[at + 1..].iter().any(|w| matches!(w.as_str(), "mirror" | "mirrors" | "single"));
    if at > 0 || more {
        return Err(Failure::usage("the word mirrors comes first, and only drives after it")
            .with_next("millrace pool create --help"));
    }
    let drives: Vec<String> = words[1..].iter().map(|d| path(d)).collect();
    let arrays = paired(site, &drives)?;
    let mut words = Vec::new();
    for array in &arrays {
        words.push("mirror".to_string());
        words.extend(array.drives.iter().cloned());
    }
    parse_layout(&words, weights, str::to_string)
}

/// The arrays that the words of a layout mean, `mirrors` not among them.
pub fn parse_layout(
    words: &[String],
    weights: &[u32],
    path: impl Fn(&str) -> String,
) -> Result<Vec<ArraySpec>, Failure> {
    let mut arrays: Vec<ArraySpec> = Vec::new();
    let mut mirror = false;
    let mut empty_word = None;
    for word in words {
        match word.as_str() {
            "mirror" | "single" => {
                if let Some(before) = empty_word {
                    return Err(Failure::usage(format!("name drives after the word {before}"))
                        .with_next("millrace pool create --help"));
                }
                mirror = word == "mirror";
                empty_word = Some(word.as_str());
                if mirror {
                    arrays.push(ArraySpec { layout: ArrayLayout::Mirror, drives: Vec::new(), weight: None });
                }
            }
            drive => {
                empty_word = None;
                let drive = path(drive);
                match arrays.last_mut() {
                    Some(array) if mirror => array.drives.push(drive),
                    _ => arrays.push(ArraySpec {
                        layout: ArrayLayout::Single,
                        drives: vec![drive],
                        weight: None,
                    }),
                }
            }
        }
    }
    if let Some(word) = empty_word {
        return Err(Failure::usage(format!("name drives after the word {word}"))
            .with_next("millrace pool create --help"));
    }
    if let Some(array) =
        arrays.iter().find(|a| a.layout == ArrayLayout::Mirror && !(2..=4).contains(&a.drives.len()))
    {
        return Err(Failure::usage(format!(
            "a mirror has 2 to 4 drives, not {}: {}",
            array.drives.len(),
            array.drives.join(" ")
        ))
        .with_next("millrace pool create --help"));
    }
    if !weights.is_empty() && weights.len() != arrays.len() {
        return Err(Failure::usage(format!(
            "--weights has {} for {}",
            count(weights.len(), "number"),
            count(arrays.len(), "array")
        ))
        .with_next("one number for each array, in order"));
    }
    for (array, weight) in arrays.iter_mut().zip(weights) {
        array.weight = Some(*weight);
    }
    Ok(arrays)
}

/// Arrays in words, of how many drives each has: `2 mirrors of 2 drives, striped`, `4 single drives, striped`.
pub fn arrays_words(drives: impl Iterator<Item = usize>) -> String {
    let (mirrors, singles): (Vec<usize>, Vec<usize>) = drives.partition(|n| *n > 1);
    let mut words = Vec::new();
    if let Some(first) = mirrors.first() {
        let same = mirrors.iter().all(|n| n == first);
        let of = if same { format!(" of {first} drives") } else { String::new() };
        words.push(count(mirrors.len(), "mirror") + &of);
    }
    if !singles.is_empty() {
        words.push(count(singles.len(), "single drive"));
    }
    let striped = if mirrors.len() + singles.len() > 1 { ", striped" } else { "" };
    words.join(" and ") + striped
}

/// The name of a drive at a place, with the shape that its specification has.
pub fn known(site: &mut Site, spec: &str) -> String {
    let (shape, bare) = head::steward::split_shape(spec).unwrap_or((None, spec));
    let name = site.know(bare);
    if let Some(s) = shape {
        let [iops_max, mbps_max, uplink, uplink_mbps, uplink_share] =
            [s.iops_max, s.mbps_max, s.uplink, s.uplink_mbps, s.uplink_share].map(u64::from);
        site.shape(&name, Shaped { iops_max, mbps_max, uplink, uplink_mbps, uplink_share });
    }
    name
}

/// Drives in mirrors of two, their legs apart.
pub fn paired(site: &Site, drives: &[String]) -> Result<Vec<ArraySpec>, Failure> {
    let mut site = site.clone();
    let names: Vec<String> = drives.iter().map(|d| known(&mut site, d)).collect();
    let (mirrors, rest) = plan::pair(&site, &names, 2).map_err(Failure::usage)?;
    if !rest.is_empty() || mirrors.is_empty() {
        let what = format!(
            "mirrors have two drives each, and {} given",
            count(drives.len(), "drive is").replace("drive iss", "drives are")
        );
        return Err(Failure::usage(what).with_next("millrace pool create --help"));
    }
    let spec = |name: &String| {
        let at = names.iter().position(|n| n == name).expect("it is one of them");
        drives[at].clone()
    };
    let mirror = |m: &Vec<String>| ArraySpec {
        layout: ArrayLayout::Mirror,
        drives: m.iter().map(spec).collect(),
        weight: None,
    };
    Ok(mirrors.iter().map(mirror).collect())
}
