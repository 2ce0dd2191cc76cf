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
  await expect(page.getByText("Refreshing…")).toHaveCount(0);
  const before = await listeners();
  const changes = 15;
  for (let i = 1; i <= changes; i++) await change(10 + i);
  await expect.poll(listeners, `listeners after ${changes} changes`).toBeLessThan(before + changes / 2); // what is being drawn has some
  expect((await page.request.delete(at)).ok()).toBe(true);
});

test("a page that is used keeps no more of a policy the more often it changes", async ({ watched: page, mesh }) => {
  test.setTimeout(180_000);
  const at = `${mesh.zone1}/meshes/default/meshtrafficpermissions/changing?namespace=backend-ns`;
  // A change of many fields: the audit log has each of them before and after.
  const write = async (round: number) => {
    const deny = Array.from({ length: 100 }, (_, i) => ({ spiffeId: { type: "Exact", value: `spiffe://nowhere/${"n".repeat(400)}/${i}/round-${round}` } }));
    const spec = { targetRef: { kind: "Dataplane", labels: { app: "nobody" } }, rules: [{ default: { deny } }] };
    const answer = await page.request.put(at, { data: { type: "MeshTrafficPermission", mesh: "default", namespace: "backend-ns", name: "changing", spec } });
    expect(answer.ok(), await answer.text()).toBe(true);
  };
  const link = (name: string) => page.getByRole("link", { name, exact: true });
  const round = async (i: number) => {
    await write(i);
    await link("changing").click();
    await expect(page.locator(".history li")).toHaveCount(Math.min(20, i + 1));
    await expect(page.locator("main pre", { hasText: `/0/round-${i}"` })).toBeVisible();
    await page.goBack();
    await expect(link("changing")).toBeVisible();
  };
  const session = await page.context().newCDPSession(page);
  const heap = async () => {
    for (let i = 0; i < 3; i++) await session.send("HeapProfiler.collectGarbage");
    return (await session.send("Runtime.getHeapUsage")).usedSize / 2 ** 20;
  };
  const [shown, warm, rounds] = [18, 21, 42];
  for (let i = 0; i < shown; i++) await write(i); // as many as a history shows at first
  await page.goto(`${mesh.zone1}/ui/resources?type=meshtrafficpermissions&namespace=backend-ns`);
  for (let i = shown; i <= warm; i++) await round(i);
  const before = await heap();
  for (let i = warm + 1; i <= rounds; i++) await round(i);
  expect(await heap(), `MiB after ${rounds} changes; ${before} after ${warm}`).toBeLessThan(before + 2);
  expect((await page.request.delete(at)).ok()).toBe(true);
});
