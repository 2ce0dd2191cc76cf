import { Client } from "./client";
import { write } from "./editor";
import { expect, test } from "./mesh";

// IMAGES=docs/images writes the pictures of the documentation anew; without it they go where results go.
const folder = process.env["IMAGES"] === undefined ? "test-results/images" : `../${process.env["IMAGES"]}`;

const frontend = "spiffe://default.zone-1.mesh.local/ns/default/sa/frontend";
const shop = { type: "Exact", value: "spiffe://default.zone-2.mesh.local/ns/shop/sa/shop" };
const policy = (name: string, match: object) => ({
  type: "MeshTrafficPermission", mesh: "default", namespace: "backend-ns", name,
  spec: { targetRef: { kind: "Dataplane", labels: { app: "backend" } }, rules: [{ default: match }] },
});
const allowed = { allow: [{ spiffeId: { type: "Exact", value: frontend } }] };

test("pictures of the views", async ({ watched: page, mesh }) => {
  test.setTimeout(180_000);
  await page.setViewportSize({ width: 1280, height: 760 });
  const made = [
    policy("by-frontend", { ...allowed, allowWithShadowDeny: [{ spiffeId: { type: "Exact", value: frontend } }] }),
    policy("by-shop", { allow: [{ spiffeId: shop, method: ["GET"], path: { type: "Prefix", value: "/orders" } }] }),
  ];
  const at = (name: string) => `${mesh.zone1}/meshes/default/meshtrafficpermissions/${name}?namespace=backend-ns`;
  for (const one of made) expect((await page.request.put(at(one.name), { data: one })).ok()).toBe(true);
  const client = await Client.of(mesh.zone1, "frontend", "default");
  await expect.poll(() => client.call("GET", "/orders"), { timeout: 30_000 }).toBe(200);
  await expect.poll(async () => (await page.request.get(`${mesh.zone1}/_report/shadow`)).text(), { timeout: 30_000 }).toContain("/orders");
  expect((await page.request.put(at("by-frontend"), { data: policy("by-frontend", allowed) })).ok()).toBe(true); // its history has a difference

  const question = new URLSearchParams({ from: frontend, to: "backend", namespace: "backend-ns", inbound: "http-port", method: "GET", path: "/", mesh: "default" });
  const views: { name: string; url: string; dark?: boolean; open?: () => Promise<void> }[] = [
    { name: "overview", url: `${mesh.global}/ui/` },
    { name: "calls", url: `${mesh.zone1}/ui/calls` },
    { name: "graph", url: `${mesh.zone1}/ui/calls?view=graph`, dark: true },
    { name: "why", url: `${mesh.zone1}/ui/why?${question}` },
    {
      name: "resource", url: `${mesh.zone1}/ui/resource?kri=kri_mtp_default_zone-1_backend-ns_by-frontend_`, dark: true,
      open: async () => {
        await page.getByText("1 field").first().click();
        await page.getByRole("heading", { name: "Rollout" }).evaluate((e) => e.scrollIntoView());
      },
    },
    {
      name: "try", url: `${mesh.zone1}/ui/try`,
      open: async () => {
        await write(page, JSON.stringify(policy("by-frontend", { deny: allowed.allow }), null, 2));
        await page.getByRole("button", { name: "Preview" }).click();
        await expect(page.getByText(/[1-9]\d* would lose access/)).toBeVisible();
        await page.getByRole("button", { name: "Preview" }).evaluate((e) => e.scrollIntoView());
      },
    },
    { name: "zone", url: `${mesh.global}/ui/zone?name=zone-1`, dark: true },
    { name: "proxy", url: `${mesh.zone1}/ui/proxy?kri=kri_dp_default_zone-1_backend-ns_backend_` },
    { name: "shadow", url: `${mesh.zone1}/ui/shadow`, dark: true },
  ];
  for (const { name, url, dark, open } of views) {
    await page.emulateMedia({ colorScheme: dark === true ? "dark" : "light" });
    await page.goto(url);
    if (name !== "try") await expect(page.getByText(/^Updated/).first()).toBeVisible();
    await expect(page.getByText(/^(Refreshing|Loading).*…$/)).toHaveCount(0);
    await open?.();
    const picture = await page.screenshot({ path: `${folder}/${name}.png` });
    expect(picture.length, name).toBeGreaterThan(10_000);
  }
  for (const one of made) expect((await page.request.delete(at(one.name))).ok()).toBe(true);
});
