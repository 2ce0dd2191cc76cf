package questions

import (
	"errors"
	"fmt"
)

var (
	// ErrBusy reports that the limit of questions in progress is reached.
	ErrBusy = errors.New("too many questions")
	// ErrNotTaken reports that the zone did not take the question in time.
	ErrNotTaken = fmt.Errorf("did not answer within %s", takenWithin)
	// ErrUnanswered reports that the zone took the question, but did not finish the answer in time.
	ErrUnanswered = fmt.Errorf("took the question, and did not finish its answer: it has %s for each part, and %s in all",
		partWithin, answeredWithin)
	// ErrTooLarge reports an answer, or a part of one, that is larger than allowed.
	ErrTooLarge = fmt.Errorf("answers with more than %d MiB", maxAnswer>>20)
	// ErrDisorder reports an answer that violates the protocol.
	ErrDisorder = errors.New("answers in parts that do not fit together")
)
