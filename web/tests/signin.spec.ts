import { spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test, type Page, type Route } from "@playwright/test";
import { programs } from "./programs";

// A global that everybody has to sign in at, and an identity provider with a certificate of its own.
test.use({ ignoreHTTPSErrors: true });

const processes: ChildProcess[] = [];
let dir: string, global: string, issuer: string;

function start(program: string, args: string[]): ChildProcess {
  const process = spawn(`${programs}/${program}`, args, { stdio: ["ignore", "pipe", "ignore"] });
  processes.push(process);
  return process;
}

async function firstLine(process: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    process.stdout?.once("data", (chunk: Buffer) => resolve(chunk.toString()));
    process.once("exit", (code) => reject(new Error(`ended with ${code}`)));
  });
}

test.beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), "signin-"));
  // Tokens hold for 20 s, so the page has to renew them while the tests look.
  const provider = JSON.parse(await firstLine(start("idp", ["--dir", dir, "--life", "20s"]))) as { issuer: string; ca: string };
  issuer = provider.issuer;
  start("causeway-global", ["run", "--data-dir", join(dir, "global"), "--ready-file", join(dir, "ready.json"), "--api-require-credential",
    "--api-address", "127.0.0.1:0", "--kds-address", "127.0.0.1:0", "--diagnostics-address", "127.0.0.1:0",
    "--api-oidc-issuer", issuer, "--api-oidc-client-id", "causeway", "--api-oidc-ca", provider.ca]);
  await expect.poll(() => {
    try {
      const ready = JSON.parse(readFileSync(join(dir, "ready.json"), "utf8")) as { api: string };
      global = `http://${ready.api}`;
      return true;
    } catch {
      return false;
    }
  }).toBe(true);
  const admin = readFileSync(join(dir, "global", "admin.token"), "utf8").trim();
  for (const doc of [
    { type: "AccessRole", name: "readers", spec: { rules: [{ verbs: ["read"], types: ["*"] }] } },
    { type: "AccessRoleBinding", name: "staff", spec: { subjects: [{ type: "Group", name: "oidc:staff" }], roles: ["readers"] } },
    { type: "Mesh", name: "orders" },
  ]) {
    const path = { AccessRole: "accessroles", AccessRoleBinding: "accessrolebindings", Mesh: "meshes" }[doc.type];
    const answer = await fetch(`${global}/${path}/${doc.name}`, {
      method: "PUT", body: JSON.stringify(doc), headers: { Authorization: `Bearer ${admin}`, "Content-Type": "application/json" },
    });
    expect(answer.ok, await answer.text()).toBe(true);
  }
});

test.afterAll(async () => {
  await Promise.all(processes.map(async (process) => {
    const ended = new Promise((resolve) => process.once("exit", resolve));
    if (process.exitCode === null && process.kill("SIGTERM")) await ended;
  }));
  rmSync(dir, { recursive: true, force: true });
});

async function signIn(page: Page, user: string): Promise<void> {
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("button", { name: `Sign in at ${new URL(issuer).host}` }).click();
  await page.getByLabel("User").fill(user);
  await page.getByRole("button", { name: "Continue" }).click();
}

test("a person signs in at the identity provider, comes back to her view, and stays signed in", async ({ page }) => {
  test.setTimeout(120_000);
  const wrong: string[] = [];
  page.on("console", (m) => {
    if (m.text().includes("Content Security Policy")) wrong.push(m.text());
  });
  const asked: { url: string; referer: string | undefined; token: string | undefined }[] = [];
  page.on("request", (r) => asked.push({ url: r.url(), referer: r.headers()["referer"], token: r.headers()["authorization"]?.replace("Bearer ", "") }));
  await page.goto(`${global}/ui/resources?type=meshes`);
  await expect(page.getByRole("alert")).toContainText("401");
  await signIn(page, "nora");
  await expect(page.getByText("oidc:nora")).toBeVisible();
  expect(page.url()).toBe(`${global}/ui/resources?type=meshes`);
  await expect(page.getByRole("link", { name: /orders/ })).toBeVisible();
  expect(await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie]))).toBe('[{},{},""]');
  const renewed = await page.waitForRequest((r) => r.url() === `${issuer}/token` && r.postData()?.includes("refresh_token") === true, { timeout: 25_000 });
  expect((await renewed.response())?.ok()).toBe(true);
  // By the second renewal the first token has ended.
  await page.waitForResponse((r) => r.url() === `${issuer}/token`, { timeout: 25_000 });
  await page.getByRole("link", { name: "Overview" }).click();
  await expect(page.getByText("oidc:nora")).toBeVisible();
  await expect(page.getByRole("alert")).toHaveCount(0);
  expect(wrong).toEqual([]);
  // No address holds a token, and none tells another server where the person was.
  const tokens = [...new Set(asked.flatMap((a) => a.token ?? []))];
  expect(tokens.length).toBeGreaterThanOrEqual(2);
  expect(asked.filter((a) => tokens.some((t) => a.url.includes(t)))).toEqual([]);
  expect(asked.filter((a) => a.url.startsWith(issuer) && a.referer?.includes("/ui/") === true)).toEqual([]);
  expect(await page.evaluate(() => JSON.stringify([history.state, window.name, { ...localStorage }, { ...sessionStorage }, document.cookie]))).toBe('[null,"",{},{},""]');
});

