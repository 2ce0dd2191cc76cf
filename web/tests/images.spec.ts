import { expect, test } from "./mesh";

// IMAGES=docs/images writes the pictures of the documentation anew; without it they go where results go.
const folder = process.env["IMAGES"] === undefined ? "test-results/images" : `../${process.env["IMAGES"]}`;

test("pictures of the views", async ({ watched: page, mesh }) => {
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize({ width: 1280, height: 760 });
  const frontend = "spiffe://default.zone-1.mesh.local/ns/default/sa/frontend";
  const policy = (name: string, match: object) => ({
    type: "MeshTrafficPermission", mesh: "default", namespace: "backend-ns", name,
    spec: { targetRef: { kind: "Dataplane", labels: { app: "backend" } }, rules: [{ default: match }] },
  });
  const shop = { type: "Exact", value: "spiffe://default.zone-2.mesh.local/ns/shop/sa/shop" };
  const made = [
    policy("by-frontend", { allow: [{ spiffeId: { type: "Exact", value: frontend } }] }),
    policy("by-shop", { allow: [{ spiffeId: shop, method: ["GET"], path: { type: "Prefix", value: "/orders" } }] }),
  ];
  const at = (name: string) => `${mesh.zone1}/meshes/default/meshtrafficpermissions/${name}?namespace=backend-ns`;
  for (const one of made) expect((await page.request.put(at(one.name), { data: one })).ok()).toBe(true);
  const views: [string, string][] = [
    ["calls", `${mesh.zone1}/ui/calls`],
    ["why", `${mesh.zone1}/ui/why?${new URLSearchParams({ from: frontend, to: "backend", namespace: "backend-ns", inbound: "http-port", method: "GET", path: "/", mesh: "default" })}`],
  ];
  for (const [name, url] of views) {
    await page.goto(url);
    await expect(page.getByText(/^Updated/).first()).toBeVisible();
    await expect(page.getByText("Refreshing…")).toHaveCount(0);
    const picture = await page.screenshot({ path: `${folder}/${name}.png` });
    expect(picture.length, name).toBeGreaterThan(10_000);
  }
  for (const one of made) expect((await page.request.delete(at(one.name))).ok()).toBe(true);
});
