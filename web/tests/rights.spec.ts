import { expect, test, type Page } from "@playwright/test";
import { write } from "./editor";
import { ask, Servers, type Started } from "./servers";

// A global where everybody has to sign in. Ann reads and writes what is in the namespace shop of the mesh orders, no more.
let servers: Servers, global: Started, admin: string;

const timeout = (name: string, namespace?: string) => ({
  type: "MeshTimeout", mesh: "orders", name, ...(namespace === undefined ? {} : { namespace }),
  spec: { to: [{ targetRef: { kind: "Mesh" }, default: { connectionTimeout: "3s" } }] },
});

test.beforeAll(async () => {
  servers = new Servers();
  global = await servers.start("causeway-global", "global", ["--api-require-credential"]);
  admin = servers.admin(global);
  const put = (plural: string, doc: { name: string; mesh?: string }) =>
    ask(global, "PUT", `${doc.mesh === undefined ? "" : `/meshes/${doc.mesh}`}/${plural}/${doc.name}`, doc, admin);
  for (const name of ["orders", "payments"]) await put("meshes", { type: "Mesh", name } as never);
  await put("meshtimeouts", timeout("of-orders"));
  await put("meshtimeouts", { ...timeout("of-payments"), mesh: "payments" });
  await put("accessroles", { type: "AccessRole", name: "orders", spec: { rules: [{ verbs: ["read", "create", "update"], types: ["MeshTimeout", "Mesh"], meshes: ["orders"] }] } } as never);
  await put("accessrolebindings", { type: "AccessRoleBinding", name: "ann", spec: { subjects: [{ type: "User", name: "ann" }], roles: ["orders"] } } as never);
});

test.afterAll(() => servers.close());

async function token(name: string, validFor: string): Promise<string> {
  const issued = await ask<string | { token: string }>(global, "POST", "/tokens/user", { name, validFor }, admin);
  return typeof issued === "string" ? issued.trim() : issued.token;
}

async function signIn(page: Page, text: string): Promise<void> {
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByLabel("User token").fill(text);
  await page.getByRole("dialog").getByRole("button", { name: "Sign in" }).click();
}

test("who signs in by a token sees what the roles allow, and how much is left out", async ({ page }) => {
  await page.goto(`${global.url}/ui/resources?type=meshtimeouts`);
  await expect(page.getByRole("alert")).toContainText("401");
  await signIn(page, await token("ann", "1h"));
  await expect(page.locator(".who").getByText("ann")).toBeVisible();
  await expect(page.getByRole("link", { name: "of-orders", exact: true })).toBeVisible();
  await expect(page.getByRole("link", { name: "of-payments" })).toHaveCount(0);
  await expect(page.getByText("1 more that you may not read.")).toBeVisible();
  await page.getByRole("link", { name: "of-orders", exact: true }).click();
  await expect(page.getByText(/It is in the audit log, which you may not read/)).toBeVisible();
  await page.getByRole("link", { name: "Overview" }).click();
  await expect(page.getByText("What was changed is in the audit log, which you may not read.")).toBeVisible();
  await expect(page.getByText("of-payments")).toHaveCount(0);
});

test("a page in which nobody is signed in asks nothing of the mesh, and then each question once", async ({ page }) => {
  const asked: string[] = [];
  page.on("request", (r) => {
    const { pathname, search } = new URL(r.url());
    if (!pathname.startsWith("/ui/")) asked.push(pathname + search);
  });
  await page.goto(`${global.url}/ui/`);
  await expect(page.getByRole("alert")).toContainText("401");
  expect([...new Set(asked)].sort()).toEqual(["/", "/who-am-i"]);
  await signIn(page, admin);
  await expect(page.locator(".totals")).toContainText("zones online");
  for (const path of ["/global-insight", "/zones/_overview?size=1000&brief=true&watch=0", "/_resources"]) expect(asked.filter((one) => one === path), path).toHaveLength(1);
});

