import { memo, useCallback, useMemo, useState, type ReactNode } from "react";
import { Button } from "react-aria-components";
import type { Schema } from "../api";
import type { Server } from "../server";
import { useAgain, useQuestion, type Answer } from "../ask";
import * as ask from "../questions";
import { AsOf } from "../parts/AsOf";
import { Findings } from "../parts/Findings";
import { Recent } from "../parts/Recent";
import { Replicas } from "../parts/Replicas";
import { LeftOut } from "../parts/LeftOut";
import { followWithin, Link } from "../parts/Link";
import { Time } from "../parts/Time";
import { lag, presence, problemsOf, versionOf, type Presence } from "../text";
import { href } from "../view";
import { useConnections, type Live } from "../watch";

// So few have room for their names, and so many are small.
const few = 40;
const many = 400;

/** Overview is one screen: what is there, and first of all what is not as it should be. */
export function Overview({ server }: { server: Server }) {
  const global = server.mode === "global";
  // Whatever has no revision of its own is asked again when somebody has connected, disconnected or changed.
  const [turn, setTurn] = useState(0);
  const next = useCallback(() => setTurn((n) => n + 1), []);
  return (
    <section>
      <h1>Overview</h1>
      <Totals global={global} turn={turn} />
      {global ? <OfGlobal turn={turn} changed={next} /> : <OfZone turn={turn} changed={next} />}
      {global && <Replicas turn={turn} />}
    </section>
  );
}

interface Turn {
  turn: number;
  changed: () => void;
}

function Totals({ global, turn }: { global: boolean; turn: number }) {
  const insight = useQuestion(ask.insight);
  useAgain(insight, turn);
  const d = insight.data;
  return (
    <>
      <AsOf answer={insight} />
      {d !== undefined && (
        <dl className="totals">
          {global && <Total name="zones online" value={zonesText(d.zones.controlPlanes)} />}
          <Total name={global ? "proxies online, as last reported" : "proxies online"} value={proxiesText(Object.values(d.dataplanes))} />
          <Total name="policies" value={`${d.policies.total}`} />
          <Total name="services" value={`${d.services.internal.total + d.services.external.total}`} />
          <Total name="meshes" value={`${d.meshes.total}`} />
        </dl>
      )}
    </>
  );
}

/** zonesText names zones of which the replica knows nothing, which are neither online nor offline. */
function zonesText(zones: Schema["OnlineTotal"]): string {
  return `${zones.online} of ${zones.total}${(zones.unknown ?? 0) > 0 ? `, ${zones.unknown} unknown` : ""}`;
}

/** proxiesText adds up proxies of all kinds, gateways among them. */
function proxiesText(kinds: Schema["ProxyTotal"][]): string {
  const sum = (of: (kind: Schema["ProxyTotal"]) => number) => kinds.reduce((n, kind) => n + of(kind), 0);
  const unknown = sum((kind) => kind.unknown ?? 0);
  return `${sum((kind) => kind.online + kind.partiallyDegraded)} of ${sum((kind) => kind.total)}${unknown > 0 ? `, ${unknown} unknown` : ""}`;
}

function Total({ name, value }: { name: string; value: string }) {
  return <div><dd>{value}</dd><dt>{name}</dt></div>;
}

const urgency: Record<Presence["state"], number> = { offline: 0, unknown: 1, never: 2, online: 3 };

/** Subject is a zone or a proxy, and what its overview tells of it. */
interface Subject {
  o: Schema["Overview"];
  is: Presence;
}

// An overview that comes again unchanged is the same subject: nothing of it is drawn again.
const known = new WeakMap<Schema["Overview"], Subject>();

function subjectOf(o: Schema["Overview"]): Subject {
  const old = known.get(o);
  if (old !== undefined) return old;
  const subject = { o, is: presence(o) };
  known.set(o, subject);
  return subject;
}

/** subjectsOf orders overviews by their urgency, then by name. */
function subjectsOf(all: Schema["Overview"][]): Subject[] {
  return all.map(subjectOf).sort((a, b) => urgency[a.is.state] - urgency[b.is.state] || (a.o.name < b.o.name ? -1 : a.o.name > b.o.name ? 1 : 0));
}

function OfGlobal({ turn, changed }: Turn) {
  const zones = useQuestion(ask.zones);
  const live = useConnections("zones", zones, () => {
    zones.again();
    changed();
  });
  return (
    <Columns title="Zones" answer={zones} live={live} none="No zone has joined: causewayctl zone create prints how one does.">
      <Findings global turn={turn} />
      <Recent turn={turn} />
    </Columns>
  );
}

function OfZone({ turn, changed }: Turn) {
  const proxies = useQuestion(ask.proxies);
  const live = useConnections("dataplanes", proxies, () => {
    proxies.again();
    changed();
  });
  return (
    <Columns title="Proxies" answer={proxies} live={live} none="No Dataplane is known here.">
      <Findings global={false} turn={turn} proxies={proxies.data} />
      <Recent turn={turn} />
    </Columns>
  );
}

interface Listed {
  title: string;
  answer: Answer<Schema["Overviews"]>;
  live: Live;
  none: string;
}

