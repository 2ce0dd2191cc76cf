package injection

import (
	"fmt"
	"regexp"
	"slices"
)

// Requests returns what a proxy requests of its node, where the operator says nothing else.
func Requests() map[string]string { return map[string]string{"cpu": "50m", "memory": "64Mi"} }

// Limits returns what a proxy may use at most, where the operator says nothing else.
func Limits() map[string]string { return map[string]string{"memory": "512Mi"} }

// resources returns those of the proxy.
func (s *Settings) resources() resources {
	out := resources{Requests: s.Requests, Limits: s.Limits}
	if out.Requests == nil {
		out.Requests = Requests()
	}
	if out.Limits == nil {
		out.Limits = Limits()
	}
	return out
}

var (
	// resourceNames are the resources that a proxy may have.
	resourceNames = []string{"cpu", "memory", "ephemeral-storage"}
	// quantity is an amount of a resource. Source: the API of Kubernetes, resource.Quantity.
	quantity = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?(m|[kMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+)?$`)
)

// CheckResources returns an error for requests or limits that no pod could have.
func CheckResources(of map[string]string) error {
	for name, amount := range of {
		switch {
		case !slices.Contains(resourceNames, name):
			return fmt.Errorf("%.64q: want cpu, memory or ephemeral-storage", name)
		case !quantity.MatchString(amount):
			return fmt.Errorf("%s is %.64q: want an amount such as 50m, 0.5 or 64Mi", name, amount)
		}
	}
	return nil
}
