package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	// patience is how long a command may be silent before it reports progress.
	patience = time.Second
	// reminder is how often a command repeats that it still waits for the same thing.
	reminder = 10 * time.Second
)

// progress reports on standard error what a command waits for, once that takes longer than patience. Standard output
// stays free for programs.
type progress struct {
	out   io.Writer
	begun time.Time
	ended chan struct{}
	owner sync.WaitGroup

	mu   sync.Mutex // guards text
	text string
}

// startProgress starts to report. stop ends it.
func startProgress(out io.Writer, text string) *progress {
	p := &progress{out: out, begun: time.Now(), ended: make(chan struct{}), text: text}
	p.owner.Go(p.run)
	return p
}

// say replaces the text of what the command waits for.
func (p *progress) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text = fmt.Sprintf(format, args...)
}

// stop returns when nothing more will be written.
func (p *progress) stop() {
	close(p.ended)
	p.owner.Wait()
}

func (p *progress) run() {
	tick := time.NewTicker(patience)
	defer tick.Stop()
	said, at := "", time.Time{}
	for {
		select {
		case <-p.ended:
			return
		case now := <-tick.C:
			if text := p.current(); text != said || now.Sub(at) >= reminder {
				fmt.Fprintf(p.out, "%s (%s)\n", text, now.Sub(p.begun).Round(time.Second))
				said, at = text, now
			}
		}
	}
}

func (p *progress) current() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text
}