/** Columns shows zones or proxies beside what is above all, and below both those that need a look. */
function Columns({ title, answer, live, none, children }: Listed & { children: ReactNode }) {
  const all = answer.data?.items;
  const items = useMemo(() => subjectsOf(all ?? []), [all]);
  const wrong = useMemo(() => items.filter(isWrong), [items]);
  return (
    <>
      <div className="columns">
        <div>{children}</div>
        <div>
          <h2>{title}</h2>
          <AsOf answer={answer} live={live} />
          {answer.data !== undefined && (
            <>
              {answer.data.total === 0 && answer.data.leftOut === undefined && <p>{none}</p>}
              {items.length > 0 && <Tiles items={items} title={title} />}
              {answer.data.total > items.length && (
                <p className="note">The first {items.length} of {answer.data.total} are shown.</p>
              )}
              <LeftOut count={answer.data.leftOut} />
              {items.length > 0 && wrong.length === 0 && <p>All {items.length} shown are online.</p>}
              {items.length > 0 && <Versions items={items} />}
            </>
          )}
        </div>
      </div>
      {wrong.length > 0 && <Wrong items={wrong} title={title} />}
    </>
  );
}

function isWrong({ o, is }: Subject): boolean {
  const { behind, refused } = lag(o);
  return is.state !== "online" || disabled(o) || behind + refused > 0 || problemsOf(o).length > 0;
}

/** Tiles are drawn again only when there is another answer: there may be a thousand. */
const Tiles = memo(function Tiles({ items, title }: { items: Subject[]; title: string }) {
  return (
    <ul className={items.length > many ? "tiles small" : items.length > few ? "tiles" : "tiles named"} aria-label={`${title} by state`} onClick={followWithin}>
      {items.map((subject) => <Tile key={subject.o.kri ?? subject.o.name} subject={subject} named={items.length <= few} />)}
    </ul>
  );
});

/** Tile is drawn again only when something of its subject has changed. */
const Tile = memo(function Tile({ subject: { o, is }, named }: { subject: Subject; named: boolean }) {
  return (
    <li className={`tile ${is.state}`} title={tip(o, is)}>
      <a href={about(o)} aria-label={`${o.name}: ${stateText(is)}`}>{named && o.name}</a>
    </li>
  );
});

/** about is the page of a zone or a proxy. */
function about(o: Schema["Overview"]): string {
  return o.type === "ZoneOverview" ? href("zone", { name: o.name }) : href("proxy", { kri: o.kri });
}

function disabled(o: Schema["Overview"]): boolean {
  return (o.zone as { enabled?: boolean } | undefined)?.enabled === false;
}

function Wrong({ items, title }: { items: Subject[]; title: string }) {
  const [rows, setRows] = useState(10);
  return (
    <div className="scroll" tabIndex={0}>
      <table>
        <caption>{title} that need a look</caption>
        <thead><tr><th scope="col">Name</th><th scope="col">State</th><th scope="col">Sync</th><th scope="col">Version</th><th scope="col">What to do</th></tr></thead>
        <tbody>
          {items.slice(0, rows).map(({ o, is }) => (
            <tr key={o.kri ?? o.name}>
              <th scope="row"><Link to={about(o)}>{o.name}</Link></th>
              <td><State presence={is} disabled={disabled(o)} /></td>
              <td>{lagText(o, is)}</td>
              <td>{versionOf(o)}</td>
              <td>{remedy(o, is)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {items.length > rows && <p className="row"><span className="note">{items.length - rows} more.</span><Button onPress={() => setRows((n) => n + 100)}>Show {Math.min(100, items.length - rows)} of them</Button></p>}
    </div>
  );
}

function State({ presence: p, disabled: off }: { presence: Presence; disabled: boolean }) {
  return (
    <>
      <span className={`dot ${p.state}`} aria-hidden="true" /> {stateText(p)}
      {off && ", disabled"}
      {p.state !== "never" && p.since !== undefined && <> <Time at={p.since} lasts /></>}
      {p.state === "unknown" && <>: {p.reason}</>}
    </>
  );
}

function stateText(p: Presence): string {
  return p.state === "never" ? "not seen yet" : p.state;
}

/** tip is what a tile tells when a person points at it. */
function tip(o: Schema["Overview"], is: Presence): string {
  return [`${o.name}: ${stateText(is)}`, lagText(o, is), versionOf(o) === "unknown" ? "" : `version ${versionOf(o)}`].filter((t) => t !== "").join(", ");
}

/** lagText says what the other side of the last session has not taken; the counts are as old as the answer. */
function lagText(o: Schema["Overview"], is: Presence): string {
  const { behind, refused } = lag(o);
  if (is.state !== "online") return "";
  const problems = problemsOf(o).filter(([source]) => !source.startsWith("refused-")).length;
  if (behind + refused + problems === 0) return "in step";
  const withheld = problems === 0 ? "" : "something has no effect";
  return [behind > 0 ? `${behind} not acknowledged` : "", refused > 0 ? `${refused} refused` : "", withheld].filter((t) => t !== "").join(", ");
}

/** Versions counts what runs, so that one that is older stands out. */
function Versions({ items }: { items: Subject[] }) {
  const counts = new Map<string, number>();
  for (const { o } of items) counts.set(versionOf(o), (counts.get(versionOf(o)) ?? 0) + 1);
  const all = [...counts].sort((a, b) => b[1] - a[1]);
  return <p className="note">Versions: {all.slice(0, 8).map(([version, n]) => `${version} (${n})`).join(", ")}{all.length > 8 && ` and ${all.length - 8} more`}.</p>;
}

function remedy(o: Schema["Overview"], p: Presence) {
  if (disabled(o)) return <code>causewayctl zone enable {o.name}</code>;
  if (o.leftOut !== undefined) return "Ask for the right to read its insight.";
  if (o.type === "DataplaneOverview" && p.state === "online") return "Open its page: it says why.";
  if (o.type === "DataplaneOverview") return p.state === "never" ? "Start its Envoy with causeway-zone bootstrap." : "Look at its Envoy's log.";
  if (p.state === "online") return "Open its page: it names what is refused or behind.";
  if (p.state === "never") return <code>causewayctl zone create {o.name}</code>;
  return <code>causewayctl doctor --address ZONE</code>;
}
