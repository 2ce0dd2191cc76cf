import type { Resource, Schema } from "./api";

// Characters that show no glyph: they turn the reading around, join, hide, fill, or end a line. Newlines and tabs are glyphs here.
const invisible = /(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u;
const allInvisible = new RegExp(invisible.source, "gu");
// Most texts have only these, and no other test is as fast: each text of the page is tested.
const plain = /^[\t\n\x20-\x7e]*$/;

/** visible writes each character that shows no glyph as JSON does, so that no text reads as another. */
export function visible(text: string): string {
  if (plain.test(text) || !invisible.test(text)) return text;
  return text.replace(allInvisible, (c) => Array.from({ length: c.length }, (_, i) => `\\u${c.charCodeAt(i).toString(16).padStart(4, "0")}`).join(""));
}

/** source is a resource without what the server computes, as it could be applied again. */
export function source(r: Resource): string {
  const { kri: _kri, status: _status, creationTime: _created, modificationTime: _modified, ...rest } = r;
  return JSON.stringify(rest, null, 2);
}

/** ago says how long ago a time was, as a person would. */
export function ago(time: Date, now: Date): string {
  const s = Math.round((now.getTime() - time.getTime()) / 1000);
  if (Number.isNaN(s)) return "at an unknown time";
  if (s < 0) return `in ${span(-s)}`;
  return s < 2 ? "just now" : `${span(s)} ago`;
}

/** lasting says for how long something has been as it is. */
export function lasting(time: Date, now: Date): string {
  const s = Math.round((now.getTime() - time.getTime()) / 1000);
  return Number.isNaN(s) ? "for an unknown time" : s < 2 ? "for a moment" : `for ${span(s)}`;
}

function span(s: number): string {
  if (s < 120) return `${s} s`;
  if (s < 7200) return `${Math.floor(s / 60)} min`;
  if (s < 172800) return `${Math.floor(s / 3600)} h`;
  return `${Math.floor(s / 86400)} days`;
}

/** Zone's state as its overview tells it. */
export type Presence =
  | { state: "online"; since?: Date }
  | { state: "offline"; since?: Date }
  | { state: "never" }
  | { state: "unknown"; since?: Date; reason: string };

interface Overview {
  leftOut?: number;
  refused?: number;
  unknown?: { since?: string; reason: string };
  zoneInsight?: unknown;
  dataplaneInsight?: unknown;
}

interface Subscription {
  connectTime?: string;
  disconnectTime?: string;
  status?: { total?: Counts };
  version?: { kumaCp?: { version?: string }; envoy?: { version?: string } };
}

/** Counts are of messages; JSON has those of 64 bits as texts. */
interface Counts {
  responsesSent?: string | number;
  responsesAcknowledged?: string | number;
  responsesRejected?: string | number;
}

function lastSession(o: Overview): Subscription | undefined {
  const insight = (o.zoneInsight ?? o.dataplaneInsight) as { subscriptions?: Subscription[] } | undefined;
  return insight?.subscriptions?.at(-1);
}

/** lag counts the messages of the last session that were not answered, and what is refused now: a session's count also has what was mended since. */
export function lag(o: Overview): { behind: number; refused: number } {
  const total = lastSession(o)?.status?.total;
  const [sent, acknowledged, rejected] = [total?.responsesSent, total?.responsesAcknowledged, total?.responsesRejected].map((n) => Number(n ?? 0));
  return { behind: Math.max(0, (sent ?? 0) - (acknowledged ?? 0) - (rejected ?? 0)), refused: o.refused ?? 0 };
}

/** problemsOf is why something has no effect on a proxy, by its source: what its Envoy refuses, and what its zone withheld. */
export function problemsOf(o: { dataplaneInsight?: unknown } | undefined): [source: string, text: string][] {
  const insight = o?.dataplaneInsight as { metadata?: { problems?: Record<string, unknown> } } | undefined;
  return Object.entries(insight?.metadata?.problems ?? {}).map(([source, text]): [string, string] => [source, String(text)]).sort(([a], [b]) => (a < b ? -1 : 1));
}

/** asTold says of what a zone told that it may have changed since, where nothing is known of now; empty where it is. */
export function asTold(o: { unknown?: { reason: string } }): string {
  return o.unknown === undefined ? "" : ` Its zone told this last, and it may have changed: ${o.unknown.reason}.`;
}

/** unseen says what an answer about proxies does not tell: of how many a person may not read whether they have problems, and how many were checked. rest is whether a caller tells of those beyond the answer. */
export function unseen(proxies: Schema["Overviews"] | undefined, rest: boolean): string[] {
  if (proxies === undefined) return ["What has no effect on proxies is not known."];
  const all: string[] = [];
  const unread = (proxies.leftOut ?? 0) + proxies.items.filter((o) => o.leftOut !== undefined).length;
  if (unread > 0) all.push(`Whether ${unread} other proxies have problems, you may not read.`);
  if (!rest && proxies.total > proxies.items.length) all.push(`Proxies: the first ${proxies.items.length} of ${proxies.total} were checked.`);
  return all;
}

/** versionOf is what runs there, as it told in its last session. */
export function versionOf(o: Overview): string {
  const version = lastSession(o)?.version;
  return (o.zoneInsight === undefined ? version?.envoy?.version : version?.kumaCp?.version) ?? "unknown";
}

/**
 * presence reads who is connected. Unknown comes first: what is not known is neither online nor offline. A session that
 * has no end is a connection.
 */
export function presence(o: Overview): Presence {
  if (o.unknown !== undefined) return { state: "unknown", since: date(o.unknown.since), reason: o.unknown.reason };
  if (o.leftOut !== undefined) return { state: "unknown", reason: "you may not read its insight" };
  const last = lastSession(o);
  if (last === undefined) return { state: "never" };
  return last.disconnectTime === undefined || last.disconnectTime === ""
    ? { state: "online", since: date(last.connectTime) }
    : { state: "offline", since: date(last.disconnectTime) };
}

export function date(text: string | undefined): Date | undefined {
  if (text === undefined || text === "" || text.startsWith("0001-")) return undefined;
  const d = new Date(text);
  return Number.isNaN(d.getTime()) ? undefined : d;
}

/** shortKRI drops the fixed beginning of a KRI: people read the names. */
export function shortKRI(kri: string): string {
  const parts = kri.split("_");
  if (parts[0] !== "kri" || parts.length < 6) return kri;
  const [, type, , zone, namespace, name, section] = parts;
  const place = [zone, namespace].filter((p) => p !== undefined && p !== "").join("/");
  return `${type} ${place === "" ? "" : `${place}/`}${name}${section === undefined || section === "" ? "" : `:${section}`}`;
}
