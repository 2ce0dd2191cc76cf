package enrolment

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/causeway-mesh/causeway/enrolment/enrolmentpb"
	"github.com/causeway-mesh/causeway/messages"
)

// TestLimitOfRequest checks that the limit on a request is that of one form: zones send both, and a token that a zone
// of the previous version may send is also judged from this one.
func TestLimitOfRequest(t *testing.T) {
	t.Parallel()
	for size, want := range map[int]codes.Code{
		maxMembershipMessage - 100: codes.OK,
		maxMembershipMessage + 1:   codes.InvalidArgument,
	} {
		in := &enrolmentpb.JoinRequest{Token: strings.Repeat("a", size)}
		if err := messages.AddJSON(in); err != nil {
			t.Fatal(err)
		}
		judged := false
		_, err := answer(t.Context(), in, func(context.Context, *enrolmentpb.JoinRequest) (*enrolmentpb.Credential, error) {
			judged = true
			return &enrolmentpb.Credential{}, nil
		})
		if status.Code(err) != want || judged != (want == codes.OK) {
			t.Errorf("a token of %d bytes: %v, judged %t, want %s", size, err, judged, want)
		}
	}
}
