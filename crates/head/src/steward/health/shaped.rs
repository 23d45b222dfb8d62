//! A drive's specification with a shape in front: `shape:mbps-max=100,latency-us=200@/dev/sdb`.
//!
//! The Steward takes it off before the drive is opened, so labels, configurations and witness records know the
//! drive by what is behind the `@` alone, and the shape ends with the daemon, like one of `drive shape`.

use base::machine::Shape;
use finding::ShapeFault;

const PREFIX: &str = "shape:";
const PPM_MAX: u32 = 1_000_000;
const SHARE_MAX: u32 = 1000;

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
/// What is wrong with the shape.
pub fn split(spec: &str) -> Result<(Option<Shape>, &str), ShapeFault> {
    let Some(rest) = spec.strip_prefix(PREFIX) else { return Ok((None, spec)) };
    let (options, bare) = rest.split_once('@').ok_or(ShapeFault::DriveMissing)?;
    if bare.is_empty() || bare.starts_with(PREFIX) {
        return Err(ShapeFault::DriveInvalid);
    }
    Ok((Some(parse(options)?), bare))
}

/// Options of `drive shape`. `hang` and `gone` have no value: what is looked at with them is refused in words, and a leg
/// that is named so in head.toml is out at the start.
fn parse(options: &str) -> Result<Shape, ShapeFault> {
    let twice = |option: &str| ShapeFault::OptionTwice { option: option.into() };
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
                return Err(twice(option));
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
            "uplink-share" => (&mut shape.uplink_share, SHARE_MAX),
            "read-errors-ppm" => (&mut shape.read_errors_ppm, PPM_MAX),
            "write-errors-ppm" => (&mut shape.write_errors_ppm, PPM_MAX),
            _ => return Err(ShapeFault::OptionUnknown { option: option.into() }),
        };
        if seen.contains(&name) {
            return Err(twice(name));
        }
        seen.push(name);
        let digits = !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit());
        *field = value
            .parse()
            .ok()
            .filter(|n| digits && (1..=most).contains(n))
            .ok_or_else(|| invalid(name, value, most))?;
    }
    complete(&shape)?;
    Ok(shape)
}

fn invalid(option: &str, value: &str, value_max: u32) -> ShapeFault {
    ShapeFault::ValueInvalid { option: option.into(), value: value.into(), value_max }
}

/// A shared link has a number and a rate.
///
/// # Errors
/// What is missing.
pub(crate) fn complete(shape: &Shape) -> Result<(), ShapeFault> {
    match (shape.uplink, shape.uplink_mbps, shape.uplink_share) {
        (0, 0, 0) => Ok(()),
        (0, _, _) => Err(ShapeFault::UplinkMissing),
        (_, 0, _) => Err(ShapeFault::UplinkRateMissing),
        (_, _, share) if share > SHARE_MAX => Err(ShapeFault::UplinkShareTooLarge { share_max: SHARE_MAX }),
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
        let unknown = |option: &str| ShapeFault::OptionUnknown { option: option.into() };
        let twice = |option: &str| ShapeFault::OptionTwice { option: option.into() };
        for (text, fault) in [
            ("shape:mbps-max=100", ShapeFault::DriveMissing),
            ("shape:mbps-max=100@", ShapeFault::DriveInvalid),
            ("shape:mbps-max=100@shape:iops-max=1@/a", ShapeFault::DriveInvalid),
            ("shape:@/a", unknown("")),
            ("shape:colour=1@/a", unknown("colour=1")),
            ("shape:mbps-max=1,@/a", unknown("")),
            ("shape:mbps-max@/a", invalid("mbps-max", "", u32::MAX)),
            ("shape:mbps-max=0@/a", invalid("mbps-max", "0", u32::MAX)),
            ("shape:mbps-max=+5@/a", invalid("mbps-max", "+5", u32::MAX)),
            ("shape:mbps-max=-5@/a", invalid("mbps-max", "-5", u32::MAX)),
            ("shape:mbps-max=100M@/a", invalid("mbps-max", "100M", u32::MAX)),
            ("shape:latency-us=200us@/a", invalid("latency-us", "200us", u32::MAX)),
            ("shape:iops-max=4294967296@/a", invalid("iops-max", "4294967296", u32::MAX)),
            ("shape:read-errors-ppm=1000001@/a", invalid("read-errors-ppm", "1000001", PPM_MAX)),
            ("shape:write-errors-ppm=x@/a", invalid("write-errors-ppm", "x", PPM_MAX)),
            ("shape:mbps-max=1,mbps-max=2@/a", twice("mbps-max")),
            ("shape:uplink=1@/a", ShapeFault::UplinkRateMissing),
            ("shape:uplink-mbps=1@/a", ShapeFault::UplinkMissing),
            ("shape:uplink=1,uplink-mbps=5,uplink-share=1001@/a", invalid("uplink-share", "1001", SHARE_MAX)),
            ("shape:hang,hang@/a", twice("hang")),
            ("shape:gone=1@/a", unknown("gone=1")),
        ] {
            assert_eq!(split(text), Err(fault), "{text}");
        }
        let shape = Shape { uplink: 1, uplink_mbps: 5, uplink_share: 1001, ..Shape::default() };
        assert_eq!(complete(&shape), Err(ShapeFault::UplinkShareTooLarge { share_max: SHARE_MAX }));
    }
}
