/** LeftOut says how much an answer leaves out because who is signed in may not read it. */
export function LeftOut({ count }: { count: number | undefined }) {
  return count === undefined || count === 0 ? null : <p className="note">{count} more that you may not read.</p>;
}
