import { Button } from "react-aria-components";
import type { Answer } from "../ask";
import type { Live } from "../watch";
import { Failure } from "./Failure";
import { Time } from "./Time";

/** AsOf says how old an answer is, why there is no newer one, and asks again. */
export function AsOf({ answer, live }: { answer: Answer<unknown>; live?: Live }) {
  return (
    <>
      <p className="asof">
        {answer.at === undefined ? "Not answered yet." : <>As of <Time at={answer.at} />.</>}{" "}
        {live !== undefined && <span className="live">{live.live ? "Changes appear by themselves. " : live.why === undefined ? "" : `Changes do not arrive: ${live.why}. `}</span>}
        <Button onPress={answer.again} isDisabled={answer.asking}>{answer.asking ? "Asking…" : "Ask again"}</Button>
      </p>
      {answer.refusal !== undefined && (
        <Failure refusal={answer.refusal} hint={answer.data === undefined ? undefined : "What is below is the answer before."} />
      )}
    </>
  );
}
