# In a guest: a shelf of drives with persistent reservations, and what two heads and their hosts need around it.
#
#   head a: network namespace a, 10.92.0.1 for hosts ─┐ wire 10.9.0.1 ── 10.9.0.2
#   head b: network namespace b, 10.92.1.1 for hosts ─┘
#   each reaches all drives by an iSCSI session of its own, as /drives/leg0, leg1 and twin: the names are the same, the paths are not
#   twin is two units of one serial number with the same bytes below them, one for each head: what is reserved by one is not by the other
#   c looks at the keys by paths of its own, so that no head misses what a drive has to tell it
#   hosts: kernel NVMe/TCP and open-iscsi in the guest's own namespace
set -e
shelf=iqn.2026-01.org.millrace.judge:shelf
initiator=iqn.2026-01.org.millrace.judge:

# LIO. Without a serial number and a place for what outlives a power cut it registers nobody.
modprobe -a target_core_mod iscsi_target_mod target_core_iblock veth dm-multipath
modprobe brd rd_nr=3 rd_size=131072
mkdir -p /var/target/pr
portal=/sys/kernel/config/target/iscsi/$shelf/tpgt_1
mkdir -p $portal/np/127.0.0.1:3261
echo 0 >$portal/attrib/authentication
# unit LUN DEVICE SERIAL
unit() {
    local made=/sys/kernel/config/target/core/iblock_$1/unit$1
    mkdir -p $made $portal/lun/lun_$1
    echo udev_path=$2 >$made/control
    echo 6d696c6$3-7261-4365-8000-000000000001 >$made/wwn/vpd_unit_serial
    echo 1 >$made/enable
    ln -s $made $portal/lun/lun_$1/unit
}
# sees HEAD LUN UNIT: under which number a head sees which unit
sees() {
    mkdir -p $portal/acls/$initiator$1/lun_$2
    ln -s $portal/lun/lun_$3 $portal/acls/$initiator$1/lun_$2/unit
}
for leg in 0 1; do
    unit $leg /dev/ram$leg $leg
    for head in a b c; do
        sees $head $leg $leg
    done
done
for path in 2 3; do
    dmsetup create twin$path --table "0 $((131072 * 2)) linear /dev/ram2 0"
    unit $path /dev/mapper/twin$path 2
done
sees a 2 2
sees b 2 3
echo 1 >$portal/enable

# Nobody but the heads looks at these drives.
echo 'SUBSYSTEM=="block", ATTRS{vendor}=="LIO-ORG*", OPTIONS:="nowatch"' >/etc/udev/rules.d/99-shelf.rules
cat >/etc/multipath.conf <<END
blacklist {
    device {
        vendor "LIO-ORG"
        product ".*"
    }
}
END
for head in a b c; do
    iscsiadm -m iface -I $head -o new
    iscsiadm -m iface -I $head -o update -n iface.transport_name -v tcp
    iscsiadm -m iface -I $head -o update -n iface.initiatorname -v $initiator$head
    session="iscsiadm -m node -T $shelf -p 127.0.0.1:3261 -I $head"
    $session -o new
    $session -o update -n 'node.conn[0].timeo.noop_out_interval' -v 0
    $session --login
