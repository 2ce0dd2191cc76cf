package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// soon is within how long a command that follows something ends once its user may no longer. Most end at once. A request
// that was judged right before is judged again with the next change, or by the next request, after 20 s.
const soon = 60 * time.Second

// TestRightsThatAreTakenAway runs commands that follow something on a server, and takes the rights of their user away in
// the middle: each ends, says why, and shows nothing of what comes afterwards. One whose rights stay goes on.
func TestRightsThatAreTakenAway(t *testing.T) {
	t.Parallel()
	m := newCluster(t)
	var err error
	m.global, err = m.StartGlobal(t.Context(), cluster.GlobalConfig{})
	m.must(err)
	zone, err := m.StartZone(t.Context(), cluster.ZoneConfig{Name: "zone-1", Global: m.global})
	m.must(err)
	m.must(zone.WaitMesh(t.Context(), "default"))
	f := &followers{mesh: m}
	for name, take := range map[string]func(*cluster.Server, string){
		"the token is revoked": func(s *cluster.Server, user string) {
			m.must(s.API.Do(t.Context(), http.MethodPost, "/tokens/user/"+f.ids[user]+"/_revoke", nil, nil))
		},
		"the binding is deleted": func(s *cluster.Server, user string) {
			m.must(s.API.Delete(t.Context(), "/accessrolebindings/"+user))
		},
		"the role is of something else": func(s *cluster.Server, user string) {
			f.role(s, user, "MeshRetry", "read")
		},
	} {
		t.Run(name, func(t *testing.T) {
			f.t = t
			var all []*follower
			for _, s := range []*cluster.Server{m.global, zone} {
				for what, args := range map[string][]string{
					"a watch": {"get", "meshtimeouts", "--watch"}, "a watch in JSON": {"get", "meshtimeouts", "--watch", "-o", "json"},
					"the audit log": {"audit", "--follow"},
				} {
					all = append(all, f.begin(s, s.Name()+", "+what, args))
				}
			}
			f.takeAway(all, take)
		})
	}
}

// followers are users with one command each.
type followers struct {
	*mesh
	n   int
	ids map[string]string // of their tokens
}

// follower is a user with a command, and a twin with the same one, whose rights stay.
type follower struct {
	server         *cluster.Server
	what           string
	user           string
	before, after  string // what is written there
	command, twins *cluster.Process
}

// begin starts a command twice, and waits until both show what is written on their server.
func (f *followers) begin(s *cluster.Server, what string, args []string) *follower {
	f.n++
	o := &follower{server: s, what: what, user: fmt.Sprintf("user-%d", f.n), before: fmt.Sprintf("before-%d", f.n),
		after: fmt.Sprintf("after-%d", f.n)}
	o.command, o.twins = f.start(s, o.user, args), f.start(s, fmt.Sprintf("twin-%d", f.n), args)
	f.write(s, o.before)
	f.shows(o.command, o.before)
	f.shows(o.twins, o.before)
	return o
}

// takeAway takes the rights of all users, and then waits: nothing is written until all of their commands have ended.
func (f *followers) takeAway(all []*follower, take func(*cluster.Server, string)) {
	f.t.Helper()
	for _, o := range all {
		take(o.server, o.user)
	}
	ctx, cancel := context.WithTimeout(f.t.Context(), soon)
	defer cancel()
	for _, o := range all {
		if err := o.command.Wait(ctx); err == nil || errors.Is(err, context.DeadlineExceeded) {
			f.t.Errorf("%s: without the right: %v", o.what, err)
		}
	}
	for _, o := range all {
		f.write(o.server, o.after)
		f.shows(o.twins, o.after)
		if log := o.command.Log(); strings.Contains(log, o.after) || !strings.Contains(log, "401") && !strings.Contains(log, "403") &&
			!strings.Contains(log, "lacks the permission") && !strings.Contains(log, "not valid here") {
			f.t.Errorf("%s: it shows:\n%s", o.what, log)
		}
		o.twins.Kill()
	}
}

func (f *followers) write(s *cluster.Server, name string) {
	f.must(s.API.Put(f.t.Context(), "/meshes/default/meshtimeouts/"+name, timeoutOf(name, "1")))
}

func (f *followers) shows(p *cluster.Process, name string) {
	f.t.Helper()
	f.must(cluster.Until(f.t.Context(), reconnectPatience, p.Name()+" to show "+name, func(context.Context) error {
		if !strings.Contains(p.Log(), name) {
			return fmt.Errorf("it shows:\n%s", p.Log())
		}
		return p.Alive()
	}))
}

// start gives a user a token and a role, and runs a command as this user.
func (f *followers) start(s *cluster.Server, user string, args []string) *cluster.Process {
	raw, err := f.CTL(f.t.Context(), s, nil, "user", "token", "--name", user, "--valid-for", "1h")
	f.must(err)
	token := strings.TrimSpace(string(raw))
	payload, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	f.must(err)
	var claims struct {
		ID string `json:"jti"`
	}
	f.must(json.Unmarshal(payload, &claims))
	if f.ids == nil {
		f.ids = map[string]string{}
	}
	f.ids[user] = claims.ID
	file := filepath.Join(f.t.TempDir(), "token")
	f.must(os.WriteFile(file, []byte(token), 0o600))
	f.role(s, user, "*", "read")
	f.must(s.API.Put(f.t.Context(), "/accessrolebindings/"+user, map[string]any{"type": "AccessRoleBinding", "name": user,
		"spec": map[string]any{"subjects": []any{map[string]any{"type": "User", "name": user}}, "roles": []any{user}}}))
	p, err := f.Command(user, "causewayctl", append([]string{"--address", s.API.URL(), "--token-file", file}, args...)...)
	f.must(err)
	f.must(p.Start())
	return p
}

func (f *followers) role(s *cluster.Server, user, of, verb string) {
	f.must(s.API.Put(f.t.Context(), "/accessroles/"+user, map[string]any{"type": "AccessRole", "name": user,
		"spec": map[string]any{"rules": []any{map[string]any{"verbs": []any{verb}, "types": []any{of}}}}}))
}
