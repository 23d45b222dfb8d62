//! A drive's specification with a shape in front: `shape:mbps-max=100,latency-us=200@/dev/sdb`.
//!
//! The Steward takes it off before the drive is opened, so labels, configurations and witness records know the
//! drive by what is behind the `@` alone, and the shape ends with the daemon, like one of `drive shape`.

use base::machine::Shape;

const PREFIX: &str = "shape:";
const PPM_MAX: u32 = 1_000_000;

/// The specification without its shape: the name by which everybody else knows the drive.
pub(crate) fn bare(spec: &str) -> &str {
    match spec.strip_prefix(PREFIX).and_then(|rest| rest.split_once('@')) {
        Some((_, bare)) => bare,
        None => spec,
    }
}

/// The shape, if the specification has one, and what to open.
///
/// # Errors
/// A sentence that names the option that is wrong.
pub fn split(spec: &str) -> Result<(Option<Shape>, &str), String> {
    let Some(rest) = spec.strip_prefix(PREFIX) else { return Ok((None, spec)) };
    let Some((options, bare)) = rest.split_once('@') else {
        return Err(format!("{spec}: `@` and the drive are missing behind the shape"));
    };
    if bare.is_empty() || bare.starts_with(PREFIX) {
        return Err(format!("{spec}: behind `@` comes one drive, such as /dev/sdb or ram:1G"));
    }
    let shape = parse(options).map_err(|e| format!("{spec}: {e}"))?;
    Ok((Some(shape), bare))
}

/// Options of `drive shape`. `hang` and `gone` have no value: what is looked at with them is refused in words, and a leg
/// that is named so in head.toml is out at the start.
fn parse(options: &str) -> Result<Shape, String> {
    let mut shape = Shape::default();
    let mut seen: Vec<&str> = vec![];
    for option in options.split(',') {
        let flag = match option {
            "hang" => Some(&mut shape.hang),
            "gone" => Some(&mut shape.gone),
            _ => None,
        };
        if let Some(flag) = flag {
            if core::mem::replace(flag, true) {
                return Err(format!("`{option}` is named twice"));
            }
            continue;
        }
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let (field, most) = match name {
            "latency-us" => (&mut shape.latency_us, u32::MAX),
            "iops-max" => (&mut shape.iops_max, u32::MAX),
            "mbps-max" => (&mut shape.mbps_max, u32::MAX),
            "uplink" => (&mut shape.uplink, u32::MAX),
            "uplink-mbps" => (&mut shape.uplink_mbps, u32::MAX),
            "uplink-share" => (&mut shape.uplink_share, 1000),
            "read-errors-ppm" => (&mut shape.read_errors_ppm, PPM_MAX),
            "write-errors-ppm" => (&mut shape.write_errors_ppm, PPM_MAX),
            _ => {
                return Err(format!(
                    "unknown option `{option}` of a shape: latency-us, iops-max, mbps-max, read-errors-ppm, \
                     write-errors-ppm, uplink, uplink-mbps, uplink-share, hang and gone exist"
                ));
            }
        };
        if seen.contains(&name) {
            return Err(format!("`{name}` is named twice"));
        }
        seen.push(name);
        let digits = !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit());
        *field = value
            .parse()
            .ok()
            .filter(|n| digits && (1..=most).contains(n))
            .ok_or_else(|| format!("{name}: `{value}` is not a whole number from 1 to {most}"))?;
    }
    complete(&shape)?;
    Ok(shape)
}

/// A shared link has a number and a rate.
///
/// # Errors
/// A sentence that names what is missing.
pub(crate) fn complete(shape: &Shape) -> Result<(), String> {
    match (shape.uplink, shape.uplink_mbps, shape.uplink_share) {
        (0, 0, 0) => Ok(()),
        (0, _, _) => Err("uplink-mbps and uplink-share need uplink=N, the shared link's number".into()),
        (_, 0, _) => Err("uplink needs uplink-mbps=N, what passes the shared link".into()),
        (_, _, 1001..) => Err("uplink-share is a whole number from 1 to 1000".into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_is_taken_off_and_the_drive_is_what_remains() {
        let shape = Shape { mbps_max: 100, latency_us: 200, ..Shape::default() };
        assert_eq!(split("shape:mbps-max=100,latency-us=200@/a@b"), Ok((Some(shape), "/a@b")));
        let faulty =
            Shape { iops_max: 7, read_errors_ppm: 1_000_000, write_errors_ppm: 1, ..Shape::default() };
        let words = "shape:iops-max=7,read-errors-ppm=1000000,write-errors-ppm=1@file:/x?size=1G";
        assert_eq!(split(words), Ok((Some(faulty), "file:/x?size=1G")));
        let dead = Shape { hang: true, gone: true, ..Shape::default() };
        assert_eq!(split("shape:hang,gone@/a"), Ok((Some(dead), "/a")));
        for plain in ["/dev/sdb", "ram:1G", "/a@b", ""] {
            assert_eq!(split(plain), Ok((None, plain)));
            assert_eq!(bare(plain), plain);
        }
        assert_eq!(bare(words), "file:/x?size=1G");
    }

    #[test]
    fn what_is_no_shape_is_refused_by_the_name_of_the_option() {
        for (text, part) in [
            ("shape:mbps-max=100", "`@` and the drive are missing"),
            ("shape:mbps-max=100@", "behind `@` comes one drive"),
            ("shape:mbps-max=100@shape:iops-max=1@/a", "behind `@` comes one drive"),
            ("shape:@/a", "unknown option ``"),
            ("shape:colour=1@/a", "unknown option `colour=1`"),
            ("shape:mbps-max=1,@/a", "unknown option ``"),
            ("shape:mbps-max@/a", "mbps-max: `` is not"),
            ("shape:mbps-max=0@/a", "mbps-max: `0` is not a whole number from 1 to 4294967295"),
            ("shape:mbps-max=+5@/a", "mbps-max: `+5`"),
            ("shape:mbps-max=-5@/a", "mbps-max: `-5`"),
            ("shape:mbps-max=100M@/a", "mbps-max: `100M`"),
            ("shape:latency-us=200us@/a", "latency-us: `200us`"),
            ("shape:iops-max=4294967296@/a", "iops-max: `4294967296`"),
            (
                "shape:read-errors-ppm=1000001@/a",
                "read-errors-ppm: `1000001` is not a whole number from 1 to 1000000",
            ),
            ("shape:write-errors-ppm=x@/a", "write-errors-ppm: `x`"),
            ("shape:mbps-max=1,mbps-max=2@/a", "`mbps-max` is named twice"),
            ("shape:uplink=1@/a", "uplink needs uplink-mbps"),
            ("shape:uplink-mbps=1@/a", "need uplink=N"),
            ("shape:uplink=1,uplink-mbps=5,uplink-share=1001@/a", "uplink-share: `1001` is not"),
            ("shape:hang,hang@/a", "`hang` is named twice"),
            ("shape:gone=1@/a", "unknown option `gone=1`"),
        ] {
            let error = split(text).expect_err(text);
            assert!(error.starts_with(text) && error.contains(part), "{text}: {error}");
        }
    }
}
