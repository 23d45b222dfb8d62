// A head that is made up: an empty one, a busy one, a degraded one of two, and one with 1,000 volumes and 100 drives.

export const T0 = Date.now() / 1000;
const iso = (s) => new Date(s * 1000).toISOString().replace(/\.\d+Z/, 'Z');
const uuid = (n) => `0b8f5b1e-3f0a-4c1d-9a57-${String(n).padStart(12, '0')}`;
/** A figure that wanders and is the same at the same time. */
export const wave = (seed, t, low, high) => {
  const x = Math.sin(t / 7 + seed) + Math.sin(t / 31 + seed * 3) + 0.6 * Math.sin(t / 2.3 + seed * 7);
  return low + ((x + 2.6) / 5.2) * (high - low);
};
const counted = (seed, t, low, high) => {
  let n = 0;
  for (let s = 0; s <= t - T0 + 20; s++) n += wave(seed, s, low, high);
  return Math.round(n);
};
const times = (ns) => ({
  p50_ns: ns,
  p99_ns: ns * 4.2,
  p999_ns: ns * 9,
  max_ns: ns * 14,
  mean_ns: ns * 1.3,
  timed: 1200,
  total_ns: ns * 9e5,
  total_timed: 9e5,
});
const stages = (ns) => ({
  all: times(ns),
  admitted: times(ns * 0.02),
  volume: times(ns * 0.1),
  array: times(ns * 0.08),
  drive: times(ns * 0.6),
  replied: times(ns * 0.2),
});
const nothing = { p50_ns: 0, p99_ns: 0, p999_ns: 0, max_ns: 0, mean_ns: 0, timed: 0, total_ns: 0, total_timed: 0 };

const TB = 1e12;
const events = (t, bad) => {
  const list = [
    [9000, 'note', 'head', 'head_serves', 'the head serves'],
    [8000, 'note', 'pool tank', 'pool_created', 'it was created'],
    [7000, 'note', 'volume tank/vm1', 'volume_created', 'the volume was created'],
    [6500, 'note', 'host esx1', 'host_added', 'the host was added'],
    [6400, 'note', 'volume tank/vm1', 'volume_exported', 'it was exported to host esx1 as LUN 0'],
    [5000, 'note', 'host esx1', 'host_path_connected', 'it connected over nvme by portal 10.0.0.1:4420'],
    [3000, 'note', 'pool tank', 'scrub_started', 'a scrub began'],
    [1200, 'note', 'pool tank', 'scrub_ended', 'the scrub ended: no difference in 31.2T'],
    [800, 'note', 'api', 'order_done', 'token ansible: PATCH /api/v1/volumes/tank/vm1'],
  ];
  if (bad)
    list.push(
      [
        130,
        'error',
        'drive /dev/nvme3n1',
        'leg_lost',
        '/dev/nvme3n1 is out of mirror-1 of pool tank: it failed to write blocks (input/output error)',
      ],
      [128, 'warning', 'pool tank', 'pool_degraded', 'mirror-1 has one drive in sync'],
      [
        90,
        'warning',
        'head b',
        'other_head_out',
        'head b (right) is out: it was silent for 320 ms on all networks of the link',
      ],
      [
        60,
        'note',
        'pool tank',
        'leg_synced',
        'the spare /dev/nvme8n1 took the place of /dev/nvme3n1 and is being resynced',
      ],
    );
  return list.map(([ago, weight, what, code, message], i) => ({
    number: i + 1,
    at: iso(T0 - ago),
    monotonic_ms: i,
    weight,
    what,
    code,
    message,
    ...(code === 'order_done' ? { fields: { who: { code: 'api_token', fields: { name: 'ansible' } } } } : {}),
  }));
};

