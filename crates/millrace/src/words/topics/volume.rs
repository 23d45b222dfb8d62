//! Words about volumes.

use super::Said;
use super::parts::{connected, count, not_a_name, shown, size, size_free, typed};
use finding::{VolumeEvent, VolumeNotice, VolumeRefusal};

/// Why an order was not carried out.
pub fn refusal(f: &VolumeRefusal) -> Said {
    use VolumeRefusal as R;
    match f {
        R::VolumeNameInvalid { name } => {
            Said::new(not_a_name(name, "volume")).then("the same command with a name such as vm1")
        }
        R::VolumeNameTaken { name } => {
            Said::new(format!("there is a volume {name} already")).then("millrace volume ls")
        }
        R::SizeZero => {
            Said::new("a volume of size 0 would hold nothing").then("the same command with a size such as --size 100G")
        }
        R::SizeTooLarge { bytes } => Said::new(format!("{bytes} bytes are more than the largest volume, 1 EiB"))
            .then("the same command with a size such as --size 100G"),
        R::SizeNotAligned { bytes, block_bytes } => {
            let good = bytes.next_multiple_of(u64::from(*block_bytes));
            Said::new(format!("{bytes} bytes are not a multiple of the block size {block_bytes}"))
                .then(format!("the same command with --size {good}"))
        }
        R::BlockSizeInvalid { block_bytes } => {
            Said::new(format!("a block size of {block_bytes} is neither 512 nor 4096"))
                .then("the same command with --block 4096")
        }
        R::BlockTooSmall { drive_block_bytes } => Said::new(format!(
            "a block size of 512 needs drives that take 512-byte writes, and one here takes {drive_block_bytes}"
        ))
        .then("the same command with --block 4096"),
        R::TooManyVolumes { volumes_max } => {
            Said::new(format!("a pool holds at most {volumes_max} volumes")).then("millrace volume ls")
        }
        R::SpaceTooFragmented => Said::new("the free space is in too many pieces").then("millrace volume ls"),
        R::SpareBlockTooLarge { spare, pool, block_bytes } => Said::new(format!(
            "{spare}, a spare of pool {pool}, takes no {block_bytes}-byte writes: with such a volume it could stand in for no drive"
        ))
        .then(format!("the same command with --block 4096, or millrace drive rm {spare} before it")),
        R::NoSpaceForVolume { pool, free_bytes, freeing_bytes, seconds, bytes } => no_space(
            pool,
            (*free_bytes, *freeing_bytes, *seconds),
            *bytes,
            &format!("{} were asked for", size(*bytes)),
        ),
        R::NoSpaceToGrow { pool, volume, free_bytes, freeing_bytes, seconds, more_bytes, bytes } => no_space(
            pool,
            (*free_bytes, *freeing_bytes, *seconds),
            *more_bytes,
            &format!("{volume} needs {} more for {}", size(*more_bytes), size(*bytes)),
        ),
        R::VolumeUnknown { volume } => Said::new(format!("there is no volume {volume}")).then("millrace volume ls"),
        R::VolumeNameHasNoPool { name } => {
            let name = shown(name);
            Said::new(format!("{name} is no volume: volumes are named POOL/VOLUME")).then("millrace volume ls")
        }
        R::ShrinkLosesData { volume, old_bytes, bytes, hosts } => {
            let command = format!("millrace volume resize {volume} --size {} --force", typed(*bytes));
            let message = format!(
                "{volume} would shrink from {} to {}: what lies beyond is lost",
                size(*old_bytes),
                size(*bytes)
            );
            // Both are said at once, and one command does it.
            match &hosts[..] {
                [] => Said::new(message).then(command),
                hosts => Said::new(format!("{message}; {}", connected(hosts, &loses_end(volume, *bytes))))
                    .then(format!("{command} --yes")),
            }
        }
        R::ShrinkInUse { volume, bytes, hosts } => Said::new(connected(hosts, &loses_end(volume, *bytes)))
            .then(format!("millrace volume resize {volume} --size {} --force --yes", typed(*bytes))),
        R::RemoveInUse { volume, force, hosts } => {
            let force = if *force { " --force" } else { "" };
            Said::new(connected(hosts, &format!("would lose volume {volume} with its data")))
                .then(format!("millrace volume rm {volume}{force} --yes"))
        }
        R::UnexportInUse { volume, host, hosts } => {
            Said::new(connected(hosts, &format!("would lose volume {volume}")))
                .then(format!("millrace unexport {volume} --host {host} --yes"))
        }
        R::VolumeIsExported { volume, hosts, host } => {
            let force = format!("millrace volume rm {volume} --force");
            Said::new(format!("{volume} is exported to {}", count(*hosts as u64, "host"))).then(match host {
                Some(host) => format!("millrace unexport {volume} --host {host}, or {force}"),
                None => force,
            })
        }
        R::WeightInvalid { volume, weight, weight_min, weight_max, weight_default } => {
            Said::new(format!("{weight} is no weight: {weight_min} to {weight_max}, {weight_default} is the default"))
                .then(format!("millrace volume set {volume} --weight N"))
        }
        R::IopsTooLow { volume, iops_max, iops_min } => {
            Said::new(format!("{iops_max} commands a second would keep hosts waiting until they give up"))
                .then(format!("millrace volume set {volume} --iops-max {iops_min}, or more, or none"))
        }
        R::ExportedAlready { volume, host } => {
            Said::new(format!("{volume} is exported to host {host} already"))
                .then(format!("millrace volume show {volume}"))
        }
        R::NotExported { volume, host } => Said::new(format!("{volume} is not exported to host {host}"))
            .then(format!("millrace volume show {volume}")),
    }
}

