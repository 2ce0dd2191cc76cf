package capture

import "errors"

var (
	// ErrSettings reports settings that cannot be installed.
	ErrSettings = errors.New("invalid capture")
	// ErrNotAllowed reports that the process may not change the rules of its network.
	ErrNotAllowed = errors.New("needs the capability CAP_NET_ADMIN: run it as root, or add NET_ADMIN to the container")
	// ErrNoNFT reports a kernel that lacks a required feature.
	ErrNoNFT = errors.New("the kernel lacks nf_tables with nat, fib and redirect (since Linux 5.2): load the modules " +
		"nf_tables, nft_chain_nat, nft_redir, nft_fib_inet and nft_reject_inet")
	// ErrNotCaptured reports that connections do not reach the proxy.
	ErrNotCaptured = errors.New("connections are not captured")
	// ErrNotLinux reports a system without nftables.
	ErrNotLinux = errors.New("capture works on Linux only")
)
