package portforward

import (
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// Error is a failure of kubectl port-forward.
type Error struct {
	// What is what happened, in kubectl's words where it has some. Advice is what to do next.
	What, Advice string
	// Established is true if the connection existed, and then failed.
	Established bool
}

func (e *Error) Error() string { return e.What }

var (
	// logged is the form of kubectl's log: E1127 08:00:00.000000   12 portforward.go:424] "Unhandled Error" err="...".
	logged      = regexp.MustCompile(`^[EWIF]\d{4} [\d:.]+ +\d+ [\w.-]+:\d+\] `)
	loggedError = regexp.MustCompile(` err=("(?:[^"\\]|\\.)*")`)
)

// words returns a line of kubectl as it means it, and whether it is a line of its log, or the continuation of one.
func words(line string) (text string, ofLog bool) {
	prefix := logged.FindString(line)
	if prefix == "" {
		ofLog = strings.HasPrefix(line, "\t") || strings.TrimSpace(line) == ">"
		return strings.TrimSpace(strings.TrimPrefix(line, "error: ")), ofLog
	}
	line = line[len(prefix):]
	if found := loggedError.FindStringSubmatch(line); found != nil {
		if text, err := strconv.Unquote(found[1]); err == nil {
			return text, true
		}
	}
	return line, true
}

const unreachable = "is the API server reachable? kubectl --context %[3]s cluster-info"

// reasons are parts of what kubectl says, and what to do about them; the first that fits counts.
var reasons = []struct{ says, advice string }{
	{"port-forward does not listen", "kubectl ended meanwhile: repeat the command"},
	{"does not exist", "kubectl config get-contexts lists the contexts of your kubeconfig; --kubeconfig names another file"},
	{"no such file or directory", "give the kubeconfig file by --kubeconfig, or in KUBECONFIG"},
	{"error loading config file", "mend the kubeconfig file, or name another one by --kubeconfig"},
	{"pods/portforward", "the cluster's roles decide who may: you need get services, list pods and create pods/portforward in namespace %[1]s"},
	{"is forbidden", "the cluster's roles decide who may: you need get services, list pods and create pods/portforward in namespace %[1]s"},
	{"Unauthorized", "sign in to the cluster, as for kubectl: kubectl --context %[3]s auth whoami"},
	{"executable", "the kubeconfig's user needs that program to sign in: kubectl --context %[3]s auth whoami"},
	{"connect to the server", unreachable},
	{"connection to the server", unreachable},
	{"services \"", "kubectl --context %[3]s get services -A -l causeway/service=api lists the Services of Causeway servers"},
	{"namespaces \"", "kubectl --context %[3]s get services -A -l causeway/service=api lists the Services of Causeway servers"},
	{"pods \"", "kubectl --context %[3]s -n %[1]s get pods lists the pods"},
	{"not running", "wait until the pod runs: kubectl --context %[3]s -n %[1]s describe pods"},
	{"timed out waiting for the condition", "no pod of the %[2]s runs: kubectl --context %[3]s -n %[1]s get pods"},
	{"no pods", "no pod of the %[2]s runs: kubectl --context %[3]s -n %[1]s get pods"},
	{"does not have a service port", "the HTTP API of a chart's server has port 5681: kubectl --context %[3]s -n %[1]s get %[2]s"},
	{"connection refused", "the server in the pod does not listen: kubectl --context %[3]s -n %[1]s get pods -L causeway.io/leader shows whether it is ready and, of several replicas, which one leads and serves"},
	{"lost connection", "the pod has ended or its node is away: kubectl --context %[3]s -n %[1]s get pods; then repeat the command"},
}

// problem returns what kubectl said as an error; what is used if it said nothing.
func (k *kubectl) problem(what string) error {
	k.mu.Lock()
	said, cause, established := k.said, k.cause, k.local != ""
	if established || said == "" { // its log knows more
		said = strings.Join(k.lines, "; ")
	}
	k.mu.Unlock()
	object := strings.Replace(k.to.object, "/", " ", 1)
	e := &Error{Established: established}
	switch {
	case errors.Is(cause, exec.ErrNotFound):
		e.What, e.Advice = "kubectl not found in PATH", "install kubectl, which connects to clusters, or reach the server by an address of its own"
		return e
	case cause != nil:
		e.What = cause.Error()
	case said != "" && what != "":
		e.What = what + ": " + said
	case said != "":
		e.What = said
	case what != "":
		e.What = what
	default:
		e.What = "kubectl port-forward ended"
	}
	for _, reason := range reasons {
		if strings.Contains(e.What, reason.says) {
			e.Advice = fmt.Sprintf(reason.advice+"%.0[1]s%.0[2]s%.0[3]s", k.to.namespace, object, k.config.Context)
			break
		}
	}
	e.What = fmt.Sprintf("%s in namespace %s by the Kubernetes context %s: %s", object, k.to.namespace, k.config.Context, e.What)
	if e.Advice == "" {
		e.Advice = fmt.Sprintf("does kubectl reach it? kubectl --context %s -n %s get pods", k.config.Context, k.to.namespace)
	}
	return e
}
