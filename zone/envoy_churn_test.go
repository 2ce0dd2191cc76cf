package zone_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources"
)

// TestNoRequestFailsWhileRoutesMove: requests run without a pause while a route moves between services, disappears and
// returns, and confs change clusters. Not one request fails.
func TestNoRequestFailsWhileRoutesMove(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range []string{"backend", "blue", "green"} {
		w.handler(name, name, answers(name))
	}
	w.allowAll()
	ports, e := w.caller("caller", "{kind: MeshService, name: backend}")
	eventually(t, "reachable", ok(ports[0], "/"))
	stop, failed := make(chan struct{}), make(chan string, 1)
	var wg sync.WaitGroup
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{}}
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if text := problemOf(client, ports[0]); text != "" {
					select {
					case failed <- text:
					default:
					}
				}
			}
		})
	}
	route := `{type: MeshHTTPRoute, mesh: default, name: moving, spec: {to: [{targetRef: {kind: MeshService, name: backend}, rules: [{default: {backendRefs: [{kind: MeshService, name: %s, port: 80}]}}]}]}}`
	for i := range 4 {
		for _, name := range []string{"blue", "green"} {
			w.apply(fmt.Sprintf(route, name))
			eventually(t, name, func() bool { _, body := plain(ports[0], "/"); return body == name+" /" })
		}
		w.apply(fmt.Sprintf(`{type: MeshTimeout, mesh: default, name: connect, spec: {to: [{targetRef: {kind: Mesh}, default: {connectionTimeout: %ds}}]}}`, i+1))
		w.remove(resources.TypeMeshHTTPRoute, "moving")
		eventually(t, "backend", func() bool { _, body := plain(ports[0], "/"); return body == "backend /" })
	}
	close(stop)
	wg.Wait()
	client.CloseIdleConnections()
	select {
	case text := <-failed:
		t.Error(text)
	default:
	}
	e.refusedNothing()
}

func problemOf(c *http.Client, port int) string {
	resp, err := c.Get(fmt.Sprintf("http://127.0.0.1:%d/", port))
	if err != nil {
		return err.Error()
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return resp.Status
	}
	return ""
}
