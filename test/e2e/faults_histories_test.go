package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/test/cluster"
)

// never is the end of an operation with an unknown outcome: it may take effect at any time.
const never = int64(1) << 62

// recorded holds requests to some servers and their answers, one history for each kind of object.
type recorded struct {
	servers []*cluster.Server
	begin   time.Time

	mu       sync.Mutex
	history  map[string][]porcupine.Operation // guarded by mu
	floor    []int64                          // as in apiHistory; guarded by mu
	issued   []heldToken                      // guarded by mu
	ids      []string                         // of keys that were listed or made; guarded by mu
	listed   []string                         // the keys of the last list; guarded by mu
	group    int                              // of policies; guarded by mu
	doubts   int                              // unknown outcomes in that group; guarded by mu
	unknowns int                              // guarded by mu
}

func newRecorded(servers ...*cluster.Server) *recorded {
	return &recorded{servers: servers, begin: time.Now(), history: map[string][]porcupine.Operation{},
		floor: make([]int64, len(servers))}
}

// request sends one request. It reports false if nothing was done and nothing was learnt.
func request(s *cluster.Server, method, path, token string, body any) (status int, said []byte, known, sent bool) {
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	status, said, err := asked(ctx, s, method, path, token, body)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), strings.Contains(string(said), "nothing was stored"):
		return 0, nil, true, false
	case err != nil || status >= 500:
		return 0, nil, false, true
	}
	return status, said, true, true
}

// record records an operation that began at the given time. A read of one of several servers shows no less than that
// server has shown before. A batch that is refused for its form shows nothing of the store.
func (r *recorded) record(history string, client, server int, begun int64, in, out any, known, read bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	end := int64(time.Since(r.begin))
	if !known {
		if read {
			return
		}
		end = never
		r.unknowns++
	}
	if read && len(r.servers) > 1 {
		begun = min(begun, r.floor[server])
	} else if b, ok := in.(batchIn); known && !(ok && b.spoilt) {
		r.floor[server] = max(r.floor[server], begun)
	}
	r.history[history] = append(r.history[history], porcupine.Operation{ClientId: client, Input: in, Call: begun,
		Output: out, Return: end})
}

func (r *recorded) now() int64 { return int64(time.Since(r.begin)) }

// others makes clients of policies continue with others: each unknown outcome doubles the cost of judging.
func (r *recorded) others() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.nextGroup()
}

// nextGroup is called with mu held.
func (r *recorded) nextGroup() {
	r.group++
	r.doubts = 0
}

// doubt makes clients of policies continue with others when too many outcomes in their group are unknown.
func (r *recorded) doubt(group int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if group != r.group {
		return
	}
	if r.doubts++; r.doubts >= mostDoubts {
		r.nextGroup()
	}
}

// suffice reports whether all histories are long enough; on a busy machine they grow slowly.
func (r *recorded) suffice() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range []string{"tokens", "keys", "batches"} {
		if len(r.history[name])-r.unknowns < leastHistory {
			return false
		}
	}
	return true
}

// batch writes or reads a group.
func (r *recorded) batch(client, server int, random *rand.Rand) {
	r.mu.Lock()
	in := batchIn{group: r.group, read: random.IntN(2) == 0, spoilt: random.IntN(8) == 0}
	r.mu.Unlock()
	out, begun, s := batchOut{}, r.now(), r.servers[server]
	if in.read {
		status, said, known, sent := request(s, http.MethodGet, "/meshes/default/meshtimeouts?size=1000", "", nil)
		if known && sent && status == http.StatusOK {
			out.values = valuesOf(said, in.group)
			r.record("batches", client, server, begun, in, out, true, true)
		}
		return
	}
	var documents []any
	for i := range in.put {
		if in.put[i] = random.IntN(3); in.put[i] > 0 {
			documents = append(documents, timeoutOf(groupName(in.group, i), fmt.Sprint(in.put[i])))
		}
	}
	if in.spoilt {
		documents = append(documents, timeoutOf("spoilt", "no number of "))
	}
	if len(documents) == 0 {
		return
	}
	status, said, known, sent := request(s, http.MethodPost, "/_batch", "", documents)
	if !sent || !known && in.spoilt { // a spoilt one never has an effect
		return
	}
	if !known {
		r.doubt(in.group)
	}
	var result api.BatchResult
	switch out.unknown = !known; {
	case status == http.StatusOK:
		if json.Unmarshal(said, &result) != nil {
			return
		}
		for i := range in.put {
			if in.put[i] > 0 {
				out.results[i] = result.Results[0].Result
				result.Results = result.Results[1:]
			}
		}
	case known:
		out.refused = true
	}
	r.record("batches", client, server, begun, in, out, known, false)
}

