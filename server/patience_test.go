package server

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestLogThatHangs checks that a log which takes nothing delays its writers once, that what is lost is counted, and
// that the log tells of it when it takes lines again.
func TestLogThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		out := NewPatientWriter(w)
		log, err := NewLogger(out, "info", "text")
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for range 1000 {
			log.Info("line")
		}
		if took := time.Since(began); took != logPatience {
			t.Errorf("1,000 lines that nobody reads took %s, want %s", took, logPatience)
		}
		if lost := out.Lost(); lost != 999 {
			t.Errorf("%d lines are lost, want all but the one that waits", lost)
		}
		read := make(chan string)
		go func() {
			raw, _ := io.ReadAll(r)
			read <- string(raw)
		}()
		synctest.Wait()
		log.Info("again")
		log.Info("and again")
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		said := <-read
		if strings.Count(said, "msg=line") != 1 || strings.Count(said, "lines=999 since=") != 1 || strings.Count(said, "again") != 2 {
			t.Errorf("the log says:\n%s", said)
		}
	})
}
