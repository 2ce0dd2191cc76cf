import { expect, test } from "./mesh";

const frontend = "spiffe://default.zone-1.mesh.local/ns/default/sa/frontend";

test("the matrix tells who may call whom, and a cell leads to why", async ({ watched: page, mesh }) => {
  await page.goto(`${mesh.zone1}/ui/calls?service=backend`);
  const cell = page.getByRole("button", { name: new RegExp(`^${frontend} to backend`) }).first();
  await expect(cell).toHaveAttribute("aria-label", /Allowed|Depends|Denied/);
  await cell.click();
  await expect(page.getByText("Decided by")).toBeVisible();
  expect(page.url()).toContain("row=");
  await page.reload();
  await expect(page.getByText("Decided by")).toBeVisible();
  await page.locator(".chosen").getByRole("link", { name: "Why?" }).click();
  await expect(page.getByRole("heading", { name: "Verdict" })).toBeVisible();
  await expect(page.locator(".verdict")).toBeVisible();
});

test("what was denied and tried is laid over, and a policy changes the matrix", async ({ watched: page, mesh }) => {
  await page.goto(`${mesh.zone1}/ui/calls`);
  await page.getByRole("link", { name: /^Denied and tried \([1-9]/ }).click();
  expect(page.url()).toContain("only=tried");
  await expect(page.locator("button.cell.deny.seen:not(.pale), button.cell.depends.seen:not(.pale)").first()).toBeVisible();

  const caller = "spiffe://default.zone-1.mesh.local/ns/matrix/sa/probe";
  const policy = {
    type: "MeshTrafficPermission", mesh: "default", namespace: "backend-ns", name: "matrix",
    spec: { targetRef: { kind: "Dataplane", labels: { app: "backend" } }, rules: [{ default: { allow: [{ spiffeId: { type: "Exact", value: frontend } }] } }] },
  };
  const at = `${mesh.zone1}/meshes/default/meshtrafficpermissions/matrix?namespace=backend-ns`;
  expect((await page.request.put(at, { data: policy })).ok()).toBe(true);
  await page.goto(`${mesh.zone1}/ui/calls?service=backend&caller=frontend`);
  const open = page.getByRole("button", { name: new RegExp(`^${frontend} to backend: Allowed`) });
  await open.first().click();
  await expect(page.locator(".chosen").getByRole("link", { name: /_matrix_$/ })).toBeVisible();
  expect((await page.request.delete(at)).ok()).toBe(true);
  await page.getByRole("button", { name: "Refresh" }).first().click();
  await expect(open).toHaveCount(0);
  await expect(page.locator(".chosen").getByText("Denied")).toBeVisible();
  await page.goto(`${mesh.zone1}/ui/calls?caller=${encodeURIComponent(caller)}`);
  await expect(page.getByText("No service and caller that you may read matches.")).toBeVisible();
});

test("the arrow keys move through the matrix", async ({ watched: page, mesh }) => {
  await page.goto(`${mesh.global}/ui/calls`);
  await page.locator("button.cell").first().focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowRight");
  await expect(page.locator("tr[aria-rowindex='3'] td[aria-colindex='3'] button")).toBeFocused();
  const row = await page.locator("tr[aria-rowindex='3']").boundingBox();
  expect(row?.height, "rows are as high as the window of the matrix counts them").toBe(28);
  await page.keyboard.press("Enter");
  await expect(page.getByText("Decided by")).toBeVisible();
  await expect(page.getByText(/Who called is unknown: .*zone/)).toBeVisible();
});

test("the graph comes when it is asked for", async ({ watched: page, mesh }) => {
  const loaded: string[] = [];
  page.on("response", (r) => loaded.push(r.url()));
  await page.goto(`${mesh.zone1}/ui/calls`);
  await expect(page.locator(".matrix")).toBeVisible();
  expect(loaded.filter((u) => u.includes("Graph"))).toEqual([]);
  await page.getByRole("link", { name: "Graph" }).click();
  await expect(page.getByRole("img", { name: /lines from callers to services/ })).toBeVisible();
  await expect(page.locator(".graph canvas").first()).toBeVisible();
  expect(page.url()).toContain("view=graph");
});

test("a wrong filter is refused by its field", async ({ watched: page, mesh }) => {
  await page.goto(`${mesh.zone1}/ui/calls?method=${encodeURIComponent("<img src=x onerror=alert(1)>")}`);
  await expect(page.getByRole("alert")).toContainText("method");
  await expect(page.locator("main img")).toHaveCount(0);
});
