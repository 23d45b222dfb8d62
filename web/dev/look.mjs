// Pictures of every view: kinds, themes and widths, into a folder. node dev/look.mjs FOLDER [VIEW,…] [KIND,…] [WIDTH,…] [THEME,…]
import { spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const here = dirname(fileURLToPath(import.meta.url));
const [folder = '/tmp/web-look', views, kinds, widths, themes] = process.argv.slice(2);
const list = (text, otherwise) => (text && text !== '-' ? text.split(',') : otherwise);
const PATHS = {
  overview: '#/',
  pools: '#/pools',
  volumes: '#/volumes',
  volume: '#/volumes/tank/db',
  hosts: '#/hosts',
  drives: '#/drives',
  drive: '#/drives/%2Fdev%2Fnvme1n1',
  system: '#/system',
  machine: '#/machine',
  events: '#/events',
};
mkdirSync(folder, { recursive: true });
const port = 8430 + (process.pid % 50);
const server = spawn(process.execPath, [join(here, 'server.mjs'), '--port', String(port)], { stdio: 'ignore' });
await new Promise((r) => setTimeout(r, 500));
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
try {
  for (const kind of list(kinds, ['empty', 'busy', 'degraded'])) {
    await fetch(`http://127.0.0.1:${port}/dev?mock=${kind}`);
    for (const width of list(widths, ['360', '1280', '2560']).map(Number)) {
      for (const theme of list(themes, ['light', 'dark'])) {
        const page = await browser.newPage({
          viewport: { width, height: width < 500 ? 780 : width > 2000 ? 1440 : 800 },
          colorScheme: theme,
        });
        page.on('console', (m) => {
          if (['error', 'warning'].includes(m.type())) console.log(kind, width, m.text());
        });
        page.on('pageerror', (e) => console.log(kind, width, String(e)));
        await page.goto(`http://127.0.0.1:${port}/`);
        await page.waitForSelector('h1');
        for (const view of list(views, Object.keys(PATHS))) {
          await page.evaluate((hash) => {
            location.hash = hash;
          }, PATHS[view]);
          await page.waitForTimeout(view === 'machine' ? 1500 : 1300);
          const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
          if (wide) console.log(`${view} ${kind} ${width}: wider than the window`);
          await page.screenshot({ path: `${folder}/${view}-${kind}-${width}-${theme}.png`, fullPage: true });
        }
        await page.close();
      }
    }
  }
} finally {
  await browser.close();
  server.kill();
}
