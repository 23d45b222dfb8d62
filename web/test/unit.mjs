// Runs the unit tests: esbuild, which Vite brings, makes JavaScript of them, and node:test runs it.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const here = join(dirname(fileURLToPath(import.meta.url)), 'unit');
const folder = mkdtempSync(join(tmpdir(), 'millrace-unit-'));
const names = readdirSync(here).filter((n) => n.endsWith('.test.ts'));
await build({
  entryPoints: names.map((n) => join(here, n)),
  outdir: folder,
  bundle: true,
  platform: 'node',
  format: 'esm',
  outExtension: { '.js': '.mjs' },
  jsx: 'automatic',
  jsxImportSource: 'preact',
  logLevel: 'warning',
});
const done = spawnSync(process.execPath, ['--test', ...names.map((n) => join(folder, n.replace('.ts', '.mjs')))], {
  stdio: 'inherit',
  env: { ...process.env, TZ: 'UTC' },
});
rmSync(folder, { recursive: true });
process.exit(done.status ?? 1);
