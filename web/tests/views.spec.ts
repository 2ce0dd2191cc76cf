import type { Response } from "@playwright/test";
import { Client } from "./client";
import { expect, test } from "./mesh";

const frontend = "spiffe://default.zone-1.mesh.local/ns/default/sa/frontend";

const timeouts = (seconds: number) => ({
  type: "MeshTimeout", mesh: "default", namespace: "backend-ns", name: "live",
  spec: { targetRef: { kind: "Dataplane", labels: { app: "backend" } }, to: [{ targetRef: { kind: "Mesh" }, default: { connectionTimeout: `${seconds}s` } }] },
});

test("a zone's page tells its sync by type and when its certificates end", async ({ watched: page, mesh }) => {
  await page.goto(`${mesh.global}/ui/`);
  await page.getByRole("link", { name: /^zone-1: online/ }).click();
  await expect(page.getByRole("heading", { name: "Zone zone-1" })).toBeVisible();
  await expect(page.getByText(/The zone is connected/)).toBeVisible();
  await expect(page.getByText(/It last told of its proxies/)).toBeVisible();
  await expect(page.getByRole("row").filter({ hasText: "MeshTrafficPermission" }).first()).toContainText("of");
  const certificate = page.getByRole("row").filter({ hasText: /^certificate / }).first();
  await expect(certificate).toContainText(/in \d+/);
  await page.goto(`${mesh.zone1}/ui/zone`);
  await expect(page.getByText(/The global is connected/)).toBeVisible();
  await page.goto(`${mesh.global}/ui/zone?name=${encodeURIComponent("<img src=x onerror=alert(1)>")}`);
  await expect(page.getByRole("alert").first()).toBeVisible();
  await expect(page.locator("main img")).toHaveCount(0);
});

test("a proxy's page tells its connection, its inbounds, and the rules with their origins", async ({ watched: page, mesh }) => {
  await page.goto(`${mesh.zone1}/ui/`);
  await page.getByRole("link", { name: /: online$/ }).first().click();
  await expect(page.getByRole("heading", { name: /^Proxy dp / })).toBeVisible();
  const at = `${mesh.zone1}/meshes/default/meshtrafficpermissions/origins?namespace=backend-ns`;
  const policy = {
    type: "MeshTrafficPermission", mesh: "default", namespace: "backend-ns", name: "origins",
    spec: { targetRef: { kind: "Dataplane", labels: { app: "backend" } }, rules: [{ default: { allow: [{ spiffeId: { type: "Prefix", value: "spiffe://nobody.example/" } }] } }] },
  };
  expect((await page.request.put(at, { data: policy })).ok()).toBe(true);
  await page.goto(`${mesh.zone1}/ui/proxy?kri=kri_dp_default_zone-1_backend-ns_backend_`);
  await expect(page.getByText(/online/).first()).toBeVisible();
  await expect(page.getByRole("row").filter({ hasText: "self_inbound_dp_http-port" })).toBeVisible();
  await expect(page.getByText(/^ends in \d+/)).toBeVisible();
  const rules = page.locator("details").filter({ has: page.getByText("MeshTrafficPermission", { exact: true }) });
  await rules.locator("summary").click();
  await expect(rules.getByText(/Inbound http-port, rule 1/).first()).toBeVisible();
  await expect(rules.getByRole("link", { name: /origins/ }).first()).toBeVisible();
  expect((await page.request.delete(at)).ok()).toBe(true);
  await page.getByRole("link", { name: "Whom may it call?" }).click();
  await expect(page.getByRole("heading", { name: "Who may call whom" })).toBeVisible();
});

test("the shadow report tells who would be denied, how often and when, on its zone and on the global", async ({ watched: page, mesh }) => {
  const at = `${mesh.zone1}/meshes/default/meshtrafficpermissions/shade?namespace=backend-ns`;
  const shade = (conf: object) => ({
    type: "MeshTrafficPermission", mesh: "default", namespace: "backend-ns", name: "shade",
    spec: { targetRef: { kind: "Dataplane", labels: { app: "backend" } }, rules: [{ default: conf }] },
  });
  const nobody = shade({ allowWithShadowDeny: [{ spiffeId: { type: "Prefix", value: "spiffe://nobody.example/" } }] });
  expect((await page.request.put(at, { data: nobody })).ok()).toBe(true);
  await page.goto(`${mesh.zone1}/ui/shadow`);
  const line = page.getByRole("listitem").filter({ hasText: "shade" });
  await expect(line).toContainText("unknown yet: no would-deny, but watched for");
  await line.getByRole("link").click();
  await expect(page.getByText("only. Show all")).toBeVisible();
  expect(page.url()).toContain("policy=kri_mtp_");

  // A client whom an owner wants to shut out calls meanwhile.
  expect((await page.request.put(at, { data: shade({ allowWithShadowDeny: [{ spiffeId: { type: "Exact", value: frontend } }] }) })).ok()).toBe(true);
  const client = await Client.of(mesh.zone1, "frontend", "default");
  await expect.poll(() => client.call("GET", "/in-the-shadow"), { timeout: 30_000 }).toBe(200);
  const row = page.getByRole("row").filter({ hasText: frontend }).filter({ hasText: "/in-the-shadow" });
  for (const server of [mesh.zone1, mesh.global]) {
    await page.goto(`${server}/ui/shadow`);
    if (server === mesh.global) await page.getByRole("combobox", { name: "Zone" }).selectOption("zone-1");
    await expect(async () => {
      await page.getByRole("button", { name: "Refresh" }).first().click();
      await expect(row).toContainText("GET", { timeout: 2000 });
    }).toPass();
    await expect(row.locator("svg.span rect")).toHaveCount(1);
    await expect(row.locator("time")).toHaveCount(2);
    await expect(row.getByRole("link", { name: /shade/ })).toBeVisible();
  }
  expect(page.url()).toContain("zone=zone-1");
  await row.getByRole("link", { name: "Why?" }).click();
  await expect(page.locator(".verdict")).toContainText("Allowed by");
  await expect(page.getByText(/Shadow rules would deny, by/)).toBeVisible();

  await page.goto(`${mesh.zone1}/ui/shadow?policy=kri_mtp_default_zone-1_backend-ns_shade_`);
  await expect(row).toBeVisible();
  const earlier = page.getByText("what it would have denied was seen earlier");
  await expect(earlier).toHaveCount(0);
  expect((await page.request.delete(at)).ok()).toBe(true);
  await page.getByRole("button", { name: "Refresh" }).first().click();
  await expect(earlier, "the policy is gone, and what it would have denied is not").toBeVisible();
});

