import type { Page } from "@playwright/test";
import { Client } from "./client";
import { write } from "./editor";
import { expect, test, type Mesh } from "./mesh";

// The stories of the mesh operator, of service owners, and of policies in namespaces, each done by clicks: a policy is
// tried, applied, and asked about. Each leaves the mesh as it found it.
test.describe.configure({ mode: "parallel" });

const id = (zone: number, namespace: string, account: string) => `spiffe://default.zone-${zone}.mesh.local/ns/${namespace}/sa/${account}`;
const frontend = id(1, "default", "frontend");
const prometheus = id(2, "observability", "prometheus");
const gateway = id(2, "default", "api-gateway");
const anybody = "spiffe://default.zone-";

interface Policy {
  on: "global" | "zone1";
  name: string;
  conf: string;
  target?: string;
}

const backend = "{kind: Dataplane, labels: {app: backend}}";
const operator = (conf: string): Policy => ({ on: "global", name: "story-operator", conf });
const owner = (conf: string, target = backend): Policy => ({ on: "zone1", name: "story-owner", conf, target });
const allow = (...entries: string[]) => `allow: [${entries.join(", ")}]`;
const deny = (...entries: string[]) => `deny: [${entries.join(", ")}]`;
const exact = (value: string, more = "") => `{spiffeId: {type: Exact, value: "${value}"}${more}}`;
const prefix = (value: string, more = "") => `{spiffeId: {type: Prefix, value: "${value}"}${more}}`;

function textOf(p: Policy): string {
  const place = p.on === "zone1" ? "namespace: backend-ns\n" : "";
  return `type: MeshTrafficPermission\nmesh: default\n${place}name: ${p.name}\nspec:\n${p.target === undefined ? "" : `  targetRef: ${p.target}\n`}  default: {${p.conf}}\n`;
}

interface Call {
  from: string;
  inbound?: string;
  method?: string;
  path?: string;
  is: "Allowed" | "Denied";
  by: string;
}

const stories: { title: string; policies: Policy[]; calls: Call[] }[] = [
  {
    title: "operator 1: all requests are denied by default",
    policies: [operator("")],
    calls: [{ from: frontend, is: "Denied", by: "default" }, { from: prometheus, is: "Denied", by: "default" }],
  },
  {
    title: "operator 2, owner 1: what the operator denies, no owner allows, who allows all others",
    policies: [operator(deny(exact(gateway))), owner(allow(prefix(`${anybody}1.mesh.local/`), prefix(`${anybody}2.mesh.local/`)))],
    calls: [{ from: gateway, is: "Denied", by: "story-operator" }, { from: frontend, is: "Allowed", by: "story-owner" }],
  },
  {
    title: "operator 3: a namespace may call everything",
    policies: [operator(allow(prefix(`${anybody}2.mesh.local/ns/observability/`)))],
    calls: [{ from: prometheus, is: "Allowed", by: "story-operator" }, { from: frontend, is: "Denied", by: "default" }],
  },
  {
    title: "operator 4: a namespace may call one path of everything",
    policies: [operator(allow(prefix(`${anybody}2.mesh.local/ns/observability/`, `, path: {type: Prefix, value: /metrics}`)))],
    calls: [{ from: prometheus, path: "/metrics/all", is: "Allowed", by: "story-operator" }, { from: prometheus, path: "/", is: "Denied", by: "default" }],
  },
  {
    title: "owner 2: an owner opts out of what the operator allows",
    policies: [operator(allow(prefix(`${anybody}2.mesh.local/ns/observability/`))), owner(deny(prefix(`${anybody}2.mesh.local/ns/observability/`)))],
    calls: [{ from: prometheus, is: "Denied", by: "story-owner" }],
  },
  {
    title: "owner 3: a client that was allowed is blocked",
    policies: [operator(allow(prefix(`${anybody}1.mesh.local/`))), owner(deny(exact(frontend)))],
    calls: [{ from: frontend, is: "Denied", by: "story-owner" }, { from: id(1, "default", "other"), is: "Allowed", by: "story-operator" }],
  },
  {
    title: "owner 4: everybody reads, some write",
    policies: [owner(allow("{method: [GET]}", exact(frontend, ", method: [POST]")))],
    calls: [
      { from: gateway, method: "GET", is: "Allowed", by: "story-owner" },
      { from: gateway, method: "POST", is: "Denied", by: "default" },
      { from: frontend, method: "POST", is: "Allowed", by: "story-owner" },
    ],
  },
  {
    title: "owner 5: one inbound of several",
    policies: [owner(allow(exact(frontend)), "{kind: Dataplane, labels: {app: backend}, sectionName: admin-port}")],
    calls: [{ from: frontend, inbound: "admin-port", is: "Allowed", by: "story-owner" }, { from: frontend, is: "Denied", by: "default" }],
  },
];

