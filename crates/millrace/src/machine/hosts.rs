//! `millrace tune --for`: what to set on hosts, for this head's own portals.

use super::recording::PATIENCE;
use crate::context::Context;
use crate::failure::Failure;
use api::Protocol;
use clap::ValueEnum;
use serde::Serialize;

/// A host's system.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum HostSystem {
    /// Linux
    Linux,
    /// VMware ESXi
    Esxi,
    /// Windows
    Windows,
}

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
            let mut out: Vec<(String, String)> =
                all.map(|p| (reachable(&p.address.ip().to_string()), p.address.port().to_string())).collect();
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

/// What holds of every host: what the head promises, against which time-outs are set.
const TIMES: &str =
    "time-outs: the head answers a read within 2 s and a write within 5 s whatever its drives do";

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
    // The head grants a session 128 commands: more of them wait in the host.
    let mut iscsi = lines(
        "# before the login, in /etc/iscsi/iscsid.conf; the head grants a session 128 commands at a time\n\
         node.session.cmds_max = 128\n\
         node.session.queue_depth = 128\n\
         # several sessions through each path give more depth\n\
         node.session.nr_sessions = 4\n\
         node.session.iscsi.ImmediateData = Yes\n\
         node.session.iscsi.InitialR2T = No\n\
         node.session.iscsi.FirstBurstLength = 262144\n\
         node.session.iscsi.MaxBurstLength = 1048576\n\
         node.conn[0].iscsi.MaxRecvDataSegmentLength = 262144\n\
         node.conn[0].iscsi.HeaderDigest = None",
    );
    iscsi.extend(login);
    vec![
        Advice { what: "NVMe/TCP: a queue of 128 for each CPU, and never give up", lines: connect.collect() },
        Advice {
            what: "several paths of NVMe: by how busy they are, else in turns",
            lines: lines(
                "echo queue-depth > /sys/class/nvme-subsystem/nvme-subsys0/iopolicy   # Linux 6.11 and later\n\
                 echo round-robin > /sys/class/nvme-subsystem/nvme-subsys0/iopolicy   # before",
            ),
        },
        Advice { what: "iSCSI sessions", lines: iscsi },
        Advice {
            what: "dm-multipath for iSCSI, in /etc/multipath.conf: round robin, switch after one I/O, wait while no path is there",
            lines: lines(
                "# without this no map is made of disks that never had one\n\
                 defaults {\n\
                 \x20 find_multipaths yes\n\
                 }\n\
                 devices {\n\
                 \x20 device {\n\
                 \x20   vendor \"MILLRACE\"\n\
                 \x20   product \".*\"\n\
                 \x20   path_grouping_policy group_by_prio\n\
                 \x20   prio alua\n\
                 \x20   path_selector \"round-robin 0\"   # or \"service-time 0\" where paths differ in speed\n\
                 \x20   rr_min_io_rq 1\n\
                 \x20   rr_weight uniform\n\
                 \x20   failback immediate\n\
                 \x20   no_path_retry queue\n\
                 \x20   fast_io_fail_tmo 1   # a head that is gone is left after 1 s\n\
                 \x20 }\n\
                 }",
            ),
        },
        Advice {
            what: TIMES,
            lines: lines(
                "# a command: leave it at 30 s\n\
                 cat /sys/module/nvme_core/parameters/io_timeout   # 30\n\
                 cat /sys/block/sdX/device/timeout                 # 30\n\
                 # a path that is silent is given up after 10 s, and multipath takes another; /etc/iscsi/iscsid.conf\n\
                 node.conn[0].timeo.noop_out_interval = 5\n\
                 node.conn[0].timeo.noop_out_timeout = 5\n\
                 node.session.timeo.replacement_timeout = 5     # with dm-multipath; 120 without\n\
                 # NVMe: nvme connect --keep-alive-tmo=5 --reconnect-delay=2 --fast_io_fail_tmo=5",
            ),
        },
        Advice {
            what: "the device",
            lines: lines(
                "echo none > /sys/block/nvmeXnY/queue/scheduler\n\
                 echo 2 > /sys/block/nvmeXnY/queue/rq_affinity",
            ),
        },
        Advice {
            what: "the network port",
            lines: lines(
                "ip link set DEV mtu 9000   # if every switch and the head do the same\n\
                 ethtool -L DEV combined $(nproc)\n\
                 ethtool -C DEV adaptive-rx on\n\
                 ethtool -K DEV tso on gro on\n\
                 # buffers of at least 16 MiB; a host that has more keeps it\n\
                 for s in net.core.rmem_max net.core.wmem_max net.ipv4.tcp_rmem net.ipv4.tcp_wmem; do\n\
                 \x20 sysctl -w \"$s=$(sysctl -n $s | awk '{ if ($NF < 16777216) $NF = 16777216; print }')\"\n\
                 done",
            ),
        },
        Advice {
            what: "to check it",
            lines: lines(
                "nvme list-subsys                                          # a path for each portal, live\n\
                 cat /sys/class/nvme-subsystem/nvme-subsys*/iopolicy\n\
                 cat /sys/class/nvme/nvme*/queue_count /sys/class/nvme/nvme*/sqsize\n\
                 multipath -ll                                             # active ready running, each\n\
                 iscsiadm -m session -P 3 | grep -E 'State|Burst|cmds'     # what was agreed upon\n\
                 iostat -x 1                                               # aqu-sz: the depth that is used\n\
                 ping -M do -s 8972 ADDRESS                                # jumbo frames pass",
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
    iscsi.extend(lines(
        "# a VMkernel port for each physical one, bound to the adapter: a path each\n\
         esxcli iscsi networkportal add -A vmhbaN -n vmkN",
    ));
    for at in head.iscsi.iter().map(socket) {
        iscsi.push(format!("esxcli iscsi adapter discovery sendtarget add -A vmhbaN -a {at}"));
    }
    iscsi.extend(lines(
        "esxcli iscsi adapter param set -A vmhbaN -k FirstBurstLength -v 262144\n\
         esxcli iscsi adapter param set -A vmhbaN -k MaxBurstLength -v 1048576\n\
         esxcli iscsi adapter param set -A vmhbaN -k DelayedAck -v false\n\
         esxcli storage core adapter rescan -A vmhbaN",
    ));
    vec![
        Advice {
            what: "WARNING: no VMFS datastores yet, and nothing of this is tested with ESXi",
            lines: lines(
                "# VMFS locks by COMPARE AND WRITE (ATS) or SCSI reservations, also where one ESXi host has a datastore for itself;\n\
                 # this version has neither. The lines below are for raw devices, and for the version that has them",
            ),
        },
        Advice { what: "NVMe/TCP (the High-Performance Plug-in takes the paths by itself)", lines: nvme },
        Advice {
            what: "NVMe paths in turns, another after each I/O",
            lines: lines("esxcli storage hpp device set -d eui.ID -P LB-IOPS -i 1"),
        },
        Advice { what: "iSCSI sessions", lines: iscsi },
        Advice {
            what: "iSCSI paths in turns (round robin), another after each I/O; for all volumes of this array, before they are seen",
            lines: lines(
                "esxcli storage nmp satp rule add -s VMW_SATP_ALUA -V MILLRACE -P VMW_PSP_RR -O iops=1\n\
                 esxcli storage nmp psp roundrobin deviceconfig set -d naa.ID -t iops -I 1   # one that is there already",
            ),
        },
        Advice {
            what: "depth: the device's (after a restart), and how much of it several virtual machines may use together",
            lines: lines(
                "esxcli system module parameters set -m iscsi_vmk -p iscsivmk_LunQDepth=128\n\
                 esxcli storage core device set -d naa.ID -O 128\n\
                 # the guest's own: a PVSCSI adapter takes 64 commands for a disk and 256 in all, the NVMe adapter more",
            ),
        },
        Advice {
            what: TIMES,
            lines: lines(
                "# a path that is silent is given up after 10 s, and another one is taken\n\
                 esxcli iscsi adapter param set -A vmhbaN -k NoopOutInterval -v 5\n\
                 esxcli iscsi adapter param set -A vmhbaN -k NoopOutTimeout -v 5\n\
                 esxcli iscsi adapter param set -A vmhbaN -k RecoveryTimeout -v 10\n\
                 esxcli iscsi adapter param set -A vmhbaN -k LoginTimeout -v 30\n\
                 # in guests: 60 s for a disk (Linux: /sys/block/sdX/device/timeout, Windows: TimeOutValue below\n\
                 # HKLM\\SYSTEM\\CurrentControlSet\\Services\\Disk), as a path may be silent before another is taken",
            ),
        },
        Advice {
            what: "the network port",
            lines: lines(
                "esxcli network vswitch standard set -v vSwitchN -m 9000\n\
                 esxcli network ip interface set -i vmkN -m 9000\n\
                 esxcli network nic ring current set -n vmnicN -r 4096   # at most what `ring preset get` tells",
            ),
        },
        Advice {
            what: "to check it",
            lines: lines(
                "esxcli nvme controller list\n\
                 esxcli storage hpp device list                        # Path Selection Scheme: LB-IOPS\n\
                 esxcli storage nmp device list -d naa.ID              # policy=iops,iops=1\n\
                 esxcli storage core path list | grep -c 'State: active'\n\
                 esxcli storage core device list -d naa.ID | grep -iE 'queue|outstanding'\n\
                 esxcli system module parameters list -m iscsi_vmk | grep LunQDepth\n\
                 esxcli iscsi adapter param get -A vmhbaN\n\
                 esxcli iscsi session connection list\n\
                 vmkping -d -s 8972 ADDRESS                            # jumbo frames pass\n\
                 esxtop, then u: DQLEN, ACTV and QUED are the depth, what is in flight and what waits in the host",
            ),
        },
    ]
}

/// Where the class of SCSI adapters is: the initiator's parameters are below one of its numbers.
const INITIATOR_KEY: &str =
    r"HKLM:\SYSTEM\CurrentControlSet\Control\Class\{4d36e97b-e325-11ce-bfc1-08002be10318}";

fn windows(head: &Head) -> Vec<Advice> {
    let mut iscsi = lines("Set-Service MSiSCSI -StartupType Automatic; Start-Service MSiSCSI");
    for (ip, port) in &head.iscsi {
        iscsi.push(format!("New-IscsiTargetPortal -TargetPortalAddress {ip} -TargetPortalPortNumber {port}"));
    }
    iscsi.push("# a session through each path: once for each pair of addresses".into());
    for (ip, port) in &head.iscsi {
        iscsi.push(format!(
            "Connect-IscsiTarget -NodeAddress {} -TargetPortalAddress {ip} -TargetPortalPortNumber {port} -InitiatorPortalAddress OWN -IsMultipathEnabled $true -IsPersistent $true",
            head.iqn
        ));
    }
    let parameters = [
        "# the initiator's number (NNNN) is where DriverDesc is Microsoft iSCSI Initiator; after a restart",
        &format!("$key = \"{INITIATOR_KEY}\\NNNN\\Parameters\""),
        "Set-ItemProperty $key ImmediateData 1",
        "Set-ItemProperty $key InitialR2T 0",
        "Set-ItemProperty $key FirstBurstLength 262144",
        "Set-ItemProperty $key MaxBurstLength 1048576",
        "Set-ItemProperty $key MaxTransferLength 1048576",
        "Set-ItemProperty $key MaxPendingRequests 255   # the depth of a session, of which the head grants 128",
    ];
    iscsi.extend(parameters.map(String::from));
    vec![
        Advice {
            what: "WARNING: no failover clusters yet, and nothing of this is tested with Windows",
            lines: lines(
                "# failover clusters and cluster shared volumes fence by persistent reservations, and this version has none;\n\
                 # a volume that one Windows host has for itself needs none",
            ),
        },
        Advice {
            what: "several paths (Windows Server): round robin, which Microsoft's module switches after each I/O; then a restart",
            lines: lines(
                "Install-WindowsFeature Multipath-IO\n\
                 Enable-MSDSMAutomaticClaim -BusType iSCSI\n\
                 Set-MSDSMGlobalDefaultLoadBalancePolicy -Policy RR   # LQD, the least queue, where paths differ in speed\n\
                 mpclaim -l -d N 2                                     # a disk that is there already",
            ),
        },
        Advice {
            what: "iSCSI sessions and the depth of each (Windows has no NVMe/TCP of its own before Server 2025)",
            lines: iscsi,
        },
        Advice {
            what: TIMES,
            lines: lines(
                "Set-MPIOSetting -NewDiskTimeout 60 -NewPDORemovePeriod 120 -NewPathVerificationState Enabled -NewPathVerificationPeriod 30\n\
                 Set-MPIOSetting -NewRetryCount 3 -NewRetryInterval 1 -CustomPathRecovery Enabled -NewPathRecoveryInterval 20\n\
                 Set-ItemProperty $key LinkDownTime 15          # a path that is gone is given up, and MPIO takes another\n\
                 Set-ItemProperty $key MaxRequestHoldTime 60    # without MPIO: how long commands wait for the connection\n\
                 Set-ItemProperty $key EnableNOPOut 1",
            ),
        },
        Advice {
            what: "the network port",
            lines: lines(
                "Set-NetAdapterAdvancedProperty -Name NIC -RegistryKeyword '*JumboPacket' -RegistryValue 9014\n\
                 Enable-NetAdapterRss -Name NIC\n\
                 Disable-NetAdapterPowerManagement -Name NIC\n\
                 powercfg /setactive SCHEME_MIN                       # the plan for high performance",
            ),
        },
        Advice {
            what: "to check it",
            lines: lines(
                "mpclaim -s -d                                        # RR for each disk; mpclaim -s -d N: its paths\n\
                 Get-MPIOSetting; Get-MSDSMGlobalDefaultLoadBalancePolicy\n\
                 Get-IscsiSession | Format-Table TargetNodeAddress, IsConnected, NumberOfConnections\n\
                 Get-IscsiConnection | Format-Table InitiatorAddress, TargetAddress\n\
                 Get-NetAdapterRss -Name NIC; Get-NetAdapterAdvancedProperty -Name NIC -RegistryKeyword '*JumboPacket'\n\
                 Get-Counter '\\PhysicalDisk(*)\\Current Disk Queue Length' # the depth that is used\n\
                 ping -f -l 8972 ADDRESS                              # jumbo frames pass",
            ),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_told_the_heads_own_addresses() {
        let portal = |protocol, address: &str| crate::words::connect::tests::portal(protocol, address, true);
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
        // Each system is told of every subject, by the names that its own tools have.
        let head = Head::of(None);
        for (what, advice, words) in [
            (
                "linux",
                linux(&head),
                &[
                    "queue_depth = 128",
                    "round-robin 0",
                    "rr_min_io_rq 1",
                    "find_multipaths yes",
                    "replacement_timeout",
                    "io_timeout",
                    "mtu 9000",
                    "FirstBurstLength = 262144",
                    "multipath -ll",
                ][..],
            ),
            (
                "esxi",
                esxi(&head),
                &[
                    "iscsivmk_LunQDepth=128",
                    "VMW_PSP_RR -O iops=1",
                    "-P LB-IOPS -i 1",
                    "RecoveryTimeout",
                    "NoopOutTimeout",
                    "-m 9000",
                    "-k FirstBurstLength -v 262144",
                    "nmp device list",
                ],
            ),
            (
                "windows",
                windows(&head),
                &[
                    "WARNING: no failover clusters yet",
                    "MaxPendingRequests 255",
                    "-Policy RR",
                    "NewDiskTimeout 60",
                    "LinkDownTime",
                    "*JumboPacket",
                    "FirstBurstLength 262144",
                    "mpclaim -s -d",
                    r"Class\{4d36e97b-e325-11ce-bfc1-08002be10318}\NNNN",
                    r"\PhysicalDisk(*)\Current",
                ],
            ),
        ] {
            let all: String =
                advice.iter().map(|a| format!("{}\n{}\n", a.what, a.lines.join("\n"))).collect();
            for word in words {
                assert!(all.contains(word), "{what}: {word} in {all}");
            }
            for promise in ["a read within 2 s and a write within 5 s", "to check it"] {
                assert!(all.contains(promise), "{what}: {promise}");
            }
        }
        let none = linux(&Head::of(None));
        assert!(none[0].lines[0].contains("-a ADDRESS -s 4420 -n NQN"), "{:?}", none[0].lines);
    }

    /// The lines came with fixed sizes, which lowered what a host had.
    #[test]
    fn buffers_of_a_linux_host_are_never_lowered() {
        let advice = linux(&Head::of(None));
        let port = advice.iter().find(|a| a.what == "the network port").expect("there");
        let from = port.lines.iter().position(|l| l.starts_with("for s in")).expect("a loop");
        let script = port.lines[from..].join("\n");
        let set = |rmem: &str, max: &str| {
            let host = format!(
                "sysctl() {{ case $2 in *max) [ $1 = -n ] && echo {max} || echo $2;; \
                 *) [ $1 = -n ] && echo '{rmem}' || echo $2;; esac; }}\n"
            );
            // What is set has the name before it; what is asked for has not.
            let host = host.replace("case $2 in", "case ${2%%=*} in");
            let out =
                std::process::Command::new("sh").arg("-c").arg(host + &script).output().expect("a shell");
            assert!(out.status.success(), "{out:?}");
            String::from_utf8(out.stdout).expect("text")
        };
        let little = set("4096\t131072\t6291456", "212992");
        assert!(little.contains("net.ipv4.tcp_rmem=4096 131072 16777216\n"), "{little}");
        assert!(little.contains("net.core.wmem_max=16777216\n"), "{little}");
        let much = set("8192 262144 33554432", "67108864");
        assert!(much.contains("net.ipv4.tcp_wmem=8192 262144 33554432\n"), "{much}");
        assert!(much.contains("net.core.rmem_max=67108864\n"), "{much}");
    }
}
