import type { Browser, Page } from "@playwright/test";
import { address, clicked, figure, memory, permission, put, shown, sleep } from "./measure.ts";

const ui = `${address}/ui/`;
/** What a page may hold more at the end than at the beginning, MiB: what a garbage collection leaves differs by less. */
const allowed = 2;

/** round goes through the views, and changes what they show. */
async function round(page: Page, i: number): Promise<void> {
  const nav = (text: string) => ({ selector: "nav a", text });
  await clicked(page, nav("Who may call whom"), { selector: ".matrix button.cell" });
  await put("/meshes/default/meshtrafficpermissions/bench-7", permission("bench-7", "s-7", `spiffe://bench/mark-${i}`));
  await clicked(page, nav("Resources"), { selector: "tbody tr", count: 50 });
  await clicked(page, { selector: "tbody th a", text: "bench-" }, { selector: "main pre", text: "targetRef" });
  await clicked(page, nav("Why 403?"), { selector: "h1", text: "Why 403?" });
  await clicked(page, nav("Try a change"), { selector: "main .editor" });
  await clicked(page, nav("Overview"), { selector: ".tile", count: 1000 });
  await sleep(1000);
}

/** stayOpen uses one page all the time and leaves another open, beside changes, and compares what they hold. */
export async function stayOpen(browser: Browser, seconds: number): Promise<void> {
  const [used, left] = [await browser.newPage(), await browser.newPage()];
  await left.goto(`${ui}calls`);
  await shown(left, { selector: ".matrix button.cell" });
  await used.goto(ui);
  const [ofUsed, ofLeft] = [await used.context().newCDPSession(used), await left.context().newCDPSession(left)];
  let i = 0;
  for (; i < 10; i++) await round(used, i); // what is loaded and compiled once is there
  const before = [await memory(ofUsed), await memory(ofLeft)] as const;
  const until = Date.now() + seconds * 1000;
  while (Date.now() < until) await round(used, i++);
  const after = [await memory(ofUsed), await memory(ofLeft)] as const;
  for (const [k, title] of ["a page that is used", "a page that is left open"].entries()) {
    const [a, b] = [before[k], after[k]];
    if (a === undefined || b === undefined) continue;
    figure(`${title}, after ${Math.round(seconds / 60)} min: heap at the beginning`, "MiB", 0, a.heap);
    figure(`${title}, after ${Math.round(seconds / 60)} min: growth of the heap`, "MiB", allowed, Math.max(0, b.heap - a.heap));
    figure(`${title}, after ${Math.round(seconds / 60)} min: growth of nodes`, "nodes", 500, Math.max(0, b.nodes - a.nodes));
    figure(`${title}, after ${Math.round(seconds / 60)} min: growth of listeners`, "listeners", 50, Math.max(0, b.listeners - a.listeners));
  }
  figure("rounds through the views", "rounds", 0, i);
}
