package model

import "fmt"

// hashed returns the name of a resource outside its origin: display name, dash, 16 letters for the FNV-1a sum (64 bits)
// of mesh, display name, zone and namespace. The last two count only if they are set. Each hexadecimal digit of the sum
// selects a letter by its character code.
func hashed(mesh, display, zone, namespace string) string {
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	const basis, prime, longest = uint64(0xcbf29ce484222325), uint64(0x100000001b3), 236
	sum := basis
	for _, b := range []byte(mesh + display + zone + namespace) {
		sum = (sum ^ uint64(b)) * prime
	}
	suffix := ""
	for _, digit := range []byte(fmt.Sprintf("%016x", sum)) {
		suffix += string(letters[int(digit)%len(letters)])
	}
	return display[:min(len(display), longest)] + "-" + suffix
}
