package matching

import (
	"sync"

	"github.com/causeway-mesh/causeway/resources"
)

// LastRead keeps the policy that was read last, so that all that follow a change of it, or judge it, read it once. It is
// safe for concurrent use. A nil LastRead keeps nothing.
type LastRead struct {
	mu     sync.Mutex
	policy *Policy // guarded by mu
}

// Policy is NewPolicy, unless the same resource was read last.
func (l *LastRead) Policy(r *resources.Resource, systemNamespace string) *Policy {
	if l == nil {
		return NewPolicy(r, systemNamespace)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.policy == nil || l.policy.Resource != r || l.policy.systemNamespace != systemNamespace {
		l.policy = NewPolicy(r, systemNamespace)
	}
	return l.policy
}
