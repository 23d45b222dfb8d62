// For development: serves the built page under the policy of the daemon, and either a made-up head or a daemon behind its socket.
//   node dev/server.mjs [--port 8421] [--mock empty|busy|degraded|large] [--socket PATH] [--delay MS] [--read-only] [--signed-out]
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import http from 'node:http';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as mock from './mock.mjs';
import * as past from './past.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const option = (name, otherwise) =>
  process.argv.includes(`--${name}`) ? process.argv[process.argv.indexOf(`--${name}`) + 1] : otherwise;
const flag = (name) => process.argv.includes(`--${name}`);
const port = Number(option('port', '8421'));
const socket = option('socket');
let kind = option('mock', 'busy');
let signedIn = !flag('signed-out');
let silent = false;

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const TYPES = { js: 'text/javascript', css: 'text/css', svg: 'image/svg+xml' };

const program = process.env.MILLRACE_BIN;
const machine = join(root, '../crates/topology/machines/two-sockets.rec');
/** The drawing of a recorded machine, if there is a program that draws. */
function topology(svg) {
  if (!program || !existsSync(program))
    return svg
      ? '<svg xmlns="http://www.w3.org/2000/svg" width="600" height="80"><text x="20" y="40">MILLRACE_BIN draws</text></svg>'
      : '{}';
  if (!svg) return execFileSync(program, ['topology', '--machine', machine, '--json'], { maxBuffer: 1 << 26 });
  execFileSync(program, ['topology', '--machine', machine, '--svg', '/tmp/web-topology.svg']);
  return readFileSync('/tmp/web-topology.svg');
}

function json(response, value, status = 200) {
  response.writeHead(status, { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' });
  response.end(typeof value === 'string' || Buffer.isBuffer(value) ? value : JSON.stringify(value));
}
const refuse = (response, status, error) =>
  json(
    response,
    { error: { kind: 'unauthorized', code: 'token_missing', message: 'a token is needed', ...error } },
    status,
  );

function made(request, response, url) {
  const path = url.pathname.replace('/api/v1', '');
  if (request.method !== 'GET' && path !== '/session')
    return refuse(response, 409, {
      kind: 'unsafe',
      code: 'volume_is_exported',
      field: 'force',
      message: 'tank/vm1 is exported to host esx1',
      next: 'millrace unexport tank/vm1 --host esx1',
    });
  if (path === '/status') return json(response, mock.status(kind));
  if (path === '/events') {
    const all = mock.status(kind).events;
    const since = Number(url.searchParams.get('since') ?? 0);
    const found = all.filter((e) => e.number >= since);
    if (url.searchParams.get('wait') && !found.length)
      return void setTimeout(() => json(response, { events: [], next: since }), 20000);
    return json(response, { events: found, next: all.length + 1 });
  }
  if (/^\/hosts\/[^/]+\/connect$/.test(path))
    return json(response, {
      commands: ['nvme connect -t tcp -a 10.0.0.1 -s 4420 -n nqn.2014-08.org.nvmexpress:uuid:1 --ctrl-loss-tmo=-1'],
      notes: [],
      next: [],
    });
  if (path === '/tokens')
    return json(response, {
      address: '10.0.0.1:8420',
      fingerprint: 'ab'.repeat(32),
      tokens: [
        { name: 'ansible', rights: 'full', created: '2026-11-01T08:00:00Z', used: '2026-11-27T07:00:00Z' },
        { name: 'monitor', rights: 'read', created: '2026-11-01T08:00:00Z', expires: '2027-02-01T08:00:00Z' },
      ],
    });
  if (path === '/alarms')
    return json(response, {
      receivers: [
        {
          name: 'oncall',
          kind: 'webhook',
          level: 'warning',
          state: kind === 'degraded' ? 'failing' : 'well',
          reason: 'it answers with HTTP status 502',
          waiting: 2,
          lost: 0,
          sent: '2026-11-27T07:00:00Z',
        },
      ],
      standing: [],
    });
  if (path === '/drives') return json(response, mock.status(kind).drives);
  return refuse(response, 404, {
    kind: 'not_found',
    code: 'resource_unknown',
    message: `there is no resource ${url.pathname}`,
  });
}

/** What the daemon may not have yet. */
function faked(request, response, url) {
  const path = url.pathname.replace('/api/v1', '');
  if (path === '/session') {
    if (request.method === 'POST') signedIn = true;
    if (request.method === 'DELETE') signedIn = false;
    if (request.method === 'DELETE') return response.writeHead(204).end();
    return signedIn
      ? json(response, {
          name: 'root',
          rights: flag('read-only') ? 'read' : 'full',
          expires: flag('signed-out') ? new Date(Date.now() + 4e7).toISOString().replace(/\.\d+/, '') : null,
        })
      : refuse(response, 401, {});
  }
  if (path.startsWith('/history'))
    return json(
      response,
      past.history(kind, path.slice(8), Number(url.searchParams.get('step')), Number(url.searchParams.get('since'))),
    );
  if (path === '/topology') return json(response, topology(false));
  if (path === '/explain') return void setTimeout(() => json(response, past.explanation(kind)), 300);
  if (path === '/topology.svg') return response.writeHead(200, { 'Content-Type': 'image/svg+xml' }).end(topology(true));
  return null;
}

function passOn(request, response) {
  const to = http.request(
    {
      socketPath: socket,
      path: request.url,
      method: request.method,
      headers: { ...request.headers, host: 'localhost', origin: '' },
    },
    (answer) => {
      // An older daemon does not have all resources of the page.
      if (answer.statusCode === 404 && faked(request, response, new URL(request.url, 'http://x')) !== null) {
        return answer.resume();
      }
      response.writeHead(answer.statusCode, answer.headers);
      return answer.pipe(response);
    },
  );
  to.removeHeader('origin');
  to.on('error', () => response.destroy());
  request.pipe(to);
}

const server = http.createServer((request, response) => {
  const url = new URL(request.url, 'http://x');
  if (url.pathname === '/dev') {
    kind = url.searchParams.get('mock') ?? kind;
    silent = url.searchParams.has('silent');
    return response.end('ok');
  }
  if (url.pathname.startsWith('/api/')) {
    if (silent) return response.destroy();
    if (socket) return passOn(request, response);
    if (faked(request, response, url) !== null) return;
    return void setTimeout(() => made(request, response, url), Number(option('delay', '0')));
  }
  const name = url.pathname.startsWith('/assets/') ? url.pathname : '/index.html';
  const file = join(root, 'dist', name);
  if (!existsSync(file)) return response.writeHead(404).end();
  response.writeHead(200, {
    'Content-Type': TYPES[name.split('.').pop()] ?? 'text/html; charset=utf-8',
    'Content-Security-Policy': POLICY,
    'X-Content-Type-Options': 'nosniff',
    'Cache-Control': 'no-cache',
  });
  response.end(readFileSync(file));
});
server.listen(port, '127.0.0.1', () => console.log(`http://127.0.0.1:${port}/`));
