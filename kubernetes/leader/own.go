package leader

import (
	"context"
	"errors"
	"fmt"
)

// putCoreLocked stores the small files.
func (t *Term) putCoreLocked(ctx context.Context) error {
	return t.putOwnLocked(ctx, coreSuffix, &content{Complete: t.complete, Files: t.files})
}

// putLogLocked stores the log.
func (t *Term) putLogLocked(ctx context.Context) error {
	c := &content{Revision: t.revision}
	for _, e := range t.log {
		c.Entries = append(c.Entries, e)
	}
	return t.putOwnLocked(ctx, logSuffix, c)
}

// putOwnLocked stores a Secret that has the number of the lead. One of a later lead ends this one.
func (t *Term) putOwnLocked(ctx context.Context, suffix string, c *content) error {
	if err := t.Held(); err != nil {
		return err
	}
	c.Term = t.number
	raw, err := c.pack()
	if err != nil {
		return err
	}
	next, err := t.vault.put(ctx, suffix, raw, t.versions[suffix])
	if isConflict(err) {
		var version string
		if version, err = t.notLater(ctx, suffix); err == nil {
			next, err = t.vault.put(ctx, suffix, raw, version)
		}
	}
	if err != nil {
		return err
	}
	t.versions[suffix] = next
	if suffix == coreSuffix && !t.lease.begun.Swap(true) {
		return t.lease.extend(ctx) // with the mark
	}
	return nil
}

// notLater returns the version of a Secret that somebody else wrote, or this process without an answer. It ends the
// lead if that was a later leader.
func (t *Term) notLater(ctx context.Context, suffix string) (string, error) {
	there, version, err := t.vault.get(ctx, suffix)
	if errors.Is(err, errGone) || errors.Is(err, errForeign) { // a later leader could open what it began with
		return version, nil
	}
	if err != nil {
		return "", err
	}
	if other, err := unpack(there); err != nil || other.Term > t.number {
		t.stop(fmt.Errorf("%w: another one has written since", ErrLost))
		return "", errors.Join(ErrLost, err)
	}
	return version, nil
}

// older returns the version of a Secret without a number of its own that somebody else wrote, or this process without an
// answer. A later leader has written the log before anything else.
func (t *Term) older(ctx context.Context, suffix string) (string, error) {
	_, version, err := t.vault.get(ctx, suffix)
	if err != nil && !errors.Is(err, errGone) && !errors.Is(err, errForeign) {
		return "", err
	}
	if _, err := t.notLater(ctx, logSuffix); err != nil {
		return "", err
	}
	return version, t.Held()
}
