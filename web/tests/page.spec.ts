import { write } from "./editor";
import { expect, test } from "./mesh";

const frontend = "spiffe://default.zone-1.mesh.local/ns/default/sa/frontend";

const permission = (name: string) => `type: MeshTrafficPermission
mesh: default
name: ${name}
namespace: backend-ns
spec:
  targetRef: {kind: Dataplane, labels: {app: backend}}
  rules:
    - default:
        allow:
          - spiffeId: {type: Exact, value: "${frontend}"}
            method: [PROPFIND]
`;

test("the overview says which zones are online", async ({ watched: page, mesh }) => {
  await page.goto(`${mesh.global}/ui/`);
  await expect(page.getByText("2 of 2")).toBeVisible();
  await expect(page.getByText("All 2 shown are online.")).toBeVisible();
  await expect(page).toHaveTitle("Overview · global");
});

for (const [server, subjects] of [["global", "zones"], ["zone1", "dataplanes"]] as const) {
  test(`what the first view of ${server} needs is asked once, and before anything is drawn`, async ({ watched: page, mesh }) => {
    await page.addInitScript(() => {
      const drawn = new MutationObserver(() => {
        if (document.getElementById("root")?.firstChild == null) return;
        performance.mark("drawn");
        drawn.disconnect();
      });
      drawn.observe(document, { childList: true, subtree: true });
    });
    await page.goto(`${mesh[server]}/ui/`);
    await expect(page.getByRole("list", { name: /by state$/ })).toBeVisible();
    const { asked, drawn } = await page.evaluate(() => ({
      asked: performance.getEntriesByType("resource").map((e) => ({ path: e.name.slice(location.origin.length), at: e.startTime })),
      drawn: performance.getEntriesByName("drawn")[0]?.startTime ?? 0,
    }));
    for (const path of ["/", "/who-am-i", "/global-insight", `/${subjects}/_overview?size=1000&brief=true&watch=0`, "/_resources"]) {
      expect(asked.filter((one) => one.path === path), path).toHaveLength(1);
    }
    for (const path of ["/", "/who-am-i"]) expect(asked.find((one) => one.path === path)?.at, path).toBeLessThan(drawn);
  });
}

test("a denial leads to who decided, a change of policy to another verdict", async ({ watched: page, mesh }) => {
  const why = `${mesh.zone1}/ui/why?from=${encodeURIComponent(frontend)}&to=backend&namespace=backend-ns&inbound=http-port&method=PROPFIND&path=%2F&mesh=default`;
  await page.goto(why);
  await expect(page.getByText("Denied by")).toBeVisible();
  await expect(page.getByText("What would change it")).toBeVisible();

  await page.getByRole("link", { name: "Try a change" }).click();
  await write(page, permission("propfind"));
  await expect(page.getByRole("button", { name: "Apply" })).toBeDisabled();
  await page.getByRole("button", { name: "Preview" }).click();
  await expect(page.getByText("MeshTrafficPermission propfind: created")).toBeVisible();
  await page.getByRole("button", { name: "Apply" }).click();
  await page.getByRole("link", { name: "MeshTrafficPermission propfind" }).click();
  await expect(async () => {
    await page.getByRole("button", { name: "Refresh" }).last().click();
    await expect(page.getByText(/enforced by 1 of 1 proxies/)).toBeVisible({ timeout: 1000 });
  }).toPass();

  await page.goto(why);
  await expect(page.getByText("Allowed by")).toBeVisible();
  await page.getByRole("link", { name: /propfind/ }).first().click();
  await expect(page.getByRole("heading", { name: "MeshTrafficPermission propfind" })).toBeVisible();
});

test("what proxies denied is listed, and asks why by a click", async ({ watched: page, mesh }) => {
  await page.goto(`${mesh.zone1}/ui/why`);
  const row = page.getByRole("row").filter({ hasText: "ns/shop/sa/browser" }).first();
  await row.getByRole("link", { name: "Why?" }).click();
  await expect(page.getByText("Denied by")).toBeVisible();
  expect(page.url()).toContain("sa%2Fbrowser");
});

test("a broken document is refused by its field, and nothing is stored", async ({ watched: page, mesh }) => {
  await page.goto(`${mesh.zone1}/ui/try`);
  await write(page, permission("broken").replace("rules", "ruless"));
  await page.getByRole("button", { name: "Preview" }).click();
  await expect(page.getByRole("alert")).toContainText("ruless");
  await expect(page.getByRole("alert")).toContainText("Nothing was stored.");
  await expect(page.getByRole("button", { name: "Apply" })).toBeDisabled();
  expect((await page.request.get(`${mesh.zone1}/meshes/default/meshtrafficpermissions/broken?namespace=backend-ns`)).status()).toBe(404);
});

test("markup from a resource is text", async ({ watched: page, mesh }) => {
  const markup = `<img src=x onerror=alert(1)>`;
  const text = `type: MeshAccessLog
mesh: default
name: marked
namespace: backend-ns
spec:
  targetRef: {kind: Dataplane, labels: {app: backend}}
  rules:
    - default:
        backends:
          - type: File
            file: {path: /dev/stdout, format: {type: Plain, plain: "${markup}"}}
`;
  await page.goto(`${mesh.zone1}/ui/try`);
  await write(page, text);
  await page.getByRole("button", { name: "Preview" }).click();
  await page.getByRole("button", { name: "Apply" }).click();
  await page.getByRole("link", { name: "MeshAccessLog marked" }).click();
  await expect(page.locator("pre")).toContainText("onerror");
  await expect(page.locator("main img")).toHaveCount(0);
  await page.goto(`${mesh.zone1}/ui/why?from=${encodeURIComponent(markup)}&to=${encodeURIComponent(markup)}`);
  await expect(page.getByRole("alert")).toBeVisible();
  await expect(page.locator("main img")).toHaveCount(0);
});

test("a token that is not one is refused, and signing out gives back what loopback may", async ({ watched: page, mesh }) => {
  await page.goto(`${mesh.global}/ui/`);
  const enter = async (token: string) => {
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByLabel("User token").fill(token);
    await page.getByRole("dialog").getByRole("button", { name: "Sign in" }).click();
  };
  await enter("nonsense");
  await expect(page.getByRole("alert")).toContainText("401");
  await expect(page.getByText("zones online")).toHaveCount(0);
  await enter("");
  await expect(page.getByText("zones online")).toBeVisible();
  expect(await page.evaluate(() => [localStorage.length, sessionStorage.length, document.cookie])).toEqual([0, 0, ""]);
});
