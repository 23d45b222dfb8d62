// The page in a browser, at daemons of its own: what an administrator does in a day, under the policy of the daemon.
//   MILLRACE_BIN=target/debug/millrace node --test web/test/page.test.mjs
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { after, before, test } from 'node:test';
import axe from 'axe-core';
import { chromium } from 'playwright-core';
import { Daemon, PATIENCE_MS, linkPort, load, pause, program, until } from './daemon.mjs';

const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
const skip = !existsSync(program)
  ? 'MILLRACE_BIN names no program'
  : !existsSync(CHROMIUM)
    ? 'there is no Chromium'
    : false;
const IQN = 'iqn.2026-01.com.example:loader';

let browser;
let a;
let b;
let page;
let secrets;
const loads = [];
/** What the browser complained of: errors of scripts, and what the policy forbade. */
const complaints = [];

async function open(url, options = {}) {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 900 },
    reducedMotion: 'reduce',
    ...options,
  });
  const made = await context.newPage();
  made.setDefaultTimeout(PATIENCE_MS);
  made.on('pageerror', (e) => complaints.push(String(e)));
  made.on('console', (m) => {
    // That a request was refused, or a head that was killed did not answer, is the test's own doing.
    if (m.type() === 'error' && !m.text().startsWith('Failed to load resource')) complaints.push(m.text());
  });
  made.on('request', (r) => {
    if (new URL(r.url()).origin !== url) complaints.push(`a request to ${r.url()}`);
  });
  await made.goto(`${url}/`);
  return made;
}

async function signIn(to, secret) {
  await to.getByLabel(/^Token of the head/).fill(secret);
  await to.getByRole('button', { name: 'Sign in' }).click();
  await to.locator('.health').waitFor();
}

const view = async (to, hash) => {
  await to.evaluate((h) => {
    location.hash = h;
  }, hash);
  await to.locator('main h1').waitFor();
};
/** What has the focus: its tag, and its label if it is a field. */
const focused = (to = page) =>
  to.evaluate(() => {
    const e = document.activeElement;
    return [e?.tagName, e?.labels?.[0]?.querySelector('span')?.innerText].filter(Boolean).join(' ');
  });
const dialog = (to) => to.getByRole('dialog');
const health = (to, word) => to.locator('.health', { hasText: word }).waitFor();

before(async () => {
  if (skip) return;
  browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
  a = await Daemon.new();
  await a.start();
  const drives = ['w', 'x', 'y', 'z'].map((name) => a.file(name, 96));
  await a.cli(['pool', 'create', 'tank', 'mirror', drives[0], drives[1], 'mirror', drives[2], drives[3]]);
  secrets = { full: await a.token('admin'), read: await a.token('monitor --read') };
  page = await open(a.url);
});

after(async () => {
  for (const child of loads) child.kill('SIGKILL');
  await browser?.close();
  for (const daemon of [a, b]) await daemon?.end();
});

test('a token is asked for, and a wrong one is refused in words for people', { skip }, async () => {
  await page.getByLabel(/^Token of the head/).fill('nonsense');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('This token is wrong, expired or removed.').waitFor();
  assert.ok(!/Authorization/.test(await page.locator('form').innerText()), 'no advice for programs');
  const throttled = { code: 'api_throttled', kind: 'throttled', message: 'wait', fields: { seconds: 2 } };
  await page.route('**/api/v1/session', (r) => r.fulfill({ status: 429, json: { error: throttled } }));
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText(/^Too many wrong tokens came from this address: try again in [12] s/).waitFor();
  await page.unroute('**/api/v1/session');
  await page.getByText(/you can try again now/).waitFor();
  await signIn(page, secrets.full);
  await health(page, 'optimal');
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  assert.equal(await focused(), 'MAIN');
});

