package server

import (
	"io"
	"slices"
	"sync"
	"time"
)

// logPatience is how long a log waits for its reader. A pipe that nobody reads takes 64 KiB, and then nothing for ever.
const logPatience = time.Second

// PatientWriter writes lines to a pipe, a terminal or a file that may stop taking them: a collector of logs that hangs
// or ends must not stop the program that logs. It waits a second for a line to be taken. What comes while that line is
// still waiting is lost, as is what cannot be written, and counted. It is safe for concurrent use.
type PatientWriter struct {
	to io.Writer

	mu       sync.Mutex
	stuck    bool      // guarded by mu: a line has waited for too long, and still does
	fails    bool      // guarded by mu: the last line was not written
	lost     uint64    // guarded by mu: all lost lines
	reported uint64    // guarded by mu: those that TakeLost returned
	since    time.Time // guarded by mu: when the first line was lost that TakeLost has not returned
}

// NewPatientWriter returns a writer to w, or w itself if it is one.
func NewPatientWriter(w io.Writer) *PatientWriter {
	if p, ok := w.(*PatientWriter); ok {
		return p
	}
	return &PatientWriter{to: w}
}

// Write writes one line, or counts it as lost. It fails only if the underlying writer does.
func (p *PatientWriter) Write(line []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stuck {
		p.loseLocked()
		return len(line), nil
	}
	kept, done := slices.Clone(line), make(chan error, 1)
	go func() { // it has no owner that waits for it: the system call ends when a reader comes, or with the process
		_, err := p.to.Write(kept)
		done <- err
	}()
	late := time.NewTimer(logPatience)
	defer late.Stop()
	select {
	case err := <-done:
		if p.fails = err != nil; p.fails {
			p.loseLocked()
			return 0, err
		}
	case <-late.C:
		p.stuck, p.fails = true, true
		go p.resume(done)
	}
	return len(line), nil
}

// resume lets lines be written again once the one that waits has been taken.
func (p *PatientWriter) resume(done <-chan error) {
	err := <-done
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stuck, p.fails = false, err != nil
	if p.fails {
		p.loseLocked()
	}
}

func (p *PatientWriter) loseLocked() {
	if p.lost == p.reported {
		p.since = time.Now()
	}
	p.lost++
}

// Lost returns the number of lost lines.
func (p *PatientWriter) Lost() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

// TakeLost returns how many lines were lost since the last call that returned some, and since when. While lines are
// still being lost it returns none.
func (p *PatientWriter) TakeLost() (lines uint64, since time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fails || p.lost == p.reported {
		return 0, time.Time{}
	}
	lines, p.reported = p.lost-p.reported, p.lost
	return lines, p.since
}
