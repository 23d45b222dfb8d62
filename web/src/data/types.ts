// Types of the API's answers, as far as the page uses them: the OpenAPI document of the daemon is the whole.

export type State = 'optimal' | 'rebuilding' | 'degraded' | 'offline' | 'failed';
export type Weight = 'note' | 'warning' | 'error';
export type Protocol = 'nvme' | 'discovery' | 'iscsi';
export type Fields = Record<string, unknown>;

export interface ApiError {
  kind: string;
  code: string;
  message: string;
  field?: string | null;
  fields?: Fields;
  next?: string | null;
}
export interface Noticed {
  code: string;
  fields?: Fields;
  message: string;
  next?: string | null;
}
export interface Reason {
  state: State;
  what: string;
  code: string;
  message: string;
  next?: string | null;
}
export interface Created {
  uuid?: string | null;
  notices?: Noticed[];
}

export interface Counters {
  reads: number;
  read_bytes: number;
  writes: number;
  write_bytes: number;
  flushes: number;
  errors: number;
}
export interface Times {
  p50_ns: number;
  p99_ns: number;
  p999_ns: number;
  max_ns: number;
  mean_ns: number;
  timed: number;
  total_ns: number;
  total_timed: number;
}
export const STAGES = ['admitted', 'volume', 'array', 'drive', 'replied'] as const;
export type Stage = (typeof STAGES)[number];
export type Stages = Record<Stage | 'all', Times>;

