//! Hosts: which ones are known, by which names, with which secrets.

use crate::{HOSTS_MAX, NAMES_MAX, check_nqn, check_secret, normal_iqn};
use base::HostId;
use base::view::{self, Export, Secret};
use finding::{HostRefusal, SecretFault};

/// Longest CHAP user name, bytes.
const USER_MAX: usize = 255;

/// A client that is let in.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Host {
    /// Never reused in one life of the head.
    pub id: HostId,
    /// Short name.
    pub name: String,
    /// NVMe qualified names.
    pub nqns: Vec<String>,
    /// iSCSI names in their normal form.
    pub iqns: Vec<String>,
    /// It must prove this over iSCSI.
    pub chap_secret: Option<Secret>,
    /// CHAP user name; its IQN if empty.
    pub chap_user: String,
    /// We prove this to it.
    pub mutual_secret: Option<Secret>,
}

impl Host {
    /// What the front ends may know of it.
    pub fn view(&self, mut exports: Vec<Export>) -> view::Host {
        exports.sort_by_key(|e| e.nsid);
        view::Host {
            id: self.id,
            name: self.name.clone(),
            nqns: self.nqns.clone(),
            iqns: self.iqns.clone(),
            chap_secret: self.chap_secret.clone(),
            chap_user: self.chap_user.clone(),
            mutual_secret: self.mutual_secret.clone(),
            proof_generation: 0,
            exports,
        }
    }
    /// Brings names to their normal form and checks everything that concerns this host alone.
    fn check(&mut self) -> Result<(), HostRefusal> {
        let good = (1..=63).contains(&self.name.len())
            && self.name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
            && self.name.as_bytes()[0].is_ascii_alphanumeric();
        if !good {
            return Err(HostRefusal::HostNameInvalid { name: self.name.chars().take(64).collect() });
        }
        if self.nqns.is_empty() && self.iqns.is_empty() {
            return Err(HostRefusal::HostWithoutNames);
        }
        if self.nqns.len() > NAMES_MAX || self.iqns.len() > NAMES_MAX {
            return Err(HostRefusal::TooManyNames { names_max: NAMES_MAX });
        }
        self.nqns.iter().try_for_each(|n| check_nqn(n))?;
        for iqn in &mut self.iqns {
            *iqn = normal_iqn(iqn)?;
        }
        self.nqns.sort();
        self.nqns.dedup();
        self.iqns.sort();
        self.iqns.dedup();
        if let Some(secret) = &self.chap_secret {
            check_secret(secret).map_err(|why| HostRefusal::SecretInvalid { why })?;
        }
        let mutual = |why| HostRefusal::MutualSecretInvalid { why };
        if let Some(secret) = &self.mutual_secret {
            check_secret(secret).map_err(mutual)?;
        }
        match (&self.chap_secret, &self.mutual_secret) {
            // RFC 7143 12.1.3: the same secret in both directions could be had by reflection.
            (Some(a), Some(b)) if a == b => Err(mutual(SecretFault::SameAsOther)),
            (None, Some(_)) => Err(mutual(SecretFault::Alone)),
            _ if self.chap_user.len() > USER_MAX || self.chap_user.chars().any(char::is_control) => {
                Err(HostRefusal::ChapUserInvalid { bytes_max: USER_MAX })
            }
            _ => Ok(()),
        }
    }
}

/// All hosts, by name.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Hosts {
    hosts: Vec<Host>,
}

