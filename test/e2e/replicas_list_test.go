package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/test/cluster"
)

func (r *replicated) list(ctx context.Context, s *cluster.Server) (out api.ReplicaList, err error) {
	raw, err := r.CTL(ctx, s, nil, "get", "replicas", "-o", "json")
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	return out, err
}

// TestGetReplicas checks that each of three replicas lists all three with their properties. A killed replica
// disappears, and the next one leads. Without etcd, the replica that answers reports that.
func TestGetReplicas(t *testing.T) {
	t.Parallel()
	r := newReplicated(t, 1, 3, 5)
	r.agree(r.globals...)
	r.apply(r.globals[1], timeout("a", "10s"))
	r.everywhere(1)
	revision, err := r.global.Revision(t.Context())
	r.must(err)
	for i, g := range r.globals {
		r.eventually(g.Name()+" lists all that they have", func(ctx context.Context) error {
			list, err := r.list(ctx, g)
			if err != nil || len(list.Items) != 3 {
				return fmt.Errorf("%+v: %w", list, err)
			}
			zones := 0
			for n, one := range list.Items {
				zones += one.Zones
				if one.Instance != r.instance(r.globals[n]) || one.Asked != (n == i) || one.Leads != (n == 0) ||
					one.Revision != uint64(revision) ||
					len(one.Addresses) != 1 || one.Addresses[0] != r.globals[n].Address("kds") || one.Started.IsZero() ||
					one.Store.Kind != "etcd" || one.Store.Reachable == nil || !*one.Store.Reachable {
					return fmt.Errorf("replica %d is %+v, and the revision %v", n, one, revision)
				}
			}
			if zones != len(r.zones) {
				return fmt.Errorf("%d zones: %+v", zones, list)
			}
			return nil
		})
	}
	r.golden(r.globals[1])

	r.globals[0].Kill()
	survivors := r.globals[1:]
	r.agree(survivors...)
	for _, g := range survivors {
		r.eventually("two are left, and one leads, says "+g.Name(), func(ctx context.Context) error {
			list, err := r.list(ctx, g)
			if err != nil || len(list.Items) != 2 || !list.Items[0].Leads || list.Items[1].Leads ||
				list.Items[0].Zones+list.Items[1].Zones != len(r.zones) {
				return fmt.Errorf("%+v: %w", list, err)
			}
			return nil
		})
	}
	r.etcd.Members[0].Kill()
	r.eventually("it says that etcd is away", func(ctx context.Context) error {
		out, err := r.CTL(ctx, survivors[0], nil, "get", "replicas", "-o", "wide")
		if err == nil && (!strings.Contains(string(out), "etcd away") ||
			!strings.Contains(string(out), "etcd unknown") || !strings.Contains(string(out), "cannot write")) {
			err = errors.New(string(out))
		}
		return err
	})
}

const goldenReplicas = `INSTANCE VERSION AGE ZONES REVISION LEADS STORE ADDRESSES STARTED ASKED
REPLICA-0 dev AGE N REVISION yes etcd ADDRESS-0 TIME no
REPLICA-1 dev AGE N REVISION no etcd ADDRESS-1 TIME yes
REPLICA-2 dev AGE N REVISION no etcd ADDRESS-2 TIME no
`

// golden compares the wide table, with placeholders for what differs between runs.
func (r *replicated) golden(g *cluster.Server) {
	r.t.Helper()
	out := r.ctl(g, "get", "replicas", "-o", "wide")
	var names []string
	for i, one := range r.globals {
		names = append(names, r.instance(one), fmt.Sprint("REPLICA-", i), one.Address("kds"), fmt.Sprint("ADDRESS-", i))
	}
	out = strings.NewReplacer(names...).Replace(out)
	for _, step := range [][2]string{
		{` +`, " "}, {`(?m)^(REPLICA-\d dev) \d+[sm] \d+ \d+`, "$1 AGE N REVISION"}, {`[-0-9]+T[:0-9]+Z`, "TIME"},
		{`(?m) +$`, ""},
	} {
		out = regexp.MustCompile(step[0]).ReplaceAllString(out, step[1])
	}
	if out != goldenReplicas {
		r.t.Errorf("got\n%swant\n%s", out, goldenReplicas)
	}
}
