// A daemon of a test's own, in a folder of its own, and the program that orders it about.
import { execFile, spawn } from 'node:child_process';
import { openSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

export const program = process.env.MILLRACE_BIN ?? '';
const run = promisify(execFile);
/** Until something counts as never: a bound against tests that hang, and no measure of speed. */
export const PATIENCE_MS = 30_000;

export const pause = (ms) => new Promise((done) => setTimeout(done, ms));

export async function until(what, ready, patience = PATIENCE_MS) {
  const end = Date.now() + patience;
  for (;;) {
    const found = await ready();
    if (found) return found;
    if (Date.now() > end) throw new Error(`never: ${what}`);
    await pause(50);
  }
}

export function freePort() {
  return new Promise((done, fail) => {
    const server = createServer().once('error', fail);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => done(port));
    });
  });
}

/** For the link: shards of the two heads meet at the ports behind it, so these are from a range that the kernel gives nobody. */
export async function linkPort() {
  const free = (port) =>
    new Promise((done) => {
      const server = createServer().once('error', () => done(false));
      server.listen(port, '127.0.0.1', () => server.close(() => done(true)));
    });
  for (let port = 12_000 + (process.pid % 500) * 40; port < 32_000; port += 8) {
    if ((await free(port)) && (await free(port + 1))) return port;
  }
  throw new Error('no free port');
}

export class Daemon {
  static async new() {
    const daemon = new Daemon();
    daemon.folder = await mkdtemp(join(tmpdir(), 'millrace-page-'));
    daemon.port = await freePort();
    daemon.url = `http://127.0.0.1:${daemon.port}`;
    daemon.socket = join(daemon.folder, 'api.sock');
    writeFileSync(
      join(daemon.folder, 'head.toml'),
      [
        `state_dir = "${daemon.folder}/state"`,
        `socket = "${daemon.socket}"`,
        'shards = 1',
        'memory = "64M"',
        '[api]',
        `tcp = "127.0.0.1:${daemon.port}"`,
        '',
      ].join('\n'),
    );
    return daemon;
  }
  async start() {
    const log = openSync(join(this.folder, 'log'), 'a');
    this.child = spawn(program, ['serve', '--config', join(this.folder, 'head.toml')], {
      stdio: ['ignore', 'ignore', log],
    });
    await until(`the daemon answers: ${this.log()}`, () =>
      this.cli('status').then(
        () => true,
        () => false,
      ),
    );
  }
  log() {
    try {
      return readFileSync(join(this.folder, 'log'), 'utf8');
    } catch {
      return '';
    }
  }
  /** A file for a drive, full of holes; its path. */
  file(name, mib) {
    const path = join(this.folder, name);
    writeFileSync(path, '');
    truncateSync(path, mib * 2 ** 20);
    return path;
  }
  async cli(words) {
    const { stdout } = await run(program, [
      '--socket',
      this.socket,
      ...(Array.isArray(words) ? words : words.split(' ')),
    ]);
    return stdout;
  }
  json = async (words) => JSON.parse(await this.cli(`${words} --json`));
  token = async (words) => (await this.json(`token add ${words}`)).secret;
  async portal(protocol) {
    const address = `127.0.0.1:${await freePort()}`;
    await this.cli(`portal add ${protocol} ${address}`);
    return address;
  }
  kill(signal = 'SIGKILL') {
    return new Promise((done) => {
      if (!this.child || this.child.exitCode != null || this.child.signalCode) return done();
      this.child.once('exit', () => done());
      return this.child.kill(signal);
    });
  }
  async end() {
    await this.kill();
    await rm(this.folder, { recursive: true, force: true });
  }
}

/** A load over iSCSI until it is ended. */
export function load(portal, iqn, host) {
  return spawn(
    program,
    [
      'bench',
      '--target',
      `iscsi://${portal}/${iqn}/0`,
      '--iqn',
      host,
      '--rw',
      'randrw',
      '--force',
      '--qd',
      '4',
      '--seconds',
      '0',
      '--patience',
      '60',
      '--json',
    ],
    { stdio: 'ignore' },
  );
}
