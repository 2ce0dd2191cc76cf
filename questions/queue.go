package questions

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/questions/questionspb"
)

// Limits of the global's side.
const (
	// takenWithin is how long a question waits for its zone, partWithin for each part of the answer, and answeredWithin
	// for all of it.
	takenWithin    = 5 * time.Second
	partWithin     = 15 * time.Second
	answeredWithin = time.Minute
	// maxAnswer and maxPart limit an answer and one part of it, in bytes.
	maxAnswer = 16 << 20
	maxPart   = 1 << 20
	// mostOfZone and mostAtOnce limit the questions in progress: of one zone, and of all. Each may hold maxAnswer.
	mostOfZone = 3
	mostAtOnce = 8
	// maxDetail limits the text of a refusal, and of a warning, in bytes.
	maxDetail = 1 << 10
)

// Answer is a zone's answer.
type Answer struct {
	// Status is an HTTP status.
	Status int
	// Detail is the reason for any Status but 200, for users. It is the zone's text, and may contain anything.
	Detail string
	// Warning says what may be wrong with the answer; it is the zone's text too.
	Warning string
	// Body is not checked.
	Body []byte
}

// Queue passes questions to zones, and waits for the answers. It is safe for concurrent use.
type Queue struct {
	mu sync.Mutex
	// followers have a signal for each zone that follows advice: questions wait. Guarded by mu.
	followers map[string]chan struct{}
	asked     map[string][]*asked // guarded by mu: the questions in progress, by zone
}

// asked is a question in progress. The Queue guards all but the channels.
type asked struct {
	question *questionspb.Question
	taken    chan struct{} // closed when the zone has the question
	isTaken  bool
	came     chan struct{} // a signal for each part
	parts    uint32
	body     []byte
	ended    chan struct{} // closed when answer or err is set
	answer   *Answer
	err      error
}

// NewQueue returns a Queue without questions.
func NewQueue() *Queue {
	return &Queue{followers: map[string]chan struct{}{}, asked: map[string][]*asked{}}
}

// Ask asks a zone, and waits. The question's id is set here. Errors: ErrBusy, ErrNotTaken, ErrUnanswered, ErrTooLarge,
// ErrDisorder, that of ctx.
func (d *Queue) Ask(ctx context.Context, zone string, q *questionspb.Question) (*Answer, error) {
	one, err := d.enqueue(zone, q)
	if err != nil {
		return nil, err
	}
	defer d.remove(zone, one)
	timer, whole := time.NewTimer(takenWithin), time.NewTimer(takenWithin+answeredWithin)
	defer timer.Stop()
	defer whole.Stop()
	late, taken := ErrNotTaken, one.taken
	for {
		select {
		case <-one.ended:
			return one.answer, one.err
		case <-taken:
			late, taken = ErrUnanswered, nil
			timer.Reset(partWithin)
		case <-one.came:
			timer.Reset(partWithin)
		case <-timer.C:
			return nil, late
		case <-whole.C:
			return nil, late
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// enqueue makes a question wait for its zone.
func (d *Queue) enqueue(zone string, q *questionspb.Question) (*asked, error) {
	q.Id = make([]byte, 16)
	if _, err := rand.Read(q.Id); err != nil {
		return nil, err
	}
	one := &asked{question: q, taken: make(chan struct{}), came: make(chan struct{}, 1), ended: make(chan struct{})}
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := len(d.asked[zone]); n >= mostOfZone {
		return nil, fmt.Errorf("%w: %d questions to zone %s are in progress, the maximum", ErrBusy, n, zone)
	}
	all := 0
	for _, of := range d.asked {
		all += len(of)
	}
	if all >= mostAtOnce {
		return nil, fmt.Errorf("%w: %d questions to zones are in progress, the maximum", ErrBusy, all)
	}
	d.asked[zone] = append(d.asked[zone], one)
	signal(d.followers[zone])
	return one, nil
}

// remove removes a question: a later answer is refused.
func (d *Queue) remove(zone string, one *asked) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked[zone] = slices.DeleteFunc(d.asked[zone], func(other *asked) bool { return other == one })
	if len(d.asked[zone]) == 0 {
		delete(d.asked, zone)
	}
}

// Follow returns a channel with a signal while questions wait for a zone, until leave is called. The newest connection
// of a zone gets the signals.
func (d *Queue) Follow(zone string) (wait <-chan struct{}, leave func()) {
	follower := make(chan struct{}, 1)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.followers[zone] = follower
	if slices.ContainsFunc(d.asked[zone], func(one *asked) bool { return !one.isTaken }) {
		signal(follower)
	}
	return follower, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.followers[zone] == follower {
			delete(d.followers, zone)
		}
	}
}

// signal does nothing if a signal is already pending, or nobody waits for one.
func signal(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// take returns the questions that wait for a zone. Each is taken once.
func (d *Queue) take(zone string) []*questionspb.Question {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []*questionspb.Question
	for _, one := range d.asked[zone] {
		if !one.isTaken {
			one.isTaken = true
			close(one.taken)
			out = append(out, one.question)
		}
	}
	return out
}

// receive adds a part to an answer of a zone. Errors wrap kds.ErrRequest: the zone need not send the rest.
func (d *Queue) receive(zone string, p *questionspb.AnswerPart) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := slices.IndexFunc(d.asked[zone], func(one *asked) bool {
		return one.isTaken && bytes.Equal(one.question.GetId(), p.GetId())
	})
	if at < 0 || d.asked[zone][at].over() {
		return fmt.Errorf("%w: nobody waits for this answer", kds.ErrRequest)
	}
	one := d.asked[zone][at]
	if one.err = one.add(p); one.err != nil {
		one.body = nil
		close(one.ended)
		return fmt.Errorf("%w: %w", kds.ErrRequest, one.err)
	}
	if p.GetLast() {
		one.answer = &Answer{Status: statusOf(p), Detail: p.GetDetail(), Warning: p.GetWarning(), Body: one.body}
		close(one.ended)
	}
	return nil
}

// over reports whether the question has its answer, or cannot get one.
func (a *asked) over() bool { return a.answer != nil || a.err != nil }

// add adds the body of a part. Errors: ErrTooLarge, ErrDisorder.
func (a *asked) add(p *questionspb.AnswerPart) error {
	switch body := p.GetBody(); {
	case len(body) > maxPart || len(a.body)+len(body) > maxAnswer:
		return ErrTooLarge
	case p.GetNumber() != a.parts || len(body) == 0 && !p.GetLast() ||
		max(len(p.GetDetail()), len(p.GetWarning())) > maxDetail:
		return ErrDisorder
	default:
		a.parts++
		a.body = append(a.body, body...)
		signal(a.came)
		return nil
	}
}

// statusOf returns the status of an answer. A zone can refuse, but cannot choose what a status means to clients.
func statusOf(p *questionspb.AnswerPart) int {
	switch s := p.GetStatus(); s {
	case 0:
		return 200
	case 200, 400, 404, 409, 502, 503, 504:
		return int(s)
	}
	return 502
}
