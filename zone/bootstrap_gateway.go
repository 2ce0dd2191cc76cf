package zone

import (
	"time"

	overloadv3 "github.com/envoyproxy/go-control-plane/envoy/config/overload/v3"
	heapv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/resource_monitors/fixed_heap/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
)

// The shares of the heap limit at which a gateway's proxy releases memory, and at which it refuses requests.
const (
	shrinkAt = 0.92
	refuseAt = 0.95
)

const (
	heapMonitor = "envoy.resource_monitors.fixed_heap"
	refreshHeap = 250 * time.Millisecond
)

// limitHeap makes a proxy refuse requests before it runs out of memory: its clients are outside the mesh and may be
// hostile.
func limitHeap(m *overloadv3.OverloadManager, most int64) error {
	config, err := anypb.New(&heapv3.FixedHeapConfig{MaxHeapSizeBytes: uint64(most)})
	if err != nil {
		return err
	}
	m.RefreshInterval = durationpb.New(refreshHeap)
	m.ResourceMonitors = append(m.ResourceMonitors, &overloadv3.ResourceMonitor{Name: heapMonitor,
		ConfigType: &overloadv3.ResourceMonitor_TypedConfig{TypedConfig: config}})
	for _, action := range []struct {
		name string
		at   float64
	}{{"envoy.overload_actions.shrink_heap", shrinkAt}, {"envoy.overload_actions.stop_accepting_requests", refuseAt}} {
		m.Actions = append(m.Actions, &overloadv3.OverloadAction{Name: action.name,
			Triggers: []*overloadv3.Trigger{{Name: heapMonitor, TriggerOneof: &overloadv3.Trigger_Threshold{
				Threshold: &overloadv3.ThresholdTrigger{Value: action.at}}}}})
	}
	return nil
}
