package zone

import (
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/enrolment"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/zone/identity"
)

// TestExpiriesOfEachTrustDomain: an authority of another trust domain than the zone's own ends too.
func TestExpiriesOfEachTrustDomain(t *testing.T) {
	t.Parallel()
	memory, box := store.NewMemory(), testBox(t)
	mesh, err := resources.NewSpec(resources.TypeMesh, []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = memory.Apply(t.Context(), store.Batch{Ops: []store.Op{{Put: &resources.Resource{
		Key: resources.Key{Type: resources.TypeMesh, Name: "default"}, Spec: mesh}}}})
	if err != nil {
		t.Fatal(err)
	}
	authorities := identity.NewAuthorities(identity.Config{Keeper: secrets.NewKeeper(memory, box), Store: memory,
		Zone: "zone-1"})
	const meshDomain = "default:pay.example"
	id, err := authorities.Prepare(t.Context(), meshDomain)
	if err == nil {
		err = authorities.Promote(t.Context(), meshDomain, id)
	}
	if err != nil {
		t.Fatal(err)
	}
	holder, err := enrolment.OpenHolder(t.TempDir(), box, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	signing, err := authorities.For(meshDomain)
	if err != nil {
		t.Fatal(err)
	}
	if age := time.Since(signing.Created()); age < 0 || age > time.Minute {
		t.Errorf("the authority that was just made is %v old", age)
	}
	if got := expiries(holder, authorities, memory)["mesh/"+meshDomain]; !got.Equal(signing.Certificate().NotAfter) {
		t.Errorf("the authority of %s ends %v, and shown is %v", meshDomain, signing.Certificate().NotAfter, got)
	}
}