/** tried opens the editor by a click, tries a text, and applies it. */
async function tried(page: Page, text: string, says: (string | RegExp)[] = []): Promise<void> {
  await page.getByRole("link", { name: "Try a change" }).click();
  await write(page, text);
  await page.getByRole("button", { name: "Preview" }).click();
  await expect(page.getByRole("heading", { name: "Preview" })).toBeVisible();
  for (const one of says) await expect(page.locator("main").getByText(one).first()).toBeVisible();
  await page.getByRole("button", { name: "Apply" }).click();
  await expect(page.getByRole("heading", { name: /Stored at revision/ })).toBeVisible();
}

/** asked fills in the question and presses the button; a policy of the global needs a moment until it is in the zone. */
async function asked(page: Page, call: Call): Promise<void> {
  await page.getByRole("link", { name: "Why 403?" }).click();
  const fields: [string, string][] = [
    ["Client (SPIFFE ID)", call.from], ["Service or Dataplane (name or KRI)", "backend"], ["Its namespace", "backend-ns"],
    ["Inbound", call.inbound ?? "http-port"], ["Method", call.method ?? "GET"], ["Path", call.path ?? "/"],
  ];
  for (const [label, value] of fields) await page.getByLabel(label, { exact: true }).fill(value);
  await page.getByRole("button", { name: "Explain" }).click();
  await expect(async () => {
    await page.getByRole("button", { name: "Refresh" }).first().click();
    await expect(page.locator(".verdict")).toContainText(`${call.is} by`, { timeout: 2000 });
    await expect(page.locator(".verdict")).toContainText(call.by, { timeout: 2000 });
  }).toPass();
}

async function remove(page: Page, mesh: Mesh, p: Policy): Promise<void> {
  const at = `/meshes/default/meshtrafficpermissions/${p.name}${p.on === "zone1" ? "?namespace=backend-ns" : ""}`;
  expect((await page.request.delete(mesh[p.on] + at)).ok()).toBe(true);
}

for (const story of stories) {
  test(story.title, async ({ watched: page, mesh }) => {
    for (const p of story.policies) {
      await page.goto(`${mesh[p.on]}/ui/`);
      await tried(page, textOf(p), [new RegExp(`MeshTrafficPermission ${p.name}: created`)]);
    }
    await page.goto(`${mesh.zone1}/ui/`);
    for (const call of story.calls) await asked(page, call);
    for (const p of story.policies) await remove(page, mesh, p);
  });
}

test("before a client loses access, the page says who it is and how often it called; afterwards the smallest policy gives it back", async ({ watched: page, mesh }) => {
  const open = owner(allow(exact(frontend)));
  await page.goto(`${mesh.zone1}/ui/`);
  await tried(page, textOf(open), [/[1-9]\d* would gain access/]);
  await page.getByRole("link", { name: "MeshTrafficPermission story-owner" }).click();
  await page.getByRole("link", { name: "Try a change of it" }).click();
  const editor = page.getByLabel("Resources, as YAML or JSON");
  await expect(editor).toContainText("story-owner");
  await write(page, textOf(owner("")));
  await page.getByRole("button", { name: "Preview" }).click();
  await expect(page.getByText(/[1-9]\d* would lose access/)).toBeVisible();
  const row = page.getByRole("row").filter({ hasText: frontend }).first();
  await expect(row).toContainText("allowed");
  await expect(row).toContainText("denied");
  await page.getByRole("button", { name: "Apply" }).click();
  await expect(page.getByRole("heading", { name: /Stored at revision/ })).toBeVisible();

  await asked(page, { from: frontend, method: "GET", path: "/smallest", is: "Denied", by: "default" });
  await expect(page.getByRole("heading", { name: "The smallest policy that would allow it" })).toBeVisible();
  await page.getByRole("link", { name: "Try it, then apply it" }).click();
  await page.getByRole("button", { name: "Preview" }).click();
  await expect(page.getByText("It would concern 1 proxy of zone zone-1.")).toBeVisible();
  await page.getByRole("button", { name: "Apply" }).click();
  const stored = page.getByRole("link", { name: /MeshTrafficPermission allow-frontend-to-backend-/ });
  const name = ((await stored.textContent()) ?? "").split(" ")[1] ?? "";
  await asked(page, { from: frontend, method: "GET", path: "/smallest", is: "Allowed", by: name });
  await asked(page, { from: frontend, method: "GET", path: "/other", is: "Denied", by: "default" });
  await remove(page, mesh, open);
  await remove(page, mesh, { ...open, name });
});

const timeoutOf = (namespace: string, name: string, target: string) =>
  `type: MeshTimeout\nmesh: default\nnamespace: ${namespace}\nname: ${name}\nspec:\n  to:\n${target}`;