test("who signs in changes what the roles allow, and is told what is missing for the rest", async ({ page }) => {
  await page.goto(`${global.url}/ui/try`);
  await signIn(page, await token("ann", "1h"));
  await expect(page.locator(".who").getByText("ann")).toBeVisible();
  await write(page, JSON.stringify({ ...timeout("more"), mesh: "payments" }));
  await page.getByRole("button", { name: "Preview" }).click();
  await expect(page.getByRole("alert")).toContainText("403");
  await expect(page.getByRole("alert")).toContainText("Nothing was stored.");
  await expect(page.getByRole("button", { name: "Apply" })).toBeDisabled();
  await write(page, JSON.stringify(timeout("more")));
  await page.getByRole("button", { name: "Preview" }).click();
  await expect(page.getByText("MeshTimeout more: created")).toBeVisible();
  await page.getByRole("button", { name: "Apply" }).click();
  await expect(page.getByRole("heading", { name: /Stored at revision/ })).toBeVisible();
});

test("a token that ends signs out, and nothing that it showed stays", async ({ page }) => {
  await page.goto(`${global.url}/ui/resources?type=meshtimeouts`);
  await signIn(page, await token("ann", "15s"));
  await expect(page.getByRole("link", { name: "of-orders", exact: true })).toBeVisible();
  // A page that nobody touches learns of it by the list that waits; a new view asks at once.
  await expect(async () => {
    await page.getByRole("link", { name: "Overview" }).click();
    await page.getByRole("link", { name: "Resources" }).click();
    await expect(page.getByRole("alert").first()).toContainText("401", { timeout: 2000 });
  }).toPass({ timeout: 60_000 });
  await expect(page.getByText("not signed in", { exact: true })).toBeVisible();
  await expect(page.getByRole("link", { name: "of-orders", exact: true })).toHaveCount(0);
  await expect(page.getByText("Sign in: the button is at the top.")).toBeVisible();
  await signIn(page, await token("ann", "1h"));
  await expect(page.getByText("not signed in", { exact: true })).toHaveCount(0);
  await page.getByRole("link", { name: "Resources" }).click();
  await page.getByRole("combobox", { name: "Type", exact: true }).selectOption("MeshTimeout");
  await expect(page.getByRole("link", { name: "of-orders", exact: true })).toBeVisible();
});

test("a token that is revoked while a page is open takes away what it showed, and nobody touches the page", async ({ page }) => {
  const mine = await token("ann", "1h");
  await page.goto(`${global.url}/ui/resources?type=meshtimeouts`);
  await signIn(page, mine);
  await expect(page.getByRole("link", { name: "of-orders", exact: true })).toBeVisible();
  await expect(page.getByText("Updates automatically.")).toBeVisible();
  const { jti } = JSON.parse(Buffer.from(mine.split(".")[1] ?? "", "base64url").toString()) as { jti: string };
  await ask(global, "POST", `/tokens/user/${jti}/_revoke`, undefined, admin);
  await ask(global, "PUT", "/meshes/orders/meshtimeouts/of-orders-2", timeout("of-orders-2"), admin); // the list that waits wakes
  await expect(page.getByRole("alert").first()).toContainText("401");
  await expect(page.getByText("not signed in", { exact: true })).toBeVisible();
  await expect(page.locator("main").getByText("of-orders")).toHaveCount(0);
});

test("a role that is taken away takes what it showed from an open page, which says what is missing", async ({ page }) => {
  const bind = (roles: string[]) => ask(global, "PUT", "/accessrolebindings/tom", { type: "AccessRoleBinding", name: "tom", spec: { subjects: [{ type: "User", name: "tom" }], roles } }, admin);
  await bind(["orders"]);
  await page.goto(`${global.url}/ui/resources?type=meshtimeouts`);
  await signIn(page, await token("tom", "1h"));
  await expect(page.getByRole("link", { name: "of-orders", exact: true })).toBeVisible();
  await page.getByRole("link", { name: "of-orders", exact: true }).click();
  await expect(page.locator("pre").first()).toContainText("connectionTimeout");
  await ask(global, "DELETE", "/accessrolebindings/tom", undefined, admin);
  await page.getByRole("button", { name: "Refresh" }).first().click();
  await expect(page.getByRole("alert").first()).toContainText("403");
  await expect(page.locator("main")).not.toContainText("connectionTimeout");
  await page.goBack();
  await expect(page.getByRole("alert").first()).toContainText("403");
  await expect(page.getByRole("link", { name: "of-orders", exact: true })).toHaveCount(0);
});

