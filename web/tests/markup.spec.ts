import { readFileSync } from "node:fs";
import { expect, test, type Page, type Request } from "@playwright/test";
import { ask, Servers, type Started } from "./servers";

// Every text of every type that takes one holds markup, links or letters that turn the reading around. The documents are
// those of resources/testdata, the texts those that the server does not refuse.
const payloads = [
  "<img src=x onerror=alert(1)>", `"><svg onload=alert(1)>`, "</script><script>alert(1)</script>", "javascript:alert(1)",
  "\u202e<b onclick=alert(1)>x</b>", "img-src.x-onerror.alert",
];
const dangerous = payloads.slice(0, -1);

type Json = { [key: string]: Json } | Json[] | string | number | boolean | null;
type Doc = { [key: string]: Json } & { type: string; name: string; mesh?: string; namespace?: string; kri?: string };

let servers: Servers, zone: Started;
const marked: { kri: string; type: string; texts: string[] }[] = [];

/** leaves returns how to read and set each text of a document, but for what names it. */
function leaves(value: Json, into: { get: () => string; set: (text: string) => void }[] = [], top = true): typeof into {
  if (typeof value !== "object" || value === null) return into;
  for (const [key, inner] of Object.entries(value)) {
    if (top && ["type", "name", "mesh", "namespace", "kri"].includes(key)) continue;
    const holder = value as Record<string, Json>;
    if (typeof inner === "string") into.push({ get: () => String(holder[key]), set: (text) => (holder[key] = text) });
    else leaves(inner, into, false);
  }
  return into;
}

async function put(doc: Doc, plural: string, dryRun: boolean): Promise<boolean> {
  const query = new URLSearchParams({ ...(doc.namespace === undefined ? {} : { namespace: doc.namespace }), ...(dryRun ? { dryRun: "server" } : {}) });
  const at = `${zone.url}${doc.mesh === undefined ? "" : `/meshes/${doc.mesh}`}/${plural}/${doc.name}?${query}`;
  return (await fetch(at, { method: "PUT", body: JSON.stringify(doc), headers: { "Content-Type": "application/json" } })).ok;
}

test.beforeAll(async () => {
  test.setTimeout(300_000);
  servers = new Servers();
  zone = await servers.start("causeway-zone", "zone-1", ["--zone", "zone-1"]);
  const archive = readFileSync("../resources/testdata/valid.txtar", "utf8").split(/^-- (.+) --\n/m).slice(1);
  for (let i = 0; i < archive.length; i += 2) {
    if (!archive[i]?.endsWith(".yaml")) continue;
    await fetch(`${zone.url}/_batch`, { method: "POST", body: archive[i + 1], headers: { "Content-Type": "application/yaml" } });
  }
  const { resources } = await ask<{ resources: { path: string; name: string }[] }>(zone, "GET", "/_resources");
  for (const { path: plural, name: type } of resources) {
    const list = await ask<{ items: Doc[] }>(zone, "GET", `/${plural}?size=20`).catch(() => ({ items: [] }));
    for (const found of list.items) {
      const { kri, status: _status, creationTime: _created, modificationTime: _modified, ...rest } = found;
      const doc = rest as Doc;
      const labels = (doc["labels"] ?? {}) as Record<string, string>;
      doc["labels"] = { ...Object.fromEntries(Object.entries(labels).filter(([key]) => !key.includes("kuma.io/"))), note: "x" };
      const texts: string[] = [];
      for (const leaf of leaves(doc)) {
        const before = leaf.get();
        for (const payload of payloads) {
          leaf.set(payload);
          if (await put(doc, plural, true)) {
            if (dangerous.includes(payload)) texts.push(payload);
            break;
          }
          leaf.set(before);
        }
      }
      if (texts.length > 0 && kri !== undefined && (await put(doc, plural, false))) marked.push({ kri, type, texts });
    }
  }
});

test.afterAll(() => servers.close());

/** harmless fails if a view made an element, a link or a call of a text. */
async function harmless(page: Page, at: string): Promise<void> {
  await page.goto(`${zone.url}/ui/${at}`);
  await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
  await expect(page.getByText(/^(Asking|Refreshing|Loading)/)).toHaveCount(0);
  const made = await page.evaluate(() => [...document.querySelectorAll("main img, main script, main b[onclick], svg[onload], a[href^='javascript' i], [onerror]")].map((e) => e.outerHTML));
  expect(made, at).toEqual([]);
}

