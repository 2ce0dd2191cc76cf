import { createServer, type AddressInfo } from "node:net";
import { expect, test } from "./mesh";

// What an Envoy refuses, and where it sends to: an Envoy of the demo has taken all, until it is sent what it cannot take.

const kri = "kri_dp_default_zone-1_backend-ns_backend_";

/** patch adds a filter to the inbounds of backend: one that Envoy has, or one that it does not know. */
const patch = (filter: string) => ({
  type: "MeshProxyPatch", mesh: "default", namespace: "backend-ns", name: "refused",
  spec: {
    targetRef: { kind: "Dataplane", labels: { app: "backend" } },
    default: { appendModifications: [{ networkFilter: { operation: "AddFirst", match: { origin: "inbound" }, value: filter } }] },
  },
});
const unknown = "{name: <b>unknown</b>, typed_config: {'@type': type.googleapis.com/envoy.extensions.filters.http.buffer.v3.Buffer, max_request_bytes: 7}}";
const known = "{name: limit, typed_config: {'@type': type.googleapis.com/envoy.extensions.filters.network.connection_limit.v3.ConnectionLimit, stat_prefix: limit, max_connections: 1000}}";
const reason = /the proxy refuses the result.*Didn't find a registered implementation for '<b>unknown<\/b>'/;

test("a policy that an Envoy refuses is named wherever a person looks, and no more once it is mended", async ({ watched: page, mesh }) => {
  test.setTimeout(180_000);
  const at = `${mesh.zone1}/meshes/default/meshproxypatches/refused?namespace=backend-ns`;
  const put = async (filter: string) => expect((await page.request.put(at, { data: patch(filter) })).ok()).toBe(true);
  const open = async (view: string) => {
    const one = await page.context().newPage();
    await one.goto(`${mesh.zone1}/ui/${view}`);
    return one;
  };
  const overview = await open("");
  const globally = await page.context().newPage(); // nobody touches it
  await globally.goto(`${mesh.global}/ui/`);
  const told = globally.getByRole("region", { name: "Needs attention" }).getByRole("listitem").filter({ hasText: "Proxy backend" });
  const policy = await open(`resource?kri=kri_mpp_default_zone-1_backend-ns_refused_`);
  const attention = overview.getByRole("region", { name: "Needs attention" }).getByRole("listitem").filter({ hasText: "refused" });
  const row = overview.getByRole("table", { name: "Proxies that need a look" }).getByRole("row").filter({ hasText: "backend" });
  const conditions = policy.locator(".conditions li");
  await put(known);
  await policy.getByRole("button", { name: "Refresh" }).first().click();
  const well = async (when: string) => {
    await expect(policy.getByText("enforced by 1 of 1 proxies"), when).toBeVisible();
    await expect(policy.getByRole("heading", { name: "Not enforced by anybody" })).toHaveCount(0);
    await expect(conditions).toHaveCount(0);
    await expect(attention).toHaveCount(0);
    await expect(told).toHaveCount(0);
    await expect(row).toHaveCount(0);
    await page.goto(`${mesh.zone1}/ui/proxy?kri=${kri}`);
    await expect(page.getByText(/online for/).first()).toBeVisible();
    await expect(page.getByRole("heading", { name: "Without effect on it" })).toHaveCount(0);
  };
  await well("at first");

  await put(unknown);
  await expect(attention).toHaveText(new RegExp(`^Proxy backend: mpp zone-1/backend-ns/refused: ${reason.source}.*Mend the policy`));
  await expect(row).toContainText("something has no effect");
  await expect(told, "an operator of the global sees it, too").toHaveText(reason);
  await expect(policy.getByText("enforced by 0 of 1 proxies")).toBeVisible();
  await expect(policy.getByText(reason).first()).toBeVisible();
  await expect(conditions.filter({ hasText: "Accepted False" })).toHaveText(reason);
  await attention.getByRole("link", { name: "Proxy backend" }).click();
  const problems = overview.getByRole("list", { name: "Without effect on it" });
  await expect(problems).toHaveText(reason);
  await expect(overview.locator("main b").filter({ hasText: /^unknown$/ }), "the reason is a text").toHaveCount(0);
  await problems.getByRole("link", { name: "mpp zone-1/backend-ns/refused" }).click();
  await expect(overview.getByRole("heading", { name: "MeshProxyPatch refused" })).toBeVisible();
  await expect(overview.getByText(reason).first()).toBeVisible();
  await page.goto(`${mesh.global}/ui/resource?kri=kri_mpp_default_zone-1_backend-ns_refused_`);
  await expect(async () => {
    for (const button of await page.getByRole("button", { name: "Refresh" }).all()) await button.click();
    await expect(page.locator(".conditions li").filter({ hasText: "Accepted False" }), "the global tells it, too").toHaveText(reason, { timeout: 2000 });
  }).toPass();

  await overview.goto(`${mesh.zone1}/ui/`);
  await expect(attention).toHaveCount(1);
  await put(known);
  await well("once it is mended");
  expect((await page.request.delete(at)).ok()).toBe(true);
});

