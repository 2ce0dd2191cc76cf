import type { Page } from "@playwright/test";
import { Client } from "./client";
import { expect, test } from "./mesh";

const frontend = "spiffe://default.zone-1.mesh.local/ns/default/sa/frontend";

test("the matrix tells who may call whom, and a cell leads to why", async ({ watched: page, mesh }) => {
  await page.goto(`${mesh.zone1}/ui/calls?service=backend`);
  const cell = page.getByRole("button", { name: new RegExp(`^${frontend} to backend`) }).first();
  await expect(cell).toHaveAttribute("aria-label", /Allowed|Depends|Denied/);
  await cell.click();
  await expect(page.getByText("Decided by")).toBeVisible();
  expect(page.url()).toContain(`from=${encodeURIComponent(frontend)}`);
  await page.reload();
  await expect(page.getByText("Decided by")).toBeVisible();
  await page.locator(".chosen").getByRole("link", { name: "Why?" }).click();
  await expect(page.getByRole("heading", { name: "Verdict" })).toBeVisible();
  await expect(page.locator(".verdict")).toBeVisible();
});

test("a shared URL means the same cell when the mesh has changed, and says so where the cell is not shown", async ({ watched: page, mesh }) => {
  await page.goto(`${mesh.zone1}/ui/calls?service=backend`);
  await page.getByRole("button", { name: new RegExp(`^${frontend} to backend`) }).first().click();
  const chosen = page.locator(".chosen").getByRole("heading");
  await expect(chosen).toHaveText(/^backend from /);
  const [shared, title] = [page.url(), (await chosen.textContent()) ?? ""];

  // A caller whose name comes first moves all others by one place.
  const at = `${mesh.zone1}/meshes/default/dataplanes/aaa?namespace=aaa`;
  const data = { type: "Dataplane", mesh: "default", namespace: "aaa", name: "aaa", labels: { app: "aaa", "k8s.kuma.io/service-account": "aaa" }, networking: { address: "192.0.2.9", inbound: [{ port: 9, name: "http-port", tags: { "kuma.io/service": "aaa", "kuma.io/protocol": "http" } }] } };
  const answer = await page.request.put(at, { data });
  expect(answer.ok(), await answer.text()).toBe(true);
  await page.goto(shared);
  await expect(page.locator("button.cell[aria-pressed='true']")).toHaveAttribute("title", new RegExp(`^${frontend} to backend`));
  await expect(chosen).toHaveText(title);
  await page.goto(`${shared}&caller=aaa`);
  await expect(chosen).toHaveCount(0);
  await expect(page.getByText(`${frontend} is not among the services and callers above.`)).toBeVisible();
  await page.getByRole("link", { name: "Look for it" }).click();
  await expect(chosen).toHaveText(title);

  // The cell of a caller that is gone is nowhere, and nobody is sent to look for it.
  await page.goto(`${mesh.zone1}/ui/calls?service=backend`);
  await page.getByRole("button", { name: /\/sa\/aaa to backend/ }).first().click();
  await expect(chosen).toHaveText(/from .*aaa$/);
  const gone = page.url();
  expect((await page.request.delete(at)).ok()).toBe(true);
  await page.goto(gone);
  await expect(page.getByText(/sa\/aaa is not here any more, or you may not read it\./)).toBeVisible();
  await expect(page.getByRole("link", { name: "Look for it" })).toHaveCount(0);
  await page.goto(`${gone}&zone=zone-2`);
  await page.getByRole("link", { name: /^Look for (it|them)$/ }).click();
  await expect(page.getByText(/sa\/aaa is not here any more, or you may not read it\./)).toBeVisible();
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

test("a row of the matrix shows its service and where it is, also in a narrow window", async ({ watched: page, mesh }) => {
  await page.setViewportSize({ width: 390, height: 800 });
  await page.goto(`${mesh.global}/ui/calls?service=backend`);
  await expect(page.locator(".matrix tbody th").first()).toBeVisible();
  const rows = await page.locator(".matrix tbody th").evaluateAll((all) => all.map((th) => {
    const [place, name] = [th.querySelector("span"), document.createRange()];
    name.selectNodeContents(th.firstElementChild ?? th);
    if (place !== null) name.setStartAfter(place);
    const right = th.getBoundingClientRect().right;
    return { text: th.textContent, place: place !== null && place.scrollWidth <= place.clientWidth, name: name.getBoundingClientRect().right <= right };
  }));
  expect(rows.map((r) => r.text)).toContain("zone-2/backend-ns/backend:http-port");
  expect(rows.filter((r) => !r.place || !r.name)).toEqual([]);
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

const permission = (name: string, conf: object) => ({
  type: "MeshTrafficPermission", mesh: "default", namespace: "backend-ns", name,
  spec: { targetRef: { kind: "Dataplane", labels: { app: "backend" } }, rules: [{ default: conf }] },
});

/** lines counts those of the graph. */
async function lines(page: Page): Promise<number> {
  const text = (await page.getByRole("img", { name: /lines from callers to services/ }).getAttribute("aria-label")) ?? "";
  return Number(/^\d+/.exec(text)?.[0]);
}

test("matrix and graph lay what was seen over what is allowed: allowed and never used, denied and tried", async ({ watched: page, mesh }) => {
  const own = "spiffe://default.zone-1.mesh.local/ns/backend-ns/sa/backend";
  const at = `${mesh.zone1}/meshes/default/meshtrafficpermissions/overlay?namespace=backend-ns`;
  const conf = { allow: [own, frontend].map((value) => ({ spiffeId: { type: "Exact", value } })), allowWithShadowDeny: [{ spiffeId: { type: "Exact", value: frontend } }] };
  expect((await page.request.put(at, { data: permission("overlay", conf) })).ok()).toBe(true);
  const client = await Client.of(mesh.zone1, "frontend", "default");
  await expect.poll(() => client.call("GET", "/overlay"), { timeout: 30_000 }).toBe(200);
  const loaded: string[] = [];
  page.on("response", (r) => loaded.push(r.url()));
  await page.goto(`${mesh.zone1}/ui/calls?service=backend`);
  const cell = (caller: string) => page.getByRole("button", { name: new RegExp(`^${caller} to backend: `) }).first();
  await expect(cell(own)).toHaveAttribute("aria-label", /: Allowed; not seen$/);
  await expect(async () => {
    await page.getByRole("button", { name: "Refresh" }).first().click();
    await expect(cell(frontend)).toHaveAttribute("aria-label", /: Allowed; [1-9]\d* allowed/, { timeout: 2000 });
    await expect(cell(frontend)).toHaveClass(/shadow.*seen/, { timeout: 2000 });
  }).toPass();
  expect(loaded.filter((u) => u.includes("Graph")), "the graph's library comes with a graph").toEqual([]);
  for (const [only, shown, pale] of [["Allowed, not seen", own, frontend], ["Shadow differs", frontend, own]] as const) {
    const link = page.getByRole("link", { name: new RegExp(`^${only} \\([1-9]`) });
    const count = Number(/\((\d+)\)/.exec((await link.textContent()) ?? "")?.[1]);
    await link.click();
    await expect(cell(shown)).not.toHaveClass(/pale/);
    await expect(page.locator(`button.cell.pale[title^="${pale} to backend"]`).first()).toBeAttached();
    await page.getByRole("link", { name: "Graph" }).click();
    await expect(page.locator(".graph canvas").first()).toBeVisible();
    expect(await lines(page), `${only}, as a graph`).toBe(count);
    expect(page.url()).toContain("view=graph");
    await page.getByRole("link", { name: "Matrix" }).click();
  }
  await page.getByRole("link", { name: /^Denied and tried \([1-9]/ }).click();
  await page.getByRole("link", { name: "Graph" }).click();
  await expect(page.locator(".graph canvas").first()).toBeVisible();
  expect(await lines(page)).toBeGreaterThan(0);

  // The global asks the zone that is named what was seen there.
  await page.goto(`${mesh.global}/ui/calls?zone=zone-1&service=backend&caller=frontend`);
  await expect(page.getByText(/Calls have been counted/)).toBeVisible();
  await expect(async () => {
    await page.getByRole("button", { name: "Refresh" }).first().click();
    await expect(cell(frontend)).toHaveAttribute("aria-label", /: Allowed; [1-9]\d* allowed/, { timeout: 2000 });
  }).toPass();
  expect((await page.request.delete(at)).ok()).toBe(true);
});

test("a click on a line of the graph shows its cell", async ({ watched: page, mesh }) => {
  const at = `${mesh.zone1}/meshes/default/meshtrafficpermissions/line?namespace=backend-ns`;
  expect((await page.request.put(at, { data: permission("line", { allow: [{ spiffeId: { type: "Exact", value: frontend } }] }) })).ok()).toBe(true);
  await page.goto(`${mesh.zone1}/ui/calls?service=backend&caller=${encodeURIComponent(frontend)}&only=allow&view=graph`);
  const graph = page.getByRole("img", { name: /lines from callers to services/ });
  await expect(page.locator(".graph canvas").first()).toBeVisible();
  const box = await graph.boundingBox();
  await expect(async () => {
    // The lines go from the left column to the right one, around the middle.
    for (let y = -60; y <= 60 && !page.url().includes("from="); y += 3) await graph.click({ position: { x: (box?.width ?? 0) / 2, y: (box?.height ?? 0) / 2 + y } });
    expect(page.url()).toContain("from=");
  }).toPass();
  await expect(page.locator(".chosen").getByText("Decided by")).toBeVisible();
  expect((await page.request.delete(at)).ok()).toBe(true);
});

test("each filter selects: mesh, zone, namespace, service, identity, method and path", async ({ watched: page, mesh }) => {
  const at = `${mesh.zone1}/meshes/default/meshtrafficpermissions/orders?namespace=backend-ns`;
  const conf = { allow: [{ spiffeId: { type: "Exact", value: frontend }, method: ["GET"], path: { type: "Prefix", value: "/orders" } }] };
  expect((await page.request.put(at, { data: permission("orders", conf) })).ok()).toBe(true);
  await page.goto(`${mesh.global}/ui/calls`);
  const form = page.locator("form.question");
  const ask = async (values: Record<string, string>) => {
    for (const label of ["Service", "Caller (part of the SPIFFE ID)", "Zone", "Namespace", "Method", "Path", "Mesh"]) {
      await form.getByLabel(label, { exact: true }).fill(values[label] ?? (label === "Mesh" ? "default" : ""));
    }
    await form.getByRole("button", { name: "Show" }).click();
    await expect(page.getByRole("button", { name: "Refreshing…" })).toHaveCount(0);
  };
  const rows = page.locator(".matrix tbody th");
  await ask({ Zone: "zone-2" });
  await expect(rows.first()).toContainText("zone-2/");
  await expect(rows.filter({ hasText: "zone-1/" })).toHaveCount(0);
  await ask({ Namespace: "backend-ns", Service: "backend" });
  await expect(rows.filter({ hasText: "zone-1/backend-ns/backend" }).first()).toBeVisible();
  await ask({ Namespace: "nowhere" });
  await expect(page.getByText("No service and caller that you may read matches.")).toBeVisible();
  await ask({ Mesh: "no-such-mesh" });
  await expect(page.getByRole("alert")).toContainText("no-such-mesh");
  const cell = page.getByRole("button", { name: new RegExp(`^${frontend} to backend: `) }).first();
  const caller = { Service: "backend", Zone: "zone-1", "Caller (part of the SPIFFE ID)": "sa/frontend" };
  for (const [more, says] of [[{}, /Depends on method, path/], [{ Method: "GET", Path: "/orders/1" }, /: Allowed/], [{ Method: "POST", Path: "/orders/1" }, /: Denied/], [{ Method: "GET", Path: "/other" }, /: Denied/]] as const) {
    await ask({ ...caller, ...more });
    await expect(page.locator(".matrix thead th:not(.corner)")).toHaveCount(1);
    await expect(cell).toHaveAttribute("aria-label", says);
  }
  expect((await page.request.delete(at)).ok()).toBe(true);
});

test("a wrong filter is refused by its field", async ({ watched: page, mesh }) => {
  await page.goto(`${mesh.zone1}/ui/calls?method=${encodeURIComponent("<img src=x onerror=alert(1)>")}`);
  await expect(page.getByRole("alert")).toContainText("method");
  await expect(page.locator("main img")).toHaveCount(0);
});
