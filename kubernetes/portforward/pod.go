package portforward

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// labelLeader is leader.LabelLeader.
const labelLeader = "causeway.io/leader"

// Pod returns the name, in the cluster's DNS, of the pod that a Service leads to: POD.SERVICE.NAMESPACE.svc, where SERVICE
// is the headless one of the pod's StatefulSet. Of several pods it prefers the one that leads, as only that one serves.
// address is HOST:PORT as for DialContext; the name of a pod is returned as it is. Errors are *Error, or of ctx.
func (f *Forwarder) Pod(ctx context.Context, address string) (string, error) {
	to, err := targetOf(address)
	if err != nil {
		return "", err
	}
	name, ofService := strings.CutPrefix(to.object, "service/")
	if !ofService {
		host, _, _ := strings.Cut(address, ":")
		return host, nil
	}
	ctx, cancel := context.WithTimeout(ctx, f.config.Patience)
	defer cancel()
	var service struct {
		Spec struct {
			Selector map[string]string `json:"selector"`
		} `json:"spec"`
	}
	if err := f.get(ctx, to, &service, "service", name); err != nil {
		return "", err
	}
	var selector []string
	for key, value := range service.Spec.Selector {
		selector = append(selector, key+"="+value)
	}
	if len(selector) == 0 {
		return "", f.failed(to, "it selects no pods")
	}
	var pods struct {
		Items []pod `json:"items"`
	}
	if err := f.get(ctx, to, &pods, "pods", "--selector="+strings.Join(selector, ","), "--field-selector=status.phase=Running"); err != nil {
		return "", err
	}
	found := -1
	for i := range pods.Items {
		if p := &pods.Items[i]; p.Spec.Subdomain != "" && (found < 0 || p.Metadata.Labels[labelLeader] != "") {
			found = i
		}
	}
	if found < 0 {
		return "", f.failed(to, "no pods of a StatefulSet run")
	}
	p := &pods.Items[found]
	return p.Metadata.Name + "." + p.Spec.Subdomain + "." + to.namespace + ".svc", nil
}

// pod is the part of a pod that is used. Source: core/v1, Pod.
type pod struct {
	Metadata struct {
		Name   string            `json:"name"`
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
	Spec struct {
		Subdomain string `json:"subdomain"`
	} `json:"spec"`
}

// get reads objects by kubectl.
func (f *Forwarder) get(ctx context.Context, to target, into any, what ...string) error {
	args := append([]string{"get", "--context=" + f.config.Context, "--namespace=" + to.namespace, "--output=json"}, what...)
	if f.config.Kubeconfig != "" {
		args = append(args, "--kubeconfig="+f.config.Kubeconfig)
	}
	cmd := exec.CommandContext(ctx, program, args...) //nolint:gosec // as start does
	cmd.SysProcAttr, cmd.Env = attributes(), withoutOurs(cmd.Environ())
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, into)
	}
	exit := (*exec.ExitError)(nil)
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case errors.As(err, &exit):
		return f.failed(to, string(exit.Stderr))
	case errors.Is(err, exec.ErrNotFound):
		return (&kubectl{config: &f.config, to: to, cause: err}).problem("")
	case err != nil:
		return f.failed(to, fmt.Sprintf("kubectl get %s: %v", what[0], err))
	}
	return nil
}

// failed returns what kubectl said as an error.
func (f *Forwarder) failed(to target, said string) error {
	k := &kubectl{config: &f.config, to: to, forwards: make(chan struct{}), spoke: make(chan struct{})}
	for line := range strings.SplitSeq(said, "\n") {
		k.note(line)
	}
	return k.problem("")
}
