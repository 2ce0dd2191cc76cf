package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources/store/backend"
	"github.com/causeway-mesh/causeway/test/cluster"
)

// operated kills a server at each step of an operation, always from the same state, with a zone that runs beside it.
type operated struct {
	*mesh
	zone *cluster.Server
	// victim is the server that is killed: the global or the zone.
	victim *cluster.Server
	// do runs the operation, and succeeds if it is already done. done checks that it is, and sound what always holds.
	do, done, sound func(context.Context) error
	sources         map[*cluster.Server]string
	// token is a user's, and id the token's.
	token, id   string
	kills, told int
	// refuses is set if steps fail, and nobody is killed in the middle.
	refuses bool
}

// TestFaultsOperations kills servers at each step of operations in progress: answers stay true, nothing incomplete is
// accepted, and the operation can be repeated to its end.
func TestFaultsOperations(t *testing.T) {
	t.Parallel()
	if err := cluster.CanTrace(); err != nil {
		t.Log(err) // which is no failure of the server
		return
	}
	inOperations(t, false)
}

// TestFaultsRefusedOperations makes each of the same steps, and each write to a file, fail once. Answers stay true over
// a restart; a refused operation can be repeated at once, and the server continues.
func TestFaultsRefusedOperations(t *testing.T) {
	t.Parallel()
	if err := cluster.CanTrace(); err != nil || !cluster.CanRefuse {
		t.Log(err) // which is no failure of the server
		return
	}
	inOperations(t, true)
}

func inOperations(t *testing.T, refuses bool) {
	for name, prepare := range map[string]func(*operated){
		"rotate the keys of tokens": (*operated).rotatesTokens, "retire a key of tokens": (*operated).retires,
		"revoke a user's token": (*operated).revokes, "rotate the zone CA": (*operated).rotatesZoneCA,
		"renew a zone's certificate": (*operated).renews, "rotate an identity's CA": (*operated).rotatesIdentity,
		"delete a zone": (*operated).deletes, "adopt a zone": (*operated).adopts,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &operated{mesh: newMesh(t, "zone-1"), sources: map[*cluster.Server]string{}, refuses: refuses}
			o.zone, o.victim = o.zones["zone-1"], o.global
			o.sound = func(ctx context.Context) error { return inSession(ctx, o.zone) }
			o.apply(o.zone, zonesTimeout)
			o.arrives(o.global, "of-the-zone")
			o.issue()
			prepare(o)
			o.run()
		})
	}
}

// issue gets a user's token.
func (o *operated) issue() {
	raw, err := post(o.t.Context(), o.global, "/tokens/user", map[string]any{"name": "alice", "validFor": "1h"})
	o.must(err)
	o.token = strings.TrimSpace(string(raw))
	var me api.WhoAmI
	_, said, err := asked(o.t.Context(), o.global, http.MethodGet, "/who-am-i", o.token, nil)
	o.must(err)
	o.must(json.Unmarshal(said, &me))
	o.id = me.Credential
}

// run kills at each step; the short form only at some.
func (o *operated) run() {
	o.stop()
	for s := range o.sources {
		o.must(exec.Command("cp", "-a", s.DataDir, o.sources[s]).Run())
	}
	stride, first := 1, 1
	if !*faultsLong {
		stride, first = 5, 1+int(*crashSeed%5)
	}
	for n := first; n < maxSteps; n += stride {
		if !o.killedAt(n) {
			o.t.Logf("%d steps, %d of them answered; fewer than %d steps", o.kills, o.told, n+1)
			return
		}
		o.kills++
	}
	o.t.Errorf("there are more than %d steps", maxSteps)
}

// stop kills both servers, and says where copies of their folders are.
func (o *operated) stop() {
	for _, s := range []*cluster.Server{o.global, o.zone} {
		s.Kill()
		if o.sources[s] == "" {
			o.sources[s] = s.DataDir + ".source"
		}
	}
}

