package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/causeway-mesh/causeway/api"
)

// outside is causewayctl on the machine of somebody who reaches a server by the cluster only.
type outside struct {
	*replicas

	home string
}

// fromOutside makes a context for the server, with a token of an admin.
func (r *replicas) fromOutside() *outside {
	r.t.Helper()
	o := &outside{replicas: r, home: r.t.TempDir()}
	token := filepath.Join(o.home, "admin.token")
	lines := strings.Fields(r.ctl("user", "token", "--name", "alice", "--group", "mesh-system:admin"))
	must(r.t, os.WriteFile(token, []byte(lines[len(lines)-1]), 0o600))
	name := strings.TrimSpace(r.kubectl("config", "current-context"))
	r.eventually("the context to be made", func(ctx context.Context) error {
		_, err := o.run(ctx, "config", "set-context", "it", "--kube-context", name, "--token-file", token,
			"--address", fmt.Sprintf("https://%s-api.%s.svc:5681", r.set, r.namespace))
		return err
	})
	return o
}

// run runs causewayctl.
func (o *outside) run(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(servers.bin, "causewayctl"), args...)
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+o.home, "HOME="+o.home, "KUBECONFIG="+o.Kubeconfig(), "PATH="+o.Programs+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("causewayctl %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// checkOutside has doctor look at the replicas by port-forward: it finds the diagnostics of the one that leads.
func (r *replicas) checkOutside() {
	o := r.fromOutside()
	r.eventually("doctor to see both replicas", func(ctx context.Context) error {
		leader, other := r.leader()
		out, err := o.run(ctx, "doctor")
		for _, want := range []string{
			fmt.Sprintf("readiness https://%s.%s-headless.%s.svc:5680 the server is ready", leader, r.set, r.namespace),
			"panics https://" + leader, leader + " leads, " + other + " waits",
		} {
			if err == nil && !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
				err = fmt.Errorf("no %q in\n%s", want, out)
			}
		}
		return err
	})
	r.eventually("get replicas to list both", func(ctx context.Context) error {
		leader, other := r.leader()
		out, err := o.run(ctx, "get", "replicas", "-o", "json")
		var list api.ReplicaList
		if err == nil {
			err = json.Unmarshal([]byte(out), &list)
		}
		if err != nil {
			return err
		}
		if len(list.Items) == 2 && list.Unknown == "" {
			leads, waits := list.Items[0], list.Items[1]
			if strings.HasPrefix(leads.Instance, leader+"-") && leads.Leads && leads.Lease == r.set && leads.Ready && leads.Since != nil &&
				waits.Instance == other && !waits.Leads && waits.Ready && waits.Since != nil {
				return nil
			}
		}
		return fmt.Errorf("it lists %s", out)
	})
	// A Service leads to any pod.
	leader, _ := r.leader()
	out, err := o.run(r.t.Context(), "doctor", "--diagnostics", fmt.Sprintf("https://%s-headless.%s.svc:5680", r.set, r.namespace))
	if err != nil || !strings.Contains(out, "https://"+leader+".") || !strings.Contains(out, "replicas") || strings.Contains(out, "403") {
		r.t.Errorf("by the headless Service: %v\n%s", err, out)
	}
}
