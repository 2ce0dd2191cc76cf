package injection

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/causeway-mesh/causeway/capture"
)

// The annotations of a pod that have an effect. Source: Kuma.
const (
	annotationInjected         = "kuma.io/sidecar-injected"
	annotationEnv              = "kuma.io/sidecar-env-vars"
	annotationConcurrency      = "kuma.io/sidecar-proxy-concurrency"
	annotationDrainTime        = "kuma.io/sidecar-drain-time"
	annotationLogLevel         = "kuma.io/envoy-log-level"
	annotationProbePort        = "kuma.io/application-probe-proxy-port"
	annotationNotInboundPorts  = "traffic.kuma.io/exclude-inbound-ports"
	annotationNotOutboundPorts = "traffic.kuma.io/exclude-outbound-ports"
	annotationNotInboundIPs    = "traffic.kuma.io/exclude-inbound-ips"
	annotationNotOutboundIPs   = "traffic.kuma.io/exclude-outbound-ips"
)

// labelMesh names the mesh of a pod, on it or on its namespace.
const labelMesh = "kuma.io/mesh"

// withoutEffect are annotations of Kuma for features that our proxy lacks.
var withoutEffect = []string{
	"kuma.io/container-patches", "kuma.io/gateway", "kuma.io/virtual-probes", "kuma.io/virtual-probes-port",
	"kuma.io/direct-access-services", "kuma.io/reachable-backends",
	"kuma.io/service-account-token-volume", "kuma.io/envoy-component-log-level", "kuma.io/sidecar-uid",
	"kuma.io/envoy-admin-port", "traffic.kuma.io/exclude-outbound-ports-for-uids",
	"traffic.kuma.io/transparent-proxy-config", "traffic.kuma.io/transparent-proxy-configmap-name",
}

// options are a pod's settings for its proxy.
type options struct {
	mesh        string
	env         []envVar
	concurrency string
	drain       time.Duration
	logLevel    string
	// probePort is where the proxy answers the kubelet; zero leaves probes and hooks unchanged.
	probePort                     uint32
	notInPorts, notOutPorts       []string
	notInAddresses, notOutAddress []string
}

const (
	defaultDrain = 30 * time.Second
	maxDrain     = time.Hour
	// maxList limits lists of ports, of addresses and of variables.
	maxList = 60
	// maxConcurrency limits the threads of a proxy.
	maxConcurrency = 128
)

var (
	envName   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	logLevels = []string{"trace", "debug", "info", "warning", "warn", "error", "critical", "off"}
)

// options reads labels and annotations. Errors name the invalid one.
func (p *pod) options(ns Namespace, out *Result) (*options, error) {
	o := &options{mesh: "default", drain: defaultDrain, logLevel: "warning", probePort: defaultProbePort}
	for _, labels := range []map[string]string{ns.Labels, p.Metadata.Labels} {
		if mesh := labels[labelMesh]; mesh != "" {
			o.mesh = mesh
		}
	}
	for _, read := range []struct {
		annotation string
		into       func(string) error
	}{
		{annotationEnv, o.readEnv},
		{annotationConcurrency, func(text string) error {
			n, err := strconv.ParseUint(text, 10, 16)
			if o.concurrency = text; err != nil || n > maxConcurrency {
				return fmt.Errorf("want a number from 0 (all CPUs) to %d", maxConcurrency)
			}
			return nil
		}},
		{annotationDrainTime, func(text string) (err error) {
			if o.drain, err = time.ParseDuration(text); err != nil || o.drain < time.Second || o.drain > maxDrain ||
				o.drain%time.Second != 0 {
				return fmt.Errorf("want whole seconds up to %s, such as 30s", maxDrain)
			}
			return nil
		}},
		{annotationLogLevel, func(text string) error {
			if o.logLevel = text; !slices.Contains(logLevels, text) {
				return fmt.Errorf("want one of %s", strings.Join(logLevels, ", "))
			}
			return nil
		}},
		{annotationProbePort, func(text string) error {
			n, err := strconv.ParseUint(text, 10, 16)
			if o.probePort = 0; err != nil || o.owns(uint32(n)) != "" {
				return errors.New("want a port that neither the proxy nor the application uses, or 0, which leaves probes unchanged")
			}
			o.probePort = uint32(n)
			return nil
		}},
		{annotationNotInboundPorts, list(&o.notInPorts, isPort, aPort)},
		{annotationNotOutboundPorts, list(&o.notOutPorts, isPort, aPort)},
		{annotationNotInboundIPs, list(&o.notInAddresses, isAddress, anAddress)},
		{annotationNotOutboundIPs, list(&o.notOutAddress, isAddress, anAddress)},
	} {
		if text, ok := p.Metadata.Annotations[read.annotation]; ok {
			if err := read.into(text); err != nil {
				return nil, fmt.Errorf("annotation %s is %.64q: %w", read.annotation, text, err)
			}
		}
	}
	for _, name := range withoutEffect {
		if _, ok := p.Metadata.Annotations[name]; ok {
			out.warnf("annotation %s has no effect on this proxy", name)
		}
	}
	return o, nil
}

// readEnv reads variables: A=1;B=2.
func (o *options) readEnv(text string) error {
	for _, pair := range strings.Split(text, ";") {
		if pair == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		if !ok || !envName.MatchString(name) || len(o.env) == maxList {
			return fmt.Errorf("want at most %d variables, such as A=1;B=2", maxList)
		}
		if strings.HasPrefix(name, reserved) {
			return fmt.Errorf("variables whose names begin with %s are the proxy's own: choose another name than %.64q", reserved, name)
		}
		o.env = append(o.env, envVar{Name: name, Value: value})
	}
	return nil
}

// The kinds of items in lists.
const (
	aPort     = "a port or a range of ports, such as 8080 or 9000-9010"
	anAddress = "an IP address or a range of them, such as 10.0.0.0/8 or fd00::/8"
)

func list(into *[]string, valid func(string) bool, want string) func(string) error {
	return func(text string) error {
		for _, one := range strings.Split(text, ",") {
			switch one = strings.TrimSpace(one); {
			case one == "":
			case !valid(one):
				return fmt.Errorf("%.64q: want %s", one, want)
			case len(*into) == maxList:
				return fmt.Errorf("want at most %d", maxList)
			default:
				*into = append(*into, one)
			}
		}
		return nil
	}
}

func isPort(text string) bool {
	first, last, isRange := strings.Cut(text, "-")
	if !isRange {
		last = first
	}
	a, errA := strconv.ParseUint(first, 10, 16)
	b, errB := strconv.ParseUint(last, 10, 16)
	return errA == nil && errB == nil && a > 0 && a <= b
}

func isAddress(text string) bool {
	_, err := capture.ParsePrefix(text)
	return err == nil
}
