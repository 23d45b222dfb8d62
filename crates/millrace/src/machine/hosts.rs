//! `millrace tune --for`: what to set on hosts, for this head's own portals.

use super::PATIENCE;
use super::tune::HostSystem;
use crate::cli::Context;
use crate::failure::Failure;
use api::Protocol;
use serde::Serialize;

/// What a host should do: a heading and commands, or sentences that begin with `#`.
#[derive(Serialize)]
struct Advice {
    what: &'static str,
    lines: Vec<String>,
}

/// The head, as hosts know it.
struct Head {
    nqn: String,
    iqn: String,
    nvme: Vec<(String, String)>,
    iscsi: Vec<(String, String)>,
}

/// Prints it.
pub fn print(system: HostSystem, context: &Context) -> Result<String, Failure> {
    // Without a head the advice holds as well, with names in place of its addresses.
    let status = context.client.get_within::<api::Status>("/status", PATIENCE).ok();
    let head = Head::of(status.as_ref());
    let advice = match system {
        HostSystem::Linux => linux(&head),
        HostSystem::Esxi => esxi(&head),
        HostSystem::Windows => windows(&head),
    };
    Ok(context.show(&advice, |list| {
        let one = |a: &Advice| format!("# {}\n{}\n", a.what, a.lines.join("\n"));
        list.iter().map(one).collect::<Vec<_>>().join("\n")
    }))
}

impl Head {
    fn of(status: Option<&api::Status>) -> Self {
        let portals = |protocol: Protocol, port: &str| {
            let all = status.iter().flat_map(|s| &s.portals).filter(|p| p.protocol == protocol);
            let mut out: Vec<(String, String)> = all
                .filter_map(|p| p.address.rsplit_once(':'))
                .map(|(ip, port)| (reachable(ip.trim_matches(['[', ']'])), port.to_string()))
                .collect();
            out.dedup();
            if out.is_empty() {
                out.push(("ADDRESS".into(), port.into()));
            }
            out
        };
        let name = |known: Option<&String>, place: &str| {
            known.filter(|n| !n.is_empty()).map_or(place.into(), String::clone)
        };
        Self {
            nqn: name(status.map(|s| &s.system.nqn), "NQN"),
            iqn: name(status.map(|s| &s.system.iqn), "IQN"),
            nvme: portals(Protocol::Nvme, "4420"),
            iscsi: portals(Protocol::Iscsi, "3260"),
        }
    }
}

/// An address as another machine would use it: what stands for all of ours, or for none but ourselves, is no address there.
fn reachable(ip: &str) -> String {
    let only_here = ip.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_unspecified() || ip.is_loopback());
    if only_here { "ADDRESS".into() } else { ip.into() }
}

