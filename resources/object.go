package resources

// Object identifies the Kubernetes object that a resource was written as. It is zero for resources that were written
// otherwise.
type Object struct {
	// UID is the identity of the object: another object of the same name has another.
	UID string `json:"uid,omitempty"`
	// Generation is the object's generation of the spec.
	Generation int64 `json:"generation,omitempty"`
}

// IsZero reports whether there is no object.
func (o Object) IsZero() bool { return o == Object{} }
