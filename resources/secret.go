package resources

// Secret is a secret of the servers in sealed form. It exists only in the stores of one server and its replicas:
// Lookup, LookupPath and Descriptors do not know the type, so neither users nor peers can name it.
type Secret struct {
	Sealed []byte `json:"sealed"`
}
