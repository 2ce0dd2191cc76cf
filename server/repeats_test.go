package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// kept is a log in memory, safe for concurrent use.
type kept struct {
	mu  sync.Mutex
	log bytes.Buffer // guarded by mu
}

func (k *kept) Write(line []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.log.Write(line)
}

// Bytes returns a copy.
func (k *kept) Bytes() []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	return bytes.Clone(k.log.Bytes())
}

// logged counts the lines of a log by message, and those that they report as left out.
func logged(t *testing.T, log *kept) (lines, leftOut map[string]int) {
	t.Helper()
	lines, leftOut = map[string]int{}, map[string]int{}
	for line := range bytes.Lines(log.Bytes()) {
		var said struct {
			Message string `json:"msg"`
			LeftOut int    `json:"leftOut"`
		}
		if err := json.Unmarshal(line, &said); err != nil {
			t.Fatal(err)
		}
		lines[said.Message]++
		leftOut[said.Message] += said.LeftOut
	}
	return lines, leftOut
}

// TestWarningsThatRepeat checks that a peer that is refused for ever, or ten thousand times at once, leaves a bounded
// number of lines with the number left out; other lines are not affected.
func TestWarningsThatRepeat(t *testing.T) {
	const many = 10_000
	for name, c := range map[string]struct {
		every time.Duration
		line  func(log *slog.Logger, i int)
		most  int
	}{
		"one peer, every second": {time.Second, func(log *slog.Logger, i int) { log.Warn("refused", "zone", "zone-1", "from", i) }, alikeBurst + many/30 + 2},
		"a stranger who knocks": {0, func(log *slog.Logger, i int) {
			log.Warn("refused", "from", fmt.Sprint("192.0.2.1:", i), "error", "no credential")
		}, alikeBurst},
		"a stranger who makes up names": {0, func(log *slog.Logger, i int) {
			log.With("zone", fmt.Sprint("zone-", i)).Warn("refused", "error", fmt.Sprint("no zone ", i))
		}, kindBurst},
		"panics": {0, func(log *slog.Logger, i int) { log.Error("refused", "stack", i) }, alikeBurst},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out kept
				log, err := NewLogger(&out, "info", "json")
				if err != nil {
					t.Fatal(err)
				}
				for i := range many {
					c.line(log, i)
					time.Sleep(c.every)
				}
				log.Info("refused as information")
				log.Warn("something else")
				synctest.Wait()
				if lines, _ := logged(t, &out); lines["refused"] > c.most*2 || lines["refused as information"] != 1 ||
					lines["something else"] != 1 {
					t.Errorf("%v, want at most %d", lines, c.most)
				}
				time.Sleep(2 * repeatsAfter)
				synctest.Wait()
				lines, leftOut := logged(t, &out)
				summaries := 0 // lines with nothing but a count of others
				for line := range bytes.Lines(out.Bytes()) {
					var said map[string]any
					if json.Unmarshal(line, &said) == nil && len(said) == 4 && said["leftOut"] != nil {
						summaries++
					}
				}
				if lines["refused"]-summaries+leftOut["refused"] != many || leftOut["refused"] == 0 {
					t.Errorf("%d lines, %d of them summaries, and %d left out: want %d", lines["refused"], summaries,
						leftOut["refused"], many)
				}
			})
		})
	}
}

// TestWarningsThatDiffer checks that warnings about other zones are still logged.
func TestWarningsThatDiffer(t *testing.T) {
	var out kept
	log, err := NewLogger(&out, "info", "json")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		log.Warn("refused", "zone", "zone-1", "from", i)
	}
	for i := range 10 {
		log.Warn("refused", "zone", fmt.Sprint("zone-", 2+i))
	}
	if lines, _ := logged(t, &out); lines["refused"] != alikeBurst+10 {
		t.Errorf("%v", lines)
	}
}