test("who signs in from a link with a text comes back to the text", async ({ page }) => {
  await page.goto(`${global}/ui/try#${new URLSearchParams({ text: "type: Mesh\nname: from-a-link\n" })}`);
  await signIn(page, "nora");
  await expect(page.getByText("oidc:nora")).toBeVisible();
  await expect(page.locator(".cm-content")).toContainText("from-a-link");
});

test("a refused sign-in, a foreign one and one that another tab began sign nobody in", async ({ page }) => {
  await page.goto(`${global}/ui/`);
  await signIn(page, "nobody");
  await expect(page.getByRole("alert").first()).toContainText("nobody is unknown here");
  await expect(page.getByText("not signed in", { exact: true })).toBeVisible();
  for (const more of ["code=stolen&state=stolen", "error=x&error_description=%3Cimg+src%3Dx%3E&state=", "code=stolen&state=&back=//evil.example/"]) {
    await page.goto(`${global}/ui/signin?${more}`);
    await expect(page.getByRole("alert").first()).toContainText("was not begun in this tab");
    expect(page.url()).toBe(`${global}/ui/`);
    await expect(page.locator("main img")).toHaveCount(0);
  }
  await page.goto(`${global}/ui/signin?code=stolen&state=stolen`);
  await expect(page.getByRole("alert").first()).toContainText("was not begun in this tab");
  expect(page.url()).toBe(`${global}/ui/`);
});

test("somebody else's code, and a token for another sign-in, sign nobody in", async ({ page, context }) => {
  // An attacker begins a sign-in of her own, and keeps the code instead of redeeming it.
  const attacker = await context.newPage();
  let code = "";
  const back = async (route: Route) => new URL((await route.fetch({ maxRedirects: 0 })).headers()["location"] ?? "");
  const granted = (url: URL) => url.origin === issuer && url.pathname === "/auth";
  await attacker.route(granted, async (route) => {
    if (route.request().method() !== "POST") return route.fallback();
    code = (await back(route)).searchParams.get("code") ?? "";
    return route.abort();
  });
  await attacker.goto(`${global}/ui/`);
  await signIn(attacker, "mallory");
  await expect.poll(() => code).not.toBe("");
  await attacker.close();
  // The victim's browser comes back with that code and its own state.
  await page.route(granted, async (route) => {
    if (route.request().method() !== "POST") return route.fallback();
    const at = await back(route);
    at.searchParams.set("code", code);
    return route.fulfill({ status: 303, headers: { Location: at.href } });
  });
  await page.goto(`${global}/ui/`);
  await signIn(page, "nora");
  await expect(page.getByRole("alert").first()).toContainText("gives no ID token");
  await expect(page.getByText("not signed in", { exact: true })).toBeVisible();
  await expect(page.getByText("oidc:mallory")).toHaveCount(0);
  await page.unroute(granted);
  // The provider's token is for a sign-in with another nonce.
  await page.route(granted, (route) => {
    const at = new URL(route.request().url());
    if (route.request().method() !== "GET") return route.fallback();
    at.searchParams.set("nonce", "another");
    return route.fulfill({ status: 302, headers: { Location: at.href } });
  });
  await page.goto(`${global}/ui/`);
  await signIn(page, "nora");
  await expect(page.getByRole("alert").first()).toContainText("is for another sign-in");
  await expect(page.getByText("not signed in", { exact: true })).toBeVisible();
});

test("only the view that a sign-in ends in may ask the identity provider", async ({ request }) => {
  const policy = async (view: string) => (await request.get(`${global}/ui/${view}`)).headers()["content-security-policy"];
  expect(await policy("signin")).toContain(`connect-src 'self' ${issuer};`);
  expect(await policy("")).toContain("connect-src 'self';");
});
