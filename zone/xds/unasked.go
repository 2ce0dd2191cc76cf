package xds

import (
	"encoding/json"
	"errors"
	"math"
	"sync"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	prevhostsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/retry/host/previous_hosts/v3"
	prioritiesv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/retry/priority/previous_priorities/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/causeway-mesh/causeway/resources"
)

// unaskedSelections is how often a retry looks for another endpoint, unless a MeshRetry sets it.
const unaskedSelections = 5

// unasked holds the confs against dead endpoints that apply without a policy, in meshes whose initial policies were not
// created: those of Kuma, or of an earlier version.
type unasked struct {
	retry   resources.RetryConf
	breaker resources.BreakerConf
}

// theUnasked reads the confs of initial policies once.
var theUnasked = sync.OnceValues(func() (*unasked, error) {
	out := &unasked{}
	return out, errors.Join(json.Unmarshal(resources.InitialConf(resources.TypeMeshRetry), &out.retry),
		json.Unmarshal(resources.InitialConf(resources.TypeMeshCircuitBreaker), &out.breaker))
})

// unasked returns the confs that apply without a policy: nothing in a mesh with initial policies, since its users see
// and change them.
func (s *sender) unasked() *unasked {
	if s.asked {
		return &unasked{}
	}
	out, err := theUnasked()
	if err != nil {
		s.problem("policies", err.Error())
		return &unasked{}
	}
	return out
}

// notPreviousHosts excludes the endpoints that already had the request.
func (s *sender) notPreviousHosts() []*routev3.RetryPolicy_RetryHostPredicate {
	hosts := s.packed(&prevhostsv3.PreviousHostsPredicate{})
	if hosts == nil {
		return nil
	}
	return []*routev3.RetryPolicy_RetryHostPredicate{{
		Name:       "envoy.retry_host_predicates.previous_hosts",
		ConfigType: &routev3.RetryPolicy_RetryHostPredicate_TypedConfig{TypedConfig: hosts},
	}}
}

// notPreviousPriorities excludes the failed priorities, after this number of attempts; nil means 2.
func (s *sender) notPreviousPriorities(after *uint32) *routev3.RetryPolicy_RetryPriority {
	config := &prioritiesv3.PreviousPrioritiesConfig{UpdateFrequency: 2}
	if after != nil && 0 < *after {
		config.UpdateFrequency = int32(min(*after, math.MaxInt32))
	}
	priorities := s.packed(config)
	if priorities == nil {
		return nil
	}
	return &routev3.RetryPolicy_RetryPriority{
		Name:       "envoy.retry_priorities.previous_priorities",
		ConfigType: &routev3.RetryPolicy_RetryPriority_TypedConfig{TypedConfig: priorities},
	}
}

func (s *sender) packed(m message) *anypb.Any {
	out, err := pack(m)
	if err != nil {
		s.problem("retries", err.Error())
		return nil
	}
	return out
}
