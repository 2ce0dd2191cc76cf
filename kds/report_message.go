package kds

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/causeway-mesh/causeway/kds/kdspb"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/messages"
	"github.com/causeway-mesh/causeway/resources"
)

// reportMessage returns the message of a report: in fields, or as JSON for a global of the previous version.
func reportMessage(r *tracker.Report, inFields bool) (*kdspb.ReportRequest, error) {
	if !inFields {
		raw, err := json.Marshal(r)
		return &kdspb.ReportRequest{Json: raw}, err
	}
	m := &kdspb.ReportRequest{
		Applied: make(map[string]uint64, len(r.Applied)), Own: r.Own, More: uint32(r.More), Streams: r.Streams,
		Behind: make([]*kdspb.ProxyBehind, len(r.Behind)),
	}
	for t, revision := range r.Applied {
		m.Applied[string(t)] = revision
	}
	for i := range r.Behind {
		p := &r.Behind[i]
		m.Behind[i] = &kdspb.ProxyBehind{Mesh: p.Mesh, Namespace: p.Namespace, Name: p.Name, Reason: text(p.Reason)}
	}
	if len(r.Held) > 0 {
		m.Held = make(map[string]uint32, len(r.Held))
	}
	for t, n := range r.Held {
		m.Held[string(t)] = uint32(n)
	}
	if s := r.NewStore; s != nil {
		m.NewStore = &kdspb.NewStore{Known: text(s.Known), Announced: text(s.Announced),
			Since: timestamppb.New(s.Since)}
	}
	if s := r.Replaced; s != nil {
		m.Replaced = &kdspb.Replaced{Count: uint32(s.Count), Since: timestamppb.New(s.Since)}
	}
	return m, nil
}

// text returns s as a protobuf string may be. A peer's text for people is not always UTF-8.
func text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// maxReportValues and maxReportDepth leave room for what a peer reports of each proxy as JSON.
const maxReportValues, maxReportDepth = 10 * maxBehind, 16

var errReportJSON = errors.New("it is not JSON of its form")

// parseReport reads a report in either form. checkReport judges what it says.
func parseReport(m *kdspb.ReportRequest) (*tracker.Report, error) {
	if raw := m.GetJson(); len(raw) > 0 {
		if err := messages.CheckJSON(raw, maxReportValues, maxReportDepth); err != nil {
			return nil, err
		}
		r := &tracker.Report{}
		if json.Unmarshal(raw, r) != nil {
			return nil, errReportJSON
		}
		return r, nil
	}
	r := &tracker.Report{
		Applied: make(map[resources.Type]uint64, len(m.GetApplied())), Own: m.GetOwn(), More: int(m.GetMore()),
		Streams: m.GetStreams(), Behind: make([]tracker.ProxyBehind, len(m.GetBehind())),
	}
	for t, revision := range m.GetApplied() {
		r.Applied[resources.Type(t)] = revision
	}
	for i, p := range m.GetBehind() {
		r.Behind[i] = tracker.ProxyBehind{Mesh: p.GetMesh(), Namespace: p.GetNamespace(), Name: p.GetName(),
			Reason: p.GetReason()}
	}
	if len(m.GetHeld()) > 0 {
		r.Held = make(map[resources.Type]int, len(m.GetHeld()))
	}
	for t, n := range m.GetHeld() {
		r.Held[resources.Type(t)] = int(n)
	}
	var errs [2]error
	if s := m.GetNewStore(); s != nil {
		r.NewStore = &tracker.NewStore{Known: s.GetKnown(), Announced: s.GetAnnounced()}
		r.NewStore.Since, errs[0] = timeOf(s.GetSince(), "newStore.since")
	}
	if s := m.GetReplaced(); s != nil {
		r.Replaced = &tracker.Replaced{Count: int(s.GetCount())}
		r.Replaced.Since, errs[1] = timeOf(s.GetSince(), "replaced.since")
	}
	return r, errors.Join(errs[:]...)
}

// timeOf returns a time of a peer's message; zero if it is not set. A time outside years 1 to 9999 cannot be shown.
func timeOf(t *timestamppb.Timestamp, field string) (time.Time, error) {
	if t == nil {
		return time.Time{}, nil
	}
	if err := t.CheckValid(); err != nil {
		return time.Time{}, fmt.Errorf("%s: %w", field, err)
	}
	return t.AsTime(), nil
}

// reachedMessage returns the message of an answer.
func reachedMessage(r *tracker.Reached) *kdspb.ReachedResponse {
	m := &kdspb.ReachedResponse{Stored: r.Stored, Pending: r.Pending, Behind: r.Behind}
	for _, z := range r.Refused {
		m.Refused = append(m.Refused, &kdspb.ReachedResponse_Refused{Zone: z.Zone, Reason: text(z.Reason)})
	}
	for _, z := range r.Offline {
		one := &kdspb.ReachedResponse_Offline{Zone: z.Zone, NotSeen: z.NotSeen, Comparing: z.Comparing}
		if !z.Since.IsZero() {
			one.Since = timestamppb.New(z.Since)
		}
		m.Offline = append(m.Offline, one)
	}
	return m
}

// parseReached reads an answer.
func parseReached(m *kdspb.ReachedResponse) (*tracker.Reached, error) {
	r := &tracker.Reached{Stored: m.GetStored(), Pending: m.GetPending(), Behind: m.GetBehind()}
	for _, z := range m.GetRefused() {
		r.Refused = append(r.Refused, tracker.RolloutRefused{Zone: z.GetZone(), Reason: z.GetReason()})
	}
	for _, z := range m.GetOffline() {
		since, err := timeOf(z.GetSince(), "offline.since")
		if err != nil {
			return nil, err
		}
		r.Offline = append(r.Offline, tracker.RolloutOffline{Zone: z.GetZone(), Since: since, NotSeen: z.GetNotSeen(),
			Comparing: z.GetComparing()})
	}
	return r, nil
}