done
# What the host discovers would be bound to each of them.
rm /etc/iscsi/ifaces/[abc]
# Paths appear some time after the login.
paths() {
    for session in /sys/class/iscsi_session/*; do
        name=$(cat $session/initiatorname)
        for disk in $session/device/target*/*/block/*; do
            lun=${disk%/block/*}
            [ ! -e $disk/dev ] || echo "${name##*:} ${lun##*:} $(tr : ' ' <$disk/dev)"
        done
    done
}
tries=0
until paths >/run/paths && [ $(wc -l </run/paths) = 8 ]; do
    tries=$((tries + 1))
    [ $tries -lt 300 ]
    sleep 0.2
done
udevadm settle

for head in a b; do
    [ $head = a ] && n=0 || n=1
    ip netns add $head
    ip link add to-$head type veth peer name hosts netns $head
    ip addr add 10.92.$n.254/24 dev to-$head
    ip link set to-$head up
    ip -n $head addr add 10.92.$n.1/24 dev hosts
    ip -n $head link set hosts up
    ip -n $head link set lo up
done
ip link add wire netns a type veth peer name wire netns b
ip -n a addr add 10.9.0.1/24 dev wire
ip -n b addr add 10.9.0.2/24 dev wire
ip -n a link set wire up
ip -n b link set wire up

# start-head a: what a service manager does. The drives' names are its own, below a file system of its own.
mkdir -p /drives
cat >/usr/bin/head-in-place <<'END'
#!/bin/bash -e
mount -t tmpfs drives /drives
names=(leg0 leg1 twin)
while read -r head lun major minor; do
    [ $head != $1 ] || mknod /drives/${names[lun]} b $major $minor
done </run/paths
echo $$ >/run/$1.pid
exec /usr/bin/millrace serve --config /etc/$1.toml
END
cat >/usr/bin/start-head <<'END'
#!/bin/bash
setsid ip netns exec $1 /usr/bin/head-in-place $1 >>/run/$1.log 2>&1 </dev/null &
END
cat >/usr/bin/on-head <<'END'
#!/bin/bash
export MILLRACE_SOCKET=/run/$1.sock
shift
exec /usr/bin/millrace "$@"
END
# An order that no drive took in time is refused, and changes nothing: it is given again. Drives of a guest that gets no
# processor are as slow as that.
cat >/usr/bin/order <<'END'
#!/bin/bash
for tries in $(seq 30); do
    on-head "$@" 2>/run/refused && exit 0
    grep -q 'could be written' /run/refused || break
    sleep 1
done
cat /run/refused >&2
exit 1
END
chmod +x /usr/bin/head-in-place /usr/bin/start-head /usr/bin/on-head /usr/bin/order
for head in a b; do
    mkdir -p /var/lib/$head
    # Longer times than by default, since the guest's processors are emulated, and share two real ones with others.
    cat >/etc/$head.toml <<END
state_dir = "/var/lib/$head"
socket = "/run/$head.sock"
memory = "64M"
shards = 1
[system]
heartbeat_ms = 500
silence_ms = 2000
END
    start-head $head
    tries=0
    until on-head $head status >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ $tries -lt 400 ]
        sleep 0.3
    done
done
on-head a pool create tank mirror /drives/leg0 /drives/twin
order a volume create tank/n --size 16M
order a volume create tank/i --size 16M
on-head a host add guest --nqn $(cat /etc/nvme/hostnqn) --iqn $(sed s/.*=// /etc/iscsi/initiatorname.iscsi)
order a export tank/n --host guest
# Those of head b are added once it is there, and the other volume is exported.
on-head a portal add nvme 10.92.0.1:4420
on-head a portal add iscsi 10.92.0.1:3260
on-head a system create --link 10.9.0.1:7400 --name left >/run/token
# join: b becomes the second head. What that prints is judged.
cat >/usr/bin/join <<'END'
#!/bin/bash
exec on-head b system join $(sed -n 1p /run/token) --link 10.9.0.2 --name right
END
chmod +x /usr/bin/join

# quota a 5000: of 100,000 microseconds; or max
mountpoint -q /sys/fs/cgroup || mount -t cgroup2 none /sys/fs/cgroup
echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
cat >/usr/bin/quota <<'END'
#!/bin/bash -e
mkdir -p /sys/fs/cgroup/head-$1
echo "$2 100000" >/sys/fs/cgroup/head-$1/cpu.max
cat /run/$1.pid >/sys/fs/cgroup/head-$1/cgroup.procs
END
# path a 1 offline: a head's path to a drive fails; or running
cat >/usr/bin/path <<'END'
#!/bin/bash -e
n=$(sed -n "s/^$1 $2 \([0-9]*\) \([0-9]*\)$/\1:\2/p" /run/paths)
echo $3 >/sys/dev/block/$n/device/state
END
chmod +x /usr/bin/quota /usr/bin/path

# keys-of 0: those that a drive knows. It may have something else to tell first.
cat >/usr/bin/keys-of <<'END'
#!/bin/bash
n=$(sed -n "s/^c $1 \([0-9]*\) \([0-9]*\)$/\1:\2/p" /run/paths)
for tries in 1 2 3 4 5; do
    sg_persist --in --read-keys /dev/$(basename $(readlink -f /sys/dev/block/$n)) && exit 0
done
exit 1
END
chmod +x /usr/bin/keys-of