test('a host is added, a volume created and exported, each with its command', { skip }, async () => {
  await view(page, '#/hosts');
  await page.getByRole('button', { name: 'Add host' }).click();
  await dialog(page).getByLabel('Short name').fill('loader');
  await dialog(page).getByLabel('IQNs, for iSCSI').fill(IQN);
  await dialog(page).getByText(`millrace host add loader --iqn ${IQN}`).waitFor();
  await dialog(page).getByRole('button', { name: 'Add', exact: true }).click();
  await page.getByRole('rowheader', { name: 'loader' }).waitFor();

  await view(page, '#/volumes');
  await page.getByRole('button', { name: 'Create volume' }).click();
  await dialog(page).getByLabel('Name', { exact: true }).fill('v');
  await dialog(page).getByLabel('Size', { exact: true }).fill('32M');
  await dialog(page).getByText('millrace volume create tank/v --size 32M').waitFor();
  await dialog(page).getByRole('button', { name: 'Create', exact: true }).click();
  await page.getByRole('link', { name: 'tank/v' }).click();

  await page.getByRole('heading', { name: /tank\/v/ }).waitFor();
  await page.locator('.head-line').getByRole('button', { name: 'Export' }).click();
  await dialog(page).getByText('millrace export tank/v --host loader').waitFor();
  await dialog(page).getByRole('button', { name: 'Export', exact: true }).click();
  // How the host connects is said before the dialog goes.
  await dialog(page).getByText('millrace portal add iscsi ADDRESS:3260').waitFor();
  await dialog(page).getByRole('button', { name: 'Close' }).click();
  await page.getByText('How loader connects').click();
  await page.locator('details').getByText('millrace portal add iscsi ADDRESS:3260').waitFor();
  const status = await until('it is exported', async () => {
    const s = await a.json('status');
    return s.volumes[0]?.exports[0]?.host === 'loader' && s;
  });
  assert.equal(status.volumes[0].bytes, 32 * 2 ** 20);
});

test('a load appears in the charts and among the busiest volumes', { skip }, async () => {
  const portal = await a.portal('iscsi');
  loads.push(load(portal, (await a.json('status')).system.iqn, IQN));
  await view(page, '#/');
  await page.locator('section', { hasText: 'Busiest volumes' }).getByRole('link', { name: 'tank/v' }).first().waitFor();
  await until('the chart shows it', async () => {
    const said = await page.getByRole('img', { name: /^IOPS:/ }).getAttribute('aria-label');
    return /Reads [1-9]/.test(said) && /Writes [0-9.]+/.test(said);
  });
  await until('latencies are there, too', async () =>
    /p50 [0-9.]+ [µm]s/.test(await page.getByRole('img', { name: /^Read latency:/ }).getAttribute('aria-label')),
  );
});

test('a drive fails and returns, and the last one in sync is guarded', { skip }, async () => {
  await view(page, '#/pools');
  const leg = (name) => page.locator('.leg', { has: page.getByRole('link', { name, exact: true }) });
  await leg('w').getByRole('button', { name: 'Fail' }).click();
  await dialog(page).getByRole('button', { name: 'Fail', exact: true }).click();
  await health(page, 'degraded');
  await leg('w').getByText('failed').waitFor();
  assert.match(await page.title(), /^! degraded: /);
  const reasons = page.getByRole('region', { name: 'Reasons' });
  await reasons.getByText('millrace drive').first().waitFor();
  await reasons
    .getByRole('button', { name: /^(Return|Replace)$/ })
    .first()
    .waitFor();

  await leg('x').getByRole('button', { name: 'Fail' }).click();
  await dialog(page).getByRole('button', { name: 'Fail', exact: true }).click();
  const refused = await dialog(page).getByRole('alert').innerText();
  assert.ok(refused.includes('x'), refused);
  await dialog(page).getByRole('button', { name: 'Cancel' }).click();

  await leg('w').getByRole('button', { name: 'Return' }).click();
  await dialog(page).getByRole('button', { name: 'Return', exact: true }).click();
  await health(page, 'optimal');
});

