import { expect, test, type Page } from "@playwright/test";
import { ask, Servers, type Started } from "./servers";

// Ten thousand resources of a type, and one of a megabyte: a view draws a page of them, and stays one that a person can use.

const rows = 10_000;
const identities = 7200; // nearly the largest document that a server stores
let servers: Servers, zone: Started;

const identity = (i: number) => `spiffe://default.zone-1.mesh.local/ns/namespace-of-a-team-${i % 100}/sa/service-account-with-a-long-name-${i}`;

test.beforeAll(async () => {
  test.setTimeout(240_000);
  servers = new Servers();
  zone = await servers.start("causeway-zone", "zone-1", ["--zone", "zone-1"]);
  for (let from = 0; from < rows; from += 1000) {
    const documents = Array.from({ length: 1000 }, (_, i) => ({
      type: "MeshTimeout", mesh: "default", namespace: "many", name: `timeout-${String(from + i).padStart(5, "0")}`,
      spec: { to: [{ targetRef: { kind: "Mesh" }, default: { connectionTimeout: `${1 + i}s` } }] },
    }));
    await ask(zone, "POST", "/_batch", documents);
  }
  const allow = Array.from({ length: identities }, (_, i) => ({ spiffeId: { type: "Exact", value: identity(i) } }));
  const large = { type: "MeshTrafficPermission", mesh: "default", namespace: "many", name: "large", spec: { targetRef: { kind: "Dataplane", labels: { app: "large" } }, rules: [{ default: { allow } }] } };
  expect(JSON.stringify(large).length, "bytes").toBeGreaterThan(1_000_000);
  await ask(zone, "PUT", "/meshes/default/meshtrafficpermissions/large?namespace=many", large);
});

test.afterAll(() => servers.close());

/** nodes counts what the page has drawn. */
const nodes = (page: Page) => page.evaluate(() => document.querySelectorAll("*").length);

test("a list of ten thousand draws fifty, pages and searches", async ({ page }) => {
  const sizes: number[] = [];
  page.on("response", (r) => {
    if (new URL(r.url()).pathname === "/meshtimeouts" && r.status() === 200) void r.body().then((b) => sizes.push(b.length), () => undefined);
  });
  await page.goto(`${zone.url}/ui/resources?type=meshtimeouts`);
  const count = page.locator(".count");
  await expect(count).toHaveText(`1 to 50 of ${rows}`);
  await expect(page.locator("tbody tr")).toHaveCount(50);
  expect(await nodes(page), "elements").toBeLessThan(2000);
  await page.getByRole("button", { name: "Next" }).click();
  await expect(count).toHaveText(`51 to 100 of ${rows}`);
  await expect(page.locator("tbody tr").first()).toContainText("timeout-00050");
  await page.goto(`${zone.url}/ui/resources?type=meshtimeouts&offset=${rows - 50}`);
  await expect(count).toHaveText(`${rows - 49} to ${rows} of ${rows}`);
  await expect(page.getByRole("button", { name: "Next" })).toHaveCount(0);
  await page.getByLabel("Name contains").fill("09999");
  await expect(count).toHaveText("1 to 1 of 1");
  await expect(page.locator("tbody tr")).toHaveText(/timeout-09999/);
  expect(Math.max(...sizes), "bytes of an answer").toBeLessThan(100_000);
});

test("a resource of a megabyte is shown whole, tried and left again", async ({ page }) => {
  test.setTimeout(180_000); // a busy machine takes a minute
  await page.goto(`${zone.url}/ui/resources?type=meshtrafficpermissions&namespace=many`);
  await page.getByRole("link", { name: "large" }).click();
  const source = page.locator("main pre");
  await expect(source).toContainText(identity(identities - 1));
  const text = (await source.textContent()) ?? "";
  expect((JSON.parse(text) as { spec: { rules: { default: { allow: unknown[] } }[] } }).spec.rules[0]?.default.allow).toHaveLength(identities);
  await expect(page.locator(".history li").first()).toContainText("created");
  const width = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  expect(width, "wider than its window").toBeLessThanOrEqual(0);

  await page.getByRole("link", { name: "Try a change of it" }).click();
  await expect(page.locator(".cm-content")).toContainText("MeshTrafficPermission");
  expect(await nodes(page), "elements: the editor draws what can be seen").toBeLessThan(4000);
  await page.getByRole("button", { name: "Preview" }).click();
  await expect(page.getByRole("heading", { name: "MeshTrafficPermission large: unchanged" })).toBeVisible({ timeout: 60_000 });
  await page.getByRole("navigation").getByRole("link", { name: "Overview" }).click();
  await expect(page.getByRole("heading", { name: "Overview" })).toBeVisible();
});
