import { readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test, type Page } from "@playwright/test";
import { ask, Servers, type Started } from "./servers";

// A global with a zone of its own kind and one of another vendor, which takes no timeout of seven seconds.
const reason = "seven seconds are <b>too long</b> here";
let servers: Servers, global: Started;

const timeout = (seconds: number) => ({
  type: "MeshTimeout", mesh: "default", name: "patience",
  spec: { targetRef: { kind: "Mesh" }, to: [{ targetRef: { kind: "Mesh" }, default: { connectionTimeout: `${seconds}s` } }] },
});
const at = "/meshes/default/meshtimeouts/patience";

test.beforeAll(async () => {
  servers = new Servers();
  global = await servers.start("causeway-global", "global", ["--kds-insecure-anonymous"]);
  const { join: invitation } = await ask<{ join: string }>(global, "POST", "/zones/east/_join", { rejoin: true });
  await servers.start("causeway-zone", "east", ["--zone", "east", "--join", invitation]);
  const [ca] = readdirSync(global.data, { recursive: true }).map(String).filter((f) => f.endsWith("/ca.crt"));
  servers.program("refuser", ["--zone", "foreign", "--kds", servers.addressOf(global, "kds"), "--ca", join(global.data, ca ?? ""), "--text", `"7s"`, "--reason", reason]);
  await expect.poll(async () => (await ask<{ zones: { controlPlanes: { online: number } } }>(global, "GET", "/global-insight")).zones.controlPlanes.online, { timeout: 60_000 }).toBe(2);
  await ask(global, "PUT", at, timeout(5));
});

test.afterAll(() => servers.close());

/** views opens the overview, the policy and the zone that refuses, each in a page of its own, which nobody touches any more. */
async function views(page: Page): Promise<{ overview: Page; policy: Page; zone: Page }> {
  const open = async (view: string) => {
    const one = await page.context().newPage();
    await one.goto(`${global.url}/ui/${view}`);
    return one;
  };
  return { overview: await open(""), policy: await open("resource?kri=kri_mt_default___patience_"), zone: await open("zone?name=foreign") };
}

test("a zone that refuses a policy is named with its reason wherever a person looks, and no more once it takes it", async ({ page }) => {
  test.setTimeout(180_000);
  const { overview, policy, zone } = await views(page);
  const attention = overview.getByRole("region", { name: "Needs attention" });
  const wrong = overview.getByRole("table", { name: "Zones that need a look" });
  const refused = zone.getByRole("table", { name: "Refused" });
  const ofType = zone.getByRole("table", { name: "By type" }).getByRole("row").filter({ hasText: /^MeshTimeoutto the zone/ });
  const well = async (took: string) => {
    await expect(policy.getByText(`acknowledged by 2 of 2 zones`), took).toBeVisible();
    await expect(policy.getByRole("heading", { name: "Refused by" })).toHaveCount(0);
    await expect(attention.getByRole("listitem"), "a zone of another vendor tells nothing of itself").toHaveText([/^Zone foreign: The zone has not reported/]);
    await expect(overview.getByText("All 2 shown are online.")).toBeVisible();
    await expect(wrong).toHaveCount(0);
    await expect(ofType.getByRole("cell").last()).toHaveText("0");
    await expect(refused).toHaveCount(0);
  };
  await well("at first");
  await ask(global, "PUT", at, timeout(7));
  await expect(policy.getByRole("heading", { name: "Refused by" })).toBeVisible();
  await expect(policy.getByRole("listitem").filter({ hasText: /^foreign/ })).toContainText(reason);
  await expect(policy.getByText("acknowledged by 1 of 2 zones")).toBeVisible();
  await expect(attention.getByRole("listitem").first()).toHaveText(new RegExp(`^Zone foreign: 1 MeshTimeout refused: .*${reason}.* Mend them where they were written\\.$`));
  await expect(wrong.getByRole("row").filter({ hasText: "foreign" })).toContainText("1 refused");
  await expect(wrong.getByRole("row"), "the zone that took it needs no look").toHaveCount(2);
  await expect(ofType.getByRole("cell").last()).toHaveText("1");
  await expect(refused.getByRole("row").last()).toContainText("the other side");
  await expect(refused.getByRole("row").last()).toContainText(reason);
  await expect(refused.locator("time")).toHaveCount(1);
  for (const one of [overview, policy, zone]) await expect(one.locator("main b").filter({ hasText: "too long" }), "the reason is a text").toHaveCount(0);
  await attention.getByRole("link", { name: "Zone foreign" }).first().click();
  await overview.getByRole("link", { name: /MeshTimeout patience/ }).click();
  await expect(overview.getByRole("heading", { name: "MeshTimeout patience" })).toBeVisible();
  await overview.goBack();
  await overview.goBack();
  await expect(wrong).toBeVisible();

  await ask(global, "PUT", at, timeout(6));
  await well("once it is mended");
});
