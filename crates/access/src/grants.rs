//! Exports: what each host sees. They are kept in the pool, so they name hosts by their protocol names.

use crate::{Host, LUN_MAX, NAMES_MAX};
use base::Uuid;
use base::codec::{Malformed, Reader, Writer};
use base::view::NSID_MAX;
use finding::HostRefusal;

/// A volume given to a host.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Grant {
    /// Logical unit number, that host's own.
    pub lun: u16,
    /// Names that the host had when this was written.
    pub nqns: Vec<String>,
    /// The same for iSCSI.
    pub iqns: Vec<String>,
}

impl Grant {
    /// A grant to this host.
    pub fn to(host: &Host, lun: u16) -> Self {
        Self { lun, nqns: host.nqns.clone(), iqns: host.iqns.clone() }
    }
    /// Whether both are one host's: they share a name.
    pub fn shares_name(&self, other: &Self) -> bool {
        self.nqns.iter().any(|n| other.nqns.contains(n)) || self.iqns.iter().any(|n| other.iqns.contains(n))
    }
    /// Whether it is this host's: they share a name.
    pub fn is_for(&self, host: &Host) -> bool {
        self.nqns.iter().any(|n| host.nqns.contains(n)) || self.iqns.iter().any(|n| host.iqns.contains(n))
    }
}

/// A volume's number, and to whom it is given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VolumeGrants {
    /// The volume.
    pub volume: Uuid,
    /// Its namespace id, the same for every host.
    pub nsid: u32,
    /// To whom it is given.
    pub grants: Vec<Grant>,
}

/// The numbers and grants of one pool's volumes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Grants {
    volumes: Vec<VolumeGrants>,
}

impl Grants {
    /// All volumes, by UUID.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &VolumeGrants> {
        self.volumes.iter()
    }
    /// One volume's.
    pub fn of(&self, volume: Uuid) -> Option<&VolumeGrants> {
        self.volumes.iter().find(|v| v.volume == volume)
    }
    /// Gives a volume its number, or another one.
    pub fn number(&mut self, volume: Uuid, nsid: u32) {
        match self.volumes.iter_mut().find(|v| v.volume == volume) {
            Some(v) => v.nsid = nsid,
            None => {
                let i = self.volumes.partition_point(|v| v.volume < volume);
                self.volumes.insert(i, VolumeGrants { volume, nsid, grants: vec![] });
            }
        }
    }
    /// Forgets a volume.
    pub fn remove_volume(&mut self, volume: Uuid) {
        self.volumes.retain(|v| v.volume != volume);
    }
    /// Gives a volume that has a number to a host, in the place of what it gave to a host of one of these names.
    pub fn put(&mut self, volume: Uuid, grant: Grant) {
        let Some(v) = self.volumes.iter_mut().find(|v| v.volume == volume) else { return };
        let at = v.grants.iter().position(|g| g.shares_name(&grant)).unwrap_or(v.grants.len());
        v.grants.retain(|g| !g.shares_name(&grant));
        v.grants.insert(at.min(v.grants.len()), grant);
    }
    /// Takes a volume from the hosts with one of these names.
    pub fn take(&mut self, volume: Uuid, names: &Grant) {
        if let Some(v) = self.volumes.iter_mut().find(|v| v.volume == volume) {
            v.grants.retain(|g| !g.shares_name(names));
        }
    }
    /// What a host is given: the volume and the grant.
    pub fn given_to<'a>(&'a self, host: &'a Host) -> impl Iterator<Item = (Uuid, &'a Grant)> + 'a {
        let of = |v: &'a VolumeGrants| v.grants.iter().map(move |g| (v.volume, g));
        self.volumes.iter().flat_map(of).filter(|(_, g)| g.is_for(host))
    }
    /// What a host has: volume, NSID, LUN.
    pub fn for_host<'a>(&'a self, host: &'a Host) -> impl Iterator<Item = (Uuid, u32, u16)> + 'a {
        self.volumes.iter().filter_map(move |v| {
            let g = v.grants.iter().find(|g| g.is_for(host))?;
            Some((v.volume, v.nsid, g.lun))
        })
    }
    /// Writes everything down (docs/formats/config.md, "exports"). Names only, never secrets.
    pub fn encode(&self, w: &mut Writer) {
        w.u16(self.volumes.len() as u16);
        for v in &self.volumes {
            w.bytes(&v.volume.0).u32(v.nsid).u16(v.grants.len() as u16);
            for g in &v.grants {
                w.u16(g.lun);
                for names in [&g.nqns, &g.iqns] {
                    w.u16(names.len() as u16);
                    for n in names {
                        w.text(n);
                    }
                }
            }
        }
    }
    /// Reads what `encode` wrote.
    pub fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let mut out = Self::default();
        for _ in 0..r.u16()? {
            let (volume, nsid) = (Uuid(r.array()?), r.u32()?);
            let number_taken = out.volumes.iter().any(|v| v.nsid == nsid);
            if out.of(volume).is_some() || number_taken || nsid == 0 || nsid > NSID_MAX {
                return Err(Malformed);
            }
            let mut grants = vec![];
            for _ in 0..r.u16()? {
                let lun = r.u16()?;
                let (nqns, iqns) = (names(r)?, names(r)?);
                if lun > LUN_MAX {
                    return Err(Malformed);
                }
                grants.push(Grant { lun, nqns, iqns });
            }
            out.number(volume, nsid);
            out.volumes.iter_mut().filter(|v| v.volume == volume).for_each(|v| v.grants = grants.clone());
        }
        Ok(out)
    }
}

