import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { chromium, type Page } from "@playwright/test";
import { expect, test } from "./mesh";

// Pages of somebody else, in a browser on a server's own machine, where the connection alone is the credential: one of
// another site, one of another port of this machine, and one whose name was pointed to 127.0.0.1.

let foreign: Server, port: number;

test.beforeAll(async () => {
  foreign = createServer((_, answer) => answer.writeHead(200, { "Content-Type": "text/html" }).end("<!doctype html><title>foreign</title><body></body>"));
  await new Promise<void>((done) => foreign.listen(0, "127.0.0.1", done));
  port = (foreign.address() as AddressInfo).port;
});

test.afterAll(() => new Promise((done) => foreign.close(done)));

const policy = JSON.stringify({ type: "MeshTimeout", mesh: "default", name: "foreign", spec: { to: [{ targetRef: { kind: "Mesh" }, default: { connectionTimeout: "3s" } }] } });

/** read lists what a page learns by each way in which it may ask another origin. */
async function read(page: Page, server: string): Promise<string[]> {
  return page.evaluate(async (server) => {
    const learnt: string[] = [];
    const ask = async (what: string, path: string, init: RequestInit) => {
      const answer = await fetch(server + path, init).catch(() => undefined);
      if (answer !== undefined && answer.type !== "opaque") learnt.push(`${what}: ${answer.status} ${(await answer.text()).slice(0, 80)}`);
    };
    for (const path of ["/", "/meshes", "/who-am-i", "/openapi.json", "/ui/", "/ui/signin.json", "/_audit?last=1", "/meshtimeouts?watch=0"]) {
      await ask(`fetch ${path}`, path, {});
      await ask(`fetch with credentials ${path}`, path, { credentials: "include" });
      await ask(`no-cors ${path}`, path, { mode: "no-cors" });
    }
    const element = (name: "img" | "script" | "link" | "iframe" | "object", at: string) =>
      new Promise<void>((done) => {
        const one = document.createElement(name);
        one.onerror = () => done();
        one.onload = () => {
          if (one instanceof HTMLIFrameElement) {
            try { // a refused frame is another origin, too, but never this page's
              if (one.contentDocument?.body?.textContent !== "") learnt.push(`${name} ${at}: ${one.contentDocument?.body.textContent}`);
            } catch { /* of another origin */ }
          } else learnt.push(`${name} ${at} was loaded`);
          done();
        };
        if (one instanceof HTMLLinkElement) Object.assign(one, { rel: "stylesheet", href: at });
        else if (one instanceof HTMLObjectElement) one.data = at;
        else one.src = at;
        document.body.append(one);
        setTimeout(done, 3000); // an object of which nothing comes
      });
    await Promise.all([element("img", `${server}/ui/icon.svg`), element("script", `${server}/openapi.json`), element("script", `${server}/meshes`), element("link", `${server}/meshes`)]);
    for (const kind of ["EventSource", "WebSocket"] as const) {
      await new Promise<void>((done) => {
        const open = kind === "EventSource" ? new EventSource(`${server}/_audit`, { withCredentials: true }) : new WebSocket(`${server.replace("http", "ws")}/_audit`);
        open.onopen = open.onmessage = () => { learnt.push(`${kind} opened`); open.close(); done(); };
        open.onerror = () => { open.close(); done(); };
      });
    }
    return learnt;
  }, server);
}

