# `make` builds everything; `make help` lists the targets. Every target works on a fresh clone.
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null)
# A fresh clone meets the build cache, since no path of a folder is part of what is compiled.
export GOFLAGS ?= -trimpath
MODULES := . deploy/e2e

.PHONY: build dist run unit setup test race acp lint vuln reference tidy bench fuzz faults soak failover pictures verify verify-test verify-postgres clean help

build: ## all programs into bin/
	umask 022 && go build -ldflags "-X arizuko/pkg/buildinfo.version=$(VERSION)" -o bin/ ./gated ./routd ./onbod ./dashd ./teled ./discd ./slakd ./migrations/cmd/migrate ./deploy/agents/demo ./deploy/agents/claude ./deploy/agents/acp ./deploy/agents/oneshot ./deploy/agents/agentcheck ./deploy/launcher

dist: ## static programs and the context of the images, into dist/; needs busybox and docker's client
	deploy/compose/secrets.sh
	deploy/docker/dist.sh '$(VERSION)'

run: build ## everything on this machine, until Ctrl-C; takes the environment
	@exec bin/launcher

# Vet is part of lint, and half of the time goes into linking debug information. More packages than processors: tests mostly wait.
GO_TEST := go test -p 4 -vet=off -ldflags='-s -w'
IN_MEMORY := deploy/e2e/inmemory.sh
ON_POSTGRES := $(addprefix arizuko/,pkg/store/... pkg/adapter/rows pkg/facts/rows pkg/egress/rows pkg/daemon/... dashd/internal/rows gated/internal/rows onbod/internal/rows routd/internal/rows migrations/... dashd/internal/doctor deploy/e2e/foreign deploy/e2e/invariants deploy/e2e/scenarios)

unit: ## the quick tests: needs only Go and a C compiler
	$(IN_MEMORY) $(GO_TEST) -short work

setup: ## installs what test needs besides Go, or names the command that does
	@deploy/e2e/setup.sh

# Counted, since go does not know that a test starts daemons whose code has changed.
test: setup ## all tests, with real processes, database files, pages and agents; DB=postgres: the store, daemons and scenarios on a server
	$(IN_MEMORY) $(if $(filter postgres,$(DB)),go run ./pkg/testkit/postgres/cmd/withpostgres) $(GO_TEST) -count=1 -timeout 30m $(if $(filter postgres,$(DB)),$(ON_POSTGRES),work)

race: setup ## the same under the race detector, daemons included; RACE names packages
	$(IN_MEMORY) go test -timeout 30m -race $(or $(RACE),work)

acp: ## real agents of the Agent Client Protocol with fake models: 1.5 GB of npm packages, 15 minutes
	for agent in acp claude; do npm ci --prefix deploy/agents/$$agent --no-fund --no-audit || exit 1; done
	go test -tags realagents -timeout 40m -count=1 -run TestReal -v ./deploy/agents/acp ./deploy/e2e/agents

lint: ## plain words, formatting, vet, linters, and both modules on their own
	deploy/lint/lint.sh

vuln: ## known vulnerabilities in what is linked; needs vuln.go.dev
	status=0; for module in $(MODULES); do go -C $$module run golang.org/x/vuln/cmd/govulncheck@v1.9.0 ./... || status=1; done; exit $$status

reference: ## what docs/reference has from the code, written again
	go test -vet=off -count=1 -run 'TestEnvironment_|TestShown_Page|TestPage_IsDocsToolsPage' $(addprefix ./,gated routd onbod dashd teled discd slakd pkg/config pkg/adapter pkg/msg gated/internal/tools deploy/agents/claude deploy/agents/acp) -update

tidy: ## go.mod and go.sum of each module, and go.work.sum
	for module in $(MODULES); do GOWORK=off go -C $$module mod tidy || exit 1; done
	go work sync

bench: ## the message path against a floor without logic; takes half an hour
	go run ./deploy/e2e/bench $(ARGS)

faults: ## daemons killed at N failpoints under load; without N once at each; DB=postgres: on a server
	go run ./deploy/e2e/chaos faults $(if $(N),-n $(N)) $(if $(SEED),-seed $(SEED)) $(if $(DB),-db $(DB))

fuzz: ## every fuzz target, TOTAL executions (10000000) in all, or EXECS each; ONLY picks some; an hour
	@TOTAL=$(TOTAL) EXECS=$(EXECS) ONLY='$(ONLY)' PARALLEL=$(PARALLEL) deploy/e2e/fuzz.sh

soak: ## load for FOR (3m) with kills, hangs, a clock that jumps, and outages of all platforms and the web chat
	go run ./deploy/e2e/chaos soak $(if $(FOR),-for $(FOR)) $(if $(SEED),-seed $(SEED)) $(if $(DB),-db $(DB))

failover: export VERIFY := 1
failover: setup ## three machines on database servers with failover, all killed, suspended and cut off under load; 20 minutes; ONLY picks some
	go test -tags failover -count=1 arizuko/pkg/testkit/patroni
	go run ./deploy/e2e/chaos failover $(if $(ONLY),-only '$(ONLY)') $(if $(SEED),-seed $(SEED))

pictures: ## the pictures of docs/tour.md and docs/run.md, made again in Chromium
	VERIFY=1 go test ./deploy/e2e/tour -count=1 -pictures $(CURDIR)/docs/tour

# A stage that fails, such as a figure over its budget, does not keep the others from running.
verify: ## what judges by figures or chance or takes long, before an issue is closed and every night: two hours
	$(MAKE) -k FOR=10m lint race bench faults verify-test soak

# VERIFY runs tests that `make test` leaves out: see pkg/testkit/need.
verify-test:
	VERIFY=1 $(MAKE) test
	go test -tags failpoints arizuko/pkg/failpoint

verify-postgres: failover ## the same on Postgres, with machines that fail over; another hour
	VERIFY=1 $(MAKE) test DB=postgres
	$(MAKE) faults DB=postgres
	$(MAKE) soak FOR=10m DB=postgres

clean:
	rm -rf bin dist

help:
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 10
