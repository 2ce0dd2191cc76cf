import { rmSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test, type Page } from "@playwright/test";
import { ask, Servers, type Started } from "./servers";

let servers: Servers, global: Started, zone: Started;

const service = (i: number) => ({
  type: "MeshService", mesh: "default", namespace: "shop", name: `service-${i}`,
  spec: { selector: { dataplaneLabels: { matchLabels: { app: `a-${i}` } } }, ports: [{ port: 80, targetPort: 8080, appProtocol: "http" }] },
});

async function total(of: Started, plural: string): Promise<number> {
  return (await ask<{ total: number }>(of, "GET", `/${plural}?size=1`)).total;
}

test.beforeAll(async () => {
  servers = new Servers();
  global = await servers.start("causeway-global", "global", []);
  const { join: invitation } = await ask<{ join: string }>(global, "POST", "/zones/east/_join", { rejoin: true });
  zone = await servers.start("causeway-zone", "east", ["--zone", "east", "--join", invitation]);
  await expect.poll(() => total(zone, "meshes"), { timeout: 60_000 }).toBe(1);
  for (let i = 0; i < 12; i++) await ask(zone, "PUT", `/meshes/default/meshservices/service-${i}?namespace=shop`, service(i));
  await expect.poll(() => total(global, "meshservices"), { timeout: 60_000 }).toBe(12);
});

test.afterAll(() => servers.close());

/** shows asks again until a text is there: who is connected is as of the last question. */
async function shows(page: Page, text: RegExp): Promise<void> {
  await expect(async () => {
    const again = page.getByRole("button", { name: "Refresh" });
    for (const one of await again.all()) await one.click();
    await expect(page.getByText(text).first()).toBeVisible({ timeout: 2000 });
  }).toPass({ timeout: 90_000 });
}

test("a zone that goes away is shown as away, since when, and comes back, in a page that nobody touches", async ({ page }) => {
  test.setTimeout(300_000);
  await page.goto(`${global.url}/ui/`);
  await expect(page.getByText("Updates automatically.")).toBeVisible();
  await shows(page, /All 1 shown are online\./); // until it has acknowledged all
  const asked: string[] = [];
  page.on("request", (r) => asked.push(new URL(r.url()).pathname));
  await servers.end(zone.process, "SIGKILL");
  await expect(page.getByText(/offline for/)).toBeVisible({ timeout: 90_000 });
  await expect(page.locator(".totals"), "the totals follow, too").toContainText("0 of 1");
  zone = await servers.start("causeway-zone", "east", ["--zone", "east"], zone);
  await expect(page.getByRole("link", { name: "east: online" })).toHaveCount(1, { timeout: 90_000 });
  await expect(page.getByText(/offline for/)).toHaveCount(0);
  expect(asked.filter((path) => path === "/zones/_overview").length, "questions about zones").toBeLessThan(20);

  await servers.end(zone.process, "SIGKILL");
  await page.getByRole("link", { name: "east", exact: true }).click();
  const followed = { timeout: 90_000 };
  await expect(page.getByText(/The zone is not connected, and has not been for .* What it has is what it acknowledged then\./)).toBeVisible(followed);
  zone = await servers.start("causeway-zone", "east", ["--zone", "east"], zone);
  await expect(page.getByText(/The zone is connected/)).toBeVisible(followed);
  const messages = page.getByRole("row", { name: /^Mesh to the zone/ }).getByRole("cell").nth(1);
  const before = await messages.textContent();
  await ask(global, "PUT", "/meshes/default", { type: "Mesh", name: "default", labels: { seen: "again" } });
  await expect(messages, "what it acknowledges is counted as it comes").not.toHaveText(before ?? "");
});

test("a zone that comes after the overview has its answer, and before it waits for changes, is shown", async ({ page }) => {
  let release = () => {};
  const released = new Promise<void>((done) => (release = done));
  const waits = (url: URL) => url.pathname === "/zones/_overview" && url.searchParams.get("size") === "0";
  await page.route(waits, async (route) => {
    await released;
    await route.continue();
  });
  await page.goto(`${global.url}/ui/`);
  const tiles = page.getByRole("list", { name: "Zones by state" }).getByRole("listitem");
  await expect(tiles).toHaveCount(1);
  await ask(global, "PUT", "/zones/late", { type: "Zone", name: "late" });
  release();
  await expect(tiles).toHaveCount(2);
  await expect(page.locator(".totals"), "the totals follow, too").toContainText("1 of 2");
  await ask(global, "DELETE", "/zones/late");
  await expect(tiles).toHaveCount(1);
  await page.unrouteAll({ behavior: "ignoreErrors" });
});

