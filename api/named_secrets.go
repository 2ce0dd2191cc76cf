package api

// NamedSecret is a secret that users manage, as the API shows it: its name, never its value.
type NamedSecret struct {
	Mesh      string `json:"mesh"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// NamedSecrets is the response to `GET /meshes/{mesh}/_secrets`.
type NamedSecrets struct {
	Items []NamedSecret `json:"items"`
}

// SecretValue is the body of `PUT /meshes/{mesh}/_secrets/{name}`. Value is base64 in JSON.
type SecretValue struct {
	Value []byte `json:"value"`
}
