import { shortKRI } from "../text";
import { KRI } from "./Link";

/** Linked is a text whose KRIs lead to their resources. */
export function Linked({ text }: { text: string }) {
  const parts = text.split(/(kri_[a-z]+_[^\s:,;'"()]+)/);
  return <>{parts.map((part, i) => (i % 2 === 1 ? <KRI key={i} kri={part} text={shortKRI(part)} /> : part))}</>;
}
