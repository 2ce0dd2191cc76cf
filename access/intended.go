package access

import (
	"cmp"
	"context"
	"errors"
	"fmt"
)

// Begin records an intent before its action. If the server stops before the outcome is recorded, it reports the intent
// when it restarts. The error wraps ErrAudit: then nothing may be done. Begin does not sync to disk. Call Record with
// Mark, or End.
func (l *Log) Begin(e Entry) (*Intent, error) {
	if l == nil {
		return nil, nil
	}
	l.mu.Lock()
	after := l.last
	l.mu.Unlock()
	e.bound()
	e.Time = l.config.Now().UTC()
	i, err := l.intents.begin(after, &e)
	if err != nil {
		l.mu.Lock()
		l.broken = err
		l.mu.Unlock()
		return nil, fmt.Errorf("%w: %w", ErrAudit, err)
	}
	return i, nil
}

// End closes an intent without a line, because nothing was done that belongs in the log.
func (l *Log) End(i *Intent) {
	if l != nil && i != nil {
		l.intents.over(i.id)
	}
}

// Mark makes an entry the outcome of the intent.
func (e *Entry) Mark(i *Intent) {
	if i != nil {
		e.Intent = i.id
	}
}

// errLate reports that the line about a completed action could not be written at the time.
var errLate = errors.New("it has a pending line")

// Ready returns nil if the last line was written, or else the reason. Call it before an action that belongs in the log.
// While the log is not ready, each call retries, and then writes the pending lines.
func (l *Log) Ready(ctx context.Context) error {
	if l == nil {
		return nil
	}
	if err := cmp.Or(l.done.busy.Check(), l.intents.hangs()); err != nil { // another line would wait as well
		return fmt.Errorf("%w: %w", ErrAudit, err)
	}
	moved := l.done.inPlace()
	l.mu.Lock()
	broken, late := cmp.Or(l.broken, moved), l.late
	if len(late) > 0 { // also if another line was written concurrently
		broken = cmp.Or(broken, errLate)
	}
	if broken != nil {
		l.late = nil
	}
	l.mu.Unlock()
	if broken == nil {
		return nil
	}
	err := l.Record(ctx, Entry{Event: EventWrite, Outcome: Failed, Reason: "cannot write the audit log: " +
		broken.Error()})
	for i := range late {
		if err != nil {
			l.keepLate(late[i:])
			break
		}
		if err = l.Record(ctx, late[i]); err != nil {
			l.keepLate(late[i+1:]) // the one that failed is already kept
			break
		}
	}
	return err
}

// keepLate puts back lines that could not be written.
func (l *Log) keepLate(late []Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.late = append(l.late, late...)
}

// recover writes a line about each intent that the last process did not end. Whether it was carried out is unknown.
func (l *Log) recover() error {
	var open []intentLine
	var err error
	if l.intents, open, err = openIntents(l.config.Dir, l.config.Now()); err != nil || len(open) == 0 {
		return err
	}
	after := open[0].After
	for _, line := range open {
		after = min(after, line.After)
	}
	logged := map[string]bool{}
	if err := l.done.lines(after, sieve{}, func(e Entry) bool {
		logged[e.Intent] = true
		return true
	}); err != nil {
		return err
	}
	for _, line := range open {
		if logged[line.ID] {
			l.intents.over(line.ID)
			continue
		}
		e := *line.Entry
		e.Outcome, e.Intent = Unknown, line.ID
		e.Reason = cmp.Or(e.Reason, "the server ended before it logged the outcome: it is unknown")
		_ = l.Record(context.Background(), e) // it stays pending if it cannot be written now
	}
	return nil
}