test("a role that is taken away takes what it showed from a page that nobody touches", async ({ page }) => {
  const auditor = { type: "AccessRole", name: "auditors", spec: { rules: [{ verbs: ["read"], types: ["AuditLog"] }] } };
  await ask(global, "PUT", "/accessroles/auditors", auditor, admin);
  for (const [view, shows] of [["resources?type=meshtimeouts", page.getByRole("link", { name: "of-orders", exact: true })], ["", page.locator("ul.recent").getByText("of-orders-3")]] as const) {
    await ask(global, "PUT", "/meshes/orders/meshtimeouts/of-orders-3", timeout("of-orders-3"), admin);
    const binding = { type: "AccessRoleBinding", name: "tim", spec: { subjects: [{ type: "User", name: "tim" }], roles: ["orders", "auditors"] } };
    await ask(global, "PUT", "/accessrolebindings/tim", binding, admin);
    await page.goto(`${global.url}/ui/${view}`);
    const waits = page.waitForRequest((r) => /watch=[1-9]|after=/.test(r.url()));
    await signIn(page, await token("tim", "1h"));
    await expect(shows).toBeVisible();
    await waits;
    await ask(global, "DELETE", "/accessrolebindings/tim", undefined, admin);
    await ask(global, "DELETE", "/meshes/orders/meshtimeouts/of-orders-3", undefined, admin); // what waits wakes
    await expect(shows).toHaveCount(0);
    await expect(page.locator("main")).not.toContainText("of-orders");
  }
});

test("before a change, who sees a part of the mesh is told of that part, and that there is more", async ({ page }) => {
  const zone = await servers.start("causeway-zone", "zone-9", ["--zone", "zone-9", "--api-require-credential"]);
  const theirs = servers.admin(zone);
  for (const namespace of ["shop", "pay"]) {
    await ask(zone, "PUT", `/meshes/default/dataplanes/${namespace}-app?namespace=${namespace}`, {
      type: "Dataplane", mesh: "default", namespace, name: `${namespace}-app`, labels: { app: `${namespace}-app`, "k8s.kuma.io/service-account": `${namespace}-app` },
      networking: { address: "192.0.2.1", inbound: [{ name: "http", port: 80, protocol: "http" }] },
    }, theirs);
    await ask(zone, "PUT", `/meshes/default/meshservices/${namespace}-svc?namespace=${namespace}`, {
      type: "MeshService", mesh: "default", namespace, name: `${namespace}-svc`,
      spec: { selector: { dataplaneLabels: { matchLabels: { app: `${namespace}-app` } } }, ports: [{ port: 80, appProtocol: "http" }] },
    }, theirs);
  }
  await ask(zone, "PUT", "/accessroles/shop", { type: "AccessRole", name: "shop", spec: { rules: [{ verbs: ["*"], types: ["*"], namespaces: ["shop"] }] } }, theirs);
  await ask(zone, "PUT", "/accessrolebindings/sue", { type: "AccessRoleBinding", name: "sue", spec: { subjects: [{ type: "User", name: "sue" }], roles: ["shop"] } }, theirs);
  const issued = await ask<string | { token: string }>(zone, "POST", "/tokens/user", { name: "sue", validFor: "1h" }, theirs);
  await page.goto(`${zone.url}/ui/try`);
  await signIn(page, typeof issued === "string" ? issued.trim() : issued.token);
  await expect(page.locator(".who").getByText("sue")).toBeVisible();
  await write(page, JSON.stringify({
    type: "MeshTrafficPermission", mesh: "default", namespace: "shop", name: "open",
    spec: { targetRef: { kind: "Dataplane", labels: { app: "shop-app" } }, rules: [{ default: { allow: [{ spiffeId: { type: "Prefix", value: "spiffe://default.zone-9.mesh.local/" } }] } }] },
  }));
  await page.getByRole("button", { name: "Preview" }).click();
  await expect(page.getByRole("heading", { name: "Who would gain or lose access" })).toBeVisible();
  await expect(page.getByText(/1 would gain access/)).toBeVisible();
  await expect(page.getByText(/\d more that you may not read\./)).toBeVisible();
  await expect(page.locator("main").getByText(/pay-(app|svc)/)).toHaveCount(0);
  await page.getByRole("link", { name: "Who may call whom" }).click();
  await expect(page.getByText(/\d more that you may not read\./)).toBeVisible();
  await expect(page.locator("main").getByText(/pay-(app|svc)/)).toHaveCount(0);
  await page.getByRole("link", { name: "Overview" }).click();
  await expect(page.getByText(/may not read|403|needs|cannot/i).first()).toBeVisible();
  await servers.end(zone.process);
});
