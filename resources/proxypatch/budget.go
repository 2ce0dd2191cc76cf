package proxypatch

import "fmt"

// maxWork bounds the bytes that a policy reads and writes for one proxy. A few kilobytes for each of a thousand clusters
// are a tenth of it.
const maxWork = 64 << 20

// jsonWork is how much more a byte of JSON costs than one of a message.
const jsonWork = 4

// budget bounds what applying a policy to a proxy costs the server: matches select many resources, and each modification
// may let all of them grow.
type budget struct{ left int }

func newBudget() *budget { return &budget{maxWork} }

// spend returns an error when a policy has had all that it may.
func (b *budget) spend(n int) error {
	if b.left -= n; b.left < 0 {
		return fmt.Errorf("the policy changes more than %d MiB of the proxy's configuration: match fewer resources, or add less to each",
			maxWork>>20)
	}
	return nil
}
