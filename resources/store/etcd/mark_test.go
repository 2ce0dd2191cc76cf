package etcd

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/resources/store/etcd/etcdtest"
	"github.com/causeway-mesh/causeway/resources/store/storetest"
)

// TestMarksOutliveTheHistory checks that a server that has followed etcd all the time knows whether it had a write, also
// once etcd has compacted its history of then. One that did not run then goes by the chain, and knows of nothing before it:
// that is not recognised, and it says so.
func TestMarksOutliveTheHistory(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, 1)
	stores := several(t, 2, Config{Endpoints: c.Endpoints()})
	writer, follows := stores[0], stores[1]
	written := 0
	write := func(n int) {
		for range n {
			written++
			storetest.Apply(t, writer, storetest.Put(storetest.Resource(storetest.Key("one"), written, nil)))
		}
		agree(t, writer, follows)
	}
	write(1)
	seen := writer.Mark()
	at, _, _ := strings.Cut(seen, ".")
	write(10)
	client := clientOf(t, c)
	if _, err := client.Compact(t.Context(), writer.place.seen()); err != nil {
		t.Fatal(err)
	}
	later := open(t, Config{Endpoints: c.Endpoints(), Prefix: writer.config.Prefix})
	if err := later.extend(t.Context()); err != nil {
		t.Fatal(err)
	}
	chained := writer.Mark()
	chainedAt, _, _ := strings.Cut(chained, ".")
	write(1)
	if _, err := client.Compact(t.Context(), writer.place.seen()); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	fresh := open(t, Config{Endpoints: c.Endpoints(), Prefix: writer.config.Prefix,
		Log: slog.New(slog.NewTextHandler(&said, nil))})
	for _, tt := range []struct {
		name string
		of   *Store
		mark string
		want bool
	}{
		{"it wrote it", writer, seen, true},
		{"it followed it", follows, seen, true},
		{"another write at the revision", writer, at + ".0123456789abcdef", false},
		{"another write, of one that followed", follows, at + ".0123456789abcdef", false},
		{"in the chain", fresh, chained, true},
		{"another write, by the chain", fresh, chainedAt + ".0123456789abcdef", false},
		{"it was, but nobody knows", fresh, seen, false},
	} {
		if got, err := tt.of.Recognises(t.Context(), tt.mark); err != nil || got != tt.want {
			t.Errorf("%s: %v, want %v (%v)", tt.name, got, tt.want, err)
		}
	}
	if text := said.String(); strings.Count(text, "it is not known whether etcd has a write that a peer has seen") != 1 {
		t.Errorf("the one that does not know says %q", text)
	}
}

// TestPassed checks that a server remembers the last writes of many, and none from before one that it did not see.
func TestPassed(t *testing.T) {
	t.Parallel()
	var p passed
	const n = 2*mostPassed + 10
	for i := range int64(n) {
		p.add(2*i, fmt.Sprint(i), i != 5)
	}
	for _, tt := range []struct {
		at        int64
		value     string
		is, known bool
	}{
		{2 * (n - 1), fmt.Sprint(n - 1), true, true},
		{2*(n-1) + 1, "", false, false},
		{2 * (n - 1), "other", false, true},
		{2*(n-1) - 1, "", false, true},
		{2 * (n - mostPassed), fmt.Sprint(n - mostPassed), true, true},
		{8, "4", false, false},
	} {
		if is, known := p.has(tt.at, digestOf(tt.value)); is != tt.is || known != tt.known {
			t.Errorf("%d %s: %v, known: %v", tt.at, tt.value, is, known)
		}
	}
	if len(p.at) > 2*mostPassed {
		t.Errorf("%d are kept", len(p.at))
	}
}