const to = (target: string) => `    - targetRef: ${target}\n      default: {http: {requestTimeout: 4s}}\n`;

const namespaced: { title: string; namespace: string; text: string; says: (string | RegExp)[] }[] = [
  {
    title: "a producer's policy goes to all zones", namespace: "backend-ns",
    text: timeoutOf("backend-ns", "story-timeout", to("{kind: MeshService, name: backend}")),
    says: ["Role: producer", /synced to global, zone-2/],
  },
  {
    title: "a consumer's policy goes to the global alone", namespace: "frontend-ns",
    text: timeoutOf("frontend-ns", "story-timeout", to("{kind: MeshService, name: backend, namespace: backend-ns}")),
    says: ["Role: consumer", "It would be synced to global."],
  },
  {
    title: "a workload owner's policy goes to the global alone, and concerns the proxies of its namespace", namespace: "backend-ns",
    text: "type: MeshTimeout\nmesh: default\nnamespace: backend-ns\nname: story-timeout\nspec:\n  rules:\n    - default: {connectionTimeout: 4s}\n",
    says: ["Role: workload-owner", "It would be synced to global.", /It would concern 1 proxy of zone zone-1/],
  },
];

for (const one of namespaced) {
  test(`policies in namespaces: ${one.title}`, async ({ watched: page, mesh }) => {
    await page.goto(`${mesh.zone1}/ui/`);
    await tried(page, one.text, one.says);
    await page.getByRole("link", { name: "MeshTimeout story-timeout" }).click();
    await expect(page.getByText(one.says[0] === "Role: producer" ? "producer" : one.says[0] === "Role: consumer" ? "consumer" : "workload-owner", { exact: true })).toBeVisible();
    await page.getByRole("link", { name: "Resources" }).click();
    await page.getByRole("combobox", { name: "Type", exact: true }).selectOption("MeshTimeout");
    await page.getByRole("combobox", { name: "Role", exact: true }).selectOption(String(one.says[0]).replace("Role: ", ""));
    await page.getByRole("searchbox", { name: "Namespace" }).fill(one.namespace);
    await expect(page.getByRole("link", { name: "story-timeout", exact: true })).toBeVisible();
    expect((await page.request.delete(`${mesh.zone1}/meshes/default/meshtimeouts/story-timeout?namespace=${one.namespace}`)).ok()).toBe(true);
  });
}

test("policies in namespaces: one for services of its own namespace and of others is refused by its field", async ({ watched: page, mesh }) => {
  await page.goto(`${mesh.zone1}/ui/`);
  await page.getByRole("link", { name: "Try a change" }).click();
  await write(page, timeoutOf("backend-ns", "story-mixed",
    to("{kind: MeshService, name: backend}") + to("{kind: MeshService, name: frontend, namespace: frontend-ns}")));
  await page.getByRole("button", { name: "Preview" }).click();
  await expect(page.getByRole("alert")).toContainText("spec.to");
  await expect(page.getByRole("alert")).toContainText("Nothing was stored.");
});

test("policies in namespaces: a producer's route, and a timeout for it, are in the other zone", async ({ watched: page, mesh }) => {
  test.setTimeout(180_000);
  const route = `type: MeshHTTPRoute\nmesh: default\nnamespace: backend-ns\nname: story-route\nspec:\n  to:\n    - targetRef: {kind: MeshService, name: backend}\n      rules:\n        - matches: [{path: {type: PathPrefix, value: /v2}}]\n          default: {backendRefs: [{kind: MeshService, name: backend, port: 80}]}\n`;
  await page.goto(`${mesh.zone1}/ui/`);
  await tried(page, `${route}---\n${timeoutOf("backend-ns", "story-of-route", to("{kind: MeshHTTPRoute, name: story-route}"))}`,
    ["MeshHTTPRoute story-route: created", "MeshTimeout story-of-route: created", "Role: producer", /synced to global, zone-2/]);
  for (const [type, name] of [["MeshHTTPRoute", "story-route"], ["MeshTimeout", "story-of-route"]] as const) {
    await page.goto(`${mesh.global}/ui/resources?type=${type.toLowerCase()}s&namespace=&name=${name}`);
    await expect(async () => {
      await page.getByRole("button", { name: "Refresh" }).first().click();
      await page.getByRole("link", { name, exact: true }).click({ timeout: 3000 });
    }).toPass();
    await expect(async () => {
      await page.getByRole("button", { name: "Refresh" }).last().click();
      await expect(page.getByText(/acknowledged by (1 of 1|2 of 2) zones/)).toBeVisible({ timeout: 2000 });
    }).toPass();
  }
  for (const plural of ["meshtimeouts/story-of-route", "meshhttproutes/story-route"]) {
    expect((await page.request.delete(`${mesh.zone1}/meshes/default/${plural}?namespace=backend-ns`)).ok()).toBe(true);
  }
});

