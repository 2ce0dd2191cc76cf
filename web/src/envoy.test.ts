import { expect, test } from "vitest";
import { endpoints } from "./envoy";

test("endpoints are read from Envoy's words, whatever those are", () => {
  const host = (more: object) => ({ address: { socket_address: { address: "10.0.0.1", port_value: 80 } }, stats: [{ name: "rq_total", value: "7" }, { name: "rq_error", value: "2" }], ...more });
  expect(endpoints({ cluster_statuses: [{ name: "a", host_statuses: [host({ health_status: { eds_health_status: "HEALTHY" } }), host({ health_status: { failed_outlier_check: true, eds_health_status: "HEALTHY" } })] }] })).toEqual([
    { cluster: "a", address: "10.0.0.1:80", health: "healthy", requests: "7", failed: "2" },
    { cluster: "a", address: "10.0.0.1:80", health: "failed outlier check", requests: "7", failed: "2" },
  ]);
  expect(endpoints({ cluster_statuses: [{ name: "b" }, null, { name: "c", host_statuses: [{}] }] })).toEqual([{ cluster: "c", address: "unknown", health: "unknown", requests: "0", failed: "0" }]);
  for (const strange of [undefined, null, "x", [], { cluster_statuses: "x" }]) expect(endpoints(strange)).toBeUndefined();
  expect(endpoints({ cluster_statuses: [7] })).toEqual([]);
});
