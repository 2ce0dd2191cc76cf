import { join } from "node:path";
import { createServer, type AddressInfo } from "node:net";
import type { ChildProcess } from "node:child_process";
import { expect, test, type Page } from "@playwright/test";
import { ask, Servers, type Started } from "./servers";

// Two globals on one etcd, and a zone.
let servers: Servers, first: Started, second: Started, etcd: ChildProcess;

async function freeURL(): Promise<string> {
  const free = createServer().listen(0, "127.0.0.1");
  await new Promise((done) => free.once("listening", done));
  const { port } = free.address() as AddressInfo;
  await new Promise((done) => free.close(done));
  return `http://127.0.0.1:${port}`;
}

const instance = async (s: Started) => (await ask<{ instanceId: string }>(s, "GET", "/")).instanceId;

test.beforeAll(async () => {
  servers = new Servers();
  const [clients, peers] = [await freeURL(), await freeURL()];
  etcd = servers.program("member", ["m0", join(servers.dir, "etcd"), clients, peers, `m0=${peers}`, ""]);
  const store = ["--store", "etcd", "--etcd-endpoints", clients];
  first = await servers.start("causeway-global", "first", store);
  second = await servers.start("causeway-global", "second", [...store, "--secrets-key-file", join(first.data, "secrets.key")]);
  const { join: invitation } = await ask<{ join: string }>(first, "POST", "/zones/east/_join", { rejoin: true });
  await servers.start("causeway-zone", "east", ["--zone", "east", "--join", invitation]);
});

test.afterAll(() => servers.close());

/** rowOf is what an overview tells of a replica. */
function rowOf(page: Page, instance: string) {
  return page.getByRole("table", { name: "Replicas of the global" }).getByRole("row").filter({ hasText: instance });
}

async function open(page: Page, s: Started): Promise<Page> {
  const one = await page.context().newPage();
  await one.goto(`${s.url}/ui/`);
  return one;
}

test("each of two replicas shows both; one that is killed is gone, and its zone is where it is", async ({ page }) => {
  test.setTimeout(240_000);
  const names = [await instance(first), await instance(second)] as const;
  for (const [i, s] of [first, second].entries()) {
    const one = await open(page, s);
    await expect(async () => {
      for (const button of await one.getByRole("button", { name: "Refresh" }).all()) await button.click();
      for (const [k, name] of names.entries()) {
        await expect(rowOf(one, name)).toHaveText(new RegExp(`^${name}${k === i ? " \\(this one\\)" : ""}${k === 0 ? " \\(leader\\)" : ""}.*etcd`), { timeout: 2000 });
      }
      await expect(one.getByText("All 1 shown are online.")).toBeVisible({ timeout: 2000 });
      await expect(one.getByText("No problems found.")).toBeVisible({ timeout: 2000 });
    }).toPass({ timeout: 60_000 });
    await one.close();
  }
  const { items } = await ask<{ items: { instance: string; zones: number }[] }>(first, "GET", "/_replicas");
  const of = items.find((r) => r.zones === 1)?.instance;
  const [killed, left, name, other] = of === names[0] ? [first, second, names[0], names[1]] : [second, first, names[1], names[0]];
  const overview = await open(page, left);
  const asked = await open(page, killed);
  await expect(rowOf(overview, name)).toContainText("etcd");
  await expect(rowOf(asked, name)).toContainText("(this one)");
  await servers.end(killed.process, "SIGKILL");
  await expect(rowOf(overview, name)).toHaveText(/gone, last listed (just now|\d+ s ago)$/, { timeout: 90_000 });
  await expect(rowOf(overview, other)).toContainText("(this one) (leader)");
  await expect(overview.getByText("All 1 shown are online.")).toBeVisible({ timeout: 90_000 });
  await expect(rowOf(overview, other).getByRole("cell").nth(1), "the zone is at the replica that is left").toHaveText("1");
  await asked.getByRole("button", { name: "Refresh" }).last().click();
  await expect(asked.getByRole("alert").first(), "the page of the replica that is gone says how old it is").toContainText("What is below is the answer before.");

  const again = await servers.start("causeway-global", killed === first ? "first" : "second", killed.with, killed);
  const renewed = await instance(again);
  await expect(async () => {
    await overview.getByRole("button", { name: "Refresh" }).last().click();
    await expect(rowOf(overview, renewed)).toContainText("etcd", { timeout: 2000 });
  }).toPass({ timeout: 60_000 });

  await servers.end(etcd, "SIGKILL");
  await expect(async () => {
    for (const button of await overview.getByRole("button", { name: "Refresh" }).all()) await button.click();
    await expect(rowOf(overview, other)).toContainText("etcd, does not answer", { timeout: 2000 });
    await expect(rowOf(overview, renewed), "nothing is known of the other, and since when").toHaveText(/unheard for (a moment|\d+ s)$/, { timeout: 2000 });
    await expect(overview.getByRole("region", { name: "Needs attention" }).getByRole("listitem").filter({ hasText: `Replica ${renewed}` })).toContainText("nothing was heard of it", { timeout: 2000 });
  }).toPass({ timeout: 60_000 });
});
