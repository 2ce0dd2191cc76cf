import { answered, api } from "../api";
import { useAnswer } from "../ask";

const most = 1000;

/** ZoneChoice lets a person at a global choose the zone that is asked: each zone keeps what its own proxies report. */
export function ZoneChoice({ zone, onChange }: { zone: string; onChange: (zone: string) => void }) {
  const zones = useAnswer("zone names", (signal) => answered(api.GET("/{plural}", { params: { path: { plural: "zones" }, query: { size: most } }, signal })));
  const names = ((zones.data?.items ?? []) as { name: string }[]).map((z) => z.name);
  return (
    <div className="filters">
      <label>
        Zone
        <select value={zone} onChange={(e) => onChange(e.target.value)}>
          <option value="">Choose a zone</option>
          {[...new Set([...names, ...(zone === "" ? [] : [zone])])].map((name) => <option key={name}>{name}</option>)}
        </select>
      </label>
      {zones.refusal !== undefined && <p className="note">Which zones there are is unknown: {zones.refusal.message}</p>}
      {(zones.data?.total ?? 0) > most && <p className="note">The first {most} of {zones.data?.total} zones are listed: the URL takes the name of any.</p>}
    </div>
  );
}
