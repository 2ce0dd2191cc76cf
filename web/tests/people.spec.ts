import type { Page } from "@playwright/test";
import { expect, test } from "./mesh";
import { settled } from "./settled";

// The page for everybody: by the keyboard, and by a URL. accessible.spec.ts judges each view.

const frontend = "spiffe://default.zone-1.mesh.local/ns/default/sa/frontend";

const policy = `type: MeshTrafficPermission\nmesh: default\nnamespace: backend-ns\nname: judged\nspec:\n  targetRef: {kind: Dataplane, labels: {app: backend}}\n  default: {allow: [{spiffeId: {type: Exact, value: "${frontend}"}}]}\n`;

/** tabTo presses Tab until something that a person wants has the focus. */
async function tabTo(page: Page, role: "link" | "button" | "textbox", name: string | RegExp): Promise<void> {
  const wanted = page.getByRole(role, typeof name === "string" ? { name, exact: true } : { name }).first();
  await expect(wanted).toBeVisible();
  for (let i = 0; i < 120; i++) {
    if (await wanted.evaluate((e) => e === document.activeElement)) return;
    await page.keyboard.press("Tab");
  }
  throw new Error(`Tab does not lead to ${role} ${name}`);
}

test("from the overview to a verdict by the keyboard alone, and what has the focus is seen", async ({ watched: page, mesh }) => {
  await page.goto(`${mesh.zone1}/ui/`);
  await settled(page);
  await page.keyboard.press("Tab");
  await expect(page.getByRole("link", { name: "Skip to content" })).toBeFocused();
  await expect(page.getByRole("link", { name: "Skip to content" })).toBeInViewport();
  await page.keyboard.press("Enter");
  await expect(page.locator("#main")).toBeFocused();
  await page.keyboard.press("Shift+Tab");
  await tabTo(page, "button", "Sign in");
  await page.keyboard.press("Enter");
  await expect(page.getByLabel("User token")).toBeFocused();
  await page.keyboard.press("Escape");
  await expect(page.getByRole("dialog")).toHaveCount(0);
  await expect(page.getByRole("button", { name: "Sign in" })).toBeFocused();
  await page.getByRole("link", { name: "Skip to content" }).focus();
  await tabTo(page, "link", "Why 403?");
  const outline = await page.evaluate(() => getComputedStyle(document.activeElement ?? document.body).outlineWidth);
  expect(outline, "what has the focus has an outline").toBe("2px");
  await page.keyboard.press("Enter");
  for (const [label, value] of [["Client (SPIFFE ID)", frontend], ["Service or Dataplane (name or KRI)", "backend"], ["Its namespace", "backend-ns"], ["Inbound", "http-port"], ["Method", "GET"], ["Path", "/keys"]] as const) {
    await tabToLabel(page, label);
    await page.keyboard.type(value);
    await page.keyboard.press("Escape"); // the list of what is known
  }
  await page.keyboard.press("Enter");
  await expect(page.locator(".verdict")).toContainText("Denied by");
  await tabTo(page, "link", "Try it, then apply it");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { name: "Try a change" })).toBeVisible();
  await tabTo(page, "button", "Preview");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { name: "Preview" })).toBeVisible();
});

async function tabToLabel(page: Page, label: string): Promise<void> {
  const field = page.getByLabel(label, { exact: true }).first();
  for (let i = 0; i < 60 && !(await field.evaluate((e) => e === document.activeElement)); i++) await page.keyboard.press("Tab");
  await expect(field).toBeFocused();
}

test("each view that a person comes to by clicks has a URL that shows another person the same", async ({ watched: page, mesh, browser }) => {
  const shared: { url: string; what: string }[] = [];
  const share = async (what: string) => {
    await settled(page);
    await expect(page.locator("main").getByText(what).first()).toBeVisible();
    shared.push({ url: page.url(), what });
  };
  await page.goto(`${mesh.zone1}/ui/`);
  await page.getByRole("link", { name: "Resources" }).click();
  await page.getByRole("combobox", { name: "Type", exact: true }).selectOption("Dataplane");
  await page.getByRole("combobox", { name: "Origin", exact: true }).selectOption("zone");
  await page.getByRole("searchbox", { name: "Name contains" }).fill("nothing-has-this-name");
  await share("No Dataplane matches.");
  await page.getByRole("searchbox", { name: "Name contains" }).fill("back");
  await page.getByRole("link", { name: "backend", exact: true }).click();
  await share("Its proxy: connection, certificate, inbounds and rules");
  await page.getByRole("link", { name: "Its proxy: connection, certificate, inbounds and rules" }).click();
  await share("self_inbound_dp_http-port");
  await page.getByRole("link", { name: "Who may call whom" }).click();
  await page.getByRole("link", { name: /^Denied and tried/ }).click();
  await page.locator("button.cell.seen:not(.pale)").first().click();
  await share("Decided by");
  await page.locator(".chosen").getByRole("link", { name: "Why?" }).click();
  await share("Verdict");
  await page.getByRole("link", { name: "Shadow report" }).click();
  await share("Is it safe to enforce?");
  const long = `${policy}# ${"a text that is longer than a request line may be; ".repeat(300)}\n`;
  await page.goto(`${mesh.zone1}/ui/try#${new URLSearchParams({ text: long })}`);
  await share("This text came with the link. Read it before you apply it.");
  const other = await (await browser.newContext()).newPage();
  const sent: string[] = [];
  other.on("request", (r) => sent.push(r.url()));
  for (const { url, what } of shared) {
    await other.goto(url);
    await settled(other);
    await expect(other.locator("main").getByText(what).first(), url.slice(0, 200)).toBeVisible();
  }
  await expect(other.locator(".cm-content")).toContainText("judged");
  expect(sent.filter((url) => url.includes("longer") && !url.includes("#")), "the text is not for the logs of servers on the way").toEqual([]);
  await other.context().close();
});

test("a view whose file is gone says so, and the others work", async ({ page, mesh }) => {
  await page.route(/Graph/, (route) => route.fulfill({ status: 404, body: "404 page not found" }));
  await page.goto(`${mesh.zone1}/ui/calls?view=graph`);
  await expect(page.getByRole("heading", { name: "This view failed" })).toBeVisible();
  await expect(page.getByRole("alert")).toContainText("Reload the page");
  await page.getByRole("link", { name: "Overview" }).click();
  await expect(page.getByText("Needs attention")).toBeVisible();
  await page.getByRole("link", { name: "Who may call whom" }).click();
  await expect(page.locator(".matrix")).toBeVisible();
});

test("a page that nobody sees waits for nothing, and keeps no connection from the others", async ({ watched: page, mesh }) => {
  let open = 0;
  const waits = (url: string) => url.includes("wait=") || /watch=[1-9]/.test(url);
  page.on("request", (r) => { if (waits(r.url())) open++; });
  const ended = (r: { url: () => string }) => { if (waits(r.url())) open--; };
  page.on("requestfinished", ended);
  page.on("requestfailed", ended);
  await page.goto(`${mesh.zone1}/ui/`);
  await expect.poll(() => open).toBe(2);
  const hide = (state: string) => page.evaluate((state) => {
    Object.defineProperty(document, "visibilityState", { value: state, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  }, state);
  await hide("hidden");
  await expect.poll(() => open, { timeout: 5000 }).toBe(0);
  await hide("visible");
  await expect.poll(() => open).toBe(2);
});