func groupName(group, i int) string { return fmt.Sprintf("group-%d-%d", group, i) }

func valuesOf(said []byte, group int) (out [groupSize]string) {
	var page struct{ Items []cluster.Item }
	_ = json.Unmarshal(said, &page)
	for i := range out {
		out[i] = "0"
		for _, it := range page.Items {
			if it.Name == groupName(group, i) {
				out[i] = timeoutValue(it)
			}
		}
	}
	return out
}

// key rotates, lists or retires keys of tokens.
func (r *recorded) key(client, server int, random *rand.Rand) {
	s, begun := r.servers[server], r.now()
	const path = "/_keys/token-signing/"
	r.mu.Lock()
	ids := r.listed
	in := keysIn{kind: []string{"list", "list", "rotate", "retire"}[random.IntN(4)]}
	if in.kind == "retire" && len(ids) > 0 {
		in.id = ids[random.IntN(len(ids))]
	}
	r.mu.Unlock()
	switch {
	case in.kind == "list":
		status, said, known, sent := request(s, http.MethodGet, "/_keys", "", nil)
		if known && sent && status == http.StatusOK {
			r.record("keys", client, server, begun, in, keysOut{said: r.seen(said)}, true, true)
		}
	case in.kind == "rotate":
		status, said, known, sent := request(s, http.MethodPost, path+"_rotate", "", nil)
		if !sent || known && status != http.StatusOK {
			return
		}
		var list api.SigningKeyList
		_ = json.Unmarshal(said, &list)
		r.record("keys", client, server, begun, in, keysOut{unknown: !known, said: list.New}, known, false)
		r.seen(said)
	case in.id != "":
		r.retire(client, server, begun, in)
	}
}

func (r *recorded) retire(client, server int, begun int64, in keysIn) {
	status, said, known, sent := request(r.servers[server], http.MethodPost, "/_keys/token-signing/"+in.id+"/_retire", "", nil)
	if !sent {
		return
	}
	out := keysOut{unknown: !known, said: map[int]string{200: "done", 404: "absent", 409: "signing"}[status]}
	if known && out.said == "" {
		out.said = fmt.Sprintf("%d %s", status, said)
	}
	r.record("keys", client, server, begun, in, out, known, false)
}

// seen records the ids of a list of keys, and returns them, the signing one last.
func (r *recorded) seen(said []byte) string {
	var list api.SigningKeyList
	_ = json.Unmarshal(said, &list)
	r.mu.Lock()
	defer r.mu.Unlock()
	var ids []string
	for _, k := range slices.Backward(list.Keys) {
		if k.Purpose != "token-signing" {
			continue
		}
		ids = append(ids, k.ID)
		if !slices.Contains(r.ids, k.ID) {
			r.ids = append(r.ids, k.ID)
		}
	}
	r.listed = ids
	return strings.Join(ids, " ")
}

// work runs clients of all kinds until ctx ends.
func (r *recorded) work(ctx context.Context, wait *sync.WaitGroup) {
	for i, ask := range []func(int, int, *rand.Rand){r.batch, r.batch, r.token, r.token, r.key, r.key} {
		for server := range r.servers {
			id := i*len(r.servers) + server
			wait.Go(func() {
				random := rand.New(rand.NewPCG(*crashSeed, uint64(100+id)))
				for ctx.Err() == nil {
					ask(id, server, random)
					during(ctx, 5*time.Millisecond) // leaves processor time for the servers
				}
			})
		}
	}
}
