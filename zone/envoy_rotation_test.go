package zone_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/identity"
)

// TestNoRequestFailsWhileAuthoritiesRotate: requests run without a pause between two proxies, each on a new connection.
// Meanwhile a new authority is published and signs, and the old one is retired, twice. Not one request fails, and both
// proxies end with identities from the newest authority.
func TestNoRequestFailsWhileAuthoritiesRotate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.service("backend")
	ports, e := w.caller("caller", "{kind: MeshService, name: backend}")
	w.apply(fmt.Sprintf(allowCaller, "zone-1"))
	eventually(t, "allowed", func() bool { code, _ := plain(ports[0], "/"); return code == http.StatusOK })

	rotation := &identity.Rotation{Store: w.store, Authorities: w.authorities, Known: w.unaware,
		Log: slog.New(slog.DiscardHandler)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- rotation.Run(ctx) }()
	defer func() { cancel(); must(t, <-done) }()

	stop := make(chan struct{})
	var wg sync.WaitGroup
	var mu sync.Mutex
	sent, failures := 0, []string{}
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				code, body := plain(ports[0], "/")
				mu.Lock()
				if sent++; code != http.StatusOK {
					failures = append(failures, fmt.Sprintf("%d %.200s", code, body))
				}
				mu.Unlock()
			}
		})
	}
	many := func() int {
		mu.Lock()
		defer mu.Unlock()
		return sent
	}
	for range 2 {
		before, err := w.authorities.For("default")
		must(t, err)
		next, err := w.authorities.Prepare(t.Context(), "default")
		must(t, err)
		eventually(t, "the new authority signs", func() bool {
			now, err := w.authorities.For("default")
			return err == nil && now.ID() == next
		})
		eventually(t, "both proxies have identities of the new authority", func() bool { return w.issuedBy(next) == 2 })
		eventually(t, "all that was sent is acknowledged", func() bool { return w.knowsTrust("default") })
		// Envoy acknowledges before its workers use what came, and a handshake that has begun continues with what it
		// began with. A force that waits for nobody may refuse those two.
		begun := many()
		eventually(t, "the requests that were under way to end", func() bool { return many() >= begun+50 })
		must(t, w.authorities.Retire(t.Context(), "default", before.ID(), true))
		eventually(t, "the old authority is no longer believed", func() bool {
			return len(identity.BundlesOf(w.store.Snapshot(), "default",
				resources.Home{Zone: "zone-1"}).Certificates(before.TrustDomain())) == 1 && w.knowsTrust("default")
		})
		without := many()
		eventually(t, "requests with the old authority gone", func() bool { return many() >= without+50 })
	}
	close(stop)
	wg.Wait()
	t.Logf("%d requests", sent)
	if len(failures) > 0 {
		t.Errorf("%d of %d requests failed, the first: %s", len(failures), sent, failures[0])
	}
	e.refusedNothing()
}

// knowsTrust reports whether all authorities are published, and every proxy has acknowledged its configuration.
func (w *world) knowsTrust(mesh string) bool {
	all, err := w.authorities.All(mesh)
	if err != nil || len(identity.BundlesOf(w.store.Snapshot(), mesh,
		resources.Home{Zone: "zone-1"}).Certificates(all[0].TrustDomain())) != len(all) {
		return false
	}
	for _, one := range w.proxies.SyncStatuses() {
		if one.Behind {
			return false
		}
	}
	return true
}

// issuedBy counts the proxies whose identity an authority has signed.
func (w *world) issuedBy(authority string) int { return w.proxies.IssuedBy("default")[authority] }

func (w *world) unaware(_ context.Context, meshDomain string) identity.Unaware {
	if w.knowsTrust(meshDomain) {
		return identity.Unaware{}
	}
	return identity.Unaware{Waited: []string{"proxies"}}
}
