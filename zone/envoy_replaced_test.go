package zone_test

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

// TestWhatAReplacedListenerCosts: a MeshAccessLog on an outbound of HTTP replaces its listener. A WebSocket on it is cut,
// after the drain time of 1 s; not one request fails, on connections that are kept alive; and a WebSocket on another
// outbound of the proxy goes on.
func TestWhatAReplacedListenerCosts(t *testing.T) {
	t.Parallel()
	o := newOpened(t)
	ports, caller := o.world.caller("second", "{kind: MeshService, name: backend}", "{kind: MeshService, name: other}")
	o.echoingSockets("other")
	o.apply(`{type: MeshTrafficPermission, mesh: default, name: all, spec: {rules: [{default: {allow: [{spiffeId: {type: Prefix, value: "spiffe://default.zone-1.mesh.local/"}}]}}]}}`)
	for _, port := range ports {
		eventually(t, "the service", ok(port, "/"))
	}
	concerned, elsewhere := o.dialAt(ports[0]), o.dialAt(ports[1])
	must(t, answersOn(concerned, "hello"))
	must(t, answersOn(elsewhere, "hello"))

	done := make(chan struct{})
	var requests atomic.Int64
	var failed atomic.Value
	go func() {
		defer close(done)
		client := &http.Client{Timeout: patience}
		for failed.Load() == nil && requests.Load() >= 0 {
			resp, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d/", ports[0]))
			if err == nil {
				err = resp.Body.Close()
			}
			if err == nil && resp.StatusCode != http.StatusOK {
				err = errors.New(resp.Status)
			}
			if err != nil {
				failed.Store(err)
			} else if requests.Add(1) < 0 {
				return
			}
		}
	}()
	before := caller.listeners()[updates]
	at := time.Now()
	o.apply(fmt.Sprintf(`{type: MeshAccessLog, mesh: default, name: p, spec: {to: [{targetRef: {kind: MeshService, name: backend}, default: {backends: [{type: File, file: {path: %s}}]}}]}}`,
		filepath.Join(t.TempDir(), "log")))
	eventually(t, "the cut", func() bool { return answersOn(concerned, "over?") != nil })
	if after := time.Since(at); after < 900*time.Millisecond {
		t.Errorf("the WebSocket is cut after %s", after)
	}
	must(t, answersOn(elsewhere, "still there"))
	n := requests.Load()
	eventually(t, "more requests", func() bool { return requests.Load() > n+20 || failed.Load() != nil })
	requests.Store(-1 << 40)
	<-done
	if err := failed.Load(); err != nil {
		t.Errorf("a request fails: %v", err)
	}
	if now := caller.listeners()[updates]; now == before {
		t.Error("no listener was replaced")
	}
}
