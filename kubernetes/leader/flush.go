package leader

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/causeway-mesh/causeway/resources/store"
)

const (
	// settleTime lets changes that belong together become one write. pauseTime is the least time between two writes.
	settleTime = 300 * time.Millisecond
	pauseTime  = time.Second
	// verifyEvery is how often all Secrets are compared with what was stored.
	verifyEvery = 15 * time.Second
)

// dirty says what may have changed.
type dirty struct {
	shards          map[int]bool
	files, holdings bool
	// upTo is the revision up to which shards has all that changed.
	upTo uint64
}

func all() dirty {
	d := dirty{shards: map[int]bool{}, files: true, holdings: true, upTo: math.MaxUint64}
	for i := range storeShards {
		d.shards[i] = true
	}
	return d
}

// Run stores what changes, until ctx ends or the lead does, which returns ErrLost.
func (t *Term) Run(ctx context.Context, from store.Reader) error {
	if t == nil {
		<-ctx.Done()
		return nil
	}
	since, _ := from.Changed()
	work, verified := all(), time.Now()
	for {
		_, changed := from.Changed()
		if from.Snapshot().Revision() == since {
			select {
			case <-ctx.Done():
				return t.Err(nil)
			case <-changed:
				t.sleep(ctx, settleTime)
			case <-time.After(pauseTime): // files tell nobody that they changed
			}
		}
		since = work.add(from, since)
		work.files, work.holdings = true, true
		if time.Since(verified) > verifyEvery {
			verified = time.Now()
			t.verify(ctx)
			_, _ = t.look(ctx) // shown only
			work = all()
		}
		began := time.Now()
		if err := t.flush(ctx, from.Snapshot(), work); err == nil {
			work = dirty{shards: map[int]bool{}}
		}
		t.sleep(ctx, max(pauseTime, time.Since(began)))
		if ctx.Err() != nil {
			return t.Err(nil)
		}
	}
}

func (t *Term) sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// add notes the shards of what changed since a revision, and returns the current one.
func (d *dirty) add(from store.Reader, since uint64) uint64 {
	commits, ok := from.Changes(since)
	if !ok {
		*d = all()
		return from.Snapshot().Revision()
	}
	for _, c := range commits {
		for _, one := range c.Changes {
			d.shards[shardOf(one.Key())] = true
		}
		since = c.Revision
	}
	d.upTo = since
	return since
}

// flush stores what is dirty. It tries everything, and returns the first error.
func (t *Term) flush(ctx context.Context, now store.Snapshot, work dirty) error {
	var errs []error
	if work.files {
		t.mu.Lock()
		errs = append(errs, t.keepFilesLocked(ctx))
		t.mu.Unlock()
	}
	if len(work.shards) > 0 {
		err := t.flushStore(ctx, now, work.shards)
		if err == nil {
			t.trim(min(now.Revision(), work.upTo))
		}
		errs = append(errs, err)
	}
	if work.holdings {
		errs = append(errs, t.flushHoldings(ctx))
	}
	err := errors.Join(errs...)
	t.telling.Lock()
	defer t.telling.Unlock()
	if err != nil && ctx.Err() == nil && t.failing == nil {
		t.cfg.Log.Error("cannot store what the other replicas need; trying again", "error", err)
	} else if err == nil && t.failing != nil {
		t.cfg.Log.Info("what the other replicas need is stored again")
	}
	t.failing = err
	return err
}

// flushStore stores shards of the store.
func (t *Term) flushStore(ctx context.Context, now store.Snapshot, shards map[int]bool) error {
	parts := make([]content, storeShards)
	for r := range store.All(now) {
		i := shardOf(r.Key)
		if !shards[i] {
			continue
		}
		e, err := encoded(r)
		if err != nil {
			return err
		}
		parts[i].Entries = append(parts[i].Entries, e)
	}
	for i := range shards {
		parts[i].Term, parts[i].Revision = t.number, now.Revision()
		raw, err := parts[i].pack()
		if err != nil {
			return err
		}
		same := parts[i]
		same.Revision = 0 // of other shards
		sum, err := same.pack()
		if err != nil {
			return err
		}
		if err := t.put(ctx, storeSuffix(i), raw, sha256.Sum256(sum)); err != nil {
			return err
		}
	}
	return nil
}

func storeSuffix(i int) string { return fmt.Sprintf("store-%d", i) }

func holdingsSuffix(i int) string { return fmt.Sprintf("holdings-%d", i) }

// maxPart is the size of a part of the holdings, in bytes.
const maxPart = maxSecret - 4096

// flushHoldings stores what proxies were issued, by position. A part beyond the end is emptied.
func (t *Term) flushHoldings(ctx context.Context) error {
	raw, err := os.ReadFile(filepath.Join(t.cfg.DataDir, holdingsFile))
	if errors.Is(err, fs.ErrNotExist) {
		raw, err = nil, nil
	}
	if err != nil {
		return err
	}
	for i := range holdingsParts {
		part := raw[:min(len(raw), maxPart)]
		raw = raw[len(part):]
		t.mu.Lock()
		known := t.versions[holdingsSuffix(i)] != ""
		t.mu.Unlock()
		if len(part) == 0 && i > 0 && !known {
			continue
		}
		part = append([]byte{partMark}, part...)
		if err := t.put(ctx, holdingsSuffix(i), part, sha256.Sum256(part)); err != nil {
			return err
		}
	}
	if len(raw) > 0 {
		return fmt.Errorf("%s: %w: after a change of the leader, some proxies get new identities", holdingsFile, errFull)
	}
	return nil
}

// partMark begins a part of the holdings: a Secret is never empty.
const partMark = '1'

// put stores a Secret unless its content is stored.
func (t *Term) put(ctx context.Context, suffix string, plain []byte, sum [32]byte) error {
	t.mu.Lock()
	version, same := t.versions[suffix], t.sums[suffix] == sum && t.versions[suffix] != ""
	t.mu.Unlock()
	if same {
		return nil
	}
	if err := t.Held(); err != nil {
		return err
	}
	next, err := t.vault.put(ctx, suffix, plain, version)
	if isConflict(err) {
		if version, err = t.older(ctx, suffix); err == nil {
			next, err = t.vault.put(ctx, suffix, plain, version)
		}
	}
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.versions[suffix], t.sums[suffix] = next, sum
	return nil
}

// outdated is the version of no object: a write over it is a conflict. The first revision of etcd has none.
const outdated = "1"

// verify forgets the versions of Secrets that somebody deleted or changed, so that they are written again.
func (t *Term) verify(ctx context.Context) {
	t.mu.Lock()
	known := maps.Clone(t.versions)
	t.mu.Unlock()
	for suffix, was := range known {
		_, version, err := t.vault.get(ctx, suffix)
		if err != nil && !errors.Is(err, errGone) && !errors.Is(err, errForeign) {
			continue
		}
		t.mu.Lock()
		if was != version && was == t.versions[suffix] { // otherwise this replica has written it meanwhile
			t.cfg.Log.Warn("a Secret that the replicas share was changed or deleted: writing it again", "secret", t.vault.name(suffix).String())
			t.versions[suffix] = version
			delete(t.sums, suffix)
			switch suffix {
			case coreSuffix:
				t.files = nil // stored with the next look at the files
			case logSuffix:
				if err := t.putLogLocked(ctx); err != nil {
					t.cfg.Log.Warn("the Secret is not written again yet", "error", err)
					t.versions[suffix] = outdated
				}
			}
		}
		t.mu.Unlock()
	}
}
