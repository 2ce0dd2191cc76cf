/** Endpoint is one place that an Envoy sends to, as it sees it. */
export interface Endpoint {
  cluster: string;
  address: string;
  health: string;
  requests: string;
  failed: string;
}

interface Host {
  address?: { socket_address?: { address?: string; port_value?: number }; pipe?: { path?: string } };
  stats?: { name?: string; value?: string }[];
  health_status?: Record<string, unknown>;
}

/**
 * endpoints reads what an Envoy says of its clusters, as JSON. The proxy's words are not trusted to have any shape;
 * undefined means that they have another one.
 */
export function endpoints(answer: unknown): Endpoint[] | undefined {
  const clusters = field(answer, "cluster_statuses");
  if (!Array.isArray(clusters)) return undefined;
  return clusters.flatMap((cluster: unknown) => {
    const hosts = field(cluster, "host_statuses");
    if (!Array.isArray(hosts)) return [];
    return hosts.map((h: unknown) => endpoint(String(field(cluster, "name") ?? ""), (h ?? {}) as Host));
  });
}

function endpoint(cluster: string, h: Host): Endpoint {
  const at = h.address?.socket_address;
  const stat = (name: string) => String((Array.isArray(h.stats) ? h.stats : []).find((s) => s?.name === name)?.value ?? 0);
  return {
    cluster,
    address: at === undefined ? String(h.address?.pipe?.path ?? "unknown") : `${at.address}:${at.port_value}`,
    health: health(h.health_status),
    requests: stat("rq_total"),
    failed: stat("rq_error"),
  };
}

/** health names what is against an endpoint; Envoy lists only what is set. */
function health(status: Record<string, unknown> | undefined): string {
  const against = Object.entries(status ?? {}).filter(([name, value]) => value === true && name.startsWith("failed_")).map(([name]) => name.slice("failed_".length).replaceAll("_", " "));
  if (against.length > 0) return `failed ${against.join(", ")}`;
  return String(status?.["eds_health_status"] ?? "unknown").toLowerCase();
}

function field(of: unknown, name: string): unknown {
  return typeof of === "object" && of !== null ? (of as Record<string, unknown>)[name] : undefined;
}