test('a volume is capped and resized, a pool scrubbed, and a drive replaced', { skip }, async () => {
  await view(page, '#/volumes/tank/v');
  await page.getByRole('button', { name: 'Cap', exact: true }).click();
  await dialog(page).getByLabel('Commands a second').fill('5k');
  await dialog(page).getByText('millrace volume set tank/v --iops-max 5000').waitFor();
  await dialog(page).getByRole('button', { name: 'Set', exact: true }).click();
  await page.locator('.facts').getByText('5,000 IOPS').waitFor();

  await page.getByRole('button', { name: 'Resize' }).click();
  const size = dialog(page).getByLabel('New size');
  assert.equal(await size.inputValue(), '32M');
  await size.fill(String(36 * 2 ** 20 - 1));
  await dialog(page)
    .getByRole('button', { name: /^Use 37,748,736 bytes/ })
    .click();
  await dialog(page).getByRole('button', { name: 'Grow', exact: true }).click();
  await page.locator('.facts').getByText('36 MiB').waitFor();

  await view(page, '#/pools');
  await page.getByRole('button', { name: 'Start scrub' }).click();
  await dialog(page).getByText('Make legs equal where they differ').click();
  await dialog(page)
    .getByText(/where no drive is chosen, differences are only reported/)
    .waitFor();
  await dialog(page)
    .getByLabel(new RegExp(`^${a.folder}/w`))
    .check();
  await dialog(page).getByText(`millrace pool scrub tank --repair --prefer ${a.folder}/w`).waitFor();
  await dialog(page).getByRole('button', { name: 'Start', exact: true }).click();
  await page.getByText(/The scrub of pool tank runs/).waitFor();

  const spare = a.file('spare', 96);
  await view(page, `#/drives/${encodeURIComponent(`${a.folder}/z`)}`);
  await page.getByRole('button', { name: 'Locate' }).click();
  await dialog(page).getByRole('button', { name: 'Switch on' }).click();
  await dialog(page).getByRole('alert').waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Replace' }).click();
  await dialog(page).getByLabel('New drive').fill(spare);
  await dialog(page).getByText(`millrace drive replace ${a.folder}/z ${spare}`).waitFor();
  await dialog(page).getByRole('button', { name: 'Replace', exact: true }).click();
  await until('the new drive is in the mirror', async () =>
    (await a.json('status')).pools[0].arrays.some((m) => m.legs.some((l) => l.path === spare)),
  );
  await health(page, 'optimal');
});

test('what is unsafe asks for the name, and tells what would be lost', { skip }, async () => {
  await view(page, '#/volumes/tank/v');
  await page.getByRole('button', { name: 'Remove' }).click();
  await dialog(page).getByRole('button', { name: 'Remove', exact: true }).click();
  const sentence = await dialog(page).getByRole('alert').innerText();
  assert.match(sentence, /tank\/v/);
  assert.match(await focused(), /^INPUT Type tank\/v/);
  const again = dialog(page).getByRole('button', { name: 'Remove all the same' });
  assert.ok(await again.isDisabled(), 'the name is not typed');
  await dialog(page).getByText('millrace volume rm tank/v --force', { exact: true }).first().waitFor();
  await dialog(page).getByLabel(/^Type/).fill('tank/w');
  assert.ok(await again.isDisabled(), 'another name is typed');
  await dialog(page).getByLabel(/^Type/).fill('tank/v');
  assert.ok(await again.isEnabled());
  await page.keyboard.press('Escape');
  await dialog(page).waitFor({ state: 'detached' });
  assert.equal((await a.json('status')).volumes.length, 1, 'nothing was removed');
});

test('after a refusal the focus is in the field at fault', { skip }, async () => {
  await page.getByRole('button', { name: 'Resize' }).click();
  await dialog(page).getByLabel('New size').fill('9T');
  await page.keyboard.press('Enter');
  await dialog(page).getByRole('alert').waitFor();
  assert.equal(await focused(), 'INPUT New size');
  await page.keyboard.press('Escape');
});

