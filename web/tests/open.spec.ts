import { expect, test } from "./mesh";

test("a page that is left open keeps no listener of the changes that it was told of", async ({ watched: page, mesh }) => {
  const at = `${mesh.zone1}/meshes/default/meshtimeouts/kept?namespace=backend-ns`;
  const session = await page.context().newCDPSession(page);
  const listeners = async () => {
    await session.send("HeapProfiler.collectGarbage");
    return (await session.send("Memory.getDOMCounters")).jsEventListeners;
  };
  const change = async (seconds: number) => {
    const told = page.waitForResponse((r) => r.url().includes("watch=") && r.status() === 200);
    const spec = { to: [{ targetRef: { kind: "Mesh" }, default: { connectionTimeout: `${seconds}s` } }] };
    const data = { type: "MeshTimeout", mesh: "default", namespace: "backend-ns", name: "kept", spec };
    expect((await page.request.put(at, { data })).ok()).toBe(true);
    await told;
  };
  await page.goto(`${mesh.zone1}/ui/resources?type=meshtimeouts`);
  await expect(page.getByText("Updates automatically.")).toBeVisible();
  for (let i = 1; i <= 3; i++) await change(i);
  const before = await listeners();
  const changes = 15;
  for (let i = 1; i <= changes; i++) await change(10 + i);
  expect(await listeners(), `listeners after ${changes} changes`).toBeLessThan(before + changes / 2);
  expect((await page.request.delete(at)).ok()).toBe(true);
});
