package deploy

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// stateful is the part of a StatefulSet that a kubelet reads to run a pod.
type stateful struct {
	Kind     string
	Metadata struct{ Name, Namespace string }
	Spec     struct {
		Template struct {
			Spec struct {
				SecurityContext struct {
					RunAsUser  int `yaml:"runAsUser"`
					RunAsGroup int `yaml:"runAsGroup"`
					FSGroup    int `yaml:"fsGroup"`
				} `yaml:"securityContext"`
				Containers []struct {
					Image string
					Args  []string
					Env   []struct{ Name, Value string }
					Ports []struct {
						Name          string
						ContainerPort int `yaml:"containerPort"`
					}
					ReadinessProbe struct {
						HTTPGet struct{ Path, Port, Scheme string } `yaml:"httpGet"`
					} `yaml:"readinessProbe"`
					VolumeMounts []struct {
						Name      string
						MountPath string `yaml:"mountPath"`
					} `yaml:"volumeMounts"`
				}
				Volumes []struct {
					Name   string
					Secret struct {
						SecretName  string `yaml:"secretName"`
						DefaultMode int    `yaml:"defaultMode"`
						Optional    bool
					}
				}
			}
		}
	}
}

// rendered finds the StatefulSet in the output of a chart.
func rendered(t *testing.T, manifests string) *stateful {
	t.Helper()
	decoder := yaml.NewDecoder(strings.NewReader(manifests))
	for {
		s := &stateful{}
		if err := decoder.Decode(s); err != nil {
			t.Fatalf("no StatefulSet: %v\n%s", err, manifests)
		}
		if s.Kind == "StatefulSet" {
			return s
		}
	}
}

// kube emulates a cluster, as far as the page needs it: namespaces, Secrets, and one pod of each StatefulSet.
type kube struct {
	t          *testing.T
	namespaces map[string]bool
	secrets    map[string]map[string]string // by namespace/name
	pods       map[string]*pod              // by namespace/name
}

// pod is a server in a root folder with the contents of its image, and with the pod's mounts.
type pod struct {
	*machine

	set   *stateful
	env   []string
	ended chan error
}

// run does what a kubelet does for the first pod of a StatefulSet: a root folder from the image, volumes by their
// rules, the container's user and variables and no others. It waits until the readiness probe passes. The ports differ,
// because the machine is shared.
func (k *kube) run(manifests string) {
	k.t.Helper()
	m := newMachine(k.t)
	s := rendered(k.t, m.ports.Replace(manifests))
	spec := &s.Spec.Template.Spec
	c := &spec.Containers[0]
	program, _, _ := strings.Cut(filepath.Base(c.Image), ":")
	p := &pod{machine: m, set: s, ended: make(chan error, 1)}
	for _, name := range []string{program, "causewayctl"} {
		m.write("usr/bin/"+name, readFile(k.t, programs(), name))
	}
	m.write("etc/hosts", "127.0.0.1 localhost global-causeway-global.causeway.svc\n") // the name of its Service
	for _, v := range c.VolumeMounts {
		k.mount(p, v.Name, v.MountPath)
	}
	p.env = []string{"PATH=/usr/bin", "CAUSEWAY_DATA_DIR=/var/lib/causeway"} // of the image
	for _, e := range c.Env {
		p.env = append(p.env, e.Name+"="+e.Value)
	}
	k.pods[s.Metadata.Namespace+"/"+s.Metadata.Name+"-0"] = p
	cmd := p.command(context.WithoutCancel(k.t.Context()), append([]string{"/usr/bin/" + program}, c.Args...))
	log, err := os.Create(filepath.Join(k.t.TempDir(), "log"))
	must(k.t, err)
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	must(k.t, cmd.Start())
	go func() { p.ended <- cmd.Wait() }()
	k.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		end := <-p.ended
		if said, err := os.ReadFile(log.Name()); k.t.Failed() {
			k.t.Logf("the log of %s, which ended by %v (%v):\n%s", s.Metadata.Name, end, err, said)
		}
	})
	must(k.t, cluster.Until(k.t.Context(), patience, s.Metadata.Name+" to be ready", p.ready))
}

// command returns a command in the pod, as its user.
func (p *pod) command(ctx context.Context, args []string) *exec.Cmd {
	security := &p.set.Spec.Template.Spec.SecurityContext
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = "/", p.env, inside(p.root, security.RunAsUser, security.RunAsGroup)
	return cmd
}

// mount creates a volume: for a Secret, its keys as files that fsGroup can read; otherwise an empty folder that fsGroup
// can write to.
func (k *kube) mount(p *pod, volume, path string) {
	k.t.Helper()
	p.folder(path)
	group := p.set.Spec.Template.Spec.SecurityContext.FSGroup
	for _, v := range p.set.Spec.Template.Spec.Volumes {
		if v.Name != volume || v.Secret.SecretName == "" {
			continue
		}
		keys, there := k.secrets[p.set.Metadata.Namespace+"/"+v.Secret.SecretName]
		if !there && !v.Secret.Optional {
			k.t.Fatalf("there is no Secret %s", v.Secret.SecretName)
		}
		for key, content := range keys {
			p.write(path+"/"+key, content)
			p.give(path+"/"+key, 0, group, os.FileMode(v.Secret.DefaultMode))
		}
		return
	}
	p.give(path, 0, group, 0o775|os.ModeSetgid)
}

// ready sends the request of the readiness probe.
func (p *pod) ready(ctx context.Context) error {
	c := &p.set.Spec.Template.Spec.Containers[0]
	probe, port := c.ReadinessProbe.HTTPGet, 0
	for _, named := range c.Ports {
		if named.Name == probe.Port {
			port = named.ContainerPort
		}
	}
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // as a kubelet asks
	}}
	url := fmt.Sprintf("%s://127.0.0.1:%d%s", strings.ToLower(probe.Scheme), port, probe.Path)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		said, err := io.ReadAll(resp.Body)
		return fmt.Errorf("%s: %s: %s (%w)", url, resp.Status, said, err)
	}
	return nil
}
