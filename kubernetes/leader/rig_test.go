package leader

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/causeway-mesh/causeway/secrets"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cluster is an API server with the objects that replicas use: with versions, conflicts and server-side apply.
type cluster struct {
	t          *testing.T
	kubeconfig string
	key        string

	mu   sync.Mutex
	away bool
	// readOnly refuses changes, empty has no namespace.
	readOnly, empty bool
	version         int
	// looks counts the reads of the Lease.
	looks   int
	objects map[string]map[string]any
	writes  []string
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, version: 100, objects: map[string]map[string]any{}}
	s := httptest.NewTLSServer(http.HandlerFunc(c.serve))
	t.Cleanup(s.Close)
	dir := t.TempDir()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	must(t, os.WriteFile(filepath.Join(dir, "ca"), ca, 0o600))
	c.kubeconfig, c.key = filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "secrets.key")
	must(t, os.WriteFile(c.kubeconfig, fmt.Appendf(nil, `{"current-context": "it", "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
 "clusters": [{"name": "it", "cluster": {"server": %q, "certificate-authority": "ca"}}], "users": [{"name": "it", "user": {"token": "t"}}]}`, s.URL), 0o600))
	_, err := secrets.OpenBox(secrets.Config{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	for i := range 3 {
		c.objects[fmt.Sprintf("/api/v1/namespaces/mesh/pods/zone-%d", i)] = map[string]any{
			"metadata": map[string]any{"name": fmt.Sprintf("zone-%d", i), "namespace": "mesh"}}
	}
	return c
}

func (c *cluster) setAway(away bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.away = away
}

// object returns a copy of an object, nil if there is none.
func (c *cluster) object(path string) map[string]any {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.objects[path]
}

func (c *cluster) remove(path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.objects, path)
}

func (c *cluster) serve(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	raw, _ := io.ReadAll(r.Body)
	switch {
	case c.away, c.readOnly && r.Method != http.MethodGet:
		c.refuse(w, http.StatusServiceUnavailable, "ServiceUnavailable")
	case c.empty:
		c.refuse(w, http.StatusNotFound, "NotFound")
	case r.Method == http.MethodGet && r.URL.Path == "/api/v1/pods":
		c.refuse(w, http.StatusForbidden, "Forbidden")
	case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/pods"):
		var items []any
		for path, o := range c.objects {
			if strings.Contains(path, "/pods/") {
				items = append(items, o)
			}
		}
		c.answer(w, map[string]any{"metadata": map[string]any{"resourceVersion": "1"}, "items": items})
	default:
		c.one(w, r, raw)
	}
}

// written returns the paths of the writes so far.
func (c *cluster) written() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.writes)
}

func (c *cluster) one(w http.ResponseWriter, r *http.Request, raw []byte) {
	var sent map[string]any
	_ = json.NewDecoder(bytes.NewReader(raw)).Decode(&sent)
	path := r.URL.Path
	if r.Method == http.MethodPost {
		path += "/" + sent["metadata"].(map[string]any)["name"].(string)
	}
	there := c.objects[path]
	if r.Method == http.MethodGet && strings.Contains(path, "/leases/") {
		c.looks++
	}
	switch {
	case r.Method == http.MethodPut && !isVersion(sent): // as strconv fails in the API server
		c.refuse(w, http.StatusInternalServerError, "InternalError")
	case r.Method == http.MethodGet && there == nil, r.Method == http.MethodPut && there == nil:
		c.refuse(w, http.StatusNotFound, "NotFound")
	case r.Method == http.MethodGet:
		c.answer(w, there)
	case r.Method == http.MethodPost && there != nil:
		c.refuse(w, http.StatusConflict, "AlreadyExists")
	case strings.Contains(r.Header.Get("Content-Type"), "apply-patch") && there != nil,
		r.Method == http.MethodPut && sent["metadata"].(map[string]any)["resourceVersion"] != there["metadata"].(map[string]any)["resourceVersion"]:
		c.refuse(w, http.StatusConflict, "Conflict")
	case strings.Contains(r.Header.Get("Content-Type"), "merge-patch"):
		if there == nil {
			c.refuse(w, http.StatusNotFound, "NotFound")
			return
		}
		merge(there, sent)
		c.answer(w, there)
	default:
		c.version++
		sent["metadata"].(map[string]any)["resourceVersion"] = fmt.Sprint(c.version)
		c.objects[path] = sent
		c.writes = append(c.writes, path)
		c.answer(w, sent)
	}
}

func isVersion(o map[string]any) bool {
	text, _ := o["metadata"].(map[string]any)["resourceVersion"].(string)
	_, err := strconv.ParseUint(text, 10, 64)
	return err == nil
}

func merge(into, from map[string]any) {
	for key, value := range from {
		sub, ok := value.(map[string]any)
		switch {
		case value == nil:
			delete(into, key)
		case ok:
			if _, ok := into[key].(map[string]any); !ok {
				into[key] = map[string]any{}
			}
			merge(into[key].(map[string]any), sub)
		default:
			into[key] = value
		}
	}
}

func (c *cluster) answer(w http.ResponseWriter, o any) { _ = json.NewEncoder(w).Encode(o) }

func (c *cluster) refuse(w http.ResponseWriter, code int, reason string) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{"code": code, "reason": reason, "message": reason})
}

// config is that of a replica.
func (c *cluster) config(t *testing.T, number int) Config {
	t.Helper()
	box, err := secrets.OpenBox(secrets.Config{KeyFile: c.key, Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	dir := filepath.Join(t.TempDir(), "data")
	return Config{Kubeconfig: c.kubeconfig, Agent: "test", Namespace: "mesh", Lease: "zone", Pod: fmt.Sprintf("zone-%d", number),
		DataDir: dir, StoreFile: filepath.Join(dir, "store.db"), Box: box, DiagnosticsAddress: "127.0.0.1:0", Now: time.Now,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		// A lead lasts as long as the test, however busy the machine is; see expire.
		times: times{lease: time.Hour, safe: 50 * time.Minute, renew: 20 * time.Millisecond, look: 10 * time.Millisecond, secret: time.Hour}}
}

// expire ends the Lease of a leader that does not renew it any more. It has another version then: a renewal that the
// leader did not wait for may still be on its way.
func (c *cluster) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	lease := c.objects["/apis/coordination.k8s.io/v1/namespaces/mesh/leases/zone"]
	delete(lease["spec"].(map[string]any), "holderIdentity")
	c.version++
	lease["metadata"].(map[string]any)["resourceVersion"] = fmt.Sprint(c.version)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
