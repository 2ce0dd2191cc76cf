import { chromium, type Browser, type Page } from "@playwright/test";
import { address, clicked, cpu, figure, now, percentile, permission, policies, put, shown, sleep, wall, zones, type Sign } from "./measure.ts";
import { stayOpen } from "./open.ts";

const rounds = 5;
const ui = `${address}/ui/`;
const overview: Sign = { selector: ".tile", count: zones };
const matrix: Sign = { selector: ".matrix button.cell" };

/** first opens the page in a browser that has nothing of it. */
async function first(browser: Browser): Promise<void> {
  for (let i = 0; i < rounds; i++) {
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.goto(ui, { waitUntil: "commit" });
    await shown(page, { selector: ".totals dt", text: "policies" });
    figure("first view: all zones and totals", "ms", 1000, await shown(page, overview));
    await context.close();
  }
}

/** views goes by clicks from view to view. */
async function views(page: Page): Promise<void> {
  await page.goto(ui);
  await shown(page, overview);
  const nav = (text: string): Sign => ({ selector: "nav a", text });
  const steps: [string, Sign, Sign][] = [
    ["who may call whom", nav("Who may call whom"), matrix],
    ["why", nav("Why 403?"), { selector: "h1", text: "Why 403?" }],
    ["shadow report", nav("Shadow report"), { selector: "h1", text: "Shadow report" }],
    ["resources", nav("Resources"), { selector: "tbody tr", count: 50 }],
    ["one resource", { selector: "tbody th a", text: "bench-" }, { selector: "main pre", text: "targetRef" }],
    ["try a change", nav("Try a change"), { selector: "main .editor" }],
    ["overview", nav("Overview"), overview],
    ["a zone", { selector: '.tile a[aria-label^="bench-1:"]' }, { selector: "caption", text: "By type" }],
  ];
  for (let i = 0; i < rounds; i++) {
    for (const [title, link, sign] of steps) figure(`change of view: ${title}`, "ms", 200, await clicked(page, link, sign));
    await page.goto(`${ui}resources?type=dataplanes&name=s-1-`);
    await clicked(page, { selector: "tbody th a", text: "s-1-" }, { selector: "main a", text: "Its proxy" });
    figure("change of view: a proxy", "ms", 200, await clicked(page, { selector: "main a", text: "Its proxy" }, { selector: "caption", text: "Inbounds" }));
    await clicked(page, nav("Overview"), overview);
  }
}

/** search types digits, and waits for the count of what has them. */
async function search(page: Page): Promise<void> {
  const took: number[] = [];
  for (const text of [1234, 987, 4567, 3210].map((n) => String(n % policies))) {
    await page.goto(`${ui}resources?type=meshtrafficpermissions`);
    await shown(page, { selector: "tbody tr", count: 50 });
    await page.getByLabel("Name contains").focus();
    await page.evaluate(() => {
      document.addEventListener("keydown", () => document.body.setAttribute("data-key", String(performance.now())), { capture: true });
    });
    for (let i = 1; i <= text.length; i++) {
      const found = Array.from({ length: policies }, (_, n) => String(n)).filter((n) => n.includes(text.slice(0, i))).length;
      await page.keyboard.press(text.charAt(i - 1));
      const at = await shown(page, { selector: ".count", text: `of ${found}` });
      took.push(at - Number(await page.evaluate(() => document.body.getAttribute("data-key"))));
    }
  }
  figure("search as you type, p50", "ms", 100, percentile(took, 50));
  figure("search as you type, p95", "ms", 0, percentile(took, 95));
}

const named = (service: number) => {
  const [zone, namespace] = [Math.floor(service / 2), service % 20];
  return `spiffe://default.bench-${zone}.mesh.local/ns/ns-${namespace}/sa/s-${service}`;
};

/** changes writes a policy that an open page shows, and waits until the page shows the change. */
async function changes(page: Page): Promise<void> {
  const at = "/meshes/default/meshtrafficpermissions/bench-7";
  await page.goto(`${ui}resource?kri=kri_mtp_default___bench-7_`);
  await shown(page, { selector: "main pre", text: "targetRef" });
  await shown(page, { selector: ".live", text: "Updates automatically." });
  const took: number[] = [];
  for (let i = 0; i < 40; i++) {
    await sleep(300 + Math.random() * 500);
    const mark = `spiffe://bench/mark-${i}`;
    const begun = now();
    await put(at, permission("bench-7", "s-7", mark));
    took.push((await wall(page, await shown(page, { selector: "main pre", text: `${mark}"` }))) - begun);
  }
  figure("change visible in an open page, p50", "ms", 0, percentile(took, 50));
  figure("change visible in an open page, p95", "ms", 300, percentile(took, 95));
}

const whole = "/meshes/default/_access?size=500&callers=500";

