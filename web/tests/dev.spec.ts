import { spawn } from "node:child_process";
import { createServer, type AddressInfo } from "node:net";
import { expect, test } from "./mesh";

test("make ui-dev shows a server's mesh with hot reload, and lets no other site ask it", async ({ page, mesh }) => {
  const free = createServer().listen(0, "127.0.0.1");
  await new Promise((done) => free.once("listening", done));
  const { port } = free.address() as AddressInfo;
  await new Promise((done) => free.close(done));
  const dev = spawn("node_modules/.bin/vite", ["--host", "127.0.0.1", "--port", `${port}`, "--strictPort"], { env: { ...process.env, CAUSEWAY_ADDRESS: mesh.zone1 }, stdio: ["ignore", "pipe", "inherit"] });
  try {
    await new Promise<void>((resolve, reject) => {
      dev.stdout.on("data", (chunk: Buffer) => chunk.toString().includes(`${port}`) && resolve());
      dev.once("exit", (code) => reject(new Error(`vite ended with ${code}`)));
    });
    const connected = page.waitForEvent("console", { predicate: (m) => m.text().includes("[vite] connected") });
    await page.goto(`http://127.0.0.1:${port}/ui/calls?service=backend`);
    await connected;
    await expect(page.getByRole("button", { name: /to backend: / }).first()).toBeVisible();
    const foreign = await fetch(`http://127.0.0.1:${port}/meshes`, { headers: { "Sec-Fetch-Site": "cross-site", Origin: "https://evil.example" } });
    expect(foreign.status).toBe(403);
  } finally {
    const ended = new Promise((done) => dev.once("exit", done));
    if (dev.exitCode === null && dev.kill("SIGTERM")) await ended;
  }
});
