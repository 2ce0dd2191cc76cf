import type { Page } from "@playwright/test";
import { expect, test } from "./mesh";

const frontend = "spiffe://default.zone-1.mesh.local/ns/default/sa/frontend";
const why = `why?${new URLSearchParams({ from: frontend, to: "backend", namespace: "backend-ns", inbound: "http-port", method: "GET", path: "/", mesh: "default" })}`;
const ofZone = ["", "calls", "calls?view=graph", "why", why, "shadow", "zone", "proxy?kri=kri_dp_default_zone-1_backend-ns_backend_",
  "resources?type=dataplanes", "resource?kri=kri_dp_default_zone-1_backend-ns_backend_", "try"];
const ofGlobal = ["", "zone?name=zone-1", "calls", "why", "shadow", "resources?type=meshes"];

declare global {
  interface Window {
    shifts: { value: number; what: string[] }[];
  }
}

/** shifted opens a view and returns what moved, and whether that view waited no longer for answers that came late (useLate). */
async function shifted(page: Page, url: string): Promise<{ what: string; late: boolean } | undefined> {
  await page.goto(url);
  await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
  await expect(page.getByText(/^(Asking|Refreshing|Loading|Checking)/)).toHaveCount(0);
  const { shifts, took } = await page.evaluate(() => new Promise<{ shifts: Window["shifts"]; took: number }>((done) => {
    requestAnimationFrame(() => requestAnimationFrame(() => done({ shifts: window.shifts, took: performance.now() })));
  }));
  const sum = shifts.reduce((n, s) => n + s.value, 0);
  if (sum < 0.01) return undefined;
  return { what: `${sum.toFixed(3)} in ${took.toFixed(0)} ms: ${shifts.map((s) => `${s.value.toFixed(3)} ${s.what.join(" | ")}`).join("; ")}`, late: took > 2000 };
}

for (const width of [1280, 390]) {
  for (const [server, views] of [["zone1", ofZone], ["global", ofGlobal]] as const) {
    test(`nothing shifts while a view of ${server} arrives, ${width} pixels wide`, async ({ watched: page, mesh }) => {
      test.setTimeout(240_000);
      await page.setViewportSize({ width, height: 800 });
      await page.addInitScript(() => {
        window.shifts = [];
        new PerformanceObserver((list) => {
          for (const one of list.getEntries() as (PerformanceEntry & { value: number; hadRecentInput: boolean; sources: { node?: Node }[] })[]) {
            const what = one.sources.map((s) => (s.node instanceof Element ? `${s.node.tagName}.${s.node.className}` : (s.node?.textContent ?? "?")).slice(0, 60));
            window.shifts.push({ value: one.value, what });
          }
        }).observe({ type: "layout-shift", buffered: true });
      });
      const found: string[] = [];
      for (const view of views) {
        let told = await shifted(page, `${mesh[server]}/ui/${view}`);
        for (let again = 0; again < 5 && told?.late; again++) told = await shifted(page, `${mesh[server]}/ui/${view}`);
        if (told !== undefined) found.push(`/${view}: ${told.what}`);
      }
      expect(found).toEqual([]);
    });
  }
}
