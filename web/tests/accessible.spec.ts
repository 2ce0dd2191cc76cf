import { AxeBuilder } from "@axe-core/playwright";
import type { Page } from "@playwright/test";
import { write } from "./editor";
import { expect, test, type Mesh } from "./mesh";
import { settled } from "./settled";

// Each view is judged while its mesh is new. Two workers take a half each.
test.describe.configure({ mode: "parallel" });

const frontend = "spiffe://default.zone-1.mesh.local/ns/default/sa/frontend";
const backend = "kri=kri_dp_default_zone-1_backend-ns_backend_";
const why = `why?${new URLSearchParams({ from: frontend, to: "backend", namespace: "backend-ns", inbound: "http-port", method: "GET", path: "/", mesh: "default" })}`;

const policy = `type: MeshTrafficPermission\nmesh: default\nnamespace: backend-ns\nname: judged\nspec:\n  targetRef: {kind: Dataplane, labels: {app: backend}}\n  default: {allow: [{spiffeId: {type: Exact, value: "${frontend}"}}]}\n`;

/** judged are all views, some with what a person opens in them first. */
const judged: { server: keyof Mesh; view: string; open?: (page: Page) => Promise<void> }[] = [
  ...["", "calls?view=graph", why, "shadow", "zone", `resource?${backend}`, "resources?type=dataplanes", "nowhere", "resource?kri=kri_mt_default___none_"].map((view) => ({ server: "zone1" as const, view })),
  ...["", "zone?name=zone-1", "calls?zone=zone-1", "why?zone=zone-1", "shadow?zone=zone-1", "resources?type=meshes"].map((view) => ({ server: "global" as const, view })),
  {
    server: "zone1", view: "calls",
    open: async (page) => {
      await page.locator("button.cell").first().click();
      await expect(page.getByText("Decided by")).toBeVisible();
    },
  },
  {
    server: "zone1", view: `proxy?${backend}`,
    open: async (page) => {
      for (const one of await page.locator("main summary").all()) await one.click();
      await page.getByRole("button", { name: "Query Envoy" }).click();
    },
  },
  {
    server: "zone1", view: "try",
    open: async (page) => {
      await write(page, policy);
      await page.getByRole("button", { name: "Preview" }).click();
      await expect(page.getByRole("heading", { name: "Who would gain or lose access" })).toBeVisible();
    },
  },
  { server: "global", view: "meshes", open: async (page) => page.getByRole("button", { name: "Sign in" }).click() },
];

// What is not there: the resource that a link names, and the administration of an Envoy that has none. All other answers are
// those that a view needs.
const expected = /kri_mt_default___none_|\/dataplanes\/[^/]*\/(clusters|stats)\?/;

// A view is opened once, and judged in both themes at each width. The theme decides nothing but colours: what is not about
// these is judged in the light one.
const half = Math.ceil(judged.length / 2);
for (const [which, views] of [["first", judged.slice(0, half)], ["second", judged.slice(half)]] as const) {
  test(`axe finds nothing in any view, in both themes at both widths, and none is wider than its window: ${which} half`, async ({ watched: page, mesh }) => {
    test.setTimeout(400_000); // to judge a view takes seconds, and many on a busy machine
    const refused: string[] = [];
    page.on("response", (r) => r.status() >= 400 && !expected.test(r.url()) && refused.push(`${page.url()}: ${r.status()} ${r.url()}`));
    for (const { server, view, open } of views) {
      await page.emulateMedia({ colorScheme: "light" });
      await page.setViewportSize({ width: 1280, height: 800 });
      await page.goto(`${mesh[server]}/ui/${view}`);
      await settled(page);
      await open?.(page);
      await expect(page.getByText(/^(Asking|Refreshing|Loading|Waiting|Checking)/)).toHaveCount(0);
      for (const width of [1280, 390]) {
        await page.setViewportSize({ width, height: 800 });
        for (const scheme of ["light", "dark"] as const) {
          await page.emulateMedia({ colorScheme: scheme });
          const axe = new AxeBuilder({ page }).setLegacyMode(true).options({ resultTypes: ["violations"] }); // there are no frames
          const found = await (scheme === "dark" ? axe.withRules(["color-contrast", "link-in-text-block"]) : axe).analyze();
          expect(found.violations.map((v) => `${server}/${view}, ${scheme}, ${width}: ${v.id}: ${v.nodes.map((n) => n.html).join(" ")}`)).toEqual([]);
        }
        const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
        expect(overflow, `${server}/${view} is wider than ${width}`).toBeLessThanOrEqual(0);
      }
    }
    expect(refused, "what a browser writes into its console").toEqual([]);
  });
}
