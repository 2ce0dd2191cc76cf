import type { Refusal } from "../api";

/** Failure says what a server refused and why. */
export function Failure({ refusal, hint }: { refusal: Refusal; hint?: string }) {
  return (
    <div role="alert" className="failure">
      <p><b>{refusal.status === 0 ? "No answer" : `${refusal.status}`}</b> {refusal.message}</p>
      {refusal.fields.length > 0 && (
        <ul>
          {refusal.fields.map((f, i) => (
            <li key={i}><code>{f.field}</code> {f.reason}</li>
          ))}
        </ul>
      )}
      {hint !== undefined && <p>{hint}</p>}
    </div>
  );
}