test('a token that may only read is offered no order', { skip }, async () => {
  const reader = await open(a.url);
  await signIn(reader, secrets.read);
  await reader.getByText('read-only').first().waitFor();
  for (const hash of ['#/volumes', '#/volumes/tank/v', '#/pools', '#/hosts']) {
    await view(reader, hash);
    assert.equal(
      await reader
        .locator('main')
        .getByRole('button', { name: /^(Create|Export|Remove|Resize|Cap|Fail|Replace|Add|Start)/ })
        .count(),
      0,
      hash,
    );
  }
  await reader
    .getByText(/Orders need a token with all rights/)
    .first()
    .waitFor();
  await reader.context().close();
});

test('a host is looked at, named anew and removed', { skip }, async () => {
  await a.cli(['host', 'add', 'short', '--iqn', 'iqn.2026-01.com.example:one']);
  await view(page, '#/hosts/short');
  await page.getByRole('button', { name: 'Names' }).click();
  await dialog(page).getByLabel('IQNs, for iSCSI').fill('iqn.2026-01.com.example:two');
  await dialog(page).getByText('millrace host set short --iqn iqn.2026-01.com.example:two').waitFor();
  await dialog(page).getByRole('button', { name: 'Set', exact: true }).click();
  await page.locator('.facts').getByText('iqn.2026-01.com.example:two').waitFor();
  await page.getByRole('button', { name: 'Remove' }).click();
  await dialog(page).getByText('millrace host rm short').waitFor();
  await dialog(page).getByRole('button', { name: 'Remove', exact: true }).click();
  await page.waitForURL(/#\/hosts$/);
  assert.ok(!(await a.json('status')).hosts.some((h) => h.name === 'short'));
});

test('an address shows the same: filter, order and range', { skip }, async () => {
  await view(page, '#/drives?q=x&sort=-errors');
  assert.equal(await page.getByRole('searchbox').inputValue(), 'x');
  await page
    .getByRole('columnheader', { name: /Errors/ })
    .and(page.locator('[aria-sort="descending"]'))
    .waitFor();
  await page.getByRole('button', { name: 'Size', exact: true }).click();
  assert.match(page.url(), /sort=-size/);
  await view(page, '#/?range=1h');
  assert.equal(await page.getByRole('button', { name: '1 hour' }).getAttribute('aria-pressed'), 'true');
});

test('after a restart the sign-in form says why it asks, and no dialog is in front of it', { skip }, async () => {
  const left = await open(a.url);
  await signIn(left, secrets.full);
  await view(left, '#/volumes');
  await left.getByRole('button', { name: 'Create volume' }).click();
  await dialog(left).getByLabel('Name', { exact: true }).fill('w');
  await a.kill('SIGTERM');
  await a.start();
  await left.getByText(/^The session has ended: the daemon was restarted/).waitFor();
  assert.equal(await left.getByRole('dialog').count(), 0);
  assert.match(await left.evaluate(() => document.activeElement?.parentElement?.innerText ?? ''), /^Token of the head/);
  await signIn(left, secrets.full);
  await left.getByRole('heading', { name: 'Volumes' }).waitFor();
  await left.context().close();
  await signIn(page, secrets.full);
});

test('the last ten minutes have the minutes of before the restart, too', { skip }, async () => {
  const begin = (Math.floor(Date.now() / 60_000) - 8) * 60;
  const minutes = { step_seconds: 60, begin, reads: [4200, 4200, 4200, 4200], writes: [0, 0, 0, 0] };
  await page.route(/\/history\?step=60&/, (r) => r.fulfill({ json: minutes }));
  await view(page, '#/');
  const chart = page.getByRole('img', { name: /^IOPS:/ });
  await chart.focus();
  await until('the minutes are read', async () => {
    await page.keyboard.press('PageUp');
    return /Reads 4.2 k/.test(await chart.getAttribute('aria-label'));
  });
  await page.unroute(/\/history\?step=60&/);
});

test('the machine is drawn, and drawn again', { skip }, async () => {
  const drawn = () => page.waitForResponse((r) => r.url().includes('/topology.svg') && r.status() === 200);
  await Promise.all([drawn(), view(page, '#/machine')]);
  await drawn();
  assert.ok(await page.locator('.drawing img').evaluate((img) => img.complete && img.naturalWidth > 0));
});

test('a page that is hidden asks for nothing', { skip }, async () => {
  const hide = (hidden) =>
    page.evaluate((h) => {
      Object.defineProperty(document, 'hidden', { value: h, configurable: true });
      document.dispatchEvent(new Event('visibilitychange'));
    }, hidden);
  await view(page, '#/');
  await hide(true);
  await pause(500);
  let asked = 0;
  const count = () => {
    asked += 1;
  };
  page.on('request', count);
  await pause(2500);
  page.off('request', count);
  assert.equal(asked, 0);
  await Promise.all([page.waitForRequest(/\/status$/), hide(false)]);
});

test('the keyboard reaches all, and axe finds nothing serious in any view and theme', { skip }, async () => {
  await page.reload();
  await page.locator('main h1').waitFor();
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate(() => document.activeElement?.textContent), 'Skip to the view');
  const views = [
    '#/',
    '#/pools',
    '#/volumes',
    '#/volumes/tank/v',
    '#/hosts',
    '#/hosts/loader',
    '#/drives',
    `#/drives/${encodeURIComponent(`${a.folder}/x`)}`,
    '#/system',
    '#/machine',
    '#/events',
  ];
  const stranger = await open(a.url);
  for (const of of [page, stranger]) await of.evaluate(axe.source);
  const check = async (of, what) => {
    await pause(300);
    const { violations } = await of.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
    const grave = violations.filter((v) => ['serious', 'critical'].includes(v.impact));
    assert.deepEqual(
      grave.map((v) => `${what}: ${v.id}: ${v.nodes[0].html}`),
      [],
    );
  };
  for (const theme of ['light', 'dark']) {
    for (const of of [page, stranger]) await of.emulateMedia({ colorScheme: theme });
    for (const hash of views) {
      await view(page, hash);
      await check(page, `${hash} ${theme}`);
    }
    // Buttons that can be pressed have other colours than those that cannot.
    await view(page, '#/volumes');
    await page.getByRole('button', { name: 'Create volume' }).click();
    await dialog(page).getByLabel('Name', { exact: true }).fill('w');
    await dialog(page).getByLabel('Size', { exact: true }).fill('32M');
    await check(page, `a dialog, ${theme}`);
    await page.keyboard.press('Escape');
    await stranger.getByLabel(/^Token of the head/).fill('x');
    await check(stranger, `the sign-in form, ${theme}`);
  }
  await stranger.context().close();
});

