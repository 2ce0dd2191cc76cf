package resources

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/causeway-mesh/causeway/resources/systempb"
)

// zoneInsight returns the status of a zone with one session, whose id has n letters.
func zoneInsight(n int) *systempb.ZoneInsight {
	return &systempb.ZoneInsight{Subscriptions: []*systempb.KDSSubscription{{
		Id: strings.Repeat("i", n), ConnectTime: timestamppb.New(time.Unix(1_700_000_000, 5)),
		Status: &systempb.KDSSubscriptionStatus{Total: &systempb.KDSServiceStats{ResponsesSent: 7},
			Stat: map[string]*systempb.KDSServiceStats{"Mesh": {ResponsesSent: 7}}},
	}}}
}

func newStatus(t *testing.T, m *systempb.ZoneInsight) *Spec {
	t.Helper()
	s, err := NewStatusSpec(TypeZoneInsight, m)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestStatusSpec compares a status with an eagerly encoded spec.
func TestStatusSpec(t *testing.T) {
	for name, n := range map[string]int{"encoded when it is read": 3, "encoded at once": eagerStatus} {
		t.Run(name, func(t *testing.T) {
			m := zoneInsight(n)
			want, err := NewSpecOf(TypeZoneInsight, m)
			if err != nil {
				t.Fatal(err)
			}
			got := newStatus(t, m)
			if late := got.Message() != nil; late != (n < eagerStatus) {
				t.Errorf("the message is kept: %t", late)
			}
			if size, exact := got.Size(), len(want.JSON()); size < exact/2 || size > 2*exact {
				t.Errorf("the size is estimated as %d, the JSON has %d", size, exact)
			}
			typed, err := SpecAs[systempb.ZoneInsight](&Resource{Spec: got})
			if err != nil || typed.GetSubscriptions()[0].GetStatus().GetTotal().GetResponsesSent() != 7 {
				t.Errorf("got %v, %v", typed, err)
			}
			if got.Sealed() || !got.Equal(newStatus(t, zoneInsight(n))) || got.Equal(newStatus(t, zoneInsight(n+1))) {
				t.Error("two statuses are not compared by what they say")
			}
			if string(got.JSON()) != string(want.JSON()) || !got.Equal(want) || !want.Equal(got) {
				t.Errorf("got %s, want %s", got.JSON(), want.JSON())
			}
		})
	}
}

// TestStatusSpecRefuses checks what cannot be encoded as JSON.
func TestStatusSpecRefuses(t *testing.T) {
	m := zoneInsight(1)
	m.Subscriptions[0].Id = "\xff"
	if _, err := NewStatusSpec(TypeZoneInsight, m); err == nil {
		t.Error("a text that is not UTF-8 is taken")
	}
	if _, err := NewStatusSpec("Nothing", zoneInsight(1)); err == nil {
		t.Error("an unknown type is taken")
	}
}

// TestStatusSpecIsCheap checks the cost of a status: a global writes each zone's every second, and it is rarely read.
func TestStatusSpecIsCheap(t *testing.T) {
	m := zoneInsight(1)
	if n := testing.AllocsPerRun(100, func() { newStatus(t, m) }); n > 6 {
		t.Errorf("a status that nobody reads costs %v allocations", n)
	}
}
