package pages

// Runner is the test that runs the commands of a page. It lists the commands that it cannot run, with the reason.
type Runner struct {
	// Package is the folder of the test, relative to the repository's.
	Package string
	// Test is the name of the test function.
	Test string
}

// Install maps each page of docs/install that has commands to its runner.
func Install() map[string]Runner {
	return map[string]Runner{
		"docs/install/README.md":       {"test/e2e", "TestTwoMachines"},
		"docs/install/one-machine.md":  {"test/e2e", "TestInstallOnOneMachine"},
		"docs/install/two-machines.md": {"test/e2e", "TestInstallOnTwoMachines"},
		"docs/install/systemd.md":      {"test/deploy", "TestInstallWithSystemd"},
		"docs/install/containers.md":   {"test/deploy", "TestInstallInContainers"},
		"docs/install/kubernetes.md":   {"test/deploy", "TestHelmInstall"},
	}
}
