package matching

import "fmt"

// Names of the top-level ranks, origins and sections for users.
var (
	topLevelNames = [...]string{
		rankMesh: "Mesh", rankDataplaneByLabels: "Dataplane by labels", rankDataplaneByName: "Dataplane by name",
		rankDataplaneSection: "Dataplane with sectionName", rankMeshSubset: "MeshSubset", rankMeshGateway: "MeshGateway",
		rankMeshService: "MeshService", rankMeshServiceSubset: "MeshServiceSubset",
	}
	originNames  = [...]string{"global", "zone"}
	sectionNames = [...]string{"a whole resource", "one section"}
)

// Equal reports whether both are the same position of the same policy.
func (o Order) Equal(other Order) bool { return o == other }

// Why names the step of Compare by which the greater of two orders beats the other: "zone origin beats global origin".
// The texts are for users.
func Why(a, b Order) string {
	if Compare(a, b) > 0 {
		a, b = b, a
	}
	switch {
	case a.written != b.written:
		return "a policy that somebody wrote beats one that the mesh begins with"
	case a.topLevel != b.topLevel:
		return fmt.Sprintf("targetRef %s beats %s", topLevelNames[b.topLevel], topLevelNames[a.topLevel])
	case a.origin != b.origin:
		return fmt.Sprintf("%s origin beats %s origin", originNames[b.origin], originNames[a.origin])
	case a.role != b.role:
		return fmt.Sprintf("role %s beats %s", roleName(b.role), roleName(a.role))
	case a.item != b.item:
		return fmt.Sprintf("an item for %s beats one for %s", itemName(b.item), itemName(a.item))
	case a.section != b.section:
		return fmt.Sprintf("an item for %s beats one for %s", sectionNames[b.section], sectionNames[a.section])
	case a.displayName != b.displayName:
		return fmt.Sprintf("name %q beats %q: it comes first in the alphabet", b.displayName, a.displayName)
	case a.kri != b.kri:
		return fmt.Sprintf("KRI %s beats %s: it comes last in the alphabet", b.kri, a.kri)
	case a.key != b.key:
		return fmt.Sprintf("%s beats %s", b.key, a.key)
	}
	return "a later item of a policy beats an earlier one"
}

func roleName(rank int) string {
	if rank < 0 {
		return "none"
	}
	return string(roles[rank])
}

func itemName(rank int) string {
	if rank < 0 {
		return "an unknown kind"
	}
	return itemKinds[rank]
}

// Order returns the origin's position among all items.
func (o Origin) Order() Order {
	if o.item == nil {
		return OrderOf(o.Policy, nil)
	}
	return o.item.order
}
