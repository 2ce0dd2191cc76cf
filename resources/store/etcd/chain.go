package etcd

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// linkSize is how many writes one key of the chain has, in about 40 KiB.
	linkSize = 4096
	// mostLinks is how many keys the chain has: half a million writes.
	mostLinks = 128
	// chainInterval is how often the chain is extended.
	chainInterval = time.Minute
	// chainTries is how often the chain is extended before other servers' writes are left to come first.
	chainTries = 20
)

// chainLink is a part of the chain: what etcd keeps of the writes of head, so that a server that starts after etcd's history
// of them was compacted can tell what etcd had then. The chain is in etcd itself: an etcd that is put back has the
// chain of what it was put back to.
type chainLink struct {
	// after is the write before the first one; 0 if others may be in between.
	after int64
	passed
	// name is the key, and version its etcd revision; 0 if it is not there yet.
	name    string
	version int64
}

func (l *chainLink) encode() (string, error) {
	out := binary.AppendUvarint(nil, uint64(l.after))
	var last int64
	for i, at := range l.at {
		digest, err := hex.DecodeString(l.digests[i])
		if err != nil || len(digest) != digestSize {
			return "", fmt.Errorf("chain: digest %q of the write at %d", l.digests[i], at)
		}
		out = append(binary.AppendUvarint(out, uint64(at-last)), digest...)
		last = at
	}
	return string(out), nil
}

var errChain = errors.New("a part of the chain is damaged")

func decodeLink(raw []byte) (*chainLink, error) {
	after, n := binary.Uvarint(raw)
	if n <= 0 {
		return nil, errChain
	}
	l := &chainLink{after: int64(after)}
	var at int64
	for raw = raw[n:]; len(raw) > 0; raw = raw[n+digestSize:] {
		step, size := binary.Uvarint(raw)
		if n = size; n <= 0 || len(raw) < n+digestSize {
			return nil, errChain
		}
		at += int64(step)
		l.at, l.digests = append(l.at, at), append(l.digests, hex.EncodeToString(raw[n:n+digestSize]))
	}
	if len(l.at) == 0 {
		return nil, errChain
	}
	return l, nil
}

// extend writes what the view went through since the end of the chain to the chain. Errors are etcd's, and errLate if
// other servers write all the time.
func (s *Store) extend(ctx context.Context) error {
	for tries := 0; tries < chainTries && ctx.Err() == nil; {
		done, err := s.extendOnce(ctx)
		switch {
		case errors.Is(err, errLate):
			tries++
			wait(ctx, busyInterval/2)
		case err != nil || done:
			return err
		}
	}
	return errLate
}

// extendOnce writes one link. done reports that nothing is left.
func (s *Store) extendOnce(ctx context.Context) (done bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*s.config.Timeout)
	defer cancel()
	last, err := s.linkBefore(ctx, "")
	if err != nil {
		return false, err
	}
	at, value := s.place.mark()
	more, joined := s.place.since(last.end())
	if len(more.at) == 0 {
		return true, nil
	}
	if !joined && last != nil {
		between, err := s.between(ctx, last.end(), more.at[0])
		if err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
			return false, err
		}
		joined = err == nil
		more = passed{append(between.at, more.at...), append(between.digests, more.digests...)}
	}
	next := last
	if last == nil || !joined || len(last.at) >= linkSize {
		next = &chainLink{name: s.keys.link(more.at[0])}
		if joined {
			next.after = last.end()
		}
	}
	n := min(len(more.at), linkSize-len(next.at))
	next.at, next.digests = append(next.at, more.at[:n]...), append(next.digests, more.digests[:n]...)
	return n == len(more.at), s.put(ctx, next, at, value)
}

// put writes a link, unless etcd's last write is not the one that the view shows: then the view may be of another
// history.
func (s *Store) put(ctx context.Context, l *chainLink, at int64, value string) error {
	raw, err := l.encode()
	if err != nil {
		return err
	}
	r, err := s.client.Txn(ctx).If(
		clientv3.Compare(clientv3.ModRevision(s.keys.head()), "=", at),
		clientv3.Compare(clientv3.Value(s.keys.head()), "=", value),
		clientv3.Compare(clientv3.ModRevision(l.name), "=", l.version),
	).Then(clientv3.OpPut(l.name, raw)).Commit()
	switch {
	case err != nil:
		return err
	case !r.Succeeded:
		return errLate
	case l.version > 0:
		return nil
	}
	all, err := s.client.Get(ctx, s.keys.chain(), clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil || len(all.Kvs) <= mostLinks {
		return err
	}
	_, err = s.client.Delete(ctx, s.keys.chain(), clientv3.WithRange(string(all.Kvs[len(all.Kvs)-mostLinks].Key)))
	return err
}

// linkBefore returns the last link whose name is before a name, or the last one of all; nil if there is none.
func (s *Store) linkBefore(ctx context.Context, name string) (*chainLink, error) {
	if name == "" {
		name = clientv3.GetPrefixRangeEnd(s.keys.chain())
	}
	return s.linkOf(ctx, s.keys.chain(), name, clientv3.SortDescend)
}

// linkOf returns the first link in a range of names; nil if there is none.
func (s *Store) linkOf(ctx context.Context, from, end string, order clientv3.SortOrder) (*chainLink, error) {
	r, err := s.client.Get(ctx, from, clientv3.WithRange(end), clientv3.WithSort(clientv3.SortByKey, order),
		clientv3.WithLimit(1))
	if err != nil || len(r.Kvs) == 0 {
		return nil, err
	}
	l, err := decodeLink(r.Kvs[0].Value)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.Kvs[0].Key, err)
	}
	l.name, l.version = string(r.Kvs[0].Key), r.Kvs[0].ModRevision
	return l, nil
}

// end returns the last write of a link; 0 of none.
func (l *chainLink) end() int64 {
	if l == nil {
		return 0
	}
	return l.at[len(l.at)-1]
}

// between reads the writes after one and before another from etcd's history. Errors are etcd's, ErrCompacted among them.
func (s *Store) between(ctx context.Context, after, before int64) (passed, error) {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	var out passed
	for r := range s.client.Watch(ctx, s.keys.head(), clientv3.WithRev(after+1)) {
		if err := r.Err(); err != nil {
			return passed{}, err
		}
		for _, e := range r.Events {
			if e.Kv.ModRevision >= before {
				return out, nil
			}
			out.at = append(out.at, e.Kv.ModRevision)
			out.digests = append(out.digests, digestOf(string(e.Kv.Value)))
		}
	}
	return passed{}, fmt.Errorf("the watch ended: %w", ctx.Err())
}

// chained reports, by the chain, whether there was a write with the digest at the revision; known is false if the chain
// does not have that time. Errors are etcd's, and errChain.
func (s *Store) chained(ctx context.Context, at int64, digest string) (is, known bool, err error) {
	l, err := s.linkBefore(ctx, s.keys.link(at+1))
	if err != nil || l == nil {
		return false, false, err
	}
	if at <= l.end() {
		is, known = l.has(at, digest)
		return is, known, nil
	}
	next, err := s.linkOf(ctx, s.keys.link(at+1), clientv3.GetPrefixRangeEnd(s.keys.chain()), clientv3.SortAscend)
	return false, next != nil && next.after == l.end(), err
}
