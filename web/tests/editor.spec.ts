import { AxeBuilder } from "@axe-core/playwright";
import { write } from "./editor";
import { expect, test } from "./mesh";

test("the editor offers keys, values and names by the keyboard alone, and Tab leaves it", async ({ watched: page, mesh }) => {
  await page.goto(`${mesh.zone1}/ui/try`);
  const editor = page.getByRole("textbox", { name: "Resources, as YAML or JSON" });
  await expect(page.locator(".cm-content")).toBeVisible();
  await editor.focus();
  await page.keyboard.press("Control+a");
  await page.keyboard.press("Delete");
  const offered = page.getByRole("option");
  const take = async (typed: string, option: string) => {
    await page.keyboard.type(typed);
    await expect(async () => {
      if (!(await offered.first().isVisible())) await page.keyboard.press("Control+Space"); // who types on meanwhile asks again
      await expect(offered.filter({ hasText: option }).first()).toBeVisible({ timeout: 3000 });
    }).toPass();
    await expect(editor).toHaveAttribute("aria-activedescendant", /.+/);
    // A list takes no Enter until it has been open for 75 ms by the page's clock: who typed on meant a new line.
    await page.waitForFunction((seen) => Date.now() > seen + 75, await page.evaluate(() => Date.now()));
    while (!((await page.locator("[role=option][aria-selected=true]").textContent()) ?? "").startsWith(option)) await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await expect(offered).toHaveCount(0);
  };
  await take("ty", "type");
  await take("MeshTraf", "MeshTrafficPermission");
  await page.keyboard.press("Enter");
  await take("na", "name");
  await page.keyboard.type("completed");
  await page.keyboard.press("Enter");
  await take("me", "mesh");
  await take("d", "default");
  await page.keyboard.press("Enter");
  await page.keyboard.type("spec: {targetRef: {kind: ");
  await take("Datap", "Dataplane");
  await page.keyboard.type(", name: ");
  await take("back", "backend");
  await page.keyboard.type("}, default: {allow: [{spiffeId: {type: ");
  await take("Ex", "Exact");
  await page.keyboard.type(", value: ");
  await take("spiffe://default.zone-1.mesh.local/ns/b", "spiffe://default.zone-1.mesh.local/ns/backend-ns/sa/");
  await page.keyboard.type("}}]}}");
  await page.keyboard.press("Escape");
  await page.keyboard.press("Control+Space");
  await page.keyboard.press("Escape");
  await page.keyboard.press("Tab");
  await expect(page.getByRole("button", { name: "Preview" })).toBeFocused();
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { name: /MeshTrafficPermission completed: created/ })).toBeVisible();
});

for (const scheme of ["light", "dark"] as const) {
  test(`what the editor offers is accessible: ${scheme}`, async ({ watched: page, mesh }) => {
    await page.emulateMedia({ colorScheme: scheme });
    await page.goto(`${mesh.zone1}/ui/try`);
    await expect(page.locator(".cm-content")).toBeVisible();
    await write(page, "type: MeshTimeout\n");
    await page.keyboard.press("Control+End");
    await page.keyboard.press("Control+Space");
    await expect(page.getByRole("option").first()).toBeVisible();
    const found = await new AxeBuilder({ page }).analyze();
    expect(found.violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.html).join(" ")}`)).toEqual([]);
  });
}

test("the editor's library comes with the view that has one, and the first load is at most 350 kB", async ({ watched: page, mesh }) => {
  const loaded: { url: string; bytes: Promise<number> }[] = [];
  page.on("response", (r) => loaded.push({ url: r.url(), bytes: r.request().sizes().then((s) => s.responseBodySize + s.responseHeadersSize) }));
  await page.goto(`${mesh.zone1}/ui/`);
  await expect(page.getByRole("heading", { name: "Overview" })).toBeVisible();
  const files = loaded.filter((l) => l.url.includes("/ui/"));
  expect(files.map((f) => f.url).filter((u) => /Editor|Graph/.test(u))).toEqual([]);
  const all = (await Promise.all(files.map((f) => f.bytes))).reduce((a, b) => a + b, 0);
  expect(all).toBeGreaterThan(50_000);
  expect(all).toBeLessThanOrEqual(350_000);
  await page.getByRole("link", { name: "Try a change" }).click();
  await expect(page.locator(".cm-content")).toBeVisible();
  expect(loaded.some((l) => l.url.includes("Editor"))).toBe(true);
});
