package etcd

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/causeway-mesh/causeway/resources/store/etcd/etcdtest"
	"github.com/causeway-mesh/causeway/resources/store/storetest"
)

// TestChain checks that the chain has each write, whoever extends it and when: one that followed everything, one that
// started since and reads what it missed from etcd's history, and one that cannot read it any more, which leaves a gap
// that is known as one.
func TestChain(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, 1)
	s := several(t, 1, Config{Endpoints: c.Endpoints()})[0]
	client := clientOf(t, c)
	marks := map[int64]string{}
	write := func(n int) (first, last int64) {
		for i := range n {
			storetest.Apply(t, s, storetest.Put(storetest.Resource(storetest.Key(fmt.Sprint(i)), rand.Int(), nil)))
			at, value := s.place.mark()
			marks[at] = digestOf(value)
			if first == 0 {
				first = at
			}
			last = at
			if _, err := client.Put(t.Context(), "/elsewhere", "so that there are revisions in between"); err != nil {
				t.Fatal(err)
			}
		}
		return first, last
	}
	extend := func(by *Store) {
		t.Helper()
		agree(t, s, by)
		if err := by.extend(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	another := func() *Store { return open(t, Config{Endpoints: c.Endpoints(), Prefix: s.config.Prefix}) }
	first, _ := write(5)
	extend(s)
	write(3)
	extend(s)
	_, joined := write(4)
	extend(another()) // reads three from history
	write(6)
	if _, err := client.Compact(t.Context(), s.place.seen()); err != nil {
		t.Fatal(err)
	}
	extend(another()) // knows the last of them only
	last := s.place.seen()
	judge := another()
	for at := range last + 1 {
		digest, is := marks[at]
		known := at >= first && at <= joined || at == last
		if gotIs, gotKnown, err := judge.chained(t.Context(), at, digest); err != nil || gotKnown != known || gotIs != (is && known) {
			t.Errorf("%d, known from %d to %d and at %d: %v, known: %v (%v)", at, first, joined, last, gotIs, gotKnown, err)
		}
		if got, _, err := judge.chained(t.Context(), at, "0123456789abcdef"); err != nil || got {
			t.Errorf("another write at %d is taken for it (%v)", at, err)
		}
	}
	extend(s)
	if left, err := s.linkBefore(t.Context(), ""); err != nil || left.end() != last {
		t.Errorf("the chain ends with %d, want %d (%v)", left.end(), last, err)
	}
}

// TestChainIsBounded checks that the chain is cut into links, and that the oldest go.
func TestChainIsBounded(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, 1)
	s := several(t, 1, Config{Endpoints: c.Endpoints()})[0]
	storetest.Apply(t, s, storetest.Put(storetest.Resource(storetest.Key("one"), 1, nil)))
	at, value := s.place.mark()
	const n = linkSize*3 + 10
	s.place.mu.Lock()
	s.place.passed = passed{}
	for i := range int64(n) {
		s.place.passed.add(at+2*i, fmt.Sprint(i), true)
	}
	s.place.mu.Unlock()
	client := clientOf(t, c)
	for i := range mostLinks { // of before
		l := chainLink{passed: passed{at: []int64{1}, digests: []string{digestOf("")}}}
		raw, err := l.encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Put(t.Context(), s.keys.chain()+fmt.Sprintf("%016d", -int64(mostLinks)+int64(i)), raw); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.extend(t.Context()); err != nil {
		t.Fatal(err)
	}
	all, err := client.Get(t.Context(), s.keys.chain(), clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil || all.Count != mostLinks {
		t.Errorf("%d links, want %d (%v)", all.Count, mostLinks, err)
	}
	for _, i := range []int64{1, linkSize - 1, linkSize, 2*linkSize + 1, n - 1} {
		if is, known, err := s.chained(t.Context(), at+2*i, digestOf(fmt.Sprint(i))); !is || !known || err != nil {
			t.Errorf("write %d is not there: known: %v (%v)", i, known, err)
		}
		if is, known, err := s.chained(t.Context(), at+2*i-1, digestOf(fmt.Sprint(i))); is || !known || err != nil {
			t.Errorf("before write %d is one: %v, known: %v (%v)", i, is, known, err)
		}
	}
	if now, _ := s.place.mark(); now != at || value == "" {
		t.Errorf("the view is at %d", now)
	}
}

// TestChainOfAnotherHistory checks that a server whose etcd was put back, and which has not noticed yet, writes nothing of
// what was lost into the chain; and that one which cannot read etcd's history any more knows by the chain that etcd has
// another one.
func TestChainOfAnotherHistory(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, 1)
	s := several(t, 1, Config{Endpoints: c.Endpoints(), Timeout: 500 * time.Millisecond})[0]
	late := deaf(t, s)
	client := clientOf(t, c)
	restore(t, client, s, late, 5)
	if err := late.extend(t.Context()); !errors.Is(err, errLate) {
		t.Errorf("one that is behind extends the chain: %v", err)
	}
	if l, err := s.linkBefore(t.Context(), ""); err != nil || l != nil {
		t.Fatalf("the chain is %+v (%v)", l, err)
	}
	storetest.Apply(t, s, storetest.Put(storetest.Resource(storetest.Key("further"), 1, nil)))
	if err := s.extend(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Compact(t.Context(), s.place.seen()); err != nil {
		t.Fatal(err)
	}
	if err := late.recognise(t.Context()); !errors.Is(err, ErrWentBack) {
		t.Errorf("etcd with another history is recognised: %v", err)
	}
	if err := s.recognise(t.Context()); err != nil {
		t.Errorf("the other server: %v", err)
	}
}

// TestLinksThatAreDamaged checks that a damaged link is an error and nothing else.
func TestLinksThatAreDamaged(t *testing.T) {
	t.Parallel()
	l := chainLink{after: 300, passed: passed{at: []int64{301, 900}, digests: []string{digestOf("a"), digestOf("b")}}}
	raw, err := l.encode()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := decodeLink([]byte(raw)); err != nil || got.after != 300 || fmt.Sprint(got.passed) != fmt.Sprint(l.passed) {
		t.Errorf("got %+v, %v", got, err)
	}
	whole := 0
	for n := range len(raw) {
		if got, err := decodeLink([]byte(raw[:n])); err == nil && len(got.at) == 1 {
			whole++ // ends between two writes
		} else if !errors.Is(err, errChain) {
			t.Errorf("%d bytes of it: %v, %v", n, got, err)
		}
	}
	if whole != 1 {
		t.Errorf("%d beginnings of it are links", whole)
	}
}
