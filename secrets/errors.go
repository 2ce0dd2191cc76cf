package secrets

import "errors"

var (
	// ErrWrongKey: the secret was sealed with another key file or passphrase. Give the server the one it was sealed with.
	ErrWrongKey = errors.New("sealed with another key")
	// ErrDamaged: the sealed bytes were changed, cut, or sealed for another purpose.
	ErrDamaged = errors.New("the sealed secret is damaged, or was sealed for something else")
	// ErrKey: the key file or passphrase cannot be used.
	ErrKey = errors.New("the key for secrets cannot be used")
	// ErrNotFound: there is no secret of that name.
	ErrNotFound = errors.New("no such secret")
	// ErrLimit: a secret is empty or too large, or there are too many.
	ErrLimit = errors.New("over a limit of secrets")
	// ErrChanged: the secret is not at the version that was named. Read it again and decide anew.
	ErrChanged = errors.New("the secret was changed in between")
)