async function ask(path: string): Promise<{ ms: number; bytes: number }> {
  const begun = now();
  const answer = await fetch(address + path);
  const { byteLength } = await answer.arrayBuffer();
  if (!answer.ok) throw new Error(`GET ${path}: ${answer.status}`);
  return { ms: now() - begun, bytes: byteLength };
}

/** computed asks the global for the largest part of the matrix: for the first time, and after changes. */
async function computed(): Promise<void> {
  const begun = await ask(whole);
  figure("matrix of 500 services and 500 callers, first answer", "ms", 2000, begun.ms);
  figure("matrix of 500 services and 500 callers, size", "kB", 0, begun.bytes / 1000);
  const took: number[] = [];
  for (let i = 0; i < 20; i++) {
    await put("/meshes/default/meshtrafficpermissions/bench-8", permission("bench-8", "s-8", named(100 + i)));
    took.push((await ask(whole)).ms);
  }
  figure("matrix of 500 services and 500 callers, after a change", "ms", 100, percentile(took, 50));
}

/** matrices changes one cell of an open matrix, and waits until it is drawn. */
async function matrices(page: Page): Promise<void> {
  await page.goto(`${ui}calls`);
  await shown(page, matrix);
  await shown(page, { selector: ".live", text: "Updates automatically." });
  const row = (await page.locator(".matrix tbody th").first().getAttribute("title")) ?? "";
  const service = row.split("_")[5] ?? "";
  // Callers whom nothing else allows: the others' cells look the same before the change.
  const denied = await page.locator(".matrix tbody tr:first-child button.cell:not(.allow)").evaluateAll((all) => all.map((e) => e.getAttribute("title") ?? ""));
  const callers = denied.map((title) => title.slice(0, title.indexOf(` to ${service}:`)));
  if (callers.length < 2) throw new Error(`${callers.length} callers are drawn whom nothing allows at ${service}: want 2`);
  const took: number[] = [];
  for (let i = 0; i < 20; i++) {
    await sleep(300 + Math.random() * 500);
    const caller = callers[i % callers.length] ?? "";
    const begun = now();
    await put("/meshes/default/meshtrafficpermissions/cell", permission("cell", service, caller));
    const cell = `.matrix tbody tr:first-child button.allow[title^="${caller} to ${service}:"]`;
    took.push((await wall(page, await shown(page, { selector: cell }))) - begun);
  }
  figure("change visible in an open matrix, p95", "ms", 300, percentile(took, 95));
}

/** resting opens 50 pages that nobody touches, and compares what the global uses with what it uses before and after. */
async function resting(browser: Browser): Promise<void> {
  const during = 40;
  let asked = 0;
  const cores = async () => {
    const before = cpu();
    await sleep(during * 1000);
    return (cpu() - before) / during;
  };
  await sleep(93_000); // a page follows a change for a while: nothing changes only after that
  const before = await cores();
  const contexts = await Promise.all(Array.from({ length: 50 }, () => browser.newContext()));
  for (const [i, context] of contexts.entries()) {
    const page = await context.newPage();
    await page.goto(ui + ["", "resources?type=meshtrafficpermissions", "calls?service=s-77", "resource?kri=kri_mtp_default___bench-9_"][i % 4]);
    await shown(page, { selector: ".live", text: "Updates automatically." });
    page.on("request", () => asked++);
  }
  await sleep(5000);
  asked = 0;
  const used = await cores();
  const requests = (asked / contexts.length / during) * 60;
  await Promise.all(contexts.map((context) => context.close()));
  await sleep(5000);
  const without = (before + (await cores())) / 2;
  figure("50 open pages while nothing changes: requests of a page and minute", "requests", 0, requests);
  figure("the global while nothing changes and no page is open", "cores", 0, without);
  figure("50 open pages while nothing changes, beyond what the global needs without them", "cores", 0.05, Math.max(0, used - without));
}

const steps: Record<string, (browser: Browser) => Promise<void>> = {
  computed, first, views: onPage(views), search: onPage(search), changes: onPage(changes), matrices: onPage(matrices), resting,
};

/** onPage is a step in a page of its own. */
function onPage(step: (page: Page) => Promise<void>): (browser: Browser) => Promise<void> {
  return async (browser) => {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
    await step(await context.newPage());
    await context.close();
  };
}

async function main(): Promise<void> {
  const browser = await chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "../.tools/bin/chromium", args: ["--no-sandbox"] });
  try {
    const seconds = Number(process.env["OPEN_SECONDS"] ?? 0);
    if (seconds > 0) return await stayOpen(browser, seconds);
    const wanted = (process.env["STEPS"] ?? "").split(",").filter((name) => name !== "");
    const unknown = wanted.find((name) => !(name in steps));
    if (unknown !== undefined) throw new Error(`there is no step ${unknown}: want some of ${Object.keys(steps).join(",")}`);
    for (const [name, step] of Object.entries(steps)) if (wanted.length === 0 || wanted.includes(name)) await step(browser);
  } finally {
    await browser.close();
  }
}

await main();