/** write tries each way in which a page may send something to another origin without asking first, and some with. */
async function write(page: Page, server: string, body: string): Promise<void> {
  await page.evaluate(async ({ server, body }) => {
    const paths = ["/_batch", "/zones/zone-1/_accept-deletes", "/zones/zone-1/_resync", "/zones/zone-1/_disable", "/zones/zone-1/_revoke", "/tokens/user"];
    for (const path of paths) {
      for (const type of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/json"]) {
        for (const mode of ["no-cors", "cors"] as const) {
          for (const credentials of ["include", "omit"] as const) await fetch(server + path, { method: "POST", mode, credentials, body, headers: { "Content-Type": type } }).catch(() => undefined);
        }
      }
      navigator.sendBeacon(server + path, body);
      for (const enctype of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]) {
        await new Promise<void>((done) => {
          const [frame, form, field] = [document.createElement("iframe"), document.createElement("form"), document.createElement("input")];
          frame.name = `f${Math.random()}`;
          document.body.append(frame);
          Object.assign(form, { method: "post", action: server + path, enctype, target: frame.name });
          [field.name, field.value] = enctype === "text/plain" ? [body.slice(0, -1) + ', "x": "', '"}'] : ["type", "MeshTimeout"];
          form.append(field);
          document.body.append(form);
          frame.onload = () => done();
          setTimeout(done, 3000);
          form.submit();
        });
      }
    }
    for (const method of ["PUT", "DELETE"]) await fetch(`${server}/meshes/default/meshtimeouts/foreign`, { method, body: method === "PUT" ? body : undefined, mode: "cors" }).catch(() => undefined);
  }, { server, body });
}

for (const [who, host] of [["another site", "evil.localhost"], ["another port of this machine", "127.0.0.1"]] as const) {
  test(`a page of ${who} learns nothing, changes nothing and frames nothing`, async ({ page, mesh }) => {
    test.setTimeout(120_000);
    const state = async () => JSON.stringify(await Promise.all(["/meshtimeouts", "/zones", "/_audit?outcome=done&last=50"].map(async (path) => (await (await page.request.get(mesh.global + path)).text()).replace(/"next": \d+/, "")))); // the cursor counts refusals, too
    await page.goto(`http://${host}:${port}/`);
    const before = await state();
    expect(await read(page, mesh.global)).toEqual([]);
    await write(page, mesh.global, policy);
    expect(await state()).toBe(before);
    // The page itself: no frame shows it, and whoever opens it in a window has no hold of that.
    await page.goto(`http://${host}:${port}/`);
    const [opened] = await Promise.all([
      page.waitForEvent("popup"),
      page.evaluate((at) => {
        (window as { of?: Window | null }).of = window.open(at);
        const frame = document.createElement("iframe");
        frame.src = at;
        document.body.append(frame);
      }, `${mesh.global}/ui/`),
    ]);
    await expect(opened.getByRole("heading", { name: "Overview" })).toBeVisible();
    expect(await page.evaluate(() => (window as { of?: Window | null }).of?.closed), "the opener sees a closed window").toBe(true);
    expect(await opened.evaluate(() => window.opener)).toBeNull();
    await expect.poll(() => page.frames().length).toBe(2);
    expect(await page.frames()[1]?.locator("main").count()).toBe(0);
  });
}

test("a page whose name was pointed to this machine gets the page's files, and nothing of the mesh", async ({ mesh }) => {
  const at = new URL(mesh.global);
  const browser = await chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: ["--no-sandbox", "--host-resolver-rules=MAP evil.example 127.0.0.1"] });
  const page = await browser.newPage();
  await page.goto(`http://evil.example:${at.port}/ui/`);
  const answers = await page.evaluate(async () => {
    const of = async (path: string, init: RequestInit = {}) => {
      const answer = await fetch(path, init);
      return `${path} ${answer.status} ${/MeshTimeout|"zone-1"|mesh-system:admin/.test(await answer.text())}`;
    };
    return [await of("/meshes"), await of("/zones"), await of("/who-am-i"), await of("/_audit?last=5"),
      await of("/_batch", { method: "POST", body: "{}", headers: { "Content-Type": "application/json" } }),
      await of("/meshes", { headers: { Authorization: "Bearer x.y.z" } })];
  });
  await browser.close();
  expect(answers).toEqual(["/meshes 403 false", "/zones 403 false", "/who-am-i 403 false", "/_audit?last=5 403 false", "/_batch 403 false", "/meshes 401 false"]);
});
