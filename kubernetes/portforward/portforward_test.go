package portforward

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestTargets(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"global-api.causeway.svc:5681":                "causeway service/global-api 5681",
		"global-api.causeway.svc.cluster.local:5681":  "causeway service/global-api 5681",
		"global-api.causeway.svc.:5681":               "causeway service/global-api 5681",
		"svc.svc.svc:1":                               "svc service/svc 1",
		"zone-0.zone-headless.causeway.svc:5680":      "causeway pod/zone-0 5680",
		"zone-0.zone-headless.causeway.svc.local:443": "causeway pod/zone-0 443",
		"global.example:5681":                         "", "127.0.0.1:5681": "", "svc:1": "", "a.b.svc": "", "-a.b.svc:1": "", "a.--kubeconfig=x.svc:1": "", "A.b.svc:1": "",
		"a/b.c.svc:1": "",
	} {
		got, err := targetOf(address)
		if text := strings.TrimSpace(got.namespace + " " + got.object + " " + got.port); text != want || (err == nil) != (want != "") {
			t.Errorf("%s is %q, %v, want %q", address, text, err, want)
		}
	}
}

func TestWordsOfALog(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		`error: context "x" does not exist`: `context "x" does not exist`,
		`E1127 08:00:00.123456   12 portforward.go:424] "Unhandled Error" err="an error occurred: \"x\" refused" logger="UnhandledError"`: `an error occurred: "x" refused`,
		`E1127 08:00:00.123456   12 memcache.go:265] couldn't get the list`:                                                               `couldn't get the list`,
		`something else`: `something else`,
	} {
		if got, _ := words(line); got != want {
			t.Errorf("%s means %q, want %q", line, got, want)
		}
	}
}

// TestAdvice gives what kubectl prints of its failures, and checks what is shown of it, and the advice.
func TestAdvice(t *testing.T) {
	const prefix = "E1127 08:00:00.123456   12 memcache.go:265] "
	for said, want := range map[string]struct {
		what, advice string
		forwards     bool
	}{
		`error: context "prod" does not exist`:         {what: `context "prod" does not exist`, advice: "kubectl config get-contexts lists"},
		`error: stat /none: no such file or directory`: {what: "stat /none", advice: "give the kubeconfig file by --kubeconfig"},
		prefix + `"Unhandled Error" err="couldn't get current server API group list: dial tcp 127.0.0.1:1: connect: connection refused"` + "\n" +
			"The connection to the server 127.0.0.1:1 was refused - did you specify the right host or port?": {
			what: "The connection to the server 127.0.0.1:1 was refused", advice: "is the API server reachable? kubectl --context prod cluster-info"},
		prefix + "\"Unhandled Error\" err=<\n\tcouldn't get it: executable aws not found\n\t\n >\nUnable to connect to the server: getting credentials: exec: executable aws not found\n\nIt looks like": {
			what: "Unable to connect to the server: getting credentials", advice: "needs that program to sign in"},
		`Error from server (Forbidden): pods "x-0" is forbidden: User "bob" cannot create resource "pods/portforward" in API group "" in the namespace "causeway"`: {
			what: `User "bob" cannot create`, advice: "you need get services, list pods and create pods/portforward in namespace causeway"},
		`Error from server (NotFound): services "api" not found`:                           {what: `services "api" not found`, advice: "get services -A -l causeway/service=api"},
		"error: unable to forward port because pod is not running. Current status=Pending": {what: "Pending", advice: "-n causeway describe pods"},
		"error: timed out waiting for the condition":                                       {what: "timed out", advice: "no pod of the service api runs"},
		"error: Service api does not have a service port 5681":                             {what: "5681", advice: "-n causeway get service api"},
		prefix + `"Unhandled Error" err="an error occurred forwarding 1 -> 5681: dial tcp4 127.0.0.1:5681: connect: connection refused"` + "\nerror: lost connection to pod": {
			what: "forwarding 1 -> 5681", advice: "the server in the pod does not listen", forwards: true},
		"error: lost connection to pod": {what: "lost connection to pod", advice: "then repeat the command", forwards: true},
		"error: something new":          {what: "something new", advice: "does kubectl reach it? kubectl --context prod -n causeway get pods"},
	} {
		k := &kubectl{config: &Config{Context: "prod"}, to: target{"causeway", "service/api", "5681"}, forwards: make(chan struct{}), spoke: make(chan struct{})}
		if want.forwards {
			k.hear("Forwarding from 127.0.0.1:41341 -> 5681")
		}
		for line := range strings.SplitSeq(said, "\n") {
			k.note(line)
		}
		got := (*Error)(nil)
		if !errors.As(k.problem(""), &got) || !strings.Contains(got.What, want.what) || !strings.Contains(got.Advice, want.advice) || got.Established != want.forwards ||
			!strings.HasPrefix(got.What, "service api in namespace causeway by the Kubernetes context prod: ") || strings.Contains(got.What, "looks like") ||
			strings.Contains(got.Advice, "%") {
			t.Errorf("%s:\n%+v", said, got)
		}
	}
}

// TestPrograms runs programs in the place of kubectl that do what it does only in a bad moment.
func TestPrograms(t *testing.T) {
	t.Setenv("CAUSEWAY_TOKEN", "a secret")
	for script, want := range map[string]string{
		"echo 'error: lost connection to pod' >&2; exit 1": "lost connection to pod",
		"exit 3": "kubectl port-forward ended",
		"echo has ${CAUSEWAY_TOKEN:-no token} >&2; exit 1": "has no token",
		"exec sleep 60": "does not forward in time",
		"echo sign in at https://x >&2; exec sleep 60":                            "does not forward in time: sign in at https://x",
		"echo Forwarding from 127.0.0.1:1 -\\> 5681; exec sleep 60":               "kubectl port-forward does not listen",
		"head -c 100000 /dev/zero | tr '\\0' x >&2; echo >&2; echo z >&2; exit 1": "xxxxx",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "kubectl"), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil { //nolint:gosec // it is run
			t.Fatal(err)
		}
		t.Setenv("PATH", dir+":/usr/bin:/bin")
		var notices strings.Builder
		f := New(Config{Context: "prod", Patience: 3 * time.Second, Notices: &notices})
		_, err := f.DialContext(t.Context(), "tcp", "api.causeway.svc:5681")
		f.Close()
		said := (*Error)(nil)
		if !errors.As(err, &said) || !strings.Contains(said.What, want) || said.Advice == "" || len(said.What) > 2*maxLine {
			t.Errorf("%s: %.2000v", script, err)
		}
		if asks := strings.Contains(script, "sign in"); strings.Contains(notices.String(), "sign in at https://x") != asks {
			t.Errorf("%s: shown is %q", script, notices.String())
		}
	}
	t.Setenv("PATH", t.TempDir())
	f := New(Config{Context: "prod", Patience: time.Second})
	defer f.Close()
	if _, err := f.DialContext(t.Context(), "tcp", "api.causeway.svc:5681"); err == nil || !strings.Contains(err.Error(), "kubectl not found in PATH") {
		t.Errorf("without kubectl: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.DialContext(ctx, "tcp", "nowhere:1"); err == nil {
		t.Error("a name that is not one of a cluster")
	}
}
