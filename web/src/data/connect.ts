// How a Linux host connects to what is exported to it: the lines that `millrace export` prints.
import type { Host, Portal, Status } from './types';

export interface Way {
  commands: string[];
  /** What to know of them. */
  notes: string[];
  /** Commands that open a portal, of protocols for which none is open. */
  closed: string[];
}

/** Stands for an address that is not known from here. */
const PLACEHOLDER = 'ADDRESS';
const ANY = new Set(['0.0.0.0', '[::]']);

/** What dm-multipath must be told of our logical units, as `millrace export` explains. */
const MULTIPATH = [
  'defaults {',
  'find_multipaths yes',
  '}',
  'devices {',
  'device {',
  'vendor "MILLRACE"',
  'product ".*"',
  'path_grouping_policy group_by_prio',
  'path_selector "round-robin 0"',
  'failback immediate',
  'no_path_retry queue',
  'fast_io_fail_tmo 1',
  '}',
  '}',
];

const bare = (ip: string) => ip.replace(/^\[|\]$/g, '');
const isLoopback = (ip: string) => ip === '[::1]' || ip.startsWith('127.');

/** `own`: the address by which the head is reached, for portals at all of its addresses. */
export function wayOf(s: Pick<Status, 'portals' | 'system' | 'cluster'>, host: Host, own: string | null): Way {
  const way: Way = { commands: [], notes: [], closed: [] };
  let [unknown, hereOnly] = [false, false];
  for (const protocol of ['nvme', 'iscsi'] as const) {
    if (!(protocol === 'nvme' ? host.nqns : host.iqns).length) continue;
    const all = s.portals.filter((p) => p.protocol === protocol);
    const open = all.filter((p) => p.listening);
    if (!open.length) way.closed.push(`millrace portal add ${protocol} ADDRESS:${protocol === 'nvme' ? 4420 : 3260}`);
    hereOnly ||= open.length > 0 && open.every((p) => isLoopback(split(p)[0]));
    const place = (p: Portal): [string, string] => {
      const [ip, port] = split(p);
      const address = ANY.has(ip) ? (own ?? PLACEHOLDER) : ip;
      unknown ||= address === PLACEHOLDER;
      return [address, port];
    };
    const places = open.map(place);
    // Of a system of two heads every portal is a path, also one that is not open here, where it has an address.
    if (s.cluster && all.length > 1 && open.length) {
      const elsewhere = all.filter((p) => !p.listening && !ANY.has(split(p)[0])).map(place);
      way.commands.push(...both(protocol, host, s.system, [...places, ...elsewhere]));
    } else way.commands.push(...places.flatMap((p) => one(protocol, host, s.system, p)));
  }
  if (host.authenticated && host.iqns.length) way.notes.push("SECRET is the host's CHAP secret; no command shows it.");
  if (unknown) way.notes.push('ADDRESS is an address of the head that the host reaches: ip address lists them there.');
  if (hereOnly) way.notes.push('A portal at a loopback address is reached from the head alone.');
  return way;
}

function split(p: Portal): [string, string] {
  const at = p.address.lastIndexOf(':');
  return [p.address.slice(0, at), p.address.slice(at + 1)];
}

type System = Status['system'];

function one(protocol: 'nvme' | 'iscsi', host: Host, system: System, [ip, port]: [string, string]): string[] {
  if (protocol === 'nvme')
    return [`nvme connect -t tcp -a ${bare(ip)} -s ${port} -n ${system.nqn} --ctrl-loss-tmo=-1`];
  const node = `iscsiadm -m node -T ${system.iqn} -p ${ip}:${port}`;
  const find = host.authenticated ? `${node} -o new` : `iscsiadm -m discovery -t sendtargets -p ${ip}:${port}`;
  return [find, ...secrets(host, system, node), `${node} --login`];
}

function secrets(host: Host, system: System, node: string): string[] {
  const set = (name: string, value: string) => `${node} -o update -n node.session.auth.${name} -v ${value}`;
  const commands = [];
  if (host.authenticated)
    commands.push(
      set('authmethod', 'CHAP'),
      set('username', host.chap_user || host.iqns[0] || ''),
      set('password', 'SECRET'),
    );
  if (host.mutual) commands.push(set('username_in', system.iqn), set('password_in', 'MUTUAL-SECRET'));
  return commands;
}

/** Paths to both heads, in turns. Settings come first: they hold for what connects afterwards. */
function both(protocol: 'nvme' | 'iscsi', host: Host, system: System, places: [string, string][]): string[] {
  const [ip, port] = places[0]!;
  if (protocol === 'nvme')
    return [
      `echo 'ACTION=="add|change", SUBSYSTEM=="nvme-subsystem", ATTR{model}=="${system.model}*", ATTR{iopolicy}="round-robin"' > /etc/udev/rules.d/71-millrace.rules`,
      'udevadm control --reload && udevadm trigger -s nvme-subsystem',
      `nvme connect-all -t tcp -a ${bare(ip)} -s ${port} --reconnect-delay=2 --ctrl-loss-tmo=-1`,
    ];
  const node = `iscsiadm -m node -T ${system.iqn}`;
  const settings = MULTIPATH.map((l) => `'${l}'`).join(' ');
  const find = host.authenticated
    ? places.map(([i, p]) => `${node} -p ${i}:${p} -o new`)
    : [`iscsiadm -m discovery -t sendtargets -p ${ip}:${port}`];
  return [
    `mkdir -p /etc/multipath/conf.d && printf '%s\\n' ${settings} > /etc/multipath/conf.d/millrace.conf`,
    'multipathd reconfigure',
    ...find,
    ...secrets(host, system, node),
    `${node} --login`,
  ];
}

/** The address of this page's head, if the browser's address has one by which others reach it. */
export function ownAddress(name: string): string | null {
  const ip = /^([0-9]+(\.[0-9]+){3}|\[[0-9a-f:]+\])$/i.test(name);
  return ip && !isLoopback(name) ? name : null;
}
