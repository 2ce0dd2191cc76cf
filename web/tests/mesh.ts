import { spawn, type ChildProcess } from "node:child_process";
import { test as base, expect, type Page } from "@playwright/test";
import { programs } from "./programs";

/** Mesh is the demo: a global, two zones and real Envoys. */
export interface Mesh {
  global: string;
  zone1: string;
  zone2: string;
}

async function start(): Promise<{ mesh: Mesh; process: ChildProcess }> {
  const process = spawn(`${programs}/demo`, { stdio: ["ignore", "pipe", "inherit"] });
  const told = await new Promise<string>((resolve, reject) => {
    let text = "";
    process.stdout.on("data", (chunk: Buffer) => {
      text += chunk.toString();
      if (text.includes("the logs of all processes")) resolve(text);
    });
    process.on("exit", (code) => reject(new Error(`the demo ended with ${code}:\n${text}`)));
  });
  const servers = new Map<string, string>();
  for (const [address] of told.matchAll(/http:\/\/127\.0\.0\.1:\d+(?=[ \n])/g)) {
    const answer = await fetch(`${address}/`).then((r) => r.json() as Promise<{ mode?: string; zone?: string }>).catch(() => undefined);
    if (answer?.mode !== undefined) servers.set(answer.zone ?? answer.mode, address);
  }
  const [global, zone1, zone2] = ["global", "zone-1", "zone-2"].map((name) => servers.get(name));
  if (global === undefined || zone1 === undefined || zone2 === undefined) throw new Error(`no global, zone-1 and zone-2 in:\n${told}`);
  return { mesh: { global, zone1, zone2 }, process };
}

/** watched is a page whose every request to another host, error and refused script fails the test. */
export const test = base.extend<{ watched: Page }, { mesh: Mesh }>({
  mesh: [
    // eslint-disable-next-line no-empty-pattern
    async ({}, use) => {
      const { mesh, process } = await start();
      await use(mesh);
      const ended = new Promise((resolve) => process.once("exit", resolve));
      process.kill("SIGINT");
      await ended;
    },
    { scope: "worker", timeout: 120_000 },
  ],
  watched: async ({ page }, use) => {
    const wrong: string[] = [];
    page.on("request", (r) => {
      if (new URL(r.url()).hostname !== "127.0.0.1") wrong.push(`request to ${r.url()}`);
    });
    page.on("pageerror", (e) => wrong.push(`error ${e.message}`));
    page.on("dialog", (d) => {
      wrong.push(`dialog ${d.message()}`);
      void d.dismiss();
    });
    page.on("console", (m) => {
      if (m.type() === "error" && !m.text().startsWith("Failed to load resource")) wrong.push(`console: ${m.text()}`);
    });
    await use(page);
    expect(wrong).toEqual([]);
  },
});

export { expect };
