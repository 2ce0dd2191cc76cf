package proxypatch

import "fmt"

// maxWork limits the bytes that a policy reads and writes for one proxy. A few kilobytes for each of a thousand
// clusters use a tenth of it.
const maxWork = 64 << 20

// jsonWork is the cost of a byte of JSON, relative to a byte of a message.
const jsonWork = 4

// budget limits the server's cost of applying a policy to a proxy: matches select many resources, and each modification
// may grow all of them.
type budget struct{ left int }

func newBudget() *budget { return &budget{maxWork} }

// spend returns an error once the policy exceeds its budget.
func (b *budget) spend(n int) error {
	if b.left -= n; b.left < 0 {
		return fmt.Errorf("the policy changes more than %d MiB of the proxy's configuration: match fewer resources, or add less to each",
			maxWork>>20)
	}
	return nil
}
