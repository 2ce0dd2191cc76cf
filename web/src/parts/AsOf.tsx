import { Button } from "react-aria-components";
import type { Answer } from "../ask";
import type { Live } from "../watch";
import { Failure } from "./Failure";
import { Time } from "./Time";

/** AsOf says how old an answer is, why there is no newer one, and asks again. */
export function AsOf({ answer, live }: { answer: Answer<unknown>; live?: Live }) {
  return (
    <>
      <p className={answer.at === undefined && answer.refusal === undefined ? "asof pending" : "asof"}>
        <span>
          {answer.at === undefined ? (answer.refusal === undefined ? "Waiting for the server." : "No answer yet.") : <>Updated <Time at={answer.at} />.</>}{" "}
          {live !== undefined && <span className="live">{live.live ? "Updates automatically." : live.why === undefined ? "" : `No automatic updates: ${live.why}.`}</span>}
        </span>
        <Button onPress={answer.again} isDisabled={answer.asking}>{answer.asking ? "Refreshing…" : "Refresh"}</Button>
      </p>
      {answer.refusal !== undefined && (
        <Failure refusal={answer.refusal} hint={answer.data === undefined ? undefined : "What is below is the answer before."} />
      )}
    </>
  );
}
