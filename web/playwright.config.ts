import { defineConfig } from "@playwright/test";

// The browser is the machine's: CHROMIUM, or chromium on the PATH. One worker: all tests look at one mesh.
export default defineConfig({
  testDir: "tests",
  workers: 1,
  timeout: 60_000,
  expect: { timeout: 15_000 },
  reporter: [["list"]],
  use: {
    launchOptions: { executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: ["--no-sandbox"] },
    viewport: { width: 1280, height: 800 },
  },
});
