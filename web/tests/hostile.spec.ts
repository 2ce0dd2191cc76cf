import type { Page, Route } from "@playwright/test";
import { answerOf, answerTo, documents, filled, payload, texts, type Turn } from "./hostile";
import { expect, test } from "./mesh";

// Each text that the page can get, from each field of each answer and each type, is an attack. The page's files are a real
// server's; what it asks for is answered here, as no server of ours would.

/** lie answers everything but the page's files. What waits for a change waits on. */
async function lie(page: Page, answer: (route: Route, path: string) => Promise<void>): Promise<void> {
  await page.route((url) => !url.pathname.startsWith("/ui/"), async (route) => {
    const url = new URL(route.request().url());
    if ((url.searchParams.get("watch") ?? "0") !== "0" || url.searchParams.has("wait")) return; // never
    await answer(route, url.pathname);
  });
}

/** show changes the view as a link does. */
async function show(page: Page, to: string): Promise<void> {
  await page.evaluate((to) => {
    history.pushState(null, "", `/ui/${to}`);
    window.dispatchEvent(new Event("causeway:moved"));
  }, to);
  await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
  await expect(page.getByText(/^(Asking|Refreshing|Loading|Waiting)/)).toHaveCount(0);
}

/** made lists what a text has become beside text. */
async function made(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const hidden = /(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;
    const wrong = [...document.querySelectorAll("img:not(.cm-widgetBuffer), iframe, object, body script, svg[onload], [onerror], [onclick], a[href^='javascript' i], [src^='javascript' i]")].map((e) => e.outerHTML);
    for (const a of document.querySelectorAll("a")) if (a.origin !== location.origin) wrong.push(`link to ${a.href}`);
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode() !== null) if (hidden.test(texts.currentNode.textContent ?? "")) wrong.push(`hidden in: ${JSON.stringify(texts.currentNode.textContent)}`);
    for (const e of document.querySelectorAll("[title], [aria-label]")) if (hidden.test(`${e.getAttribute("title")}${e.getAttribute("aria-label")}`)) wrong.push(`hidden in a title: ${e.outerHTML}`);
    return [...wrong, ...Object.keys(Object.prototype)];
  });
}

interface Type {
  name: string;
  path: string;
  readOnly: boolean;
}

async function types(server: string): Promise<Type[]> {
  return ((await (await fetch(`${server}/_resources`)).json()) as { resources: Type[] }).resources;
}

// The zone of a zone's own page is that of its server.
const views = ["", "calls", "calls?view=graph", `calls?${new URLSearchParams({ to: `kri_dp_default_zone-1_ns_${payload}_${payload}`, from: payload })}`, `calls?${new URLSearchParams({ to: payload, from: "x" })}`,
  "why?from=a&to=b&zone=z", "shadow", "shadow?policy=p&zone=z", "zone", "proxy?kri=kri_dp_default_zone-1_ns_x_",
  "resources?type=meshtimeouts", "resource?kri=kri_mt_default_zone-1_ns_x_", "try?kri=kri_mt_default_zone-1_ns_x_"];

for (const mode of ["global", "zone"] as const) {
  test(`each text of each answer stays a text, in every view of a ${mode}`, async ({ watched: page, mesh }) => {
    test.setTimeout(180_000);
    let turn: Turn = 0;
    await lie(page, async (route, path) => {
      const method = route.request().method();
      if (path === "/_resources") return route.fallback();
      let answer = answerTo(method, path, turn) as Record<string, unknown> | undefined;
      if (path === "/_batch") answer = answerOf(route.request().url().includes("dryRun") ? "Forecast" : "BatchResult", turn) as typeof answer;
      if (path === "/" && answer !== undefined) answer = { ...answer, mode, zone: payload };
      if (path.endsWith("/stats") || path.endsWith("/clusters")) return route.fulfill({ status: 200, contentType: path.endsWith("/stats") ? "text/plain" : "application/json", body: path.endsWith("/stats") ? payload : JSON.stringify({ cluster_statuses: [{ name: payload, host_statuses: [{ address: { pipe: { path: payload } }, health_status: { eds_health_status: payload } }] }] }) });
      if (path === "/_audit" && answer !== undefined) answer = JSON.parse(JSON.stringify(answer).replaceAll(`"type":${JSON.stringify(payload)}`, `"type":"MeshTimeout"`)) as typeof answer;
      if (path.startsWith("/_kri/") && answer !== undefined) answer = { ...answer, kri: decodeURIComponent(path.slice("/_kri/".length)), labels: { "kuma.io/policy-role": payload, "kuma.io/display-name": payload, "kuma.io/zone": payload } };
      return answer === undefined ? route.fulfill({ status: 404, contentType: "application/json", body: JSON.stringify({ detail: payload, invalid_parameters: [{ field: payload, reason: payload }] }) }) : route.fulfill({ status: 200, contentType: "application/json", body: JSON.stringify(answer) });
    });
    await page.goto(`${mesh.zone1}/ui/`);
    for (turn of [0, 1] as Turn[]) {
      for (const view of views) {
        await show(page, `${view}${view.includes("?") ? "&" : "?"}turn=${turn}${mode === "global" ? "&name=z" : ""}`);
        for (const name of ["Query Envoy", "List them", "Preview", "Apply", "Accept"]) {
          const button = page.getByRole("button", { name, exact: true }).first();
          if ((await button.count()) > 0 && (await button.isEnabled())) await button.click();
        }
        await expect(page.getByText(/^(Asking|Refreshing|Loading|Waiting|Previewing|Applying)/)).toHaveCount(0);
        for (const one of await page.locator("main summary").all()) await one.click();
        expect(await made(page), `${view}, turn ${turn}`).toEqual([]);
        await expect(page.locator("main"), `${view}, turn ${turn}`).toContainText("<img src=x onerror=alert(1)>");
        await expect(page.getByText("This view failed")).toHaveCount(0);
      }
    }
  });
}

