// Package proxypatch applies MeshProxyPatches to Envoy's resources, and decides which results an ordinary writer may
// have. It owns the conf of the type, the forms of its values, the operations, and the guard. It is pure: it reads no
// store and sends nothing, and it imports nothing of ours.
package proxypatch