/// A pool has not enough space for so many bytes: free, what becomes free soon, and within how many seconds.
fn no_space(pool: &str, (free, resting, seconds): (u64, u64, u64), bytes: u64, asked: &str) -> Said {
    let mut has = format!("{} free", size_free(free));
    if resting > 0 {
        has += &format!(" and {} that becomes free within {seconds} seconds", size_free(resting));
    }
    let next = if free + resting >= bytes {
        "the same command a little later".to_string()
    } else {
        format!("millrace pool show {pool}")
    };
    Said::new(format!("pool {pool} has {has}, and {asked}")).then(next)
}

/// What hosts lose if a volume ends there.
fn loses_end(volume: &str, bytes: u64) -> String {
    format!("would lose what lies beyond {} of volume {volume}", size(bytes))
}

/// What happened.
pub fn event(f: &VolumeEvent) -> String {
    use VolumeEvent as E;
    match f {
        E::VolumeCreated => "the volume was created".into(),
        E::VolumeResized { bytes } => format!("its size is {} now", size(*bytes)),
        E::VolumeRenamed { name } => format!("it is called {name} now"),
        E::VolumeWeighed { weight, was } => format!("its weight is {weight} now, it was {was}"),
        E::VolumeCapped { iops_max: 0, mbps_max: 0 } => "it has no caps now".into(),
        E::VolumeCapped { iops_max, mbps_max: 0 } => format!("it is capped at {iops_max} commands a second"),
        E::VolumeCapped { iops_max: 0, mbps_max } => format!("it is capped at {mbps_max} MB/s"),
        E::VolumeCapped { iops_max, mbps_max } => {
            format!("it is capped at {iops_max} commands and {mbps_max} MB a second")
        }
        E::VolumeRemoved => "the volume was removed".into(),
        E::VolumeExported { host, lun } => format!("it was exported to host {host} as LUN {lun}"),
        E::VolumeUnexported { host } => format!("it is no longer exported to host {host}"),
    }
}

/// What is worth knowing.
pub fn notice(f: &VolumeNotice) -> String {
    match f {
        VolumeNotice::SpareNotSeen { spare } => format!(
            "the spare {spare} cannot be looked at: if it takes no 512-byte writes, it stands in for no drive from now on"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use finding::ConnectedHost;

    const GIB: u64 = 1 << 30;

    fn said(f: &VolumeRefusal) -> (String, String) {
        let Said { message, next } = refusal(f);
        (message, next.expect("a command"))
    }

    #[test]
    fn a_full_pool_says_what_becomes_free_and_whether_that_helps() {
        let full = |freeing_bytes, bytes| VolumeRefusal::NoSpaceForVolume {
            pool: "tank".into(),
            free_bytes: GIB,
            freeing_bytes,
            seconds: 10,
            bytes,
        };
        let (message, next) = said(&full(GIB, 2 * GIB));
        let has = "pool tank has 1G free and 1G that becomes free within 10 seconds";
        assert_eq!(message, format!("{has}, and 2G were asked for"));
        assert_eq!(next, "the same command a little later");
        assert_eq!(said(&full(GIB, 2 * GIB + 1)).1, "millrace pool show tank");
        let (message, next) = said(&full(0, 2 * GIB));
        assert_eq!(message, "pool tank has 1G free, and 2G were asked for");
        assert_eq!(next, "millrace pool show tank");
    }

    #[test]
    fn a_volume_that_shrinks_says_at_once_all_that_would_be_lost() {
        let shrink = |hosts: &[(&str, u64)]| {
            let hosts =
                hosts.iter().map(|(host, n)| ConnectedHost { host: host.to_string(), connections: *n });
            said(&VolumeRefusal::ShrinkLosesData {
                volume: "tank/vm1".into(),
                old_bytes: 2 * GIB,
                bytes: GIB,
                hosts: hosts.collect(),
            })
        };
        let lost = "tank/vm1 would shrink from 2G to 1G: what lies beyond is lost";
        let command = "millrace volume resize tank/vm1 --size 1G --force";
        assert_eq!(shrink(&[]), (lost.into(), command.into()));
        let (message, next) = shrink(&[("esx1", 1), ("esx2", 2), ("esx3", 1)]);
        let hosts = "hosts esx1 (1 connection), esx2 (2 connections) and esx3 (1 connection) are connected";
        let beyond = "would lose what lies beyond 1G of volume tank/vm1";
        assert_eq!(message, format!("{lost}; {hosts} and {beyond}"));
        assert_eq!(next, format!("{command} --yes"));
    }

    #[test]
    fn caps_are_told_as_they_are() {
        let capped = |iops_max, mbps_max| event(&VolumeEvent::VolumeCapped { iops_max, mbps_max });
        assert_eq!(capped(0, 0), "it has no caps now");
        assert_eq!(capped(100, 0), "it is capped at 100 commands a second");
        assert_eq!(capped(0, 5), "it is capped at 5 MB/s");
        assert_eq!(capped(100, 5), "it is capped at 100 commands and 5 MB a second");
    }
}