/// Address and port, as a URL has them.
fn socket((ip, port): &(String, String)) -> String {
    if ip.contains(':') { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") }
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(String::from).collect()
}

fn linux(head: &Head) -> Vec<Advice> {
    let connect = head.nvme.iter().map(|(ip, port)| {
        format!("nvme connect -t tcp -a {ip} -s {port} -n {} --nr-io-queues=$(nproc) --queue-size=128 --ctrl-loss-tmo=-1", head.nqn)
    });
    let login = head.iscsi.iter().map(socket).flat_map(|at| {
        [
            format!("iscsiadm -m discovery -t sendtargets -p {at}"),
            format!("iscsiadm -m node -T {} -p {at} --login", head.iqn),
        ]
    });
    let mut iscsi = lines(
        "# before the login, in /etc/iscsi/iscsid.conf; the depth is the sum of a session's commands\n\
         node.session.cmds_max = 1024\n\
         node.session.queue_depth = 128\n\
         node.session.iscsi.ImmediateData = Yes\n\
         node.session.iscsi.InitialR2T = No\n\
         node.session.timeo.replacement_timeout = 120\n\
         node.conn[0].timeo.noop_out_interval = 5\n\
         node.conn[0].timeo.noop_out_timeout = 5",
    );
    iscsi.extend(login);
    vec![
        Advice { what: "NVMe/TCP: a connection for each CPU, and never give up", lines: connect.collect() },
        Advice {
            what: "several paths: by how busy they are, else in turns",
            lines: lines(
                "echo queue-depth > /sys/class/nvme-subsystem/nvme-subsys0/iopolicy   # Linux 6.11 and later\n\
                 echo round-robin > /sys/class/nvme-subsystem/nvme-subsys0/iopolicy   # before",
            ),
        },
        Advice { what: "iSCSI", lines: iscsi },
        Advice {
            what: "dm-multipath for iSCSI, in /etc/multipath.conf: switch after one I/O, wait while no path is there",
            lines: lines(
                "devices {\n\
                 \x20 device {\n\
                 \x20   vendor \"MILLRACE\"\n\
                 \x20   product \".*\"\n\
                 \x20   path_grouping_policy group_by_prio\n\
                 \x20   prio alua\n\
                 \x20   path_selector \"service-time 0\"\n\
                 \x20   rr_min_io_rq 1\n\
                 \x20   no_path_retry queue\n\
                 \x20   fast_io_fail_tmo 5\n\
                 \x20 }\n\
                 }",
            ),
        },
        Advice {
            what: "time-outs: the head answers a read within 2 s and a write within 5 s whatever its drives do; leave the host's at 30 s",
            lines: lines(
                "cat /sys/module/nvme_core/parameters/io_timeout   # 30\n\
                 cat /sys/block/sdX/device/timeout                 # 30",
            ),
        },
        Advice {
            what: "the device and the network",
            lines: lines(
                "echo none > /sys/block/nvmeXnY/queue/scheduler\n\
                 echo 2 > /sys/block/nvmeXnY/queue/rq_affinity\n\
                 sysctl net.core.rmem_max=16777216 net.core.wmem_max=16777216\n\
                 ip link set DEV mtu 9000   # if every switch and the head do the same",
            ),
        },
        Advice {
            what: "to check it",
            lines: lines(
                "nvme list-subsys\n\
                 multipath -ll\n\
                 iscsiadm -m session -P 3\n\
                 ping -M do -s 8972 ADDRESS   # jumbo frames pass",
            ),
        },
    ]
}

fn esxi(head: &Head) -> Vec<Advice> {
    let mut nvme = lines("esxcli nvme fabrics enable -p TCP -d vmnicN");
    for (ip, port) in &head.nvme {
        nvme.push(format!("esxcli nvme fabrics connect -a vmhbaN -i {ip} -p {port} -s {}", head.nqn));
    }
    let mut iscsi = lines("esxcli iscsi software set --enabled=true");
    for at in head.iscsi.iter().map(socket) {
        iscsi.push(format!("esxcli iscsi adapter discovery sendtarget add -A vmhbaN -a {at}"));
    }
    iscsi.extend(lines("esxcli storage core adapter rescan -A vmhbaN"));
    vec![
        Advice { what: "NVMe/TCP (HPP takes the paths by itself)", lines: nvme },
        Advice {
            what: "NVMe paths in turns, another after each I/O",
            lines: lines("esxcli storage hpp device set -d eui.ID -P LB-IOPS -i 1"),
        },
        Advice { what: "iSCSI", lines: iscsi },
        Advice {
            what: "iSCSI paths in turns, another after each I/O; for all volumes of this array, before they are seen",
            lines: lines(
                "esxcli storage nmp satp rule add -s VMW_SATP_ALUA -V MILLRACE -P VMW_PSP_RR -O iops=1\n\
                 esxcli storage nmp psp roundrobin deviceconfig set -d naa.ID -t iops -I 1   # one that is there already",
            ),
        },
        Advice {
            what: "depth: the device's, and how much of it one virtual machine may use",
            lines: lines(
                "esxcli system module parameters set -m iscsi_vmk -p iscsivmk_LunQDepth=128\n\
                 esxcli storage core device set -d naa.ID -O 128",
            ),
        },
        Advice {
            what: "network",
            lines: lines(
                "esxcli network vswitch standard set -v vSwitchN -m 9000\n\
                 esxcli network ip interface set -i vmkN -m 9000\n\
                 vmkping -d -s 8972 ADDRESS",
            ),
        },
        Advice {
            what: "to check it",
            lines: lines(
                "esxcli nvme controller list\n\
                 esxcli storage core path list\n\
                 esxcli storage core device list -d naa.ID | grep -i queue\n\
                 esxtop, then u: DQLEN, ACTV and QUED are the depth, what is in flight and what waits in the host",
            ),
        },
    ]
}

fn windows(head: &Head) -> Vec<Advice> {
    let mut iscsi = lines("Set-Service MSiSCSI -StartupType Automatic; Start-Service MSiSCSI");
    for (ip, port) in &head.iscsi {
        iscsi.push(format!("New-IscsiTargetPortal -TargetPortalAddress {ip} -TargetPortalPortNumber {port}"));
    }
    iscsi.push(format!(
        "Connect-IscsiTarget -NodeAddress {} -IsMultipathEnabled $true -IsPersistent $true",
        head.iqn
    ));
    vec![
        Advice {
            what: "several paths (Windows Server), then a restart; in turns",
            lines: lines(
                "Install-WindowsFeature Multipath-IO\n\
                 Enable-MSDSMAutomaticClaim -BusType iSCSI\n\
                 Set-MSDSMGlobalDefaultLoadBalancePolicy -Policy RR",
            ),
        },
        Advice { what: "iSCSI (Windows has no NVMe/TCP of its own before Server 2025)", lines: iscsi },
        Advice {
            what: "time-outs: the head answers within 5 s whatever its drives do; wait 60 s when no path is there",
            lines: lines(
                "Set-MPIOSetting -NewDiskTimeout 60 -NewPDORemovePeriod 120 -CustomPathRecovery Enabled\n\
                 # in the initiator's key ...\\Control\\Class\\{4d36e97b-e325-11ce-bfc1-08002be10318}\\NNNN\\Parameters: MaxRequestHoldTime 60",
            ),
        },
        Advice {
            what: "network",
            lines: lines(
                "Set-NetAdapterAdvancedProperty -Name NIC -RegistryKeyword '*JumboPacket' -RegistryValue 9014\n\
                 Enable-NetAdapterRss -Name NIC\n\
                 ping -f -l 8972 ADDRESS",
            ),
        },
        Advice { what: "to check it", lines: lines("mpclaim -s -d\nGet-IscsiSession\nGet-IscsiConnection") },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_told_the_heads_own_addresses() {
        let portal = |protocol, address: &str| api::Portal {
            protocol,
            address: address.into(),
            listening: true,
            reason: String::new(),
            connections: 0,
        };
        let mut status = api::Status::default();
        status.system.nqn = "nqn.x".into();
        status.system.iqn = "iqn.y".into();
        status.portals =
            vec![portal(Protocol::Nvme, "10.0.0.1:4420"), portal(Protocol::Iscsi, "[fd00::1]:3260")];
        let head = Head::of(Some(&status));
        for (advice, words) in [
            (linux(&head), ["-a 10.0.0.1 -s 4420 -n nqn.x", "-T iqn.y -p [fd00::1]:3260"]),
            (esxi(&head), ["-i 10.0.0.1 -p 4420 -s nqn.x", "-a [fd00::1]:3260"]),
            (windows(&head), ["-TargetPortalAddress fd00::1", "-NodeAddress iqn.y"]),
        ] {
            let text: String = advice.iter().flat_map(|a| a.lines.iter().map(|l| format!("{l}\n"))).collect();
            for word in words {
                assert!(text.contains(word), "{word} in {text}");
            }
        }
        // What stands for every address of ours, or for ourselves alone, is no address for anybody else.
        status.portals =
            ["0.0.0.0:4420", "127.0.0.1:4420", "[::1]:4420"].map(|at| portal(Protocol::Nvme, at)).to_vec();
        let told = esxi(&Head::of(Some(&status)));
        let text: String = told.iter().flat_map(|a| a.lines.iter().map(|l| format!("{l}\n"))).collect();
        assert!(text.matches("-i ADDRESS -p 4420").count() == 1 && !text.contains("::1"), "{text}");
        let none = linux(&Head::of(None));
        assert!(none[0].lines[0].contains("-a ADDRESS -s 4420 -n NQN"), "{:?}", none[0].lines);
    }
}
