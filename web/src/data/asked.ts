// Types of answers beside the status: session, tokens, alarms, what limits, and the machine.
import type { Fields, Weight } from './types';

export interface Session {
  name: string;
  rights: 'read' | 'full';
  expires?: string | null;
}
export interface Token {
  name: string;
  rights: 'read' | 'full';
  created?: string | null;
  expires?: string | null;
  used?: string | null;
}
export interface Tokens {
  tokens: Token[];
  address?: string | null;
  fingerprint?: string | null;
}
export interface Alarm {
  at: string;
  level: Weight;
  subject: string;
  message: string;
  state: string;
  since?: string | null;
  next?: string | null;
  code: string;
}
export interface Receiver {
  name: string;
  kind: string;
  level: Weight;
  state: 'well' | 'failing' | 'dead';
  reason?: string;
  waiting: number;
  lost: number;
  sent?: string | null;
}
export interface HostConnect {
  commands: string[];
  notes: string[];
  /** Commands that open a portal, of protocols for which none is open. */
  next: string[];
}
export interface Alarms {
  receivers: Receiver[];
  standing: Alarm[];
}

export interface Said {
  code: string;
  message: string;
  next?: string | null;
  fields?: Fields;
}
export interface Explanation {
  load: Said;
  findings: (Said & { kind: string; about: unknown[]; arithmetic: Said[] })[];
  next_limit: Said | null;
  elsewhere: number;
}
interface LinkSpeed {
  generation: number;
  width: number;
}
export interface Topology {
  at: string;
  host: string;
  processor: string;
  product: string;
  kernel: string;
  memory_kib: number;
  guest: boolean;
  cpus: { id: number; node: number; socket: number; core: number; busy: number | null }[];
  nodes: { id: number; cpus: number[]; memory_kib: number }[];
  devices: {
    address: string;
    /** Index of the port above it. */
    parent: number | null;
    port: string;
    class: string;
    class_name: string;
    driver: string | null;
    node: number | null;
    slot: string | null;
    link: { now: LinkSpeed | null; above_max: LinkSpeed | null; below_max: LinkSpeed | null } | null;
  }[];
  drives: {
    name: string;
    device: string | null;
    model: string | null;
    serial: string | null;
    slot: string | null;
    bytes: number;
    kind: string;
    activity: { busy: number; reads: number; writes: number; read_bytes: number; write_bytes: number } | null;
    temperature: { now: number; warning: number | null; critical: number | null } | null;
    health: { warnings: unknown[]; used: number } | null;
  }[];
  ports: {
    name: string;
    device: string | null;
    state: string;
    speed_mbit: number | null;
    mtu: number;
    rx_bytes: number | null;
    tx_bytes: number | null;
  }[];
  gaps: Said[];
}
