package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// One request for one policy, and its answer.
type (
	asking struct {
		key  int
		kind string // put, batch, delete, read
		put  int
		// least is the revision that a read waits for, from the answer to a write of this policy. 0 if it waits for
		// none.
		least uint64
	}
	answer struct {
		// unknown reports that no answer said whether the request had an effect.
		unknown bool
		// said is created, updated, unchanged, stored (one of the three), deleted or absent; was is the value that a
		// read saw, 0 for none.
		said     string
		was      int
		revision uint64
	}
	// policyState is a policy: its value, 0 for none, and the last revision in an answer to a write of it.
	policyState struct {
		value    int
		revision uint64
	}
)

// apiRegister models what the API promises for one policy. It does not depend on stores and replicas.
func apiRegister() porcupine.Model {
	return porcupine.Model{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			byKey := map[int][]porcupine.Operation{}
			for _, o := range history {
				k := o.Input.(asking).key
				byKey[k] = append(byKey[k], o)
			}
			var out [][]porcupine.Operation
			for _, h := range byKey {
				out = append(out, h)
			}
			return out
		},
		Init: func() any { return policyState{} },
		Step: func(state, in, out any) (bool, any) { return state.(policyState).step(in.(asking), out.(answer)) },
		DescribeOperation: func(in, out any) string {
			return fmt.Sprintf("%+v -> %+v", in, out)
		},
	}
}

func (p policyState) step(in asking, out answer) (bool, policyState) {
	if in.kind == "read" {
		return out.unknown || out.was == p.value && p.revision >= in.least, p
	}
	next, changes := p, true
	var said string
	switch {
	case in.kind == "delete" && p.value == 0:
		said, changes = "absent", false
	case in.kind == "delete":
		next.value, said = 0, "deleted"
	case p.value == 0:
		next.value, said = in.put, "created"
	case p.value == in.put:
		said, changes = "unchanged", false
	default:
		next.value, said = in.put, "updated"
	}
	if out.unknown {
		return true, next
	}
	if out.said != said && (out.said != "stored" || in.kind == "delete") {
		return false, p
	}
	if said == "absent" {
		return true, next // a refusal has no revision
	}
	next.revision = out.revision
	return out.revision > p.revision || !changes && out.revision == p.revision, next
}

// apiHistory records the requests of clients of some servers, and the answers.
type apiHistory struct {
	servers []*cluster.Server
	// alone reports that there is one server, whose reads are always current. Reads of a replica never go back.
	alone bool
	begin time.Time

	mu         sync.Mutex
	operations []porcupine.Operation // guarded by mu
	floor      []int64               // by server, the earliest time at which what it showed was current; guarded by mu
	answered   map[int]uint64        // by policy, the last revision in an answer to a write; guarded by mu
	counts     map[string]int        // of the answers, by kind; guarded by mu
	doubts     map[int]int           // by policy, how many requests have an unknown outcome; guarded by mu
	age        int                   // how often the policies were replaced; guarded by mu
}

const (
	historyKeys   = 5
	historyValues = 3
	// askTimeout is how long a client waits for an answer before it counts the outcome as unknown.
	askTimeout = 4 * time.Second
	// mostDoubts is the number of unknown outcomes of a policy after which clients continue with others: on a slow
	// machine, one fault makes so many that a policy could not be judged in time.
	mostDoubts = 4
	// leastAnswers is the number of answers from which a history shows anything. A slow machine has historyPatience for
	// them.
	leastAnswers    = 200
	historyPatience = 60 * time.Second
)

func newHistory(servers ...*cluster.Server) *apiHistory {
	return &apiHistory{servers: servers, alone: len(servers) == 1, begin: time.Now(),
		floor: make([]int64, len(servers)), answered: map[int]uint64{}, counts: map[string]int{}, doubts: map[int]int{}}
}

// others makes clients continue with other policies. Each unknown outcome doubles the cost of judging a policy.
func (h *apiHistory) others() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.age++
}

// key returns one of the current policies.
func (h *apiHistory) key(random *rand.Rand) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.age*historyKeys + random.IntN(historyKeys)
}

func (h *apiHistory) now() int64 { return int64(time.Since(h.begin)) }

