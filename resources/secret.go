package resources

// Secret is a secret of the servers in sealed form. It lives in the stores of one server and its replicas and goes nowhere
// else: Lookup, LookupPath and Descriptors do not know the type, so that neither a user nor a peer can name it.
type Secret struct {
	Sealed []byte `json:"sealed"`
}
