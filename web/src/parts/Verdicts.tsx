import type { Schema } from "../api";
import { date, shortKRI } from "../text";
import { LeftOut } from "./LeftOut";
import { KRI } from "./Link";
import { Time } from "./Time";

type All = NonNullable<Schema["Forecast"]["verdicts"]>;
type One = All["changes"][number];

const words: Record<One["before"], string> = { allow: "allowed", deny: "denied", depends: "depends on the request" };
const shown = 50;

/** Verdicts says who would lose or gain access by a change, and how much of it was seen. */
export function Verdicts({ verdicts: v }: { verdicts: All }) {
  const all = v.lost + v.gained + v.other;
  return (
    <>
      <h2>Who would gain or lose access</h2>
      {all === 0 ? (
        <p>{v.compared === 0 ? "No service that you may read has rules that would change." : `No verdict would change, at ${v.compared} ${v.compared === 1 ? "service" : "services"} with other rules.`}</p>
      ) : (
        <p><b className={v.lost > 0 ? "bad" : ""}>{v.lost} would lose access</b>, {v.gained} would gain access, {v.other} would depend on other parts of the request or differ in the shadow, at {v.compared} {v.compared === 1 ? "service" : "services"}.</p>
      )}
      {v.unseen !== undefined && <p className="note">Who calls is unknown: {v.unseen}.</p>}
      {v.unseen === undefined && v.changes.length > 0 && (
        <p className="note">
          Calls have been counted <Time at={date(v.since)} lasts />
          {v.dropped !== undefined && `; ${v.dropped} are not told apart, for lack of room: who was not seen may have called`}.
        </p>
      )}
      {(v.notCompared ?? 0) > 0 && <p className="warning">{v.notCompared} more services have rules that would change: with all callers they are too many to compare.</p>}
      {v.changes.length > 0 && <Table changes={v.changes.slice(0, shown)} seen={v.unseen === undefined} />}
      {all > shown && <p className="note">The first {Math.min(shown, v.changes.length)} of {all} are shown.</p>}
      <LeftOut count={v.leftOut} />
    </>
  );
}

function Table({ changes, seen }: { changes: One[]; seen: boolean }) {
  return (
    <div className="scroll" role="region" aria-label="Verdicts that would change" tabIndex={0}>
      <table>
        <caption className="hidden">Verdicts that would change</caption>
        <thead><tr><th scope="col">Caller</th><th scope="col">Service</th><th scope="col">Now</th><th scope="col">Then</th>{seen && <th scope="col">Seen</th>}<th scope="col">By</th></tr></thead>
        <tbody>
          {changes.map((c) => (
            <tr key={`${c.service} ${c.caller}`}>
              <th scope="row">{c.caller}</th>
              <td>{shortKRI(c.service)}</td>
              <td className="short">{words[c.before]}</td>
              <td className="short">{words[c.after]}{c.shadow !== undefined && `, in the shadow ${words[c.shadow]}`}</td>
              {seen && <td className="short">{seenText(c)}</td>}
              <td><KRI kri={c.policy} text={shortKRI(c.policy)} /></td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function seenText(c: One): string {
  const parts = [c.allowed === undefined ? "" : `${c.allowed} allowed`, c.denied === undefined ? "" : `${c.denied} denied`].filter((t) => t !== "");
  return parts.length === 0 ? "not seen" : parts.join(", ");
}
