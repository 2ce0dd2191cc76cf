package leader

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
)

// Peer is a replica's pod.
type Peer struct {
	Pod string
	// Leads is true for the pod of this replica.
	Leads bool
	// Ready reports whether the pod is ready: one that is not takes no lead.
	Ready bool
	// Created is when the pod was created, Since when it became ready, or not ready; zero if it never was.
	Created, Since time.Time
}

// Lease returns the name of the Lease, and when the lead began.
func (t *Term) Lease() (name string, since time.Time) { return t.cfg.Lease, t.began }

// Peers returns the replicas' pods, by number, as of at most verifyEvery ago, or why they are not known.
func (t *Term) Peers() ([]Peer, error) {
	t.telling.Lock()
	defer t.telling.Unlock()
	return t.peers, t.unseen
}

// podStatus is the part of a pod that is used. Source: core/v1, PodStatus.
type podStatus struct {
	Metadata struct {
		Created time.Time `json:"creationTimestamp"`
	} `json:"metadata"`
	Status struct {
		Conditions []struct {
			Type, Status string
			Since        time.Time `json:"lastTransitionTime"`
		} `json:"conditions"`
	} `json:"status"`
}

// look lists the replicas' pods. If it fails, nothing is known of them.
func (t *Term) look(ctx context.Context) ([]*apiserver.Object, error) {
	all, _, err := t.client.ListIn(ctx, pods, t.cfg.Namespace) // a global may list no others
	if err != nil {
		t.telling.Lock()
		defer t.telling.Unlock()
		t.peers, t.unseen = nil, err
		return nil, err
	}
	var own []*apiserver.Object
	var peers []Peer
	for _, pod := range all {
		if !t.cfg.isReplica(pod.Meta.Name) {
			continue
		}
		own = append(own, pod)
		peers = append(peers, peerOf(pod, t.cfg.Pod))
	}
	slices.SortFunc(peers, func(a, b Peer) int { return cmp.Or(cmp.Compare(len(a.Pod), len(b.Pod)), cmp.Compare(a.Pod, b.Pod)) })
	t.telling.Lock()
	defer t.telling.Unlock()
	t.peers, t.unseen = peers, nil
	return own, nil
}

func peerOf(pod *apiserver.Object, leader string) Peer {
	p := Peer{Pod: pod.Meta.Name, Leads: pod.Meta.Name == leader}
	var status podStatus
	if json.Unmarshal(pod.Raw, &status) != nil {
		return p
	}
	p.Created = status.Metadata.Created
	for _, c := range status.Status.Conditions {
		if c.Type == "Ready" {
			p.Ready, p.Since = c.Status == "True", c.Since
		}
	}
	return p
}
