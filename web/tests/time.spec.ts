import { expect, test } from "./mesh";

test.use({ timezoneId: "Asia/Kathmandu", locale: "en-GB" }); // five hours and three quarters ahead of UTC

test("times are in the viewer's zone, with UTC where a person points at them", async ({ watched: page, mesh }) => {
  await page.goto(`${mesh.zone1}/ui/proxy?kri=kri_dp_default_zone-1_backend-ns_backend_`);
  const all = page.locator("main time");
  await expect(page.getByText(/^ends in \d+/)).toBeVisible();
  expect(await all.count()).toBeGreaterThan(2);
  for (const one of await all.all()) {
    const [at, title] = [new Date((await one.getAttribute("datetime")) ?? ""), (await one.getAttribute("title")) ?? ""];
    const own = new Intl.DateTimeFormat("en-GB", { dateStyle: "short", timeStyle: "medium", timeZone: "Asia/Kathmandu" }).format(at);
    expect(title).toContain(own);
    expect(title).toContain(at.toISOString().replace(/\.\d+Z$/, "Z"));
  }
});
