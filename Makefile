# Every target works on a fresh clone with Go and a C compiler; what test and race want besides stands in
# README.
MODULES := migrations pkg pkg/testkit gated routd dashd teled discd slakd deploy deploy/e2e

.PHONY: build run test race lint bench faults soak clean

build: ## all programs into bin/
	go build -o bin/ ./gated ./routd ./dashd ./teled ./discd ./slakd ./migrations/cmd/migrate ./deploy/agents/demo ./deploy/agents/claude ./deploy/agents/oneshot ./deploy/launcher

run: build ## everything on this machine, until Ctrl-C; takes the environment
	@exec bin/launcher

test: ## everything, with real processes and database files
	go test work

race: ## the same under the race detector
	go test -race work

lint: ## vet, format, linters, and each module on its own
	deploy/lint.sh $(MODULES)

bench: ## the message path against a floor without logic; takes some minutes
	go run ./deploy/e2e/bench $(ARGS)

faults: ## daemons killed at N named places under load; without N once in each
	go run ./deploy/e2e/chaos faults $(if $(N),-n $(N)) $(if $(SEED),-seed $(SEED))

soak: ## load for FOR (3m) with random kills, hangs and a clock that jumps
	go run ./deploy/e2e/chaos soak $(if $(FOR),-for $(FOR)) $(if $(SEED),-seed $(SEED))

clean:
	rm -rf bin