// client sends requests to one of the servers, one after another, until ctx ends. An idle client requests what,
// according to the server, changes nothing: such a request is answered without a write, and correctly only if the
// server's view is current.
func (h *apiHistory) client(ctx context.Context, id, server int, idle bool) {
	random := rand.New(rand.NewPCG(*crashSeed, uint64(id)))
	for ctx.Err() == nil {
		in := asking{key: h.key(random), kind: []string{"put", "batch", "delete", "read", "read"}[random.IntN(5)],
			put: 1 + random.IntN(historyValues)}
		if idle {
			in = h.nothing(id, server, in)
		}
		h.ask(id, server, in, random.IntN(2) == 0)
		select {
		case <-time.After(4 * time.Millisecond): // leaves CPU for the rest on a small machine
		case <-ctx.Done():
		}
	}
}

// nothing reads, and returns a request that changes nothing of what it read.
func (h *apiHistory) nothing(id, server int, in asking) asking {
	in.kind = "read"
	out, _ := h.ask(id, server, in, false)
	if in.kind, in.put = "batch", out.was; out.was == 0 {
		in.kind = "delete"
	}
	return in
}

// ask sends one request and records it, unless the server answers that it did nothing.
func (h *apiHistory) ask(id, server int, in asking, waits bool) (answer, bool) {
	h.mu.Lock()
	begun, floor := h.now(), h.floor[server]
	if in.kind == "read" && waits {
		in.least = h.answered[in.key]
	}
	h.mu.Unlock()
	out, happened := askOf(h.servers[server].API, in)
	h.mu.Lock()
	defer h.mu.Unlock()
	end := h.now()
	switch {
	case !happened:
		h.counts["refused"]++
		return out, false
	case out.unknown:
		h.counts["unknown"]++
		if h.doubts[in.key]++; h.doubts[in.key] >= mostDoubts && in.key/historyKeys == h.age {
			h.age++
		}
		end = int64(1 << 62) // it may take effect at any time
	default:
		h.counts[in.kind+" "+out.said]++
		h.answered[in.key] = max(h.answered[in.key], out.revision)
		if in.kind == "read" && !h.alone {
			begun = floor
		}
		h.floor[server] = max(h.floor[server], begun)
	}
	h.operations = append(h.operations, porcupine.Operation{ClientId: id, Input: in, Call: begun, Output: out,
		Return: end})
	return out, true
}

// askOf returns a server's answer. It returns false if the server did nothing, or if the request was not sent.
func askOf(api *cluster.API, in asking) (answer, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	name := fmt.Sprintf("h-%d", in.key)
	path := "/meshes/default/meshtimeouts/" + name
	var got struct {
		Revision uint64
		Results  []struct{ Result string }
		Spec     json.RawMessage
	}
	var err error
	out := answer{said: "seen"}
	switch in.kind {
	case "put":
		out.said = "stored"
		err = api.Do(ctx, http.MethodPut, path, timeoutOf(name, fmt.Sprint(in.put)), &got)
	case "batch":
		err = api.Do(ctx, http.MethodPost, "/_batch", timeoutOf(name, fmt.Sprint(in.put)), &got)
		if err == nil {
			out.said = got.Results[0].Result
		}
	case "delete":
		out.said = "deleted"
		err = api.Do(ctx, http.MethodDelete, path, nil, &got)
	case "read":
		if in.least > 0 {
			path += fmt.Sprintf("?revision=%d", in.least)
		}
		if err = api.Do(ctx, http.MethodGet, path, nil, &got); err == nil {
			_, err = fmt.Sscan(timeoutValue(cluster.Item{Spec: got.Spec}), &out.was)
		}
	}
	out.revision = got.Revision
	if err != nil {
		return unanswer(in, out, err)
	}
	return out, true
}

// unanswer reads an answer that is not a success. It trusts the statement that nothing was stored.
func unanswer(in asking, out answer, err error) (answer, bool) {
	var status *cluster.StatusError
	switch {
	case errors.As(err, &status) && status.Status == http.StatusNotFound:
		if in.kind == "delete" {
			out.said = "absent"
		}
		return out, true
	case in.kind == "read", errors.Is(err, syscall.ECONNREFUSED), status != nil &&
		strings.Contains(status.Body, "nothing was stored"):
		return out, false
	}
	return answer{unknown: true}, true
}

// enough reports whether there were faults for long enough: for d, and until the history has its least answers.
func (h *apiHistory) enough(d time.Duration) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	past := time.Since(h.begin)
	return past > d && (h.certain() >= leastAnswers || past > d+historyPatience)
}

// certain returns the number of operations whose outcome is known. The caller holds h.mu.
func (h *apiHistory) certain() int { return len(h.operations) - h.counts["unknown"] }