test('of two heads, one is killed: its page says that it is silent, the other one leads', { skip }, async () => {
  b = await Daemon.new();
  await b.start();
  const { token } = await a.json(`system create --link 127.0.0.1:${await linkPort()} --name left`);
  await b.cli(`system join ${token} --link 127.0.0.1 --name right`);
  await until('b follows', async () =>
    (await b.json('head ls').catch(() => null))?.heads?.every((h) => h.ready && ['leads', 'follows'].includes(h.state)),
  );
  // A head that joins starts anew, and its tokens are its own.
  const second = await until('b takes a token', () => b.token('second').catch(() => null));
  const other = await open(b.url);
  await signIn(other, second);
  await other.locator('.heads').getByText('b follows').waitFor();
  await page.locator('.heads').getByText('a leads').waitFor();
  await a.kill();
  await page
    .getByText(/does not answer/)
    .first()
    .waitFor();
  await page.getByText(/What is shown is of .* old/).waitFor();
  assert.match(await page.title(), /^! no answer: /);
  assert.equal(await page.locator('.health.good').count(), 0);
  await other.locator('.heads').getByText('b leads').waitFor();
  await other.locator('.heads').getByText('a out').waitFor();
  await health(other, 'degraded');
  await other.context().close();
});

test('the browser had nothing to complain of', { skip }, () => {
  assert.deepEqual(complaints, []);
});
