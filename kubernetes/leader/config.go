package leader

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
	"github.com/causeway-mesh/causeway/panics"
	"github.com/causeway-mesh/causeway/server"
)

// Config configures Lead. All fields are required, unless they say otherwise.
type Config struct {
	// Kubeconfig is as in kubernetes.Settings.
	Kubeconfig string
	// Agent names the server to the API server.
	Agent string
	// Namespace is that of the Lease, the Secrets and the pods. Lease is the name of the Lease, and the prefix of the
	// Secrets' names.
	Namespace, Lease string
	// Pod is the name of this replica's pod, the host name when empty. It ends with the replica's number.
	Pod string
	// DataDir is filled when this replica takes the lead. StoreFile is the path of the store's file in it.
	DataDir, StoreFile string
	// Box seals what is stored. All replicas have the same key.
	Box server.Sealer
	// DiagnosticsAddress is where this replica reports its state while it waits.
	DiagnosticsAddress string
	// Panics may be nil.
	Panics *panics.Guard
	// Now is the wall clock, for timestamps only.
	Now func() time.Time
	Log *slog.Logger

	// times are those of the Lease, usual when zero.
	times times
}

var podName = regexp.MustCompile(`^(.+)-([0-9]+)$`)

// fill completes the configuration.
func (c *Config) fill() error {
	if c.Pod == "" {
		name, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("--kubernetes-pod: %w", err)
		}
		c.Pod = name
	}
	if !podName.MatchString(c.Pod) {
		return fmt.Errorf("--kubernetes-pod %q: want the name of a pod of a StatefulSet, which ends with a number", c.Pod)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.times == (times{}) {
		c.times = usual()
	}
	return nil
}

// first reports whether this replica begins where nothing is stored.
func (c *Config) first() bool { return podName.FindStringSubmatch(c.Pod)[2] == "0" }

// isReplica reports whether a pod belongs to the same StatefulSet.
func (c *Config) isReplica(pod string) bool {
	own, other := podName.FindStringSubmatch(c.Pod), podName.FindStringSubmatch(pod)
	return other != nil && other[1] == own[1]
}

// Check returns an error for settings of a server that cannot have replicas.
func Check(lease, keyFile, passphrase string, shared bool) error {
	switch {
	case lease == "":
		return nil
	case shared:
		return errors.New("--kubernetes-lease: want --store bolt: replicas that share etcd need no Lease")
	case keyFile == "" && passphrase == "":
		return errors.New("--kubernetes-lease: needs --secrets-key-file, or a passphrase: what the replicas share is sealed, and a key in the folder of one is not with the others")
	case strings.ToLower(lease) != lease:
		return fmt.Errorf("--kubernetes-lease %q: want the name of an object, in lower case", lease)
	}
	return nil
}

var (
	leases = apiserver.Kind{Group: "coordination.k8s.io", Version: "v1", Plural: "leases", Name: "Lease", Namespaced: true}
	secret = apiserver.Kind{Version: "v1", Plural: "secrets", Name: "Secret", Namespaced: true}
	pods   = apiserver.Kind{Version: "v1", Plural: "pods", Name: "Pod", Namespaced: true}
)