test("a policy's page lists the proxies that it concerns, and where it is", async ({ watched: page, mesh }) => {
  const at = `${mesh.zone1}/meshes/default/meshtimeouts/concerned?namespace=backend-ns`;
  expect((await page.request.put(at, { data: { ...timeouts(3), name: "concerned" } })).ok()).toBe(true);
  await page.goto(`${mesh.zone1}/ui/resources?type=meshtimeouts`);
  await page.getByRole("link", { name: "concerned", exact: true }).click();
  await expect(page.getByText(/Stored at revision \d+\./)).toBeVisible();
  await page.getByRole("button", { name: "List them" }).click();
  await page.getByRole("link", { name: "zone-1/backend-ns/backend" }).click();
  await expect(page.getByRole("heading", { name: "Proxy dp zone-1/backend-ns/backend" })).toBeVisible();
  await page.goto(`${mesh.global}/ui/resource?kri=kri_mt_default_zone-1_backend-ns_concerned_`);
  await expect(async () => {
    await page.getByRole("button", { name: "Refresh" }).first().click();
    await expect(page.getByText(/Stored at revision \d+\./)).toBeVisible({ timeout: 2000 });
  }).toPass();
  await page.getByRole("button", { name: "List them" }).click();
  await expect(page.getByRole("link", { name: "zone-1/backend-ns/backend" })).toBeVisible();
  expect((await page.request.delete(at)).ok()).toBe(true);
});

/** isComplete reports whether an answer says that all zones and proxies have what was stored after a revision. */
async function isComplete(answer: Response, after: number): Promise<boolean> {
  const rollout = (await answer.json().catch(() => undefined)) as
    | { revision: number; zones: { acknowledged: number; total: number }; proxies: { enforced: number; total: number } }
    | undefined;
  if (rollout === undefined || rollout.revision <= after) return false;
  return rollout.zones.acknowledged === rollout.zones.total && rollout.proxies.enforced === rollout.proxies.total;
}

test("a change appears by itself, its rollout is followed, and an idle page asks nothing", async ({ watched: page, mesh }) => {
  const at = `${mesh.zone1}/meshes/default/meshtimeouts/live?namespace=backend-ns`;
  await page.goto(`${mesh.zone1}/ui/resources?type=meshtimeouts`);
  await expect(page.getByText("Updates automatically.")).toBeVisible();
  const put = async (seconds: number) => {
    const stored = await page.request.put(at, { data: timeouts(seconds) });
    expect(stored.ok()).toBe(true);
    return Number(stored.headers()["causeway-revision"]);
  };
  const first = await put(3);
  await page.getByRole("link", { name: "live", exact: true }).click();
  await expect(page.getByText("Updates automatically.")).toBeVisible();
  await expect(page.getByText(/enforced by 1 of 1 proxies/)).toBeVisible();
  const complete = page.waitForResponse(async (r) => r.url().includes("/_rollout/") && (await isComplete(r, first)));
  expect(await put(4)).toBeGreaterThan(first);
  await expect(page.locator("pre").last()).toContainText(`"4s"`);
  await expect(page.getByText(/enforced by 1 of 1 proxies/)).toBeVisible();
  await complete; // a page asks until then

  await expect(page.getByText("Refreshing…")).toHaveCount(0);
  let asked = 0;
  page.on("request", () => asked++);
  const until = Date.now() + 4000;
  await expect.poll(() => Date.now() > until, { timeout: 10_000 }).toBe(true);
  expect(asked, "requests of an idle page in 4 s").toBeLessThanOrEqual(1); // a wait that ended, at most
  expect((await page.request.delete(at)).ok()).toBe(true);
});

