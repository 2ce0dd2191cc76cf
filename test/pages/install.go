package pages

// Runner is the test that runs the commands of a page: all of them, but for those that it lists with the reason why it cannot.
type Runner struct {
	// Package is the folder of the test, below the repository's.
	Package string
	// Test is its function.
	Test string
}

// Install says who runs the commands of each page of docs/install that has any.
func Install() map[string]Runner {
	return map[string]Runner{
		"docs/install/one-machine.md":  {"test/e2e", "TestInstallOnOneMachine"},
		"docs/install/two-machines.md": {"test/e2e", "TestInstallOnTwoMachines"},
		"docs/install/systemd.md":      {"test/deploy", "TestInstallWithSystemd"},
		"docs/install/containers.md":   {"test/deploy", "TestInstallInContainers"},
		"docs/install/kubernetes.md":   {"test/deploy", "TestHelmInstall"},
	}
}
