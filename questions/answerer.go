package questions

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding/gzip"

	"github.com/causeway-mesh/causeway/panics"
	"github.com/causeway-mesh/causeway/questions/questionspb"
)

// Limits of the zone's side, whatever a global asks.
const (
	// answersAtOnce limits the questions in progress; the others wait on the global.
	answersAtOnce = mostOfZone
	// answerEvery and answerBurst limit the rate of answers: each question costs work of the zone and an Envoy.
	answerEvery = 200 * time.Millisecond
	answerBurst = 10
	// partSize is the size of the parts that are sent, in bytes.
	partSize = 512 << 10
	// callTimeout limits one call of the global.
	callTimeout = 10 * time.Second
)

// Answerer answers the questions of a zone's global.
type Answerer struct {
	zone   string
	answer func(ctx context.Context, q *questionspb.Question) *Answer
	panics *panics.Guard
	log    *slog.Logger
	pace   *rate.Limiter
	wake   chan struct{}
}

// NewAnswerer returns the Answerer of a zone. answer must return by the end of its context, and never nil.
func NewAnswerer(zone string, answer func(ctx context.Context, q *questionspb.Question) *Answer, guard *panics.Guard,
	log *slog.Logger) *Answerer {
	return &Answerer{zone: zone, answer: answer, panics: guard, log: log, wake: make(chan struct{}, 1),
		pace: rate.NewLimiter(rate.Every(answerEvery), answerBurst)}
}

// Wait tells the Answerer that questions wait on the global. It does not block.
func (a *Answerer) Wait() { signal(a.wake) }

// Run takes and answers questions over a session with the global, until ctx ends.
func (a *Answerer) Run(ctx context.Context, conn grpc.ClientConnInterface) error {
	client := questionspb.NewQuestionServiceClient(conn)
	slots := make(chan struct{}, answersAtOnce)
	var answers sync.WaitGroup
	defer answers.Wait()
	for {
		select {
		case <-a.wake:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		for _, q := range a.take(ctx, client) {
			if a.pace.Wait(ctx) != nil {
				return context.Cause(ctx)
			}
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			answers.Go(func() {
				defer func() { <-slots }()
				a.serve(ctx, client, q)
			})
		}
	}
}

// take returns the waiting questions, as many as this zone answers at once.
func (a *Answerer) take(ctx context.Context, client questionspb.QuestionServiceClient) []*questionspb.Question {
	if a.pace.Wait(ctx) != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	taken, err := client.Take(ctx, &questionspb.TakeRequest{})
	if err != nil {
		if ctx.Err() == nil {
			a.log.Warn("the global's questions about proxies cannot be read", "zone", a.zone, "error", err)
		}
		return nil
	}
	questions := taken.GetQuestions()
	return questions[:min(len(questions), answersAtOnce)]
}

// serve answers one question.
func (a *Answerer) serve(ctx context.Context, client questionspb.QuestionServiceClient, q *questionspb.Question) {
	ctx, cancel := context.WithTimeout(ctx, answeredWithin)
	defer cancel()
	answer := &Answer{Status: 502, Detail: "the question made the zone's server fail: its log says more"}
	_ = a.panics.Do("questions", func() error { // logged there
		answer = a.answer(ctx, q)
		return nil
	})
	if err := send(ctx, client, q.GetId(), answer); err != nil {
		a.log.Debug("the global did not take an answer about a proxy", "zone", a.zone, "error", err)
	}
}

// send sends an answer in parts, until the global refuses one.
func send(ctx context.Context, client questionspb.QuestionServiceClient, id []byte, answer *Answer) error {
	if len(answer.Body) > maxAnswer {
		answer = &Answer{Status: 502, Detail: ErrTooLarge.Error()}
	}
	for number, body := uint32(0), answer.Body; ; number++ {
		size := min(len(body), partSize)
		part := &questionspb.AnswerPart{Id: id, Number: number, Body: body[:size]}
		if body = body[size:]; len(body) == 0 {
			part.Last, part.Status = true, uint32(answer.Status) //nolint:gosec // an HTTP status
			part.Detail, part.Warning = shortened(answer.Detail), shortened(answer.Warning)
		}
		call, cancel := context.WithTimeout(ctx, callTimeout)
		_, err := client.Answer(call, part, grpc.UseCompressor(gzip.Name))
		cancel()
		if err != nil || part.GetLast() {
			return err
		}
	}
}

// shortened cuts a text to the limit of a part.
func shortened(detail string) string {
	return strings.ToValidUTF8(detail[:min(len(detail), maxDetail)], "")
}
