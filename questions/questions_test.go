package questions

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/causeway-mesh/causeway/questions/questionspb"
)

// TestAnswers: answers of all sizes arrive as the zone gave them.
func TestAnswers(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	sizes := map[string]int{"empty": 0, "small": 10, "one part": partSize, "two parts": partSize + 1, "largest": maxAnswer,
		"too large": maxAnswer + 1, "refused": 0, "fails": 0}
	h.zone("zone-1", func(_ context.Context, q *questionspb.Question) *Answer {
		switch name := q.GetName(); name {
		case "fails":
			panic("on purpose")
		case "refused":
			return &Answer{Status: 409, Detail: "no proxy is connected"}
		default:
			return &Answer{Status: 200, Body: bytes.Repeat([]byte("x"), sizes[name])}
		}
	})
	for name, size := range sizes {
		answer, err := h.desk.Ask(t.Context(), "zone-1", &questionspb.Question{Name: name})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := &Answer{Status: 200, Body: bytes.Repeat([]byte("x"), size)}
		switch name {
		case "fails":
			want = &Answer{Status: 502, Detail: "the question made the zone's server fail: its log says more"}
		case "refused":
			want = &Answer{Status: 409, Detail: "no proxy is connected"}
		case "too large":
			want = &Answer{Status: 502, Detail: ErrTooLarge.Error()}
		}
		if answer.Status != want.Status || answer.Detail != want.Detail || !bytes.Equal(answer.Body, want.Body) {
			t.Errorf("%s: got %d %q with %d bytes, want %d %q with %d", name, answer.Status, answer.Detail, len(answer.Body),
				want.Status, want.Detail, len(want.Body))
		}
	}
}

// TestZonesThatMisbehave: whatever a zone sends, the question ends with a reason, and holds no more than it may. Another
// zone learns no question, and answers none.
func TestZonesThatMisbehave(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	body := func(n int) []byte { return bytes.Repeat([]byte("x"), n) }
	for _, tt := range []struct {
		name string
		do   func(id []byte) error
		want error
	}{
		{"100 MB in parts", func(id []byte) error {
			for number := range uint32(100) {
				if err := h.says("zone-1", &questionspb.AnswerPart{Id: id, Number: number, Body: body(1e6)}); err != nil {
					if number < 10 {
						return errors.Join(errors.New("refused too early"), err)
					}
					return nil
				}
			}
			return errors.New("all is accepted")
		}, ErrTooLarge},
		{"one part of 9 MB", func(id []byte) error {
			return refused(h.says("zone-1", &questionspb.AnswerPart{Id: id, Body: body(9e6)}), codes.InvalidArgument)
		}, ErrTooLarge},
		{"out of order", func(id []byte) error {
			return refused(h.says("zone-1", &questionspb.AnswerPart{Id: id, Number: 1, Body: body(1)}), codes.InvalidArgument)
		}, ErrDisorder},
		{"twice the same", func(id []byte) error {
			first := h.says("zone-1", &questionspb.AnswerPart{Id: id, Body: body(1)})
			return errors.Join(first, refused(h.says("zone-1", &questionspb.AnswerPart{Id: id, Body: body(1)}), codes.InvalidArgument))
		}, ErrDisorder},
		{"nothing, again and again", func(id []byte) error {
			return refused(h.says("zone-1", &questionspb.AnswerPart{Id: id}), codes.InvalidArgument)
		}, ErrDisorder},
		{"a novel as the reason", func(id []byte) error {
			return refused(h.says("zone-1", &questionspb.AnswerPart{Id: id, Last: true, Status: 409,
				Detail: strings.Repeat("x", maxDetail+1)}), codes.InvalidArgument)
		}, ErrDisorder},
		{"100 MB in one part", func(id []byte) error {
			err := refused(h.says("zone-1", &questionspb.AnswerPart{Id: id, Body: body(100e6)}), codes.ResourceExhausted)
			return errors.Join(err, h.says("zone-1", &questionspb.AnswerPart{Id: id, Last: true}))
		}, nil},
		{"another zone's answer", func(id []byte) error {
			taken, err := questionspb.NewQuestionServiceClient(h.conn).Take(as(t.Context(), "zone-2"), &questionspb.TakeRequest{})
			if err != nil || len(taken.GetQuestions()) > 0 {
				return errors.Join(errors.New("another zone learns the question"), err)
			}
			err = refused(h.says("zone-2", &questionspb.AnswerPart{Id: id, Last: true}), codes.InvalidArgument)
			return errors.Join(err, h.says("zone-1", &questionspb.AnswerPart{Id: id, Last: true}))
		}, nil},
		{"more after the last", func(id []byte) error {
			err := h.says("zone-1", &questionspb.AnswerPart{Id: id, Last: true})
			return errors.Join(err, refused(h.says("zone-1", &questionspb.AnswerPart{Id: id, Number: 1, Last: true}), codes.InvalidArgument))
		}, nil},
		{"a status of its own", func(id []byte) error {
			return h.says("zone-1", &questionspb.AnswerPart{Id: id, Last: true, Status: 301})
		}, nil},
	} {
		got := h.asks("zone-1")
		if err := tt.do(h.takes("zone-1").GetId()); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		r := <-got
		if !errors.Is(r.err, tt.want) {
			t.Errorf("%s: the question ends with %v, want %v", tt.name, r.err, tt.want)
		}
		if r.answer != nil && tt.name == "a status of its own" && r.answer.Status != 502 {
			t.Errorf("%s: status %d", tt.name, r.answer.Status)
		}
		if len(h.desk.asked) > 0 {
			t.Errorf("%s: the question is kept", tt.name)
		}
	}
	for zone, code := range map[string]codes.Code{"": codes.InvalidArgument, "UPPER": codes.InvalidArgument} {
		if err := refused(h.says(zone, &questionspb.AnswerPart{Id: body(16)}), code); err != nil {
			t.Errorf("zone %q: %v", zone, err)
		}
	}
}

