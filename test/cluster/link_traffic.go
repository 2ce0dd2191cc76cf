package cluster

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// piece is some bytes that were read, or the error that ended the reading.
type piece struct {
	bytes []byte
	read  time.Time
	err   error
}

// pass copies one direction until either end is closed, and then closes the other end when the weather allows it. It
// counts what arrives.
func (l *Link) pass(to, from net.Conn, count *atomic.Int64, frozen func(Weather) bool) {
	pieces := make(chan piece, underWay)
	gone := make(chan struct{})
	var reader sync.WaitGroup
	reader.Go(func() {
		for {
			b := make([]byte, l.pieceSize())
			n, err := from.Read(b)
			if ended := l.forgotten(from); ended != nil {
				if err == nil {
					continue
				}
				<-ended // the other end does not learn of it
			}
			select {
			case pieces <- piece{b[:n], time.Now(), err}:
			case <-gone:
				return
			}
			if err != nil {
				return
			}
		}
	})
	for {
		p := <-pieces
		l.travel(p, frozen)
		if len(p.bytes) > 0 {
			if _, err := to.Write(p.bytes); err != nil {
				break
			}
			count.Add(int64(len(p.bytes)))
		}
		if p.err == nil {
			continue
		}
		if half, ok := to.(*net.TCPConn); ok && errors.Is(p.err, io.EOF) {
			_ = half.CloseWrite()
		} else {
			_ = to.Close()
		}
		break
	}
	close(gone)
	_ = from.Close()
	reader.Wait()
}

// travel returns when the weather lets a piece arrive.
func (l *Link) travel(p piece, frozen func(Weather) bool) {
	if w, _ := l.now(); w.Loss > 0 && rand.Float64() < w.Loss {
		l.pause(lossPause)
	}
	for {
		w, changed := l.now()
		if frozen(w) || w.Largest > 0 && len(p.bytes) > w.Largest {
			<-changed
			continue
		}
		if w.BytesPerSecond > 0 {
			l.pause(time.Duration(len(p.bytes)) * time.Second / time.Duration(w.BytesPerSecond))
		}
		l.pause(time.Until(p.read.Add(w.Delay)))
		return
	}
}

// pause waits for d, or until the weather changes.
func (l *Link) pause(d time.Duration) {
	_, changed := l.now()
	select {
	case <-time.After(d):
	case <-changed:
	}
}

// now returns the weather, and a channel that closes when it changes. A closed link passes everything, so that its
// goroutines end.
func (l *Link) now() (Weather, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return Weather{}, l.changed
	}
	return l.weather, l.changed
}
