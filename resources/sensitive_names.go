package resources

import "strings"

// IsSecretHeader reports whether the value of a header with this name is a secret wherever it is shown.
func IsSecretHeader(name string) bool { return secretHeader(name) }

// IsSecretText reports whether a text under this name is a secret, in any document: the name implies it, or the text
// contains a private key.
func IsSecretText(name, text string) bool {
	return named(name, text) || strings.Contains(text, privateKeyPEM)
}