test("a change is shown while it is rolled out, to a zone that does not move, and when it is everywhere, in a page that nobody touches", async ({ page }) => {
  test.setTimeout(120_000);
  await page.clock.install();
  await page.goto(`${global.url}/ui/`);
  const row = page.getByRole("region", { name: "Rolling out" }).getByRole("listitem").filter({ hasText: "MeshTimeout moving" });
  const bar = row.getByRole("progressbar", { name: "zones that have moving" });
  await expect(page.getByRole("region", { name: "Rolling out" }).getByText("No policy was changed on this server")).toBeVisible();
  await servers.stop(zone.process);
  const spec = { targetRef: { kind: "Mesh" }, to: [{ targetRef: { kind: "Mesh" }, default: { connectionTimeout: "3s" } }] };
  try {
    await ask(global, "PUT", "/meshes/default/meshtimeouts/moving", { type: "MeshTimeout", mesh: "default", name: "moving", spec });
    await expect(row).toContainText("0 of 1 zones");
    await expect(bar).toHaveJSProperty("position", 0);
    await expect(row).not.toContainText("Complete");
  } finally {
    zone.process.kill("SIGCONT");
  }
  await expect(row).toContainText(/Complete: *1 of 1 zones/);
  await expect(bar).toHaveCount(0);
  await page.clock.fastForward("16:00");
  await expect(row, "the page asks the log again within half a minute").toHaveCount(0, { timeout: 60_000 });
  await expect(page.getByText("No policy was changed on this server in the last 15 minutes.")).toBeVisible();
  await ask(global, "DELETE", "/meshes/default/meshtimeouts/moving");
});

test("a zone's own page answers while its global is away, and says since when", async ({ page }) => {
  test.setTimeout(240_000);
  await page.goto(`${zone.url}/ui/resources?type=meshservices`);
  await expect(page.getByRole("link", { name: "service-3", exact: true })).toBeVisible();
  await expect(page.getByText(/The global is away/)).toHaveCount(0);
  const own = await page.context().newPage(); // nobody touches it
  await own.goto(`${zone.url}/ui/zone`);
  await expect(own.getByText("Updates automatically.")).toBeVisible();
  await expect(own.getByText(/The global is connected/)).toBeVisible();
  await servers.end(global.process, "SIGKILL");
  await expect(own.getByText(/The global is not connected/)).toBeVisible({ timeout: 30_000 });
  await expect(async () => {
    await page.reload();
    await expect(page.getByText(/The global is away since .*: whether it has newer ones is unknown\./)).toBeVisible({ timeout: 2000 });
  }).toPass({ timeout: 90_000 });
  await page.getByRole("link", { name: "service-3", exact: true }).click();
  await expect(page.locator("pre").first()).toContainText("a-3");
  await page.getByRole("link", { name: "Overview" }).click();
  await expect(page.getByText(/the global is away: what is here may not be the newest/)).toBeVisible();
  global = await servers.start("causeway-global", "global", [], global);
  await expect(own.getByText(/The global is connected/)).toBeVisible({ timeout: 90_000 });
  await own.close();
});

test("the overview checks twenty zones, and the others when it is asked to", async ({ page }) => {
  for (let i = 0; i < 24; i++) await ask(global, "POST", `/zones/aa-${String(i).padStart(2, "0")}/_join`, { rejoin: true });
  await servers.end(zone.process); // the last of all by its name, and what it holds is not among the first twenty
  for (const file of readdirSync(zone.data).filter((f) => f.endsWith(".db"))) rmSync(join(zone.data, file));
  rmSync(join(zone.data, "audit"), { recursive: true }); // the server would miss its store
  zone = await servers.start("causeway-zone", "east", ["--zone", "east"], zone);
  await expect.poll(async () => JSON.stringify(await ask(global, "GET", "/zones/east/_sync")), { timeout: 60_000 }).toContain('"held"');
  await page.goto(`${global.url}/ui/`);
  await expect(page.getByText("The sync of 20 of 25 zones was checked.")).toBeVisible();
  await expect(page.getByText("No problems found in what was checked.")).toBeVisible();
  await page.getByRole("button", { name: "Check the other 5" }).click();
  await expect(page.getByText("12 deletions of MeshService are held.")).toBeVisible();
  await expect(page.getByRole("button", { name: /Check the other/ })).toHaveCount(0);
  await expect(page.getByText(/zones was checked/)).toHaveCount(0);
  await expect(page.getByText(/^5 other zones were checked .*; they are not rechecked automatically\.$/)).toBeVisible();
});

