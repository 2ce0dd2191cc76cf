import { defineConfig } from "@playwright/test";

// The browser is CHROMIUM, or the machine's. Two workers have a mesh each (tests/mesh.ts). A third takes the files whose
// tests start servers of their own (tests/servers.ts), and wait for leases and for the ends of tokens for most of their
// time. In the gate, where much else runs, a test that failed runs again, and is listed as flaky.
const gate = process.env["CI"] !== undefined;
const alone = /(large|markup|refusal|replicas|rights|signin|zone)\.spec\.ts$/;

export default defineConfig({
  testDir: "tests",
  workers: 3,
  projects: [
    { name: "servers", testMatch: alone, workers: 1 },
    { name: "mesh", testIgnore: alone, workers: 2 },
  ],
  retries: gate ? 2 : 0,
  timeout: gate ? 120_000 : 60_000,
  expect: { timeout: gate ? 30_000 : 15_000 },
  reporter: [["list"]],
  use: {
    // Without a GPU, and without the library that computes one: pages are drawn by the processor.
    launchOptions: {
      executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium",
      args: ["--no-sandbox", "--disable-gpu", "--disable-software-rasterizer"],
    },
    viewport: { width: 1280, height: 800 },
  },
});
