// How long an update takes with 1,000 volumes and 100 drives: script, style and layout by the browser's own count.
import { spawn } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const here = dirname(fileURLToPath(import.meta.url));
const port = 8490;
const server = spawn(process.execPath, [join(here, 'server.mjs'), '--port', String(port), '--mock', 'large'], {
  stdio: 'ignore',
});
await new Promise((r) => setTimeout(r, 600));
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
try {
  const page = await browser.newPage({ viewport: { width: 1600, height: 1000 } });
  const cdp = await page.context().newCDPSession(page);
  await cdp.send('Performance.enable', { timeDomain: 'threadTicks' });
  const metrics = async () =>
    Object.fromEntries((await cdp.send('Performance.getMetrics')).metrics.map((m) => [m.name, m.value]));
  for (const view of ['#/volumes?sort=-iops', '#/volumes', '#/drives', '#/pools', '#/hosts', '#/']) {
    await page.goto(`http://127.0.0.1:${port}/${view}`);
    await page.waitForSelector('h1');
    await page.waitForTimeout(6000);
    const before = await metrics();
    let updates = 0;
    page.on('response', (r) => {
      if (r.url().endsWith('/status')) updates += 1;
    });
    await page.waitForTimeout(10_000);
    const after = await metrics();
    const ms = (key) => (((after[key] - before[key]) * 1000) / updates).toFixed(1);
    console.log(
      `${view.padEnd(22)} ${updates} updates; each: task ${ms('TaskDuration')} ms, script ${ms('ScriptDuration')}, style ${ms('RecalcStyleDuration')}, layout ${ms('LayoutDuration')}; rows ${await page.locator('tbody tr').count()}`,
    );
    page.removeAllListeners('response');
  }
} finally {
  await browser.close();
  server.kill();
}
