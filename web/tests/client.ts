import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { programs } from "./programs";

/** Client is a program without a proxy that calls into the demo's mesh, with the identity of a Dataplane of its own. */
export class Client {
  private constructor(private readonly cert: Buffer, private readonly key: Buffer, private readonly port: number) {}

  /** of gets the identity from its zone, as a person does. It calls the inbound http-port of the backend there. */
  static async of(server: string, name: string, namespace: string): Promise<Client> {
    const dir = mkdtempSync(join(tmpdir(), "client-"));
    try {
      execFileSync(`${programs}/causewayctl`, ["--address", server, "svid", name, "--namespace", namespace, "--out-dir", dir], { stdio: "pipe" });
      const backend = (await (await fetch(`${server}/meshes/default/dataplanes/backend?namespace=backend-ns`)).json()) as { networking: { inbound: { name: string; port: number }[] } };
      const port = backend.networking.inbound.find((i) => i.name === "http-port")?.port ?? 0;
      return new Client(readFileSync(join(dir, "svid.pem")), readFileSync(join(dir, "svid_key.pem")), port);
    } finally {
      rmSync(dir, { recursive: true });
    }
  }

  /** call returns the status of one request to the backend's Envoy. */
  call(method: string, path: string): Promise<number> {
    return new Promise((resolve, reject) => {
      const asked = request({ host: "127.0.0.1", port: this.port, method, path, cert: this.cert, key: this.key, rejectUnauthorized: false, agent: false }, (answer) => {
        answer.resume();
        answer.on("end", () => resolve(answer.statusCode ?? 0));
      });
      asked.on("error", reject);
      asked.end();
    });
  }
}
