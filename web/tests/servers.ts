import { spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "@playwright/test";
import { programs } from "./programs";

/** Started is a server that runs, or has run. */
export interface Started {
  url: string;
  /** data is its folder. */
  data: string;
  process: ChildProcess;
  /** args are its addresses, with are its other flags. */
  args: string[];
  with: string[];
}

/** Servers are globals and zones of one test file, in a folder that goes with them. */
export class Servers {
  readonly dir = mkdtempSync(join(tmpdir(), "page-"));
  private readonly processes: ChildProcess[] = [];

  program(name: string, args: string[]): ChildProcess {
    const process = spawn(`${programs}/${name}`, args, { stdio: ["ignore", "pipe", "ignore"] });
    process.stdout?.on("data", () => undefined); // a full pipe would stop it
    this.processes.push(process);
    return process;
  }

  /** start runs a server until its HTTP API answers. The same name starts it again, with the same addresses. */
  async start(program: string, name: string, args: string[], again?: Started): Promise<Started> {
    const ready = join(this.dir, `${name}.json`);
    rmSync(ready, { force: true });
    const data = join(this.dir, name);
    const ports = again?.args ?? ["--api-address", "127.0.0.1:0", "--diagnostics-address", "127.0.0.1:0",
      program === "causeway-global" ? "--kds-address" : "--xds-address", "127.0.0.1:0"];
    const process = this.program(program, ["run", "--data-dir", data, "--ready-file", ready, ...ports, ...args]);
    let told: { api?: string; kds?: string; xds?: string; diagnostics?: string } = {};
    await expect.poll(() => {
      if (process.exitCode !== null) throw new Error(`${name} ended with ${process.exitCode}`);
      try {
        told = JSON.parse(readFileSync(ready, "utf8")) as typeof told;
        return told.api;
      } catch {
        return undefined;
      }
    }, { timeout: 60_000 }).toBeDefined();
    const same = Object.entries(told).filter(([port]) => ["api", "kds", "xds", "diagnostics"].includes(port)).flatMap(([port, at]) => [`--${port}-address`, at]);
    return { url: `http://${told.api}`, data, process, args: same, with: args };
  }

  /** end stops one process, and waits until it is gone. */
  async end(process: ChildProcess, signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
    if (process.exitCode !== null || process.signalCode !== null) return;
    const ended = new Promise((resolve) => process.once("exit", resolve));
    if (process.kill(signal)) await ended;
  }

  /** stop sends SIGSTOP, and waits until every thread of the process stands still: a busy machine takes a while. */
  async stop(process: ChildProcess): Promise<void> {
    process.kill("SIGSTOP");
    const threads = `/proc/${process.pid}/task`;
    await expect.poll(() => readdirSync(threads).filter((id) => !/\) T /.test(readFileSync(join(threads, id, "stat"), "utf8")))).toEqual([]);
  }

  async close(): Promise<void> {
    await Promise.all(this.processes.map((p) => this.end(p)));
    rmSync(this.dir, { recursive: true, force: true });
  }

  /** addressOf is where a server listens for another purpose than its HTTP API. */
  addressOf(s: Started, port: "kds" | "xds" | "diagnostics"): string {
    return s.args[s.args.indexOf(`--${port}-address`) + 1] ?? "";
  }

  /** admin is the token of a server's administrator. */
  admin(s: Started): string {
    return readFileSync(join(s.data, "admin.token"), "utf8").trim();
  }
}

/** ask sends one request to a server's API, and returns the answer as JSON. */
export async function ask<T = unknown>(s: Started, method: string, path: string, body?: unknown, token?: string): Promise<T> {
  const headers: Record<string, string> = { "Content-Type": "application/json", ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }) };
  const answer = await fetch(s.url + path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
  return (text === "" ? undefined : text.startsWith("{") ? JSON.parse(text) : text) as T;
}