// killedAt begins with fresh copies, and reports whether there is an n-th step.
func (o *operated) killedAt(n int) bool {
	ctx, cancel := context.WithTimeout(o.t.Context(), 2*patience)
	defer cancel()
	o.stop()
	steps := &cluster.Steps{}
	for _, s := range []*cluster.Server{o.global, o.zone} {
		o.must(os.RemoveAll(s.DataDir))
		o.must(exec.Command("cp", "-a", o.sources[s], s.DataDir).Run())
	}
	o.victim.Trace(steps)
	o.must(o.global.Start(ctx))
	o.must(o.zone.Start(ctx))
	if o.refuses {
		steps.RefuseAt(n, o.victim.DataDir)
	} else {
		steps.KillAt(n, o.victim.DataDir)
	}
	doing, give := context.WithCancel(ctx)
	go func() { // a request to a killed server gets no answer
		_ = o.victim.Wait(doing)
		give()
	}()
	answer := o.do(doing)
	give()
	step := steps.Reached()
	if o.refuses && answer != nil && step != "" {
		if err := cluster.Until(ctx, patience, "the server to go on", o.do); err != nil {
			o.t.Errorf("after step %d (%s) failed, and %v was answered: %v", n, step, answer, err)
		}
		answer = nil
	}
	o.victim.Kill()
	o.victim.Trace(nil)
	if step == "" {
		o.must(answer)
	}
	o.must(o.victim.Start(ctx))
	if answer == nil {
		o.told++
		o.holds(ctx, n, step, "acknowledged", o.done)
	}
	if err := o.do(ctx); err != nil {
		o.t.Errorf("after step %d (%s), it cannot be repeated: %v", n, step, err)
	}
	o.holds(ctx, n, step, "repeated", o.done)
	o.holds(ctx, n, step, "sound", o.sound)
	return step != ""
}

func (o *operated) holds(ctx context.Context, n int, step, what string, check func(context.Context) error) {
	o.t.Helper()
	if err := cluster.Until(ctx, patience, what, check); err != nil {
		o.t.Errorf("after step %d (%s), it is not %s: %v", n, step, what, err)
	}
}

// asked sends one request with a bearer token, if it is not empty, and returns the answer.
func asked(ctx context.Context, s *cluster.Server, method, path, token string, body any) (int, []byte, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return 0, nil, err
	}
	r, err := http.NewRequestWithContext(ctx, method, s.API.URL()+path, bytes.NewReader(raw))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	return answer.StatusCode, said, err
}

// post asks a server, and fails unless it answers with success or one of the other statuses.
func post(ctx context.Context, s *cluster.Server, path string, body any, also ...int) ([]byte, error) {
	status, said, err := asked(ctx, s, http.MethodPost, path, "", body)
	if err == nil && status/100 != 2 && !slices.Contains(also, status) {
		err = fmt.Errorf("%s: %d %s", path, status, said)
	}
	return said, err
}

func (o *operated) deletes() {
	o.do = func(ctx context.Context) error {
		_, err := post(ctx, o.global, "/zones/zone-1/_delete", nil, http.StatusNotFound)
		return err
	}
	o.done = func(ctx context.Context) error {
		all, err := timeouts(ctx, o.global)
		if err == nil && all["of-the-zone"].Name != "" {
			err = errors.New("the global has a policy of a zone that was deleted")
		}
		if err != nil {
			return err
		}
		status, said, err := asked(ctx, o.global, http.MethodGet, "/zones/zone-1", "", nil)
		if err == nil && status != http.StatusNotFound {
			err = fmt.Errorf("the zone is there: %s", said)
		}
		return err
	}
	o.sound = func(ctx context.Context) error {
		if n, err := o.zone.Metric(ctx, "causeway_global_connected"); err != nil || n != 0 {
			return fmt.Errorf("the deleted zone has a session: %v, %w", n, err)
		}
		return nil
	}
}

// adopts begins with a global that has lost its store.
func (o *operated) adopts() {
	o.stop()
	for _, name := range []string{backend.File, "audit"} {
		o.must(os.RemoveAll(filepath.Join(o.global.DataDir, name)))
	}
	o.do = func(ctx context.Context) error {
		return cluster.Until(ctx, patience, "the zone to be adopted", func(ctx context.Context) error {
			if inSession(ctx, o.zone) == nil {
				return nil
			}
			_, err := post(ctx, o.global, "/zones/zone-1/_adopt", nil)
			return err
		})
	}
	o.done = func(ctx context.Context) error { return inSession(ctx, o.zone) }
}
