package injection

import (
	"fmt"
	"math/big"
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
	// quantity is an amount of a resource, in parts: digits, and a suffix. Source: the API of Kubernetes, resource.Quantity.
	quantity = regexp.MustCompile(`^([0-9]{1,18}(?:\.[0-9]{1,9})?)(?:(m|[kMGTPE]|[KMGTPE]i)|([eE][+-]?[0-9]{1,2}))?$`)
	// factors are those of the suffixes of amounts.
	factors = map[string]*big.Rat{"": big.NewRat(1, 1), "m": big.NewRat(1, 1e3),
		"k": big.NewRat(1e3, 1), "M": big.NewRat(1e6, 1), "G": big.NewRat(1e9, 1), "T": big.NewRat(1e12, 1), "P": big.NewRat(1e15, 1),
		"E": big.NewRat(1e18, 1), "Ki": big.NewRat(1<<10, 1), "Mi": big.NewRat(1<<20, 1), "Gi": big.NewRat(1<<30, 1),
		"Ti": big.NewRat(1<<40, 1), "Pi": big.NewRat(1<<50, 1), "Ei": big.NewRat(1<<60, 1)}
)

// CheckResources returns an error for requests and limits that no pod could have. nil stands for those of the functions.
func CheckResources(requests, limits map[string]string) error {
	all := (&Settings{Requests: requests, Limits: limits}).resources()
	most, err := amounts(all.Limits)
	if err != nil {
		return fmt.Errorf("limits: %w", err)
	}
	asked, err := amounts(all.Requests)
	if err != nil {
		return fmt.Errorf("requests: %w", err)
	}
	for name, amount := range asked {
		if limit := most[name]; limit != nil && amount.Cmp(limit) > 0 {
			return fmt.Errorf("requests: %s is %s, above the limit, %s", name, all.Requests[name], all.Limits[name])
		}
	}
	return nil
}

// amounts reads the amounts of resources.
func amounts(of map[string]string) (map[string]*big.Rat, error) {
	out := map[string]*big.Rat{}
	for name, text := range of {
		if !slices.Contains(resourceNames, name) {
			return nil, fmt.Errorf("%.64q: want cpu, memory or ephemeral-storage", name)
		}
		if out[name] = amountOf(text); out[name] == nil {
			return nil, fmt.Errorf("%s is %.64q: want an amount such as 50m, 0.5 or 64Mi", name, text)
		}
	}
	return out, nil
}

// amountOf returns an amount of a resource; nil if it is none.
func amountOf(text string) *big.Rat {
	parts := quantity.FindStringSubmatch(text)
	if parts == nil {
		return nil
	}
	n, ok := new(big.Rat).SetString(parts[1] + parts[3])
	if !ok {
		return nil
	}
	return n.Mul(n, factors[parts[2]])
}