test("changes that follow each other faster than the server answers are shown while they do", async ({ watched: page, mesh }) => {
  const at = `${mesh.zone1}/meshes/default/meshtimeouts/storm?namespace=backend-ns`;
  await page.goto(`${mesh.zone1}/ui/resources?type=meshtimeouts`);
  await expect(page.getByText("Updates automatically.")).toBeVisible();
  await page.route((url) => url.pathname === "/meshtimeouts" && !url.searchParams.has("watch"), async (route) => {
    const response = await route.fetch();
    setTimeout(() => void route.fulfill({ response }).catch(() => undefined), 1500); // the page may have given it up
  });
  let over = false;
  const storm = (async () => {
    for (let i = 1; !over; i++) {
      expect((await page.request.put(at, { data: { ...timeouts(i), name: "storm" } })).ok()).toBe(true);
      await new Promise((done) => setTimeout(done, 250));
    }
  })();
  try {
    await expect(page.getByRole("link", { name: "storm", exact: true })).toBeVisible({ timeout: 10_000 });
  } finally {
    over = true;
    await storm;
  }
  await page.unrouteAll({ behavior: "ignoreErrors" });
  expect((await page.request.delete(at)).ok()).toBe(true);
});

test("a change that comes before a view waits for changes is shown", async ({ watched: page, mesh }) => {
  const at = `${mesh.zone1}/meshes/default/meshtimeouts/early?namespace=backend-ns`;
  const put = async (seconds: number) => expect((await page.request.put(at, { data: { ...timeouts(seconds), name: "early" } })).ok()).toBe(true);
  await put(3);
  let release = () => {};
  const released = new Promise<void>((done) => (release = done));
  await page.route("**/_resources", async (route) => { // by these a view knows what to wait for
    await released;
    await route.continue();
  });
  await page.goto(`${mesh.zone1}/ui/resource?kri=kri_mt_default_zone-1_backend-ns_early_`);
  await expect(page.locator("pre").last()).toContainText(`"3s"`);
  await put(4);
  release();
  await expect(page.getByText("Updates automatically.")).toBeVisible();
  await expect(page.locator("pre").last()).toContainText(`"4s"`);
  expect((await page.request.delete(at)).ok()).toBe(true);
});

test("to choose the zone that is asked leaves what a person has typed", async ({ watched: page, mesh }) => {
  await page.goto(`${mesh.global}/ui/why`);
  const client = page.getByLabel("Client (SPIFFE ID)");
  await client.fill(frontend);
  await page.getByRole("combobox", { name: "Zone" }).selectOption("zone-1");
  await expect(page.getByText("choose the zone that is asked")).toHaveCount(0);
  await expect(client).toHaveValue(frontend);
});

test("a resource's history tells who changed what", async ({ watched: page, mesh }) => {
  const at = `${mesh.zone1}/meshes/default/meshtimeouts/told?namespace=backend-ns`;
  for (const seconds of [3, 4]) expect((await page.request.put(at, { data: { ...timeouts(seconds), name: "told" } })).ok()).toBe(true);
  await page.goto(`${mesh.zone1}/ui/resources?type=meshtimeouts`);
  await page.getByRole("link", { name: "told", exact: true }).click();
  const entries = page.locator("ol.history > li");
  await expect(entries).toHaveCount(2);
  await expect(entries.first()).toContainText(/updated by \S+/);
  await expect(entries.last()).toContainText("created by");
  await entries.first().getByText("1 field").click();
  await expect(entries.first()).toContainText(`"3s"`);
  await expect(entries.first()).toContainText(`"4s"`);
  const link = page.url();
  expect((await page.request.delete(at)).ok()).toBe(true);
  await page.goto(link);
  await expect(page.getByRole("alert")).toContainText("404");
  await expect(entries, "who removed it is told, too").toHaveCount(3);
  await expect(entries.first()).toContainText("deleted by");
});

test("a proxy's page asks the Envoy itself, or says why it cannot", async ({ watched: page, mesh }) => {
  await page.goto(`${mesh.zone1}/ui/proxy?kri=kri_dp_default_zone-1_backend-ns_backend_`);
  await page.getByRole("button", { name: "Query Envoy" }).click();
  await expect(page.getByText(/networking\.admin\.port/).first()).toBeVisible();
  const at = `${mesh.zone1}/meshes/default/dataplanes/backend?namespace=backend-ns`;
  const backend = (await (await page.request.get(at)).json()) as { networking: { address: string; admin?: { port: number } } };
  backend.networking.admin = { port: 29_911 };
  expect((await page.request.put(at, { data: backend })).ok()).toBe(true);
  await expect(async () => {
    await page.getByRole("button", { name: "Refresh" }).last().click();
    await expect(page.locator("pre").last()).toContainText("rbac", { timeout: 2000 });
  }).toPass();
  await page.reload();
  await page.getByRole("button", { name: "Query Envoy" }).click();
  await expect(page.getByRole("row").filter({ hasText: "self_inbound_dp_http-port" }).filter({ hasText: "127.0.0.1:" }).first()).toBeVisible();
});
