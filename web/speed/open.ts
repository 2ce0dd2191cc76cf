import type { Browser, CDPSession, Page } from "@playwright/test";
import { address, clicked, figure, memory, moment, permission, put, shown, sleep, zones, type Sign } from "./measure.ts";

const ui = `${address}/ui/`;
/** What a page may hold more at the end than at the beginning; what a garbage collection leaves differs by less. */
const allowed = { heap: 2, nodes: 500, listeners: 50 };
/** A round begins so often, in ms, if the machine keeps up. */
const pace = 10_000;
/** Rounds before the first measurement: what is loaded, compiled and kept once is there. */
const warm = 12;
/** Measurements after the first. */
const measurements = 6;

const nav = (text: string): Sign => ({ selector: "nav a", text });
const heading = (text: string): Sign => ({ selector: "h1", text });

/** views are what a round goes through. */
const views: [Sign, Sign][] = [
  [nav("Who may call whom"), { selector: ".matrix button.cell" }],
  [{ selector: ".row a", text: "Graph" }, { selector: ".graph canvas" }],
  [nav("Resources"), { selector: "tbody tr", count: 50 }],
  [{ selector: "tbody th a", text: "bench-" }, { selector: "main pre", text: "targetRef" }],
  [nav("Why 403?"), heading("Why 403?")],
  [nav("Shadow report"), heading("Shadow report")],
  [nav("Try a change"), { selector: "main .editor" }],
  [nav("Overview"), { selector: ".tile", count: zones }],
  [{ selector: '.tile a[aria-label^="bench-1:"]' }, { selector: "caption", text: "By type" }],
  [nav("Overview"), { selector: ".tile", count: zones }],
];

/**
 * The page that is used is measured in a view that no change draws again. In the overview it would hold what is drawn once or
 * twice: React keeps what it drew before the last change beside it, a thousand tiles and the answer that they are of.
 */
const quiet: [Sign, Sign] = [nav("Why 403?"), heading("Why 403?")];

let writes = 0;

async function write(policy: number, caller: string): Promise<void> {
  await put(`/meshes/default/meshtrafficpermissions/bench-${policy}`, permission(`bench-${policy}`, `s-${policy}`, caller));
  writes++;
}

/** round goes through the views, and changes what they and the pages that are left open show. */
async function round(page: Page, i: number): Promise<void> {
  for (const [at, [link, sign]] of views.entries()) {
    await clicked(page, link, sign);
    if (at % 5 === 0) await write(at, `spiffe://bench/mark-${i}`);
  }
}

interface Held {
  title: string;
  session: CDPSession;
}

async function opened(browser: Browser, title: string, url: string, sign: Sign): Promise<[Page, Held]> {
  const page = await browser.newPage();
  await page.goto(url);
  await shown(page, sign);
  return [page, { title, session: await page.context().newCDPSession(page) }];
}

async function measure(all: Held[], at: string): Promise<void> {
  await sleep(3000); // what was asked is answered
  for (const { title, session } of all) {
    const { heap, nodes, listeners } = await memory(session);
    moment(at, `${title}: heap`, "MiB", allowed.heap, heap);
    moment(at, `${title}: nodes`, "nodes", allowed.nodes, nodes);
    moment(at, `${title}: listeners`, "listeners", allowed.listeners, listeners);
  }
}

/** stayOpen uses one page all the time and leaves two open, beside changes, and prints from time to time what they hold. */
export async function stayOpen(browser: Browser, seconds: number): Promise<void> {
  const tiles: Sign = { selector: ".tile", count: zones };
  const [page, used] = await opened(browser, "a page that is used", ui, tiles);
  const [, overview] = await opened(browser, "an overview left open", ui, tiles);
  const [, calls] = await opened(browser, "a matrix left open", `${ui}calls`, { selector: ".matrix button.cell" });
  const all = [used, overview, calls];
  for (let i = 0; i < warm; i++) await round(page, i);
  await clicked(page, ...quiet);
  writes = 0;
  await measure(all, "start");
  const begun = Date.now();
  let rounds = 0;
  for (let n = 1; n <= measurements; n++) {
    const until = begun + (n * seconds * 1000) / measurements;
    while (Date.now() < until) {
      const next = Math.min(until, Date.now() + pace);
      await round(page, warm + rounds++);
      await sleep(Math.max(0, next - Date.now()));
    }
    await clicked(page, ...quiet);
    await measure(all, `${Math.round((n * seconds) / measurements / 6) / 10} min`);
  }
  figure("rounds", "rounds", 0, rounds);
  figure("writes", "writes", 0, writes);
}
