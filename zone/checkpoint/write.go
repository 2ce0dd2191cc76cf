package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/causeway-mesh/causeway/server"
)

const (
	// saveDelay batches changes into one write: two thousand proxies that start at once cost a few writes.
	saveDelay = 250 * time.Millisecond
	// retryDelay is the delay before a failed write is retried.
	retryDelay = 10 * time.Second
	// tidyEvery is the interval between removals of expired entries.
	tidyEvery = time.Hour
	// slack is the number of bytes by which obsolete lines may exceed live ones before the file is rewritten.
	slack = 1 << 20
)

// Run writes changes to the file until ctx ends, and then returns nil; Close writes the rest. It logs failed writes and
// retries them.
func (b *Cache) Run(ctx context.Context) error {
	if b == nil {
		<-ctx.Done()
		return nil
	}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-b.wake:
		}
		timer.Reset(saveDelay)
		for due := true; due; {
			select {
			case <-ctx.Done():
				return nil
			case <-timer.C:
			}
			if due = b.save() != nil; due {
				timer.Reset(retryDelay)
			}
		}
	}
}

// Close writes the remaining changes. Callers must not call Put afterwards.
func (b *Cache) Close() {
	if b != nil {
		_ = b.save() // reported
	}
}

// save brings the file up to date.
func (b *Cache) save() error {
	b.writing.Lock()
	defer b.writing.Unlock()
	changed := b.take()
	if len(changed) == 0 {
		return nil
	}
	err := b.write(changed)
	b.mu.Lock()
	b.underway = 0
	if err != nil {
		for id := range changed {
			b.pending[id] = struct{}{}
		}
	}
	b.mu.Unlock()
	if err == nil {
		if b.failing {
			b.cfg.Log.Info("storing issued identities works again", "file", b.cfg.Path)
		}
		b.failing = false
		return nil
	}
	b.metrics.failures.Inc()
	b.whole = false
	if !b.failing {
		b.failing = true
		b.cfg.Log.Error("cannot store issued identities: after a restart, some proxies get new ones; trying again",
			"file", b.cfg.Path, "error", err)
	}
	return err
}

// take returns the changes that are not in the file yet: the current entries, or nil for deleted ones.
func (b *Cache) take() map[ID]*entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := b.cfg.Now(); now.Sub(b.tidied) >= tidyEvery {
		b.tidied = now
		b.expireLocked()
	}
	changed := make(map[ID]*entry, len(b.pending))
	for id := range b.pending {
		changed[id] = b.entries[id]
	}
	b.pending, b.underway = map[ID]struct{}{}, len(changed)
	return changed
}

// write appends lines to the file. It rewrites the whole file the first time, after a failure, and when too much of the
// file is obsolete.
func (b *Cache) write(changed map[ID]*entry) error {
	lines := map[ID][]byte{}
	var out []byte
	for id, e := range changed {
		from := len(out)
		var err error
		if out, err = b.cfg.appendLine(out, id, e); err != nil {
			return err
		}
		lines[id] = bytes.Clone(bytes.TrimSuffix(out[from:], []byte("\n")))
	}
	if !b.whole || b.size+len(out) > 2*b.live+slack {
		return b.replace(changed, lines)
	}
	if err := appendFile(b.cfg.Path, b.size, out); err != nil {
		return err
	}
	b.size += len(out)
	b.written(changed, lines)
	return nil
}

// appendFile appends to a file durably. It fails if the file does not have the given size: someone else has changed it.
func appendFile(path string, size int, out []byte) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() != int64(size) {
		return &fs.PathError{Op: "append to", Path: path, Err: errors.New("another program changed it")}
	}
	if _, err := f.Write(out); err != nil {
		return err
	}
	return f.Sync()
}

// replace rewrites the file with all entries. It reseals those of an earlier process: each process derives another key
// from a passphrase, and deriving many keys at a start takes long.
func (b *Cache) replace(changed map[ID]*entry, lines map[ID][]byte) error {
	b.mu.Lock()
	b.expireLocked()
	all := make(map[ID]*entry, len(b.entries))
	for id, e := range b.entries {
		all[id] = &entry{plain: e.plain, until: e.until, line: e.line, before: e.before}
	}
	b.mu.Unlock()
	anew := map[ID]*entry{}
	out := []byte(heading + "\n")
	for id, e := range all {
		line := e.line
		switch {
		case changed[id] != nil:
			line = lines[id]
		case e.before:
			_, opened, err := b.cfg.readLine(line)
			if err != nil {
				return err
			}
			sealed, err := b.cfg.appendLine(nil, id, opened)
			if err != nil {
				return err
			}
			line = bytes.TrimSuffix(sealed, []byte("\n"))
			anew[id], lines[id] = e, line
		case line == nil: // put since: the next write has it
			continue
		}
		out = append(append(out, line...), '\n')
	}
	if err := server.WriteFile(b.cfg.Path, out, 0o600); err != nil {
		return err
	}
	b.whole, b.size, b.live = true, len(out), len(out)
	b.written(changed, lines)
	b.resealed(anew, lines)
	return nil
}

// written drops the plaintext of entries that are in the file now and have not changed since.
func (b *Cache) written(changed map[ID]*entry, lines map[ID][]byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, e := range changed {
		if e != nil && b.entries[id] == e {
			e.plain, e.line, e.before = nil, lines[id], false
		}
	}
}

// resealed stores the new lines of entries that an earlier process had sealed.
func (b *Cache) resealed(anew map[ID]*entry, lines map[ID][]byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id := range anew {
		if e := b.entries[id]; e != nil && e.before {
			e.line, e.before = lines[id], false
		}
	}
}
