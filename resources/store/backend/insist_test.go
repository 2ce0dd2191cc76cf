package backend

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/etcd"
	"github.com/causeway-mesh/causeway/resources/store/etcd/etcdtest"
)

// insisting runs an Insist that opens a store, and returns how often it was told of a failure.
func insisting(ctx context.Context, c Config) (told int, err error) {
	c.Kind, c.Prefix, c.Log = Etcd, "/insist", slog.New(slog.NewTextHandler(io.Discard, nil))
	err = c.Insist(ctx, func(error) { told++ }, func() error {
		s, err := Open(ctx, c)
		if err != nil {
			return err
		}
		return s.Close()
	})
	return told, err
}

// TestInsistUntilEtcdIsThere starts etcd only after the server has reported that it is away.
func TestInsistUntilEtcdIsThere(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, 1)
	cluster.Members[0].Kill()
	c := Config{Kind: Etcd, Endpoints: cluster.Endpoints(), Prefix: "/insist", StartTimeout: time.Minute,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	told := 0
	err := c.Insist(t.Context(), func(why error) {
		if told++; told == 1 {
			cluster.Members[0].Start(t)
		}
		if !strings.Contains(why.Error(), cluster.Endpoints()[0]) {
			t.Errorf("it is told %v", why)
		}
	}, func() error {
		s, err := Open(t.Context(), c)
		if err != nil {
			return err
		}
		return s.Close()
	})
	if err != nil || told == 0 {
		t.Errorf("told %d times, %v", told, err)
	}
}

// TestInsistWithoutALeader checks that a start succeeds on a cluster whose leader has just been killed.
func TestInsistWithoutALeader(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, 3)
	for range 3 {
		leader := cluster.Leader(t)
		leader.Kill()
		if _, err := insisting(t.Context(), Config{Endpoints: cluster.Endpoints(), StartTimeout: time.Minute}); err != nil {
			t.Error(err)
		}
		leader.Start(t)
		leader.Ready(t)
	}
}

func TestInsistEnds(t *testing.T) {
	t.Parallel()
	away := etcdtest.Start(t, 1)
	away.Members[0].Kill()
	begin := time.Now()
	told, err := insisting(t.Context(), Config{Endpoints: away.Endpoints(), StartTimeout: 4 * time.Second})
	if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "--etcd-start-timeout") || told == 0 ||
		time.Since(begin) < 4*time.Second {
		t.Errorf("after %s, told %d times: %v", time.Since(begin), told, err)
	}
	if told, err := insisting(t.Context(), Config{Endpoints: away.Endpoints()}); !errors.Is(err,
		store.ErrUnavailable) || told != 0 {
		t.Errorf("of those that try once: told %d times, %v", told, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	stopped := Config{Kind: Etcd, StartTimeout: time.Hour, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	if err := stopped.Insist(ctx, func(error) { cancel() },
		func() error { return store.ErrUnavailable }); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("told to end: %v", err)
	}
	tries := 0
	if err := stopped.Insist(t.Context(), func(error) {},
		func() error { tries++; return etcd.ErrRefused }); !errors.Is(err, etcd.ErrRefused) || tries != 1 {
		t.Errorf("refused: %v after %d tries", err, tries)
	}
}