export function status(kind, now = Date.now()) {
  const t = now / 1000;
  const bad = kind === 'degraded';
  const [nDrives, nVolumes, nHosts] = {
    empty: [0, 0, 0],
    busy: [8, 12, 4],
    degraded: [8, 12, 4],
    large: [100, 1000, 40],
  }[kind];
  const lost = (i) => bad && i === 3;
  const health = (i) => ({
    celsius: 38 + ((i * 7) % 19),
    hours: 9000 + i,
    media_errors: 0,
    spare_percent: 100,
    throttled_seconds: 0,
    used_percent: 2 + ((i * 5) % 40),
    warns: bad && i === 5,
  });
  const drives = Array.from({ length: nDrives }, (_, i) => ({
    path: `/dev/nvme${i}n1`,
    uuid: uuid(1000 + i),
    kind: 'block',
    model: 'EXAMPLE DP 3.84TB',
    serial: `S64GNE0R5${String(i).padStart(5, '0')}`,
    bytes: 3.84 * TB,
    block_bytes: 512,
    volatile_cache: false,
    pool: 'tank',
    role: lost(i) ? 'missing' : 'leg',
    state: lost(i) ? 'failed' : 'optimal',
    reason: lost(i) ? 'it failed to write blocks (input/output error)' : '',
    slow: bad && i === 6,
    errors: lost(i) ? 17 : 0,
    health: health(i),
    shape: null,
    counters: {
      reads: counted(i, t, 8000, 21000),
      read_bytes: counted(i, t, 8000, 21000) * 8192,
      writes: counted(i + 50, t, 3000, 9000),
      write_bytes: counted(i + 50, t, 3000, 9000) * 8192,
      flushes: 0,
      errors: 0,
    },
    read_times: times(78e3 + i * 900 + (bad && i === 6 ? 4e5 : 0)),
    write_times: times(18e3 + i * 300),
  }));
  if (bad)
    drives.push({
      ...drives[0],
      path: '/dev/nvme8n1',
      uuid: uuid(1008),
      serial: 'S64GNE0R500008',
      state: 'rebuilding',
    });
  const leg = (i) => ({
    path: `/dev/nvme${i}n1`,
    uuid: uuid(1000 + i),
    state: lost(i) ? 'failed' : 'optimal',
    reason: lost(i) ? 'it failed to write blocks (input/output error)' : '',
    slow: bad && i === 6,
  });
  const arrays = Array.from({ length: nDrives / 2 }, (_, i) => {
    const hurt = bad && i === 1;
    return {
      layout: 'mirror',
      state: hurt ? 'rebuilding' : 'optimal',
      reason: hurt ? 'one of two drives is in sync' : '',
      bytes: 3.83 * TB,
      epoch: 1,
      region_bytes: 1 << 24,
      regions: 229000,
      regions_dirty: 12 + i,
      legs: hurt
        ? [
            leg(2),
            leg(3),
            {
              path: '/dev/nvme8n1',
              uuid: uuid(1008),
              state: 'rebuilding',
              reason: 'it is being resynced',
              slow: false,
              replaces: '/dev/nvme3n1',
            },
          ]
        : [leg(2 * i), leg(2 * i + 1)],
      resync: hurt
        ? {
            done_bytes: 1.2 * TB + (t - T0) * 1.1e9,
            total_bytes: 3.83 * TB,
            rate: 1.1e9,
            leg: 2,
            partial: false,
            seconds_left: 2390,
          }
        : null,
      warm_writes: 1e6,
      cold_writes: 2e4,
      bitmap_sets: 0,
      bitmap_clears: 0,
      bitmap_wait_ns: 0,
      hedged_reads: 0,
      hedged_reads_won: 0,
    };
  });
  const pools = nDrives
    ? [
        {
          name: 'tank',
          uuid: uuid(1),
          state: bad ? 'degraded' : 'optimal',
          reason: bad ? 'mirror-1 has one drive in sync' : '',
          chunk_bytes: 65536,
          bytes: (nDrives / 2) * 3.83 * TB,
          used_bytes: (nDrives / 2) * 2.1 * TB,
          freeing_bytes: 0,
          block_bytes: 4096,
          zones: [],
          arrays,
          spares:
            kind === 'large'
              ? []
              : [{ path: '/dev/nvme9n1', uuid: uuid(1009), bytes: 3.84 * TB, ready: true, reason: '', fits: '' }],
          clearing: kind === 'busy' ? { left_bytes: 2.2e11, rate: 9e8, seconds_left: 244 } : null,
          scrub: {
            running: kind === 'busy',
            repair: false,
            done_bytes: 5.1 * TB,
            total_bytes: 15.3 * TB,
            rate: 2.2e9,
            seconds_left: 4640,
            last_ended: iso(T0 - 86400 * 6),
            every_days: 7,
            schedule_repairs: true,
            differed_bytes: 0,
            repaired_bytes: 0,
            unreadable_bytes: 0,
            findings: [],
            places: 0,
          },
        },
      ]
    : [];
  const hostNames = Array.from({ length: nHosts }, (_, i) => ['esx1', 'esx2', 'db1', 'backup'][i] ?? `host${i}`);
  const volumes = Array.from({ length: nVolumes }, (_, i) => {
    const idle = kind !== 'large' && i % 4 === 3;
    const [low, high] = idle ? [0, 0] : [600 / (i + 1) + 20, 28000 / (i + 1) + 100];
    const [reads, writes] = [counted(i, t, low, high), counted(i + 9, t, low / 3, high / 3)];
    return {
      name: i === 0 ? 'tank/db' : `tank/vm${i}`,
      uuid: uuid(5000 + i),
      nguid: 'c0ffee'.padEnd(26, '0') + String(i).padStart(6, '0'),
      naa: 'naa.31c0ffee00000001',
      nsid: i + 1,
      bytes: (i + 1) * 2 ** 38,
      block_bytes: 4096,
      state: 'optimal',
      runs: 1,
      space_bytes: (i + 1) * 2 ** 38,
      exports:
        i % 5 === 4
          ? []
          : [{ host: hostNames[i % nHosts], names: [`nqn.2014-08.org.nvmexpress:uuid:${uuid(i)}`], lun: i }],
      iops_max: i === 2 ? 5000 : 0,
      mbps_max: i === 2 ? 200 : 0,
      weight: i === 0 ? 300 : 100,
      capped: i === 2 ? 8123 : 0,
      counters: { reads, read_bytes: reads * 8192, writes, write_bytes: writes * 16384, flushes: 10, errors: 0 },
      ...(idle ? {} : { read_times: stages(95e3 + i * 3000), write_times: stages(52e3 + i * 1000) }),
    };
  });
  const heads = bad ? ['a'] : ['a', 'b'];
  const hosts = hostNames.map((name, i) => ({
    name,
    nqns: i % 2 ? [] : [`nqn.2014-08.org.nvmexpress:uuid:${uuid(200 + i)}`],
    iqns: i % 2 ? [`iqn.1993-08.org.debian:01:${name}`] : [],
    authenticated: i % 2 === 1,
    mutual: false,
    chap_user: '',
    connections: i === 3 ? 0 : 4 * heads.length,
    exports: volumes
      .filter((v) => v.exports[0]?.host === name)
      .map((v) => ({ volume: v.name, nsid: v.nsid, lun: v.exports[0].lun })),
    paths:
      i === 3
        ? []
        : heads.map((h, j) => ({
            head: h,
            protocol: i % 2 ? 'iscsi' : 'nvme',
            portal: `10.0.${j}.1:${i % 2 ? 3260 : 4420}`,
            connections: 4,
            in_flight: 11 + i,
            counters: { reads: 1, read_bytes: 1, writes: 1, write_bytes: 1, flushes: 0, errors: 0 },
            rates: {
              reads: Math.round(wave(i, t, 3e3, 2e4)),
              read_bytes: wave(i, t, 3e3, 2e4) * 8192,
              writes: Math.round(wave(i + 3, t, 1e3, 6e3)),
              write_bytes: wave(i + 3, t, 1e3, 6e3) * 8192,
            },
            read_times: times(97e3),
            write_times: times(55e3),
            queue_times: nothing,
          })),
  }));
  const connections = hosts.flatMap((h) =>
    h.paths.flatMap((p, j) =>
      [0, 1, 2, 3].map((q) => ({
        host: h.name,
        protocol: p.protocol,
        peer: `10.0.${j}.${20 + hostNames.indexOf(h.name)}:${40000 + q}`,
        head: p.head,
        shard: q,
        session: 1,
        queue: q,
        commands: counted(q, t, 100, 4000),
        in_flight: q * 3,
        header_digest: false,
        data_digest: false,
      })),
    ),
  );
  if (bad)
    connections.push({
      host: null,
      protocol: 'iscsi',
      peer: '10.0.0.99:51234',
      head: 'a',
      shard: 0,
      session: null,
      queue: 0,
      commands: 0,
      in_flight: 0,
    });
  const head = (h, name, more) => ({
    head: h,
    name,
    ready: true,
    reaches: nDrives,
    since_epoch: h === 'a' ? 1 : 4,
    addresses: [],
    out: null,
    serves: {
      commands: 812345678,
      hosts: 3,
      lanes: 32,
      lanes_all: 64,
      portals: [`nvme 10.0.${h === 'a' ? 0 : 1}.1:4420`],
    },
    ...more,
  });
  const cluster =
    kind === 'empty'
      ? null
      : {
          uuid: uuid(7),
          me: 'a',
          epoch: bad ? 9 : 8,
          linked: !bad,
          blind: false,
          drives: nDrives,
          voters: 3,
          voters_reached: 3,
          late: [],
          unreached: [],
          heartbeat_on_drives_ms: bad ? 90210 : 140,
          networks: [
            { address: '192.168.9.1:7420', up: !bad, heartbeat_ms: bad ? 90320 : 41 },
            { address: '192.168.10.1:7420', up: !bad, heartbeat_ms: bad ? 90330 : 38 },
          ],
          fences: [
            { drive: '/dev/nvme0n1', state: 'holds', took_ms: 3 },
            { drive: '/dev/nvme1n1', state: 'holds', took_ms: 4 },
          ],
          heads: [
            head('a', 'left', { state: 'leads', addresses: [{ address: '10.0.0.10', on: 'ens2f0' }] }),
            head(
              'b',
              'right',
              bad
                ? {
                    state: 'out',
                    ready: false,
                    reaches: null,
                    serves: null,
                    out: {
                      drives: 8,
                      shut_off: 8,
                      lives: false,
                      reason: 'it was silent for 320 ms on all networks of the link',
                      since: iso(T0 - 90),
                    },
                  }
                : { state: 'follows' },
            ),
          ],
        };
  const reasons = bad
    ? [
        {
          state: 'degraded',
          what: 'pool tank',
          code: 'leg_lost',
          message: 'mirror-1 has one drive in sync: /dev/nvme3n1 failed to write blocks (input/output error)',
          next: 'millrace drive replace /dev/nvme3n1 NEW',
        },
        {
          state: 'degraded',
          what: 'system',
          code: 'other_head_out',
          message: 'head b (right) is out: it was silent for 320 ms; it is shut off 8 of 8 drives; nobody takes over',
          next: 'systemctl status millrace',
        },
        {
          state: 'degraded',
          what: 'drive /dev/nvme6n1',
          code: 'leg_slow',
          message: 'its reads take 6 times longer than those of /dev/nvme7n1, which serves most of them',
          next: 'millrace drive show /dev/nvme6n1',
        },
      ]
    : [];
  return {
    at: iso(t),
    uptime_seconds: Math.round(t - T0) + 266000,
    daemon: {
      version: '0.1.0',
      pid: 1204,
      state_dir: '/var/lib/millrace',
      management_only: false,
      memory_bytes: 8.9e9,
      memory_data_bytes: 8 * 2 ** 30,
      memory_resident_bytes: 8.9e9,
    },
    system: {
      nqn: `nqn.2014-08.org.nvmexpress:uuid:${uuid(7)}`,
      iqn: `iqn.2026-01.org.millrace:${uuid(7)}`,
      uuid: uuid(7),
      serial: '0B8F5B1E3F0A4C1D9A57',
      model: 'Millrace',
      firmware: '0.1.0',
    },
    health: bad ? 'degraded' : 'optimal',
    reasons,
    notices: bad
      ? [
          {
            code: 'spare_stands_in',
            message:
              'Pool tank: the spare /dev/nvme8n1 took the place of /dev/nvme3n1 2 minutes ago, 1 spare left: replace the drive, and millrace pool add tank spare DRIVE',
          },
        ]
      : [],
    minor_notices:
      kind === 'empty'
        ? []
        : [{ code: 'host_without_secret', message: 'tank/db: exported to host esx1, which needs no secret here' }],
    drives,
    pools,
    volumes,
    hosts,
    cluster,
    connections,
    events: kind === 'empty' ? events(t, false).slice(0, 1) : events(t, bad),
    portals:
      kind === 'empty'
        ? []
        : ['nvme', 'iscsi'].flatMap((p, i) =>
            ['a', 'b'].map((h, j) => ({
              protocol: p,
              address: `10.0.${j}.1:${i ? 3260 : 4420}`,
              head: h,
              listening: !(bad && h === 'b'),
              reason: bad && h === 'b' ? 'head b is out' : '',
              connections: 8,
              interface: null,
              on: null,
              prefix: null,
              served_by: null,
            })),
          ),
    shards: Array.from({ length: kind === 'empty' ? 1 : 8 }, (_, i) => ({
      shard: i,
      head: cluster ? 'a' : null,
      connections: 3,
      commands: counted(i, t, 1000, 30000),
      requests: 12,
      drive_ops: 9,
      buffer_bytes: 1.4e8 + i * 1e7,
      buffer_bytes_max: 2 ** 30,
      protocol_errors: 0,
      last_protocol_error: '',
      longest_turn_us: 1800 + i * 300,
      long_turns: i,
    })),
  };
}