test("deletions that are held are accepted by clicks, and only then happen", async ({ page }) => {
  await page.goto(`${global.url}/ui/`);
  await page.getByRole("button", { name: "Check the other 5" }).click();
  await page.getByRole("link", { name: "Zone east" }).first().click();
  const held = page.locator(".warning").filter({ hasText: "12 deletions of MeshService" });
  await expect(held).toContainText("service-3");
  await held.getByRole("button", { name: "Accept" }).click();
  await held.getByRole("button", { name: "No" }).click();
  // One of them comes back meanwhile: what a person did not see, she does not accept.
  await held.getByRole("button", { name: "Accept" }).click();
  await ask(zone, "PUT", "/meshes/default/meshservices/service-3?namespace=shop", service(3));
  await expect.poll(async () => JSON.stringify(await ask(global, "GET", "/zones/east/_sync")), { timeout: 60_000 }).not.toContain("service-3");
  const rest = page.locator(".warning").filter({ hasText: "11 deletions of MeshService" });
  await expect(rest).toBeVisible();
  await expect(page.getByRole("button", { name: /^Yes/ })).toHaveCount(0);
  expect(await total(global, "meshservices")).toBe(12);
  await rest.getByRole("button", { name: "Accept" }).click();
  await rest.getByRole("button", { name: "Yes, remove 11" }).click();
  await expect(page.getByRole("status").filter({ hasText: "11 deletions of MeshService accepted." })).toBeVisible();
  await expect(rest).toHaveCount(0);
  await expect.poll(() => total(global, "meshservices"), { timeout: 60_000 }).toBe(1);
});

test("with a thousand zones the overview is one screen", async ({ page }) => {
  const zones = Array.from({ length: 975 }, (_, i) => ({ type: "Zone", name: `zone-${String(i).padStart(3, "0")}` }));
  await ask(global, "POST", "/_batch", zones);
  const policies = Array.from({ length: 5 }, (_, i) => ({
    type: "MeshTimeout", mesh: "default", name: `wide-${i}`,
    spec: { targetRef: { kind: "Mesh" }, to: [{ targetRef: { kind: "Mesh" }, default: { connectionTimeout: "3s" } }] },
  }));
  await ask(global, "POST", "/_batch", policies);
  await page.goto(`${global.url}/ui/`);
  await expect(page.locator(".totals").getByText("1 of 1000")).toBeVisible();
  await expect(page.getByText(/^(Asking|Refreshing|Loading|Waiting|Checking)/)).toHaveCount(0);
  await expect(page.getByText("The sync of 20 of 1000 zones was checked.")).toBeVisible();
  const tiles = page.getByRole("list", { name: "Zones by state" });
  await expect(tiles.getByRole("listitem")).toHaveCount(1000);
  await expect(page.getByRole("region", { name: "Rolling out" }).getByText(/of 1000 zones/)).toHaveCount(3);
  const parts = [page.getByRole("region", { name: "Needs attention" }), page.getByRole("region", { name: "Rolling out" }), tiles];
  const ends = await Promise.all(parts.map((part) => part.evaluate((e) => Math.round(e.getBoundingClientRect().bottom))));
  expect(Math.max(...ends), `where what needs attention, what is rolled out and the zones end: ${ends.join(", ")}`).toBeLessThanOrEqual(800);
  const height = await page.evaluate(() => document.documentElement.scrollHeight);
  expect(height, "with the ten that most need a look, and the replicas").toBeLessThanOrEqual(1600);
  expect(await page.evaluate(() => document.querySelectorAll("*").length), "elements").toBeLessThan(5500);
  const narrow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  expect(narrow, "wider than its window").toBeLessThanOrEqual(0);
  const wrong = page.getByRole("table", { name: "Zones that need a look" }).getByRole("row");
  await expect(wrong).toHaveCount(11);
  await page.getByRole("button", { name: "Show 100 of them" }).click();
  await expect(wrong).toHaveCount(111);
  await page.getByRole("region", { name: "Rolling out" }).getByRole("button", { name: "Show 3 more" }).click();
  await expect(page.getByRole("region", { name: "Rolling out" }).getByText(/of 1000 zones/)).toHaveCount(5);
});
