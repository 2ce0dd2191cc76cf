package leader

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
)

// LabelLeader is on the pod of the leader. The Services select it: a pod that waits is ready, so that an upgrade goes
// on, and gets no connections.
const LabelLeader = "causeway.io/leader"

// show moves the label to this pod.
func (t *Term) show(ctx context.Context) error {
	if err := t.label(ctx, t.cfg.Pod, true); err != nil {
		return fmt.Errorf("label of the pod %s, by which the Services find the leader: %w", t.cfg.Pod, err)
	}
	all, err := t.look(ctx)
	if err != nil {
		return fmt.Errorf("the other replicas' pods: %w", err)
	}
	for _, pod := range all {
		if pod.Meta.Name == t.cfg.Pod || pod.Meta.Labels[LabelLeader] == "" {
			continue
		}
		if err := t.label(ctx, pod.Meta.Name, false); err != nil && !apiserver.IsNotFound(err) {
			return fmt.Errorf("label of the pod %s: %w", pod.Meta.Name, err)
		}
	}
	return nil
}

func (t *Term) label(ctx context.Context, pod string, leads bool) error {
	return label(ctx, t.client, apiserver.Name{Namespace: t.cfg.Namespace, Name: pod}, leads)
}

func label(ctx context.Context, client *apiserver.Client, pod apiserver.Name, leads bool) error {
	var value any
	if leads {
		value = "true"
	}
	document, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{LabelLeader: value}}})
	if err != nil {
		return err
	}
	_, err = client.Patch(ctx, pods, pod, "", document)
	return err
}

// hide removes the label from this pod. A failure is only reported: the next leader does it too.
func (w *waiting) hide(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, w.cfg.times.safe)
	defer cancel()
	err := label(ctx, w.client, apiserver.Name{Namespace: w.cfg.Namespace, Name: w.cfg.Pod}, false)
	if err != nil && ctx.Err() == nil {
		w.cfg.Log.Warn("this pod's label of the leader is not removed yet", "error", err)
	}
}