impl Hosts {
    /// All hosts, by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Host> {
        self.hosts.iter()
    }
    /// The host of this name.
    pub fn get(&self, name: &str) -> Option<&Host> {
        self.hosts.iter().find(|h| h.name == name)
    }
    /// The host with this id.
    pub fn by_id(&self, id: HostId) -> Option<&Host> {
        self.hosts.iter().find(|h| h.id == id)
    }
    /// Adds a host.
    pub fn add(&mut self, host: Host) -> Result<(), HostRefusal> {
        if self.get(&host.name).is_some() {
            return Err(HostRefusal::HostNameTaken { host: host.name });
        }
        if self.hosts.len() >= HOSTS_MAX {
            return Err(HostRefusal::TooManyHosts { hosts_max: HOSTS_MAX });
        }
        self.put(host)
    }
    /// Puts a host in the place of the one of its name.
    pub fn set(&mut self, host: Host) -> Result<(), HostRefusal> {
        if self.get(&host.name).is_none() {
            return Err(HostRefusal::HostUnknown { host: host.name });
        }
        self.put(host)
    }
    /// Forgets a host.
    pub fn remove(&mut self, name: &str) -> Result<Host, HostRefusal> {
        let i = self
            .hosts
            .iter()
            .position(|h| h.name == name)
            .ok_or_else(|| HostRefusal::HostUnknown { host: name.into() })?;
        Ok(self.hosts.remove(i))
    }
    fn put(&mut self, mut host: Host) -> Result<(), HostRefusal> {
        host.check()?;
        for other in self.hosts.iter().filter(|h| h.name != host.name) {
            if let Some(nqn) = host.nqns.iter().find(|n| other.nqns.contains(n)) {
                return Err(HostRefusal::NqnTaken { nqn: nqn.clone(), host: other.name.clone() });
            }
            if let Some(iqn) = host.iqns.iter().find(|n| other.iqns.contains(n)) {
                return Err(HostRefusal::IqnTaken { iqn: iqn.clone(), host: other.name.clone() });
            }
        }
        self.hosts.retain(|h| h.name != host.name);
        let i = self.hosts.partition_point(|h| h.name < host.name);
        self.hosts.insert(i, host);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, iqn: &str) -> Host {
        Host { name: name.into(), iqns: vec![iqn.into()], ..Host::default() }
    }
    fn secret(text: &str) -> Option<Secret> {
        Some(Secret(text.as_bytes().to_vec()))
    }

    #[test]
    fn hosts_do_not_share_names() {
        let mut hosts = Hosts::default();
        hosts.add(host("b", "iqn.1998-01.com.example:B")).expect("good");
        hosts.add(host("a", "iqn.1998-01.com.example:a")).expect("good");
        assert_eq!(hosts.iter().map(|h| h.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(hosts.get("b").map(|h| h.iqns[0].as_str()), Some("iqn.1998-01.com.example:b"));
        let taken = hosts.add(host("c", "iqn.1998-01.com.example:A"));
        let iqn = "iqn.1998-01.com.example:a".into();
        assert_eq!(taken, Err(HostRefusal::IqnTaken { iqn, host: "a".into() }));
        assert_eq!(
            hosts.add(host("a", "iqn.1998-01.com.example:x")),
            Err(HostRefusal::HostNameTaken { host: "a".into() })
        );
        assert_eq!(
            hosts.set(host("x", "iqn.1998-01.com.example:x")),
            Err(HostRefusal::HostUnknown { host: "x".into() })
        );
        hosts.set(host("a", "iqn.1998-01.com.example:x")).expect("good");
        assert!(hosts.remove("a").is_ok() && hosts.remove("a").is_err());
    }

    #[test]
    fn a_host_that_cannot_be_is_refused_with_its_field() {
        let good = || Host { chap_secret: secret("twelve-bytes"), ..host("h", "iqn.1998-01.com.example:h") };
        let field = |change: fn(&mut Host)| {
            let mut h = good();
            change(&mut h);
            Hosts::default().add(h).map_err(|e| e.field())
        };
        assert_eq!(field(|_| ()), Ok(()));
        assert_eq!(field(|h| h.name = "a b".into()), Err("name"));
        assert_eq!(field(|h| h.name.clear()), Err("name"));
        assert_eq!(field(|h| h.iqns.clear()), Err("nqns"));
        assert_eq!(field(|h| h.iqns[0] = "esx1".into()), Err("iqns"));
        assert_eq!(field(|h| h.nqns = vec!["esx1".into()]), Err("nqns"));
        assert_eq!(field(|h| h.chap_secret = secret("short")), Err("chap_secret"));
        assert_eq!(field(|h| h.mutual_secret = secret("twelve-bytes")), Err("mutual_secret"));
        assert_eq!(
            field(|h| (h.chap_secret, h.mutual_secret) = (None, secret("other-twelve"))),
            Err("mutual_secret")
        );
        assert_eq!(field(|h| h.chap_user = "a\nb".into()), Err("chap_user"));
        assert_eq!(field(|h| h.mutual_secret = secret("other-twelve")), Ok(()));
    }

    #[test]
    fn an_error_or_a_debug_print_never_shows_a_secret() {
        let h = Host { chap_secret: secret("sesame"), ..host("h", "iqn.1998-01.com.example:h") };
        assert!(!format!("{h:?}").contains("sesame"));
        let e = Hosts::default().add(h).expect_err("too short");
        assert!(!format!("{e:?}").contains("sesame"));
    }
}