// refused returns an error unless err has a code.
func refused(err error, code codes.Code) error {
	if status.Code(err) != code {
		return errors.Join(errors.New("want "+code.String()), err)
	}
	return nil
}

// TestQuestionsAreBounded: few questions are in progress, of one zone and of all, and none for long.
func TestQuestionsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := NewQueue()
		var asking sync.WaitGroup
		var busy, silent atomic.Int32
		for i := range 2 * mostAtOnce {
			asking.Go(func() {
				_, err := d.Ask(t.Context(), string(rune('a'+i%8)), &questionspb.Question{})
				switch {
				case errors.Is(err, ErrBusy):
					busy.Add(1)
				case errors.Is(err, ErrNotTaken):
					silent.Add(1)
				}
			})
		}
		began := time.Now()
		asking.Wait()
		if busy.Load() != mostAtOnce || silent.Load() != mostAtOnce || time.Since(began) != takenWithin {
			t.Errorf("%d of %d are too many and %d remain, for %s", busy.Load(), 2*mostAtOnce, silent.Load(), time.Since(began))
		}
		for range mostOfZone {
			asking.Go(func() { _, _ = d.Ask(t.Context(), "a", &questionspb.Question{}) })
		}
		synctest.Wait()
		if _, err := d.Ask(t.Context(), "a", &questionspb.Question{}); !errors.Is(err, ErrBusy) {
			t.Errorf("one zone has more than %d questions: %v", mostOfZone, err)
		}
		asking.Wait()

		began = time.Now()
		asking.Go(func() {
			if _, err := d.Ask(t.Context(), "a", &questionspb.Question{}); !errors.Is(err, ErrUnanswered) {
				t.Errorf("a question that was taken ends with %v", err)
			}
		})
		synctest.Wait()
		if n := len(d.take("a")); n != 1 {
			t.Errorf("%d questions wait, want 1", n)
		}
		asking.Wait()
		if time.Since(began) != partWithin || len(d.asked) > 0 {
			t.Errorf("it ends after %s, and %d zones have questions", time.Since(began), len(d.asked))
		}

		began = time.Now()
		asking.Go(func() {
			if _, err := d.Ask(t.Context(), "a", &questionspb.Question{}); !errors.Is(err, ErrUnanswered) {
				t.Errorf("a question that is answered too slowly ends with %v", err)
			}
		})
		synctest.Wait()
		id := d.take("a")[0].GetId()
		for number := uint32(0); d.receive("a", &questionspb.AnswerPart{Id: id, Number: number, Body: []byte("x")}) == nil; number++ {
			time.Sleep(partWithin - time.Second)
			synctest.Wait()
		}
		asking.Wait()
		if took := time.Since(began); took < answeredWithin || took > takenWithin+answeredWithin+partWithin {
			t.Errorf("an answer may take %s", took)
		}
	})
}

// flood is a global that has questions without end.
type flood struct {
	taken atomic.Int32
	each  int
}

func (f *flood) Take(context.Context, *questionspb.TakeRequest) (*questionspb.TakeResponse, error) {
	f.taken.Add(1)
	out := &questionspb.TakeResponse{}
	for range f.each {
		out.Questions = append(out.Questions, &questionspb.Question{Id: make([]byte, 16)})
	}
	return out, nil
}

func (f *flood) Answer(context.Context, *questionspb.AnswerPart) (*questionspb.AnswerPartResponse, error) {
	return &questionspb.AnswerPartResponse{}, nil
}

// TestGlobalThatFloods: a zone answers few questions at a time and a second, however many its global has.
func TestGlobalThatFloods(t *testing.T) {
	t.Parallel()
	global := &flood{each: 10_000}
	conn := served(t, func(r grpc.ServiceRegistrar) { questionspb.RegisterQuestionServiceServer(r, global) })
	var answered, now, most atomic.Int32
	a := NewAnswerer("zone-1", func(context.Context, *questionspb.Question) *Answer {
		n := now.Add(1)
		defer now.Add(-1)
		for {
			if old := most.Load(); n <= old || most.CompareAndSwap(old, n) {
				break
			}
		}
		time.Sleep(50 * time.Millisecond) // as an Envoy takes
		answered.Add(1)
		return &Answer{Status: 200}
	}, nil, discarded)
	const during = 3 * time.Second
	ctx, cancel := context.WithTimeout(t.Context(), during)
	defer cancel()
	var running sync.WaitGroup
	began := time.Now()
	running.Go(func() { _ = a.Run(ctx, conn) })
	for ctx.Err() == nil {
		a.Wait()
		time.Sleep(time.Millisecond)
	}
	running.Wait()
	allowed := int32(answerBurst + time.Since(began)/answerEvery + 1)
	if all := answered.Load() + global.taken.Load(); all > allowed || answered.Load() == 0 || most.Load() > answersAtOnce {
		t.Errorf("%d answers to %d calls in %s, %d at once: want at most %d and %d", answered.Load(), global.taken.Load(),
			time.Since(began), most.Load(), allowed, answersAtOnce)
	}
}
