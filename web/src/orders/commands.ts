// The command that does the same as each order of the page, to be copied to a shell.
import { sizeArgument } from '../format';

/** An argument as a shell takes it. */
export const quote = (text: string) =>
  /^[A-Za-z0-9_@%+=:,./-]+$/.test(text) ? text : `'${text.replace(/'/g, `'\\''`)}'`;

export type Force = 'force' | 'disconnect';
/** What was agreed to: the API's `force` is `--force`, its `disconnect` is what the command line asks (`--yes`). */
export type Forced = ReadonlySet<Force>;
export const NOTHING: Forced = new Set();

function line(words: (string | false | null | undefined)[], forced: Forced = NOTHING): string {
  const all = ['millrace', ...words, forced.has('force') && '--force', forced.has('disconnect') && '--yes'];
  return all
    .filter((w): w is string => typeof w === 'string' && w !== '')
    .map(quote)
    .join(' ');
}

/** What is not typed yet. */
const or = (text: string, placeholder: string) => text.trim() || placeholder;
const bytesOr = (bytes: number | null) => (bytes ? sizeArgument(bytes) : 'SIZE');
const cap = (n: number | null) => (n == null ? null : n === 0 ? 'none' : String(n));

export const createVolume = (name: string, bytes: number | null, block: number | null) =>
  line([
    'volume',
    'create',
    or(name, 'POOL/VOLUME'),
    '--size',
    bytesOr(bytes),
    ...(block ? ['--block', String(block)] : []),
  ]);

export const resizeVolume = (name: string, bytes: number | null, forced: Forced) =>
  line(['volume', 'resize', name, '--size', bytesOr(bytes)], forced);

export const renameVolume = (name: string, next: string) => line(['volume', 'rename', name, or(next, 'NAME')]);

export function capVolume(name: string, iops: number | null, mbps: number | null, weight: number | null) {
  const set = [
    ['--iops-max', cap(iops)],
    ['--mbps-max', cap(mbps)],
    ['--weight', weight == null ? null : String(weight)],
  ] as const;
  return line(['volume', 'set', name, ...set.flatMap(([key, v]) => (v == null ? [] : [key, v]))]);
}

export const removeVolume = (name: string, forced: Forced) => line(['volume', 'rm', name], forced);

export const exportVolume = (volume: string, host: string, lun: string) =>
  line(['export', or(volume, 'POOL/VOLUME'), '--host', or(host, 'HOST'), ...(lun.trim() ? ['--lun', lun.trim()] : [])]);

export const unexportVolume = (volume: string, host: string, forced: Forced) =>
  line(['unexport', volume, '--host', host], forced);

export const addHost = (name: string, nqns: string[], iqns: string[], secret: boolean) =>
  line([
    'host',
    'add',
    or(name, 'HOST'),
    ...nqns.flatMap((n) => ['--nqn', n]),
    ...iqns.flatMap((n) => ['--iqn', n]),
    ...(secret ? ['--chap-secret-file', 'FILE'] : []),
  ]);

export const setHost = (name: string, nqns: string[], iqns: string[], forced: Forced) =>
  line(['host', 'set', name, ...nqns.flatMap((n) => ['--nqn', n]), ...iqns.flatMap((n) => ['--iqn', n])], forced);
export const removeHost = (name: string, forced: Forced) => line(['host', 'rm', name], forced);

export const failDrive = (drive: string, forced: Forced) => line(['drive', 'fail', drive], forced);
export const returnDrive = (drive: string) => line(['drive', 'return', drive]);
export const replaceDrive = (old: string, next: string, forced: Forced) =>
  line(['drive', 'replace', old, or(next, 'NEW')], forced);
export const locateDrive = (drive: string, on: boolean) => line(['drive', 'locate', drive, on ? '--on' : '--off']);

export const startScrub = (pool: string, repair: boolean, prefer: string[]) =>
  line(['pool', 'scrub', pool, repair && '--repair', ...prefer.flatMap((d) => ['--prefer', d])]);
export const stopScrub = (pool: string) => line(['pool', 'scrub', pool, '--stop']);