test("a client is denied in the shadow first: it is still allowed, and the report watches the policy; then it is denied", async ({ watched: page, mesh }) => {
  test.setTimeout(180_000);
  const shaded = owner(`allowWithShadowDeny: [${exact(frontend)}]`);
  await page.goto(`${mesh.zone1}/ui/`);
  await tried(page, textOf(shaded));
  await asked(page, { from: frontend, is: "Allowed", by: "story-owner" });
  await expect(page.getByText(/Shadow rules would deny, by/)).toBeVisible();
  await page.getByRole("link", { name: "Shadow report" }).click();
  await page.getByRole("link", { name: /story-owner/ }).first().click();
  await expect(page.getByText("only. Show all")).toBeVisible();
  await tried(page, textOf(owner(deny(exact(frontend)))), ["MeshTrafficPermission story-owner: updated"]);
  await asked(page, { from: frontend, is: "Denied", by: "story-owner" });
  await remove(page, mesh, shaded);
});

test("a real 403: from the denial to the smallest policy, by clicks, and the same request gets through", async ({ watched: page, mesh }) => {
  test.setTimeout(180_000);
  const client = await Client.of(mesh.zone1, "frontend", "default");
  expect(await client.call("POST", "/checkout?card=4111")).toBe(403);
  await page.goto(`${mesh.zone1}/ui/`);
  await page.getByRole("link", { name: "Why 403?" }).click();
  const row = page.getByRole("row").filter({ hasText: frontend }).filter({ hasText: /POST \/checkout(?!\/)/ });
  await expect(async () => {
    await page.getByRole("button", { name: "Refresh" }).first().click();
    await expect(row).toBeVisible({ timeout: 2000 });
  }).toPass();
  await expect(page.locator("main tbody tr").first(), "the newest denial is the first").toContainText("/checkout");
  for (const [field, first] of [["from", frontend], ["path", "/checkout"], ["method", "POST"], ["inbound", "http-port"]]) {
    await expect(page.locator(`#known-${field} option`).first(), `the newest denial is the first to be offered as ${field}`).toHaveAttribute("value", first ?? "");
  }
  await row.getByRole("link", { name: "Why?" }).click();
  await expect(page.locator(".verdict")).toContainText("Denied by");
  await page.getByRole("link", { name: "Try it, then apply it" }).click();
  await expect(page.getByText("This text came with the link. Read it before you apply it.")).toBeVisible();
  await page.getByRole("button", { name: "Preview" }).click();
  await page.getByRole("button", { name: "Apply" }).click();
  const stored = page.getByRole("link", { name: /MeshTrafficPermission allow-frontend-to-backend-/ });
  await expect(stored).toBeVisible();
  await expect.poll(() => client.call("POST", "/checkout?card=4111"), { timeout: 30_000 }).toBe(200);
  expect(await client.call("GET", "/checkout"), "no other method").toBe(403);
  expect(await client.call("POST", "/checkout/more"), "no other path").toBe(403);
  const name = ((await stored.textContent()) ?? "").split(" ")[1] ?? "";

  await page.goto(`${mesh.global}/ui/why`);
  await expect(page.getByText("choose the zone that is asked")).toBeVisible();
  await page.getByRole("combobox", { name: "Zone" }).selectOption("zone-1");
  await expect(row).toBeVisible();
  await row.getByRole("link", { name: "Why?" }).click();
  expect(page.url()).toContain("zone=zone-1");
  await expect(async () => {
    await page.getByRole("button", { name: "Refresh" }).first().click();
    await expect(page.locator(".verdict")).toContainText(name, { timeout: 2000 });
  }).toPass();
  await expect(page.locator(".verdict")).toContainText("Allowed by");
  await remove(page, mesh, { on: "zone1", name, conf: "" });
});

test("on the global, a change says who of which zones would lose access", async ({ watched: page, mesh }) => {
  const open = operator(allow(prefix(`${anybody}1.mesh.local/`)));
  await page.goto(`${mesh.global}/ui/`);
  await tried(page, textOf(open), [/[1-9]\d* would gain access/, /synced to zone-1, zone-2/]);
  await page.getByRole("link", { name: "Try a change" }).click();
  await write(page, textOf(operator("")));
  await page.getByRole("button", { name: "Preview" }).click();
  await expect(page.getByText(/[1-9]\d* would lose access/)).toBeVisible();
  for (const zone of ["zone-1", "zone-2"]) await expect(page.getByRole("row").filter({ hasText: frontend }).filter({ hasText: `${zone}/backend-ns/backend` }).first()).toContainText("allowed");
  await expect(page.getByText(/Who calls is unknown: /), "what zones saw is not known here, and that is said").toBeVisible();
  await remove(page, mesh, open);
});