test("each refusal stays a text, in every view", async ({ watched: page, mesh }) => {
  await page.goto(`${mesh.zone1}/ui/`);
  await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
  await lie(page, (route) => route.fulfill({ status: 400, contentType: "application/json", body: JSON.stringify({ status: 400, title: payload, detail: payload, invalid_parameters: [{ field: payload, reason: payload, source: payload }], instance: payload }) }));
  for (const view of views.slice(1)) {
    await show(page, `${view}${view.includes("?") ? "&" : "?"}mesh=refused`);
    expect(await made(page), view).toEqual([]);
    await expect(page.locator("main"), view).toContainText("<img src=x onerror=alert(1)>");
  }
});

test("each text of each type of resource stays a text, at any depth, and is the same text in the source", async ({ watched: page, mesh }) => {
  test.setTimeout(180_000);
  const known = await types(mesh.zone1);
  const written = [...known, ...(await types(mesh.global))].filter((t) => !t.readOnly).map((t) => t.name);
  expect(Object.keys(documents).sort(), "the schemas have each type that people write").toEqual([...new Set(written)].sort());
  let doc: Record<string, unknown> = {};
  await page.goto(`${mesh.zone1}/ui/resources`);
  await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
  await page.route((url) => url.pathname.startsWith("/_kri/"), (route) => route.fulfill({ status: 200, contentType: "application/json", body: JSON.stringify(doc) }));
  await page.route((url) => known.some((t) => url.pathname === `/${t.path}` && !url.searchParams.has("watch")), (route) =>
    route.fulfill({ status: 200, contentType: "application/json", body: JSON.stringify({ total: 1, items: [doc], next: null }) }));
  for (const { name: type, path } of known) {
    const schema = documents[type];
    if (schema === undefined) continue; // only servers write it
    const content = filled(schema.spec) as Record<string, unknown>;
    const kri = `kri_x_default_zone-1_ns_${type.toLowerCase()}_`;
    doc = { type, name: payload, mesh: payload, namespace: payload, kri, labels: { [payload]: payload, "kuma.io/display-name": payload, "kuma.io/zone": payload }, ...(schema.flat === true ? content : { spec: content }) };
    const count = texts(schema.spec) + 7;
    await show(page, `resource?kri=${kri}`);
    const source = (await page.locator("main pre").last().textContent()) ?? "";
    expect(JSON.parse(source), type).toEqual(JSON.parse(JSON.stringify({ ...doc, kri: undefined })));
    expect(source.split("onerror=alert(1)").length - 1, `${type}: texts in the source`).toBe(count);
    expect(await made(page), type).toEqual([]);
    await show(page, `resources?type=${path}`);
    await expect(page.getByRole("row").filter({ hasText: "onerror" })).toHaveCount(1);
    expect(await made(page), `${path}, as a list`).toEqual([]);
    await show(page, `try?kri=${kri}`);
    await expect(page.locator(".cm-content")).toContainText("onerror");
    expect(await made(page), `${type}, in the editor`).toEqual([]);
  }
});

test("the browser refuses to make markup or a script of a text, whoever tries", async ({ page, mesh }) => {
  for (const view of ["", "try", "calls?view=graph"]) {
    await page.goto(`${mesh.zone1}/ui/${view}`);
    await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
    const done = await page.evaluate(() => {
      const tried = (what: () => void) => {
        try {
          what();
          return "done";
        } catch (failure) {
          return (failure as Error).name;
        }
      };
      const into = document.createElement("div");
      return {
        innerHTML: tried(() => { into.innerHTML = "<i>x</i>"; }),
        insertAdjacentHTML: tried(() => into.insertAdjacentHTML("beforeend", "<i>x</i>")),
        script: tried(() => { document.createElement("script").text = "1"; }),
        policy: tried(() => void (window as unknown as { trustedTypes: { createPolicy: (name: string, rules: object) => object } }).trustedTypes.createPolicy("own", { createHTML: (s: string) => s })),
        text: tried(() => { into.textContent = "<i>x</i>"; }),
      };
    });
    expect(done, view).toEqual({ innerHTML: "TypeError", insertAdjacentHTML: "TypeError", script: "TypeError", policy: "TypeError", text: "done" });
  }
});

test("the field that stands in for the editor spells out what shows no glyph", async ({ page, mesh }) => {
  await page.route("**/Editor*.js", () => undefined); // never
  await page.goto(`${mesh.zone1}/ui/try?${new URLSearchParams({ text: "name: a\u202eb\n" })}`);
  const field = page.getByRole("textbox", { name: "Resources, as YAML or JSON" });
  await expect(field).toHaveValue(/a\\u202eb/);
  await expect(field).not.toBeEditable();
});