fn names(r: &mut Reader<'_>) -> Result<Vec<String>, Malformed> {
    let n = usize::from(r.u16()?);
    if n > NAMES_MAX { Err(Malformed) } else { (0..n).map(|_| r.text()).collect() }
}

/// The lowest number from `from` to `max` that is not in `used`.
pub fn lowest_free(used: impl Iterator<Item = u32>, from: u32, max: u32) -> Result<u32, HostRefusal> {
    let used: std::collections::BTreeSet<u32> = used.collect();
    (from..=max).find(|n| !used.contains(n)).ok_or(HostRefusal::NoNumberFree)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str) -> Host {
        Host { name: name.into(), iqns: vec![format!("iqn.1998-01.com.example:{name}")], ..Host::default() }
    }
    const A: Uuid = Uuid([1; 16]);
    const B: Uuid = Uuid([2; 16]);

    fn grants() -> Grants {
        let mut g = Grants::default();
        g.number(B, 2);
        g.number(A, 1);
        g.put(A, Grant::to(&host("x"), 0));
        g.put(A, Grant::to(&host("y"), 0));
        g.put(B, Grant::to(&host("x"), 1));
        g
    }

    #[test]
    fn each_host_sees_its_own_and_nothing_else() {
        let mut g = grants();
        assert_eq!(g.for_host(&host("x")).collect::<Vec<_>>(), [(A, 1, 0), (B, 2, 1)]);
        assert_eq!(g.for_host(&host("y")).collect::<Vec<_>>(), [(A, 1, 0)]);
        assert_eq!(g.for_host(&host("z")).count(), 0);
        g.put(Uuid([9; 16]), Grant::to(&host("x"), 5));
        assert_eq!(g, grants(), "no such volume");
        g.put(A, Grant::to(&host("x"), 5));
        assert_eq!(g.for_host(&host("x")).collect::<Vec<_>>(), [(A, 1, 5), (B, 2, 1)], "in its place");
        g.number(A, 7);
        g.take(A, &Grant::to(&host("x"), 0));
        assert_eq!(g.for_host(&host("x")).collect::<Vec<_>>(), [(B, 2, 1)]);
        assert_eq!(g.for_host(&host("y")).collect::<Vec<_>>(), [(A, 7, 0)]);
    }

    #[test]
    fn grants_survive_being_written_and_any_cut_is_noticed() {
        let mut w = Writer::default();
        grants().encode(&mut w);
        assert_eq!(Grants::decode(&mut Reader(&w.0)), Ok(grants()));
        for cut in 0..w.0.len() {
            assert_eq!(Grants::decode(&mut Reader(&w.0[..cut])), Err(Malformed));
        }
        let second = VolumeGrants { nsid: 1, ..grants().volumes[1].clone() };
        let twice = Grants { volumes: vec![grants().volumes[0].clone(), second] };
        let mut w = Writer::default();
        twice.encode(&mut w);
        assert_eq!(Grants::decode(&mut Reader(&w.0)), Err(Malformed), "a number twice");
    }

    #[test]
    fn the_lowest_free_number_is_found() {
        assert_eq!(lowest_free([0, 1, 3].into_iter(), 0, 9), Ok(2));
        assert_eq!(lowest_free([1, 2].into_iter(), 1, 2), Err(HostRefusal::NoNumberFree));
    }
}
