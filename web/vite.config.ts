// The build: one script, one style sheet and one icon with fixed names, since the daemon embeds them by name.
import { defineConfig } from 'vite';

export default defineConfig({
  base: '/',
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact', legalComments: 'none' },
  build: {
    target: 'es2022',
    cssCodeSplit: false,
    // The policy of the page allows no inline script, so neither a preload helper nor data: URLs.
    modulePreload: false,
    assetsInlineLimit: 0,
    reportCompressedSize: true,
    rollupOptions: {
      output: {
        entryFileNames: 'assets/app.js',
        assetFileNames: (asset) =>
          asset.names.some((n) => n.endsWith('.css')) ? 'assets/app.css' : 'assets/[name][extname]',
        inlineDynamicImports: true,
      },
    },
  },
});