test("markup in every text that a resource takes is text in every view", async ({ page }) => {
  test.setTimeout(300_000);
  const wrong: string[] = [];
  page.on("dialog", (d) => {
    wrong.push(`dialog ${d.message()}`);
    void d.dismiss();
  });
  page.on("pageerror", (e) => wrong.push(e.message));
  page.on("request", (r) => {
    if (new URL(r.url()).hostname !== "127.0.0.1") wrong.push(r.url());
  });
  const types = new Set(marked.map((m) => m.type));
  expect(types.size, [...types].join(" ")).toBeGreaterThanOrEqual(5);
  for (const one of marked) {
    await harmless(page, `resource?${new URLSearchParams({ kri: one.kri })}`);
    expect(await page.locator("main pre").last().textContent()).toContain(JSON.stringify(one.texts[0]).slice(1, -1));
    await harmless(page, `try?${new URLSearchParams({ kri: one.kri })}`);
    if (one.type === "Dataplane") await harmless(page, `proxy?${new URLSearchParams({ kri: one.kri })}`);
  }
  for (const view of ["", "calls", "calls?view=graph", "why", "shadow", "zone", ...[...types].map((t) => `resources?type=${t.toLowerCase()}s`)]) await harmless(page, view);
  expect(wrong).toEqual([]);
});

test("markup, and names that objects have, are text in every part of a view's URL", async ({ page }) => {
  test.setTimeout(300_000);
  const wrong: string[] = [];
  page.on("dialog", (d) => {
    wrong.push(`dialog ${d.message()}`);
    void d.dismiss();
  });
  page.on("pageerror", (e) => wrong.push(e.message));
  const keys = ["service", "caller", "zone", "namespace", "method", "path", "mesh", "view", "only", "offset", "callersOffset", "row", "column",
    "from", "to", "inbound", "policy", "name", "kri", "type", "role", "origin", "text", "__proto__", "constructor", "toString"];
  await page.goto(`${zone.url}/ui/`);
  await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
  const stepped = (r: Request) => { // such a name would have stepped out of its path
    if (["/", "/_access", "/_explain"].includes(new URL(r.url()).pathname)) wrong.push(`asks ${r.url()}`);
  };
  page.on("request", stepped);
  for (const view of ["", "calls", "why", "shadow", "zone", "proxy", "resources", "resource", "try", "nowhere"]) {
    for (const payload of [...dangerous.slice(0, 4), "constructor", "__proto__", "..", ".", "9".repeat(200), "x".repeat(5_000)]) {
      await page.evaluate((to) => {
        history.pushState(null, "", to);
        window.dispatchEvent(new Event("causeway:moved"));
      }, `/ui/${view}?${new URLSearchParams(keys.slice(0, payload.length > 1000 ? 1 : undefined).map((key) => [key, payload]))}`);
      await expect(page.getByRole("heading", { level: 1 }).or(page.getByRole("alert")).first(), `${view} ${payload.slice(0, 40)}: ${wrong.join("; ")}`).toBeVisible();
      const made = await page.evaluate(() => [
        ...[...document.querySelectorAll("main img, main script, main b[onclick], svg[onload], a[href^='javascript' i], [onerror]")].map((e) => e.outerHTML),
        ...Object.keys(Object.prototype),
      ]);
      expect(made, `${view} ${payload.slice(0, 40)}`).toEqual([]);
    }
  }
  page.off("request", stepped);
  for (const name of ["constructor", "valueof", "hasownproperty"]) {
    const doc: Doc = { type: "MeshTimeout", mesh: "default", namespace: name, name, spec: { to: [{ targetRef: { kind: "Mesh" }, default: { connectionTimeout: "3s" } }] } };
    expect(await put(doc, "meshtimeouts", false)).toBe(true);
    await page.goto(`${zone.url}/ui/resources?type=meshtimeouts&name=${name}`);
    await page.getByRole("link", { name, exact: true }).click();
    await expect(page.getByRole("heading", { name: `MeshTimeout ${name}` })).toBeVisible();
  }
  expect(wrong).toEqual([]);
});