test("what an Envoy refuses for another reason than a policy is told at its proxy", async ({ watched: page, mesh }) => {
  test.setTimeout(180_000);
  // A port that another program has: Envoy cannot listen there.
  const taken = createServer().listen(0, "127.0.0.1");
  await new Promise((done) => taken.once("listening", done));
  const { port } = taken.address() as AddressInfo;
  const at = `${mesh.zone1}/meshes/default/dataplanes/backend?namespace=backend-ns`;
  type Dataplane = { networking: { inbound: { name: string; port: number; servicePort: number; protocol: string }[] } };
  const before = (await (await page.request.get(at)).json()) as Dataplane;
  const inbound = [...before.networking.inbound, { name: "taken", port, servicePort: port + 1, protocol: "tcp" }];
  await page.goto(`${mesh.zone1}/ui/`);
  const attention = page.getByRole("region", { name: "Needs attention" }).getByRole("listitem").filter({ hasText: "Proxy backend" });
  const row = page.getByRole("table", { name: "Proxies that need a look" }).getByRole("row").filter({ hasText: "backend" });
  await expect(page.getByText("Updates automatically.")).toBeVisible();
  await expect(attention).toHaveCount(0);
  expect((await page.request.put(at, { data: { ...before, networking: { ...before.networking, inbound } } })).ok()).toBe(true);
  await expect(attention).toContainText(/cannot bind.*in use/);
  await expect(row).toContainText("1 refused");
  await row.getByRole("link").click();
  await expect(page.getByRole("list", { name: "Without effect on it" })).toHaveText(/^Its Envoy refuses: .*self_inbound_dp_taken.*cannot bind/);
  await page.goBack();
  await expect(attention).toHaveCount(1);
  expect((await page.request.put(at, { data: before })).ok()).toBe(true);
  await expect(attention).toHaveCount(0);
  await expect(row).toHaveCount(0);
  await new Promise((done) => taken.close(done));
});

test("a proxy's page tells where it sends to, by which rules, and what Envoy makes of it", async ({ watched: page, mesh }) => {
  await page.goto(`${mesh.zone2}/ui/proxy?kri=kri_dp_default_zone-2_shop_shop_`);
  const outbounds = page.getByRole("table", { name: "Outbounds" });
  const to = outbounds.getByRole("row").filter({ has: page.getByRole("link", { name: "msvc zone-1/backend-ns/backend:http-port" }) });
  await expect(to.getByRole("cell")).toHaveText([/^[1-9]\d+$/, "http", "kri_msvc_default_zone-1_backend-ns_backend_http-port"]);
  await expect(outbounds.getByRole("row")).toHaveCount(2);
  const rules = page.locator("details").filter({ has: page.getByText("MeshTimeout", { exact: true }) });
  await rules.locator("summary").click();
  await expect(rules.getByRole("heading", { name: /^To msvc zone-1\/backend-ns\/backend/ }).first()).toBeVisible();
  await to.getByRole("link").click();
  await expect(page.getByRole("heading", { name: "MeshService backend" })).toBeVisible();
  await page.goto(`${mesh.zone2}/ui/proxy?kri=kri_dp_default_zone-1_backend-ns_backend_`);
  await expect(page.getByRole("alert").first(), "a proxy of another zone").toBeVisible();
});
