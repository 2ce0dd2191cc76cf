import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// CAUSEWAY_ADDRESS is the server that `make ui-dev` shows: its API is behind the development server, at one origin.
const server = process.env["CAUSEWAY_ADDRESS"] ?? "http://127.0.0.1:5681";

export default defineConfig({
  base: "/ui/",
  // Every element is made by src/shown, which lets no text hide anything.
  plugins: [react({ jsxImportSource: "shown" })],
  resolve: { alias: { shown: fileURLToPath(new URL("./src/shown", import.meta.url)) } },
  build: { outDir: "dist/page", assetsInlineLimit: 0, modulePreload: { polyfill: false }, reportCompressedSize: true },
  server: { proxy: { "^/(?!ui/)": { target: server, changeOrigin: true, headers: { origin: server } } } },
});