export interface Health {
  celsius?: number | null;
  hours?: number | null;
  media_errors?: number | null;
  spare_percent?: number | null;
  throttled_seconds?: number | null;
  used_percent?: number | null;
  warns?: boolean;
}
export interface Drive {
  path: string;
  uuid?: string | null;
  kind: string;
  model: string;
  serial: string;
  bytes: number;
  block_bytes: number;
  volatile_cache: boolean;
  pool?: string | null;
  role: 'leg' | 'missing' | 'spare' | 'removed-failed' | 'free' | 'foreign' | 'labelled' | 'unusable';
  state?: State | null;
  reason: string;
  slow?: boolean;
  errors: number;
  counters: Counters;
  health?: Health | null;
  read_times?: Times | null;
  write_times?: Times | null;
  shape?: Fields | null;
}
export interface Leg {
  path: string;
  uuid: string;
  state: State;
  reason: string;
  slow: boolean;
  replaces?: string | null;
}
export interface Resync {
  done_bytes: number;
  total_bytes: number;
  rate: number;
  leg?: number | null;
  partial: boolean;
  seconds_left?: number | null;
}
export interface ArrayOf {
  layout: 'single' | 'mirror';
  state: State;
  reason: string;
  bytes: number;
  legs: Leg[];
  regions: number;
  regions_dirty: number;
  region_bytes: number;
  resync?: Resync | null;
}
export interface ScrubFinding {
  array: number;
  at: number;
  bytes: number;
  repaired: boolean;
  volume?: string | null;
  what: string;
}
export interface Scrub {
  running: boolean;
  repair: boolean;
  done_bytes: number;
  total_bytes: number;
  rate: number;
  seconds_left?: number | null;
  last_ended?: string | null;
  every_days: number;
  schedule_repairs: boolean;
  differed_bytes: number;
  repaired_bytes: number;
  unreadable_bytes: number;
  findings: ScrubFinding[];
  places?: number;
}
export interface Spare {
  path: string;
  uuid: string;
  bytes: number;
  ready: boolean;
  reason: string;
  fits?: string;
}
export interface Pool {
  name: string;
  uuid: string;
  state: State;
  reason: string;
  bytes: number;
  used_bytes: number;
  freeing_bytes?: number;
  chunk_bytes: number;
  block_bytes: number;
  arrays: ArrayOf[];
  spares: Spare[];
  scrub: Scrub;
  /** A spare took the place of a drive, and none is left. */
  no_spare?: boolean;
  clearing?: { left_bytes: number; rate: number; seconds_left?: number | null } | null;
}
export interface Exported {
  host?: string | null;
  lun: number;
  names: string[];
}
export interface Volume {
  name: string;
  uuid: string;
  nguid: string;
  naa: string;
  nsid: number;
  bytes: number;
  block_bytes: number;
  state: State;
  exports: Exported[];
  iops_max?: number;
  mbps_max?: number;
  weight?: number;
  capped?: number;
  counters: Counters;
  space_bytes?: number;
  read_times?: Stages | null;
  write_times?: Stages | null;
}
export interface HostPath {
  portal: string;
  protocol: Protocol;
  head?: string | null;
  connections: number;
  in_flight: number;
  counters: Counters;
  rates: { reads: number; read_bytes: number; writes: number; write_bytes: number };
  read_times?: Times | null;
  write_times?: Times | null;
}
export interface Host {
  name: string;
  nqns: string[];
  iqns: string[];
  authenticated: boolean;
  mutual: boolean;
  chap_user: string;
  connections: number;
  exports: { volume: string; nsid: number; lun: number }[];
  paths?: HostPath[];
}
export interface Connection {
  host?: string | null;
  protocol: Protocol;
  peer: string;
  head?: string | null;
  shard: number;
  session?: number | null;
  queue: number;
  commands: number;
  in_flight: number;
  header_digest?: boolean;
  data_digest?: boolean;
}
export interface Portal {
  protocol: Protocol;
  address: string;
  listening: boolean;
  reason: string;
  connections: number;
  head?: string | null;
  interface?: string | null;
  on?: string | null;
  prefix?: number | null;
  served_by?: string | null;
}
export interface Shard {
  shard: number;
  head?: string | null;
  connections: number;
  commands: number;
  requests: number;
  drive_ops: number;
  buffer_bytes: number;
  buffer_bytes_max: number;
  longest_turn_us: number;
  long_turns: number;
  protocol_errors: number;
  last_protocol_error: string;
}
export interface Event {
  number: number;
  at: string;
  weight: Weight;
  what: string;
  code: string;
  message: string;
  head?: string | null;
  fields?: Fields;
}
export interface Events {
  events: Event[];
  next: number;
  next_own?: number | null;
}
export interface Head {
  head: string;
  name: string;
  state: 'leads' | 'follows' | 'starts' | 'out' | 'none';
  ready: boolean;
  reaches?: number | null;
  since_epoch: number;
  addresses?: { address: string; on?: string | null; reason?: string | null }[] | null;
  out?: { drives: number; shut_off: number; lives?: boolean; reason?: string | null; since?: string | null } | null;
  serves?: { commands: number; hosts: number; lanes: number; lanes_all: number; portals: string[] } | null;
}
export interface Cluster {
  uuid: string;
  me: string;
  epoch: number;
  linked: boolean;
  blind?: boolean;
  heads: Head[];
  drives?: number;
  voters: number;
  voters_reached?: number;
  late: string[];
  unreached?: string[];
  heartbeat_on_drives_ms?: number | null;
  networks?: { address: string; up: boolean; heartbeat_ms?: number | null }[];
  fences?: { drive: string; state: string; took_ms?: number | null; reason?: string | null }[];
  refused?: { reason: string; next: string } | null;
}
export interface Status {
  at: string;
  uptime_seconds: number;
  health: State;
  reasons: Reason[];
  notices: Noticed[];
  minor_notices?: Noticed[];
  daemon: {
    version: string;
    pid: number;
    state_dir: string;
    management_only: boolean;
    memory_bytes?: number;
    memory_data_bytes?: number;
    memory_resident_bytes?: number;
  };
  system: { nqn: string; iqn: string; uuid: string; serial: string; model: string; firmware: string };
  cluster?: Cluster | null;
  drives: Drive[];
  pools: Pool[];
  volumes: Volume[];
  hosts: Host[];
  portals: Portal[];
  connections: Connection[];
  shards: Shard[];
  events: Event[];
}
