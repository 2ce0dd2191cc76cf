import { readFileSync } from "node:fs";
import type { CDPSession, Page } from "@playwright/test";

/** address is the global's HTTP API, and pid its process: test/bench starts it, with the whole mesh behind it. */
export const address = process.env["ADDRESS"] ?? "";
const pid = process.env["PID"] ?? "";
/** zones and policies are how many the mesh has. */
export const zones = Number(process.env["ZONES"]);
export const policies = Number(process.env["POLICIES"]);
/** How long a sign may take, in ms. A machine that does other work, too, is slow, and the figures say how slow. */
const patience = 120_000;

/** figure prints one sample: test/bench reads a line of JSON for each. A goal of 0 is none. */
export function figure(title: string, unit: string, goal: number, sample: number): void {
  process.stdout.write(`${JSON.stringify({ Title: title, Unit: unit, Goal: goal, Sample: sample })}\n`);
}

/** moment prints one of the samples of a figure that follow each other: the goal is for what it grows by. */
export function moment(at: string, title: string, unit: string, goal: number, sample: number): void {
  process.stdout.write(`${JSON.stringify({ Title: title, Unit: unit, Moment: at, Goal: goal, Sample: sample })}\n`);
}

/** percentile returns the smallest value that so many percent of all do not exceed. */
export function percentile(all: number[], percent: number): number {
  const sorted = [...all].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil((sorted.length * percent) / 100) - 1)] ?? 0;
}

/** Sign is what a person sees once a view is there: an element, one of which has the text. */
export interface Sign {
  selector: string;
  text?: string;
  count?: number;
}

/** shown returns at which ms of the page's clock a sign is there to be seen. It looks at each frame. */
export async function shown(page: Page, sign: Sign): Promise<number> {
  const at = await page.waitForFunction(
    ({ selector, text, count }) => {
      const all = [...document.querySelectorAll(selector)].filter((e) => e.checkVisibility());
      const there = all.length >= (count ?? 1) && (text === undefined || all.some((e) => e.textContent?.includes(text) === true));
      return there ? performance.now() : false;
    },
    sign,
    { polling: "raf", timeout: patience },
  );
  return (await at.jsonValue()) as number;
}

/** clicked clicks a link inside the page and returns after how many ms the sign is there. */
export async function clicked(page: Page, link: Sign, sign: Sign): Promise<number> {
  await shown(page, link);
  const begun = await page.evaluate(({ selector, text }) => {
    const found = [...document.querySelectorAll<HTMLElement>(selector)].find((e) => text === undefined || e.textContent?.includes(text) === true);
    const now = performance.now();
    found?.click();
    return now;
  }, link);
  return (await shown(page, sign)) - begun;
}

/** wall is the time of the machine's clock, in ms, at a time of the page's clock. */
export async function wall(page: Page, at: number): Promise<number> {
  return at + (await page.evaluate(() => performance.timeOrigin));
}

/** now is the time of the machine's clock, in ms with their parts. */
export function now(): number {
  return performance.timeOrigin + performance.now();
}

export async function put(path: string, body: unknown): Promise<void> {
  const answer = await fetch(address + path, { method: "PUT", body: JSON.stringify(body), headers: { "Content-Type": "application/json" } });
  if (!answer.ok) throw new Error(`PUT ${path}: ${answer.status} ${await answer.text()}`);
  await answer.arrayBuffer();
}

/** permission allows one caller at one service, whose proxies have the label app. */
export function permission(name: string, app: string, caller: string): object {
  return {
    type: "MeshTrafficPermission", mesh: "default", name,
    spec: { targetRef: { kind: "Dataplane", labels: { app } }, rules: [{ default: { allow: [{ spiffeId: { type: "Exact", value: caller } }] } }] },
  };
}

/** cpu returns the seconds of CPU that the global has used. */
export function cpu(): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

export const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** Memory is what a page holds after garbage was collected, in the quietest of a few moments. */
export interface Memory {
  heap: number; // MiB
  nodes: number;
  listeners: number;
}

export async function memory(session: CDPSession): Promise<Memory> {
  const all: Memory[] = [];
  for (let i = 0; i < 5; i++) {
    await sleep(1000); // an answer may be under way: that of a thousand zones is some MiB until it is shown
    for (let k = 0; k < 3; k++) await session.send("HeapProfiler.collectGarbage");
    const { usedSize } = await session.send("Runtime.getHeapUsage");
    const { nodes, jsEventListeners } = await session.send("Memory.getDOMCounters");
    all.push({ heap: usedSize / 2 ** 20, nodes, listeners: jsEventListeners });
  }
  const lowest = (of: (m: Memory) => number) => Math.min(...all.map(of));
  return { heap: lowest((m) => m.heap), nodes: lowest((m) => m.nodes), listeners: lowest((m) => m.listeners) };
}
