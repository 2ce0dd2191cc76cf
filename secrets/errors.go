package secrets

import "errors"

var (
	// ErrWrongKey reports that the secret was sealed with another key file or passphrase, or that the bytes that name
	// its key are damaged. Give the server that key, or restore the secret from a backup.
	ErrWrongKey = errors.New("sealed with another key")
	// ErrDamaged reports that the sealed bytes were changed, truncated, or sealed for another purpose.
	ErrDamaged = errors.New("the sealed secret is damaged, or was sealed for another purpose")
	// ErrKey reports that the key file or passphrase cannot be used.
	ErrKey = errors.New("the key for secrets is unusable")
	// ErrNotFound reports that no secret has that name.
	ErrNotFound = errors.New("no such secret")
	// ErrLimit reports that a secret is empty or too large, or that there are too many.
	ErrLimit = errors.New("a limit of secrets is exceeded")
	// ErrChanged reports that the secret is not at the expected version. Read it again and decide anew.
	ErrChanged = errors.New("the secret changed in the meantime")
)
